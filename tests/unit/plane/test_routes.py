"""Keys by number, rows by key, and rows that are kept."""

from __future__ import annotations

import pytest

pytest.importorskip("numba")
pytest.importorskip("pyarrow")

from tests.unit.plane.talk import stream_of
from zenwire.api.rows import RowSample
from zenwire.columns.receive import Receiving, Run
from zenwire.columns.routes import MESSAGES, NOBODY, Routes
from zenwire.wire.batch import encode_batch
from zenwire.wire.data import Del, Put
from zenwire.wire.network import Push
from zenwire.wire.transport import Frame
from zenwire.wire.values import Mapping, WireExpr

RECEIVING = Receiving()


class Lanes:
    """Lanes that wait for number 0."""

    mask = 2**28 - 1
    qos = True

    def __init__(self) -> None:
        self.newest = dict.fromkeys(range(16), self.mask)

    def numbers(self) -> list[int]:
        return list(self.newest.values())

    def took(
        self, newest: dict[int, int], batches: int, frames: int, messages: int, missing: int
    ) -> None:
        self.newest.update(newest)


def run_of(pushes: list[Push], each: int = 1000) -> Run:
    """They as they are received, ``each`` batch with so many."""
    batches = [
        encode_batch([Frame(reliable=True, sn=at), *pushes[start : start + each]])
        for at, start in enumerate(range(0, len(pushes), each))
    ]
    data = memoryview(bytearray(stream_of(batches)))
    assert RECEIVING.split(data, 65_535) == len(data)
    (run,) = RECEIVING.parts(Lanes())
    assert isinstance(run, Run)
    assert len(run) == len(pushes)
    return run


def push(key: WireExpr, payload: bytes = b"x") -> Push:
    return Push(key=key, body=Put(payload=payload))


def test_each_key_is_asked_for_once() -> None:
    asked: list[tuple[int, str, bool]] = []

    def find(scope: int, suffix: str, mapped: bool) -> tuple[str, int]:
        asked.append((scope, suffix, mapped))
        return f"{scope}{suffix}{mapped}", 1 + len(suffix) % 2

    exprs = [
        WireExpr(1, "", Mapping.RECEIVER),
        WireExpr(1, "", Mapping.SENDER),
        WireExpr(60_000, "", Mapping.SENDER),
        WireExpr(1, "/a", Mapping.RECEIVER),
        WireExpr(1, "/a", Mapping.SENDER),
        WireExpr(0, "a/rather/long/key/of/many/bytes"),
        WireExpr(0, "a/rather/long/key/of/many/bytez"),
        WireExpr(0, "é"),
    ]
    routes = Routes(find, 1000)
    for _ in range(2):
        run = run_of([push(expr) for expr in exprs * 3])
        part = routes.resolve(run, run.first)
        assert (part.first, part.stop) == (run.first, run.stop)
        keys = part.key_texts(*part.rows(lambda _: True))
        assert keys == [f"{e.scope}{e.suffix}{e.mapping is Mapping.SENDER}" for e in exprs] * 3
    assert len(asked) == len(exprs)


def test_many_keys_and_as_many_as_may_be() -> None:
    routes = Routes(lambda _scope, suffix, _mapped: (suffix, 1), 2000)
    exprs = [WireExpr(0, f"key/{at}") for at in range(5000)]
    run = run_of([push(expr) for expr in exprs])
    first, found = run.first, []
    sizes = []
    while first < run.stop:
        part = routes.resolve(run, first)
        found += part.key_texts(*part.rows(lambda _: True))
        sizes.append(len(part))
        first = part.stop
        if routes.full:
            routes.clear()
    assert found == [expr.suffix for expr in exprs]
    assert sizes == [2000, 2000, 1000]


def test_keys_that_take_too_much_are_forgotten() -> None:
    routes = Routes(lambda scope, suffix, _: (suffix, MESSAGES), 10**6)
    for number in range(300):
        run = run_of([push(WireExpr(0, f"{number}" + "k" * 60_000))])
        part = routes.resolve(run, run.first)
        assert part.low == MESSAGES
        if routes.full:
            break
    else:
        pytest.fail("it has kept them all")


def test_rows_by_who_takes_them() -> None:
    groups = {1: NOBODY, 2: 1, 3: 2, 4: 3}
    routes = Routes(lambda scope, _suffix, _mapped: (f"k{scope}", groups[scope]), 1000)
    run = run_of([push(WireExpr(1 + at % 4), str(at).encode()) for at in range(100)])
    part = routes.resolve(run, run.first)
    assert (part.low, part.high) == (0, 3)
    rows, count = part.rows(lambda group: group in {1, 3})
    assert rows.tolist() == [run.first + at for at in range(100) if at % 4 in {1, 3}]
    assert count == 50
    assert set(part.key_texts(rows, count)) == {"k2", "k4"}
    messages, numbers, keys = part.objects()
    assert len(messages) == 100
    assert numbers[:4] == [0, 1, 2, 3]
    assert keys[:4] == ["k1", "k2", "k3", "k4"]
    assert part.groups_there() == [0, 1, 2, 3]
    # A later run has one group, and the routes of others are known all the same.
    run = run_of([push(WireExpr(3)) for _ in range(10)])
    rows, count = routes.resolve(run, run.first).rows(lambda group: group == 2)
    assert (len(rows), count) == (0, 10)


@pytest.mark.parametrize("every", [1, 10])
def test_kept_rows_outlive_what_they_came_in(every: int) -> None:
    """With ``every`` 10, most of the bytes are others', and are not kept."""
    routes = Routes(lambda scope, _suffix, _mapped: (f"k{scope}", scope), 1000)
    pushes = [
        push(WireExpr(1 if at % every == 0 else 2), bytes([at % 256]) * 9) for at in range(500)
    ]
    pushes[0] = Push(key=WireExpr(1), body=Del(attachment=b"why"))
    run = run_of(pushes)
    part = routes.resolve(run, run.first)
    kept = part.keep(*part.rows(lambda group: group == 1))
    run.scan.buffer[:] = 0
    run_of([push(WireExpr(7))] * 600)
    mine = pushes[::every]
    assert [kept.payload(at) for at in range(len(mine))] == [
        one.body.payload if isinstance(one.body, Put) else b"" for one in mine
    ]
    assert [kept.message(at) for at in range(len(mine))] == [("k1", one) for one in mine]
    assert (len(kept._data) < 1000) is (every > 1) or every == 1


def test_a_sample_lets_go_of_the_others() -> None:
    routes = Routes(lambda scope, _suffix, _mapped: ("k", 1), 1000)
    run = run_of([push(WireExpr(1), b"value")] * 3)
    part = routes.resolve(run, run.first)
    sample = RowSample(part.keep(*part.rows(lambda _: True)), 1)
    assert sample.size > 5
    assert bytes(sample.payload) == b"value"
    assert sample._kept is not None
    assert str(sample.key_expr) == "k"
    assert sample._kept is None
    assert bytes(sample.payload) == b"value"
    assert sample.size == 5
    with pytest.raises(AttributeError, match="nothing"):
        sample.nothing  # noqa: B018 # asking is the test
