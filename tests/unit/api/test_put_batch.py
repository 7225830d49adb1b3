"""Tables that are put at once: the same comes of them as of a loop of puts."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.ports import free_port
from tests.unit.api.nodes import config, run, until
from zenwire import aio
from zenwire.api.put_batch import Written
from zenwire.errors import EncodeError, KeyExprError, SessionClosed, Undeclared
from zenwire.wire import structs
from zenwire.wire.encoding import Encoding
from zenwire.wire.values import ZenohId

pa = pytest.importorskip("pyarrow")
samples = pytest.importorskip("zenwire.columns.samples")

BLOCK = aio.CongestionControl.BLOCK
HIGH = aio.Priority.REAL_TIME
QOS = 8 | 5  # DATA, BLOCK
ZID = bytes(range(1, 17))


@asynccontextmanager
async def two(
    *, ours: dict[str, Any] | None = None, theirs: dict[str, Any] | None = None
) -> AsyncIterator[tuple[aio.Session, aio.Session]]:
    """Two peers with one link."""
    port = free_port()
    async with (
        aio.open(config(listen=port, **(theirs or {}))) as there,
        aio.open(config(connect=port, **(ours or {}))) as here,
    ):
        yield here, there


def said(sample: aio.Sample) -> tuple[Any, ...]:
    """All that a sample says."""
    source, time = sample.source_info, sample.timestamp
    return (
        str(sample.key_expr),
        sample.kind,
        sample.payload.to_bytes(),
        str(sample.encoding),
        None if time is None else (time.get_time(), str(time.get_id())),
        None
        if source is None
        else (str(source.source_id.zid), source.source_id.eid, source.source_sn),
        None if sample.attachment is None else sample.attachment.to_bytes(),
        sample.priority,
        sample.congestion_control,
        sample.express,
        sample.reliability,
    )


async def taken(subscriber: Any, count: int) -> list[tuple[Any, ...]]:
    async with asyncio.timeout(30):
        return [said(await subscriber.recv()) for _ in range(count)]


def full_table(rows: int = 50) -> Any:
    """Every column, each null in some rows."""

    def some(values: list[Any], every: int) -> list[Any]:
        return [None if i % every == 0 else v for i, v in enumerate(values)]

    times = some([(1 << 40) + i for i in range(rows)], 2)
    sources = some(list(range(rows)), 3)
    deletes = [i % 7 == 6 for i in range(rows)]
    encodings = some([i % 5 for i in range(rows)], 4)
    encodings = [None if d else e for d, e in zip(deletes, encodings, strict=True)]
    return pa.table(
        {
            "key": [f"a/{i % 3}" for i in range(rows)],
            "kind": pa.array([int(d) for d in deletes], pa.int8()),
            "payload": [b"" if d else b"%d" % i * 9 for i, d in enumerate(deletes)],
            "encoding": pa.array(encodings, pa.int32()),
            "encoding_schema": pa.array(
                [None if e is None else b"s" if e == 2 else None for e in encodings], pa.binary()
            ),
            "timestamp": pa.array(times, pa.int64()),
            "timestamp_id": pa.array([None if t is None else ZID for t in times], pa.binary()),
            "source_zid": pa.array([None if s is None else ZID for s in sources], pa.binary()),
            "source_eid": pa.array(sources, pa.int64()),
            "source_sn": pa.array(sources, pa.int64()),
            "attachment": pa.array(some([b"x%d" % i for i in range(rows)], 5), pa.binary()),
            "qos": pa.array([QOS] * rows, pa.int32()),
            "reliable": [True] * rows,
            "time": pa.array([0] * rows, pa.int64()),
        }
    )


async def put_rows(session: aio.Session, table: Any, **how: Any) -> None:
    """A loop of put and delete over the rows."""
    for row in table.to_pylist():
        more: dict[str, Any] = {"attachment": row["attachment"], **how}
        if row["timestamp"] is not None:
            stamp = structs.Timestamp(time=row["timestamp"], id=ZenohId(row["timestamp_id"]))
            more["timestamp"] = aio.Timestamp.from_wire(stamp)
        if row["source_zid"] is not None:
            zid = ZenohId(row["source_zid"])
            info = structs.SourceInfo(zid=zid, eid=row["source_eid"], sn=row["source_sn"])
            more["source_info"] = aio.SourceInfo.from_wire(info)
        if row["kind"]:
            await session.delete(row["key"], **more)
            continue
        if row["encoding"] is not None:
            kind = Encoding(row["encoding"], row["encoding_schema"])
            more["encoding"] = aio.Encoding.from_wire(kind)
        await session.put(row["key"], row["payload"], **more)


async def matched(session: aio.Session, key: str) -> None:
    """Wait until somebody is known to subscribe."""
    async with session.declare_publisher(key) as publisher:
        await until(lambda: publisher.matching_status.matching)


def messages(session: aio.Session) -> int:
    return sum(one.transport.tx_messages for one in session.info.stats().neighbours)


def test_every_column_says_what_put_says() -> None:
    async def scenario() -> None:
        table = full_table()
        async with two() as (here, there), there.declare_subscriber("a/**") as got:
            await matched(here, "a/0")
            before = messages(here)
            await put_rows(here, table, congestion_control=BLOCK)
            wanted = await taken(got, table.num_rows)
            between = messages(here)
            assert await here.put_batch(table) == Written(50, 50, 0)
            assert await taken(got, table.num_rows) == wanted
            assert messages(here) - between == between - before == 50

    run(scenario())


def as_dictionary(table: Any) -> Any:
    return table.set_column(0, "key", table.column("key").dictionary_encode())


@pytest.mark.parametrize(
    "form",
    [
        lambda t: t,
        lambda t: t.to_batches()[0],
        lambda t: pa.RecordBatchReader.from_batches(t.schema, t.to_batches(3)),
        lambda t: pa.concat_tables([t.slice(0, 0), t.slice(0, 4), t.slice(4)]),
        lambda t: pa.concat_tables([full_table(9), t]).slice(9),
        as_dictionary,
        lambda t: t.set_column(2, "payload", t.column("payload").cast(pa.large_binary())),
        lambda t: t.set_column(2, "payload", t.column("payload").cast(pa.binary_view())),
        lambda t: t.set_column(0, "key", t.column("key").cast(pa.string_view())),
        lambda t: t.set_column(0, "key", t.column("key").cast(pa.large_string())),
        lambda t: t.set_column(10, "attachment", t.column("attachment").dictionary_encode()),
        lambda t: t.set_column(6, "timestamp_id", t.column("timestamp_id").cast(pa.binary(16))),
    ],
)
def test_tables_come_in_many_forms(form: Callable[[Any], Any]) -> None:
    async def scenario() -> None:
        table = full_table(10)
        async with aio.open(config()) as session, session.declare_subscriber("a/**") as got:
            await session.put_batch(table)
            wanted = await taken(got, 10)
            assert await session.put_batch(form(table)) == Written(10, 10, 0)
            assert await taken(got, 10) == wanted

    run(scenario())


def test_a_publisher_takes_values_alone() -> None:
    async def scenario() -> None:
        async with two() as (here, there), there.declare_subscriber("p") as got:
            async with here.declare_publisher(
                "p", congestion_control=BLOCK, priority=HIGH, encoding="text/plain"
            ) as publisher:
                await until(lambda: publisher.matching_status.matching)
                await publisher.put(b"0")
                (like,) = await taken(got, 1)
                values = [b"1", b"", b"x" * 200_000, b"4" * 65_000]
                for given in (
                    pa.array(values),
                    pa.chunked_array([values[:1], values[1:]], pa.binary()),
                    pa.table({"payload": values}),
                    pa.table({"key": ["p"] * 4, "payload": values, "qos": [1] * 4}),
                ):
                    assert await publisher.put_batch(given) == Written(4, 4, 0)
                    found = await taken(got, 4)
                    assert found == [(*like[:2], value, *like[3:]) for value in values]
                await publisher.put_batch(pa.array(["text"]), encoding="application/json")
                ((_, _, value, encoding, *_),) = await taken(got, 1)
                assert (value, encoding) == (b"text", "application/json")
                with pytest.raises(EncodeError, match="row 1: the key of this publisher is 'p'"):
                    await publisher.put_batch(pa.table({"key": ["p", "q"], "payload": [b"", b""]}))
            with pytest.raises(Undeclared):
                await publisher.put_batch(pa.array([b""]))

    run(scenario())


BAD: list[tuple[Any, str]] = [
    (3, "a table is Arrow's, not int"),
    ({"payload": [b""]}, "a table is Arrow's, not dict"),
    ({"key": ["a"]}, "no column 'payload'"),
    ({"payload": [b""]}, "no column 'key'"),
    ({"key": ["a", None], "payload": [b"", b""]}, "row 1: there is no key"),
    ({"key": ["a", "b//c"], "payload": [b"", b""]}, "in row 1"),
    ({"key": ["a", ""], "payload": [b"", b""]}, "in row 1"),
    ({"key": ["a", "a"], "payload": [b"", None]}, "row 1: a PUT without a payload"),
    ({"key": [1], "payload": [b""]}, "'key' cannot be int64"),
    ({"key": ["a"], "payload": [1]}, "'payload' cannot be int64"),
    ({"key": ["a"], "payload": [[b"x"]]}, "'payload' cannot be list"),
    ({"key": ["a"], "payload": [b""], "attachement": [b""]}, "'attachement' is none of key"),
    ({"key": ["a"], "payload": [b""], "kind": [2]}, "row 0: kind is outside of 0 to 1"),
    ({"key": ["a"], "payload": [b""], "kind": [-1]}, "row 0: kind is outside of 0 to 1"),
    ({"key": ["a"], "payload": [b"x"], "kind": [1]}, "row 0: a DELETE carries no payload"),
    ({"key": ["a"], "payload": [b""], "kind": [1], "encoding": [4]}, "carries no encoding"),
    ({"key": ["a"], "payload": [b""], "qos": [256]}, "qos is outside of 0 to 255"),
    ({"key": ["a"], "payload": [b""], "encoding": [1 << 16]}, "encoding is outside"),
    ({"key": ["a"], "payload": [b""], "encoding_schema": [b"x"]}, "encoding_schema and encoding"),
    ({"key": ["a"], "payload": [b""], "timestamp": [1]}, "timestamp and timestamp_id"),
    ({"key": ["a"], "payload": [b""], "timestamp_id": [b"x"]}, "timestamp and timestamp_id"),
    (
        {"key": ["a"], "payload": [b""], "timestamp": [1], "timestamp_id": [b"x\0"]},
        "does not end with a zero byte",
    ),
    (
        {"key": ["a"], "payload": [b""], "timestamp": [1], "timestamp_id": [bytes(17)]},
        "timestamp_id has 1 to 16 bytes",
    ),
    (
        {"key": ["a"], "payload": [b""], "source_zid": [b"x"], "source_eid": [1]},
        "source_zid and source_sn go together",
    ),
]


@pytest.mark.parametrize(("given", "text"), BAD)
def test_nothing_is_sent_if_any_row_cannot_be(given: Any, text: str) -> None:
    async def scenario() -> None:
        async with aio.open(config()) as session, session.declare_subscriber("**") as got:
            table = pa.table(given) if isinstance(given, dict) and "a table" not in text else given
            with pytest.raises((EncodeError, KeyExprError), match=re.escape(text)):
                await session.put_batch(table)
            assert got.try_recv() is None

    run(scenario())


def test_tables_of_nothing() -> None:
    async def scenario() -> None:
        async with aio.open(config()) as session, session.declare_subscriber("**"):
            assert await session.put_batch(full_table(3).slice(0, 0)) == Written(0, 0, 0)
            assert await session.put_batch(samples.SAMPLES.empty_table()) == Written(0, 0, 0)
        with pytest.raises(SessionClosed):
            await session.put_batch(full_table(3))

    run(scenario())


def test_only_rows_that_somebody_wants_go_out() -> None:
    async def scenario() -> None:
        async with two() as (here, there), there.declare_subscriber("a/1") as got:
            await matched(here, "a/1")
            before = messages(here)
            table = full_table(30)
            assert await here.put_batch(table) == Written(30, 10, 0)
            found = await taken(got, 10)
            assert {key for key, *_ in found} == {"a/1"}
            assert messages(here) - before == 10
            assert await here.put_batch(pa.table({"key": ["x"], "payload": [b""]})) == Written(
                1, 0, 0
            )

    run(scenario())


def test_a_session_hears_itself_and_others_as_ever() -> None:
    async def scenario() -> None:
        local = aio.Locality.SESSION_LOCAL
        async with (
            two() as (here, there),
            there.declare_subscriber("a/**") as far,
            here.declare_subscriber("a/1") as near,
        ):
            await matched(here, "a/0")
            table = full_table(9)
            assert await here.put_batch(table) == Written(9, 9, 0)
            assert [key for key, *_ in await taken(far, 9)] == [f"a/{i % 3}" for i in range(9)]
            assert [key for key, *_ in await taken(near, 3)] == ["a/1"] * 3
            assert await here.put_batch(table, allowed_destination=local) == Written(9, 3, 0)
            await taken(near, 3)
            remote = aio.Locality.REMOTE
            assert await here.put_batch(table, allowed_destination=remote) == Written(9, 9, 0)
            await taken(far, 9)
            assert near.try_recv() is None
            assert far.try_recv() is None

    run(scenario())


def test_priorities_and_reliability_are_those_of_a_row() -> None:
    async def scenario() -> None:
        rows = 64
        table = pa.table(
            {
                "key": ["q"] * rows,
                "payload": [b"%d" % i for i in range(rows)],
                "qos": pa.array([None if i % 9 == 8 else 8 | 1 + i % 7 for i in range(rows)]),
                "reliable": [None if i % 5 == 4 else i % 2 == 0 for i in range(rows)],
            }
        )
        async with two() as (here, there), there.declare_subscriber("q") as got:
            await matched(here, "q")
            how: dict[str, Any] = {"priority": HIGH, "congestion_control": BLOCK}
            written = await here.put_batch(table, reliability=aio.Reliability.BEST_EFFORT, **how)
            assert written == Written(rows, rows, 0)
            found = await taken(got, rows)
            by_lane: dict[Any, list[int]] = {}
            for _, _, payload, *_, priority, control, _, reliability in found:
                row = int(payload)
                assert int(priority) == (int(HIGH) if row % 9 == 8 else 1 + row % 7)
                assert control is BLOCK
                best = row % 5 == 4 or row % 2
                assert reliability is (
                    aio.Reliability.BEST_EFFORT if best else aio.Reliability.RELIABLE
                )
                by_lane.setdefault((priority, reliability), []).append(row)
            assert all(lane == sorted(lane) for lane in by_lane.values())

    run(scenario())


@pytest.mark.parametrize(
    "settings",
    [
        {"transport": {"unicast": {"lowlatency": True, "qos": {"enabled": False}}}},
        {"transport": {"unicast": {"compression": {"enabled": True}}}},
        {"transport": {"unicast": {"qos": {"enabled": False}}}},
        {"transport": {"link": {"tx": {"batch_size": 200}}}},
        {"transport": {"link": {"tx": {"queue": {"batching": {"enabled": False}}}}}},
        {"transport": {"link": {"tx": {"sequence_number_resolution": "8bit"}}}},
        {"namespace": "name/space"},
        {"timestamping": {"enabled": True}},
    ],
    ids=str,
)
def test_whatever_was_agreed(settings: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with (
            two(ours=settings, theirs=settings) as (here, there),
            there.declare_subscriber("a/**") as got,
        ):
            await matched(here, "a/0")
            table = full_table(200)
            await put_rows(here, table, congestion_control=BLOCK)
            wanted = await taken(got, 200)
            assert await here.put_batch(table) == Written(200, 200, 0)
            found = await taken(got, 200)
            if "timestamping" in settings:
                stamped = [(w, f) for w, f in zip(wanted, found, strict=True) if w[4] != f[4]]
                assert stamped
                times = [f[4][0] for _, f in stamped]
                assert times == sorted(times)
                assert len(set(times)) == len(times)
                wanted = [(*w[:4], None, *w[5:]) for w in wanted]
                found = [(*f[:4], None, *f[5:]) for f in found]
            assert found == wanted

    run(scenario())


def test_rows_wait_for_room_and_memory_is_bounded() -> None:
    """A reader that does not read for a while stops the writer, not for good."""

    async def scenario() -> None:
        async with two() as (here, there):
            got: list[int] = []
            async with there.declare_subscriber("big", lambda s: got.append(len(s.payload))):
                await matched(here, "big")
                (carrier,) = next(iter(there.core.node.neighbours.values())).carriers
                carrier.link.pause()
                table = pa.table({"key": ["big"] * 600, "payload": [bytes(100_000)] * 600})
                writing = asyncio.create_task(here.put_batch(table, congestion_control=BLOCK))
                (out,) = next(iter(here.core.node.neighbours.values())).carriers
                await until(lambda: not out.link.writable)
                await asyncio.sleep(0)
                assert not writing.done()
                (neighbour,) = here.core.node.neighbours.values()
                assert neighbour.waiting <= 1
                carrier.link.resume()
                assert await writing == Written(600, 600, 0)
                await until(lambda: len(got) == 600)

    run(scenario())


def test_puts_go_between_what_is_written_at_once() -> None:
    """Whole batches go past the queues; what is in these meanwhile is numbered after them."""

    async def scenario() -> None:
        rows, others = 200_000, 500
        async with two() as (here, there):
            got: dict[str, list[bytes]] = {"m/rows": [], "m/other": []}

            def keep(sample: aio.Sample) -> None:
                got[str(sample.key_expr)].append(sample.payload.to_bytes())

            async def put() -> None:
                for n in range(others):
                    await here.put("m/other", b"%d" % n, congestion_control=BLOCK)
                    await asyncio.sleep(0)

            async with there.declare_subscriber("m/*", keep):
                await matched(here, "m/rows")
                (carrier,) = next(iter(there.core.node.neighbours.values())).carriers
                values = [b"%0100d" % n for n in range(rows)]
                table = pa.table({"key": ["m/rows"] * rows, "payload": values})
                carrier.link.pause()
                writing = asyncio.create_task(here.put_batch(table, congestion_control=BLOCK))
                putting = asyncio.create_task(put())
                (out,) = next(iter(here.core.node.neighbours.values())).carriers
                await until(lambda: not out.link.writable)
                carrier.link.resume()
                assert await writing == Written(rows, rows, 0)
                await putting
                await until(lambda: sum(map(len, got.values())) == rows + others)
            assert got == {"m/rows": values, "m/other": [b"%d" % n for n in range(others)]}
            (neighbour,) = there.info.stats().neighbours
            assert neighbour.transport.rx_missing == 0

    run(scenario())


def test_rows_without_room_are_dropped_and_counted() -> None:
    async def scenario() -> None:
        async with two() as (here, there), there.declare_subscriber("d"):
            await matched(here, "d")
            (carrier,) = next(iter(there.core.node.neighbours.values())).carriers
            carrier.link.pause()
            rows = 400_000
            table = pa.table({"key": ["d"] * rows, "payload": [b"%0100d" % 0] * rows})
            written = await here.put_batch(table)
            carrier.link.resume()
            assert written.rows == rows
            assert written.sent + written.dropped == rows
            assert written.dropped
            stats = here.info.stats()
            assert sum(stats.dropped.values()) == written.dropped

    run(scenario())


def test_who_is_gone_gets_nothing() -> None:
    async def scenario() -> None:
        async with two() as (here, there), there.declare_subscriber("g"):
            await matched(here, "g")
            (carrier,) = next(iter(there.core.node.neighbours.values())).carriers
            carrier.link.pause()
            table = pa.table({"key": ["g"] * 400, "payload": [bytes(100_000)] * 400})
            writing = asyncio.create_task(here.put_batch(table, congestion_control=BLOCK))
            (out,) = next(iter(here.core.node.neighbours.values())).carriers
            await until(lambda: not out.link.writable)
            carrier.abandon()
            written = await writing
            assert written.dropped
            assert written.sent + written.dropped <= 400

    run(scenario())


def test_it_needs_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with aio.open(config()) as session:
            for name in [n for n in sys.modules if n.startswith("zenwire.columns")]:
                monkeypatch.delitem(sys.modules, name)
            monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
            with pytest.raises(ImportError, match="columns needs NumPy"):
                await session.put_batch(full_table(1))

    run(scenario())


@pytest.mark.parametrize("own", [False, True], ids=["remote", "local_too"])
def test_the_configuration_overwrites_the_qos_of_rows(own: bool) -> None:
    """``qos/publication`` holds for rows as it holds for puts."""
    publication = [
        {"key_exprs": ["a/0"], "config": {"priority": "background", "reliability": "best_effort"}},
        {"key_exprs": ["a/1"], "config": {"allowed_destination": "session_local"}},
    ]

    async def main() -> None:
        async with (
            two(ours={"qos": {"publication": publication}}) as (here, there),
            there.declare_subscriber("**") as subscriber,
            here.declare_publisher("a/2", allowed_destination=aio.Locality.REMOTE) as publisher,
        ):
            local = await here.declare_subscriber("**") if own else None
            await until(lambda: publisher.matching_status.matching)
            table = pa.table({"key": [f"a/{i % 3}" for i in range(9)], "payload": [b"x"] * 9})
            written = await here.put_batch(table, congestion_control=BLOCK, priority=HIGH)
            # Here nobody subscribes to the rows that stay here, unless there is one.
            assert written == Written(9, 9 if own else 6, 0)
            found = {(row[0], row[7], row[10]) for row in await taken(subscriber, 6)}
            low, best = aio.Priority.BACKGROUND, aio.Reliability.BEST_EFFORT
            assert found == {("a/0", low, best), ("a/2", HIGH, aio.Reliability.RELIABLE)}
            if local is not None:
                assert {row[0] for row in await taken(local, 9)} == {"a/0", "a/1", "a/2"}
            assert subscriber.try_recv() is None

    run(main())
