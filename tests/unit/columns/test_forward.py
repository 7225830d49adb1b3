"""Rows to messages for others: heads, times, batches, and which rows go together."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

pytest.importorskip("numba")
pytest.importorskip("pyarrow")

from tests.unit.plane.talk import Talk
from tests.unit.plane.test_routes import run_of
from zenwire.columns.forward import Passage, Way, Ways
from zenwire.columns.routes import MESSAGES, NOBODY, Part, Routes
from zenwire.node.clock import Clock, FutureTimestamp, ntp64_from_ns
from zenwire.wire.batch import decode_batch, split_stream
from zenwire.wire.data import Del, Put
from zenwire.wire.network import Push
from zenwire.wire.repeat import FrameHeads, with_body, with_timestamp
from zenwire.wire.structs import Timestamp
from zenwire.wire.transport import Frame
from zenwire.wire.values import Mapping, Priority, QoS, UnknownExt, WireExpr, ZenohId

ZID = ZenohId(bytes(range(40, 56)))
OTHER = ZenohId(b"\x07")
NOW = 1_800_000_000 * 10**9
PREFIX = 2


def part_of(pushes: list[Push], ways: Ways[str], to: Any) -> Part:
    """Their rows, with routes that ``to`` gives: by scope, how and for whom."""

    def find(scope: int, _suffix: str, _mapped: bool) -> tuple[str, int]:
        found = to(scope)
        ways.learn(found or ())
        return f"k{scope}", NOBODY if found is not None else MESSAGES

    run = run_of(pushes, 50)
    return Routes(find, 1000).resolve(run, run.first)


def batches_of(
    passage: Passage, part: Part, way: Way[str], *, packing: int = 60_000, timed: bool = False
) -> list[Any]:
    """All that is written, as it is read."""
    heads, sn, mask, found = FrameHeads(Priority.DATA, True), 126, 127, []
    alike = passage.alike(part, part.first)
    bounds = part.first, part.stop
    for lane in passage.lanes(part, *bounds, alike.qos):
        written = passage.write(part, bounds, lane, way, packing, timed=timed)
        while written.go_on(heads.around, sn, mask, PREFIX):
            data = bytes(written.data)
            spans = [*split_stream(data)]
            assert spans[-1][1] == len(data)
            assert len(spans) == written.batches
            content = [decode_batch(data[start:end]) for start, end in spans]
            counts = [count for _, count in written.pieces()]
            assert [len(batch) - 1 for batch in content] == counts
            assert sum(counts) == written.messages
            if written.alone:
                assert counts == [1]
            else:
                assert all(len(piece) <= packing for piece, _ in written.pieces())
            for batch in content:
                frame, *messages = batch
                assert frame == Frame(reliable=True, sn=sn, priority=Priority.DATA)
                sn = sn + 1 & mask
                found += messages
    return found


def test_keys_are_written_anew_and_all_else_stays() -> None:
    talk = Talk("forward")
    pushes = []
    for at in range(2_000):
        push = talk.push()
        key = WireExpr(1 + at % 3, f"/{at % 7}" if at % 5 == 0 else "", Mapping.SENDER)
        pushes.append(Push(key=key, qos=QoS(13), body=push.body))
    ways: Ways[str] = Ways()
    names = {1: WireExpr(300, "", Mapping.RECEIVER), 2: WireExpr(0, "a/key/of/some/length/é" * 3)}
    part = part_of(
        pushes,
        ways,
        lambda scope: [(names[scope], 0, ("one", "two"))] if scope in names else [],
    )
    (way,) = ways
    assert way.to == ("one", "two")
    wanted = [
        Push(key=names[one.key.scope], qos=one.qos, body=one.body)
        for one in pushes
        if one.key.scope in names
    ]
    for packing in (60_000, 1_000):
        assert batches_of(Passage(ZID), part, way, packing=packing) == wanted


def test_a_message_larger_than_a_batch_is_alone() -> None:
    pushes = [
        Push(key=WireExpr(1), body=Put(payload=bytes([at]) * (3_000 if at % 4 == 1 else 30)))
        for at in range(40)
    ]
    ways: Ways[str] = Ways()
    part = part_of(pushes, ways, lambda _: [(WireExpr(9), 0, ("one",))])
    (way,) = ways
    found = batches_of(Passage(ZID), part, way, packing=200)
    assert found == [Push(key=WireExpr(9), body=one.body) for one in pushes]


def test_a_node_id_and_what_is_larger_than_the_buffer() -> None:
    pushes = [Push(key=WireExpr(1), body=Put(payload=bytes(700)))] * 900
    ways: Ways[str] = Ways()
    part = part_of(pushes, ways, lambda _: [(WireExpr(9), 5, ("one",))])
    (way,) = ways
    wanted = [Push(key=WireExpr(9), node_id=5, body=pushes[0].body)] * 900
    passage = Passage(ZID)
    assert len(passage.out) < 900 * 700
    # It grows with the first that does not hold all, and then does.
    for _ in range(2):
        assert batches_of(passage, part, way) == wanted
        assert len(passage.out) > 900 * 700
    heads, seen = FrameHeads(Priority.DATA, True), []
    passage, bounds = Passage(ZID), (part.first, part.stop)
    (lane,) = passage.lanes(part, *bounds, passage.alike(part, part.first).qos)
    written = passage.write(part, bounds, lane, way, 60_000, timed=False)
    while written.more:
        assert written.go_on(heads.around, 0, 127, PREFIX)
        seen.append(written.messages)
    assert len(seen) == 2
    assert sum(seen) == 900
    assert not written.go_on(heads.around, 0, 127, PREFIX)


def test_what_ways_take_is_counted() -> None:
    ways: Ways[str] = Ways()
    for at in range(100):
        ways.learn([(WireExpr(0, f"key/{at}"), 0, ("one",)), (WireExpr(at + 1), 0, ("two",))])
    for way in ways:
        assert way.size == 100
        plain = way.heads(QoS(5))
        assert way.size == 100 + plain.used
        assert way.heads(QoS(5)) is plain
        other = way.heads(QoS(13))
        assert way.size == 100 + plain.used + other.used
    ways.learn([])
    for way in ways:
        used = way.heads(QoS(5)).used + way.heads(QoS(13)).used
        assert way.size == 101 + used


def test_ways_part_where_keys_are_written_otherwise() -> None:
    ways: Ways[str] = Ways()
    a, b = WireExpr(1), WireExpr(2)
    ways.learn([(a, 0, ("one", "two"))])
    assert [way.to for way in ways] == [("one", "two")]
    ways.learn([(a, 0, ("one",)), (b, 0, ("two", "three"))])
    assert sorted(way.to for way in ways) == [("one",), ("three",), ("two",)]
    ways.learn([])
    pushes = [Push(key=WireExpr(scope), body=Del()) for scope in (1, 2, 3, 1)]
    fresh: Ways[str] = Ways()
    routes = {
        1: [(a, 0, ("one", "two"))],
        2: [(a, 0, ("one",)), (b, 0, ("two", "three"))],
        3: [],
    }
    part = part_of(pushes, fresh, lambda scope: routes[scope])
    passage = Passage(ZID)
    got = {way.to: [one.key for one in batches_of(passage, part, way)] for way in fresh}
    assert got == {("one",): [a, a, a], ("two",): [a, b, a], ("three",): [b]}
    assert not fresh.full


def test_each_lane_keeps_its_order() -> None:
    random = Random(5)
    levels = [QoS(5), QoS(13), QoS(1), QoS(0x1F)]
    pushes = [
        Push(key=WireExpr(1), qos=random.choice(levels), body=Put(payload=str(at).encode()))
        for at in range(400)
    ]
    ways: Ways[str] = Ways()
    part = part_of(pushes, ways, lambda _: [(WireExpr(1), 0, ("one",))])
    (way,) = ways
    found = batches_of(Passage(ZID), part, way)
    assert sorted(found, key=lambda one: int(one.body.payload)) == pushes
    for priority in {one.priority for one in levels}:
        mine = [one for one in pushes if one.qos.priority is priority]
        assert [one for one in found if one.qos.priority is priority] == mine


def test_rows_that_have_to_be_looked_at() -> None:
    put = Put(payload=b"x")
    odd = [
        Push(key=WireExpr(1), node_id=3, body=put),
        Push(key=WireExpr(1), timestamp=Timestamp(time=5, id=OTHER), body=put),
        Push(key=WireExpr(1), body=Put(payload=b"", unknown=(UnknownExt(0x2B, 7),))),
        Push(key=WireExpr(2), body=put),
    ]
    plain = Push(key=WireExpr(1), body=put)
    for one in odd:
        ways: Ways[str] = Ways()
        part = part_of(
            [plain, plain, one, one, plain],
            ways,
            lambda scope: [(WireExpr(1), 0, ("one",))] if scope == 1 else None,
        )
        passage, at, found = Passage(ZID), part.first, []
        while at < part.stop:
            alike = passage.alike(part, at)
            found.append((alike.stop - at, alike.odd))
            at = alike.stop
        assert found == [(2, False), (2, True), (1, False)]


@pytest.mark.parametrize("seed", range(5))
def test_times_are_those_of_one_after_the_other(seed: int) -> None:
    random = Random(seed)
    now = ntp64_from_ns(NOW)
    pushes: list[Push] = []
    for _ in range(300):
        stamp = None
        if random.random() < 0.4:
            ahead = random.choice([-(2**32), -5, 0, 5, 40, 2**30, 2**31 - 100])
            stamp = Timestamp(time=now + ahead + random.randrange(20), id=OTHER)
        body = Put(payload=b"x", timestamp=stamp) if random.random() < 0.9 else Del(timestamp=stamp)
        pushes.append(Push(key=WireExpr(1), body=body))
    if seed == 4:
        late = Timestamp(time=now + 2**32, id=OTHER)
        pushes[200] = Push(key=WireExpr(1), body=Put(payload=b"", timestamp=late))
    single, many = (Clock(ZID, lambda: NOW) for _ in range(2))
    wanted = []
    for push in pushes:
        body = push.body
        if isinstance(body, Put):
            if body.timestamp is None:
                push = with_body(push, with_timestamp(body, single.new_timestamp()))  # noqa: PLW2901
            else:
                try:
                    single.update_with_timestamp(body.timestamp)
                except FutureTimestamp:
                    break
        wanted.append(push)
    ways: Ways[str] = Ways()
    part = part_of(pushes, ways, lambda _: [(WireExpr(1), 0, ("one",))])
    passage = Passage(ZID)
    many.many(passage.stamp(part, part.first, part.stop))
    stop, given = passage.stamped
    assert stop - part.first == len(wanted) == (200 if seed == 4 else 300)
    assert given == sum(a.body != b.body for a, b in zip(wanted, pushes, strict=False))
    (way,) = ways
    some = Routes(lambda *_: ("k", NOBODY), 10).resolve(part.run.some(part.first, stop), part.first)
    assert batches_of(passage, some, way, timed=True) == wanted
    assert single.new_time() == many.new_time()


@pytest.mark.parametrize("size", [1, 15, 16, 17, 31, 33, 250, 300])
def test_bytes_that_end_with_the_buffer(size: int) -> None:
    """What is copied sixteen bytes at a time must not read what is not there."""
    push = Push(key=WireExpr(1), body=Put(payload=bytes([size % 251]) * size))
    ways: Ways[str] = Ways()
    part = part_of([push, push], ways, lambda _: [(WireExpr(4), 0, ("one",))])
    (way,) = ways
    wanted = Push(key=WireExpr(4), body=push.body)
    assert batches_of(Passage(ZID), part, way) == [wanted, wanted]
