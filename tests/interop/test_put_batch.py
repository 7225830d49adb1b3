"""Tables that are put at once, and puts in a loop, to subscribers of the reference."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import zenoh

pytest.importorskip("pyarrow")

import pyarrow as pa

from tests.interop.exchange import PATIENCE, WAYS, Meet, meet_by
from tests.unit.api.nodes import run, until
from tests.unit.api.reference import Taker, router
from tests.unit.api.test_put_batch import full_table, put_rows
from zenwire import aio
from zenwire.api.put_batch import Written

pytestmark = pytest.mark.interop

BLOCK = aio.CongestionControl.BLOCK
Put = Callable[[aio.Session, Any], Awaitable[object]]


async def by_rows(session: aio.Session, table: Any) -> None:
    await put_rows(session, table, congestion_control=BLOCK)


async def by_table(session: aio.Session, table: Any) -> None:
    rows = table.num_rows
    assert await session.put_batch(table, congestion_control=BLOCK) == Written(rows, rows, 0)


BOTH = pytest.mark.parametrize("put", [by_rows, by_table])


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    patient = {"transport__link__tx__queue__congestion_control__drop": PATIENCE}
    with router(**patient) as port:
        yield port


@pytest.fixture(params=WAYS)
def both(request: pytest.FixtureRequest, port: int) -> Meet:
    return meet_by(request.param, port)


@asynccontextmanager
async def listening(both: Meet, key: str) -> AsyncIterator[tuple[aio.Session, Taker[zenoh.Sample]]]:
    """Our session, and what their subscriber gets."""
    async with both() as (ours, theirs):
        got: Taker[zenoh.Sample] = Taker()
        subscriber = theirs.declare_subscriber(key, got)
        async with ours.declare_publisher(key.replace("*", "0")) as publisher:
            await until(lambda: publisher.matching_status.matching)
        yield ours, got
        subscriber.undeclare()  # type: ignore[no-untyped-call]


def row_of(sample: zenoh.Sample) -> dict[str, Any]:
    """What a sample says, as a row has it."""
    source, time = sample.source_info, sample.timestamp
    return {
        "key": str(sample.key_expr),
        "kind": int(sample.kind == zenoh.SampleKind.DELETE),
        "payload": bytes(sample.payload),
        "encoding": str(sample.encoding),
        "time": None if time is None else str(time),
        "source": None if source is None else source.source_sn,
        "attachment": None if sample.attachment is None else bytes(sample.attachment),
        "priority": sample.priority,
        "control": sample.congestion_control,
    }


def wanted_of(row: dict[str, Any], time: str | None) -> dict[str, Any]:
    """What should come of a row; a router gives a time to what has none."""
    kind = aio.Encoding()
    if row["encoding"] is not None:
        wire = (row["encoding"], row["encoding_schema"])
        kind = aio.Encoding.from_wire(type(kind.wire)(*wire))
    return {
        "key": row["key"],
        "kind": row["kind"],
        "payload": row["payload"],
        "encoding": str(kind),
        "time": time,
        "source": row["source_sn"],
        "attachment": row["attachment"],
        "priority": zenoh.Priority.DATA,
        "control": zenoh.CongestionControl.BLOCK,
    }


@BOTH
def test_every_column_arrives(both: Meet, put: Put) -> None:
    async def main() -> None:
        table = full_table(60)
        async with listening(both, "a/*") as (ours, got):
            await put(ours, table)
            for row in table.to_pylist():
                found = row_of(await got.get())
                if row["timestamp"] is not None:
                    assert found["time"] is not None
                    assert found["time"].startswith(str(row["timestamp"])) or "T" in found["time"]
                assert found == wanted_of(row, found["time"])

    run(main())


@BOTH
def test_rows_of_any_size_arrive_in_order(both: Meet, put: Put) -> None:
    async def main() -> None:
        sizes = [0, 1, 127, 128, 16_383, 65_000, 65_535, 65_536, 200_000, 3, 3_000_000, 5]
        payloads = [bytes([n]) * size for n, size in enumerate(sizes)]
        nothing = {"attachment": None, "timestamp": None, "source_zid": None}
        table = pa.table(
            {
                "key": ["s/0"] * len(sizes),
                "payload": payloads,
                "kind": pa.array([0] * len(sizes), pa.int8()),
                "encoding": pa.nulls(len(sizes), pa.int32()),
                **{name: pa.nulls(len(sizes), pa.binary()) for name in nothing},
            }
        )
        table = table.set_column(
            table.schema.get_field_index("timestamp"), "timestamp", pa.nulls(len(sizes), pa.int64())
        )
        async with listening(both, "s/*") as (ours, got):
            await put(ours, table)
            assert [bytes((await got.get()).payload) for _ in sizes] == payloads

    run(main())


@BOTH
def test_many_rows_arrive_in_order(both: Meet, put: Put) -> None:
    async def main() -> None:
        rows = 20_000
        table = pa.table(
            {
                "key": [f"m/{n % 3}" for n in range(rows)],
                "payload": [b"%d" % n for n in range(rows)],
                "kind": pa.array([0] * rows, pa.int8()),
                "encoding": pa.nulls(rows, pa.int32()),
                "attachment": pa.nulls(rows, pa.binary()),
                "timestamp": pa.nulls(rows, pa.int64()),
                "source_zid": pa.nulls(rows, pa.binary()),
            }
        )
        async with listening(both, "m/*") as (ours, got):
            await put(ours, table)
            for n in range(rows):
                assert bytes((await got.get()).payload) == b"%d" % n

    run(main())
