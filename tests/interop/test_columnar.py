"""Columnar subscribers and the reference: its publications as rows, whichever way they come."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zenoh

from tests.ports import free_port

pytest.importorskip("numba")
pytest.importorskip("pyarrow")

import pyarrow as pa

import zenwire
from tests.interop.exchange import PATIENCE, WAYS, Meet, meet_by
from tests.unit.api.nodes import config, run, until, within
from tests.unit.api.reference import reference, router
from tests.unit.plane.test_same import shown
from zenwire import aio
from zenwire.columns.samples import SAMPLES
from zenwire.node import plane

pytestmark = pytest.mark.interop

COUNT = 4000
"""Enough for several reads of a link."""
BLOCK = zenoh.CongestionControl.BLOCK


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    patient = {"transport__link__tx__queue__congestion_control__drop": PATIENCE}
    with router(**patient) as port:
        yield port


@pytest.fixture(params=WAYS)
def both(request: pytest.FixtureRequest, port: int) -> Meet:
    return meet_by(request.param, port)


@pytest.fixture(params=["0", "", "all"], ids=["objects", "as it pays", "rows"])
def fast(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(plane.VARIABLE, request.param)
    return str(request.param)


def publish(session: zenoh.Session) -> list[tuple[str, bytes]]:
    """All kinds of publications; gives keys and payloads."""
    publishers = [
        session.declare_publisher(f"demo/{n}", congestion_control=BLOCK) for n in range(3)
    ]
    sent: list[tuple[str, bytes]] = []
    for at in range(COUNT):
        payload = str(at).encode() * (at % 5)
        if at % 100 == 50:
            session.put(
                "demo/put",
                payload,
                encoding="application/json;schema",
                attachment=b"of it",
                timestamp=session.new_timestamp(),
                congestion_control=BLOCK,
            )
            sent.append(("demo/put", payload))
        elif at % 100 == 70:
            session.delete("demo/0", congestion_control=BLOCK)
            sent.append(("demo/0", b""))
        elif at == COUNT // 2:
            large = bytes(200_000)
            publishers[0].put(large)
            sent.append(("demo/0", large))
        else:
            publishers[at % 3].put(payload)
            sent.append((f"demo/{at % 3}", payload))
    return sent


async def rows_of(subscriber: Any, count: int) -> pa.Table:
    batches: list[pa.RecordBatch] = []
    while sum(batch.num_rows for batch in batches) < count:
        batches.append(await within(subscriber.recv()))
        batches[-1].validate(full=True)
    return pa.Table.from_batches(batches)


def test_their_publications_are_rows(both: Meet, fast: str) -> None:
    async def main() -> None:
        async with (
            both() as (ours, theirs),
            ours.declare_subscriber("demo/**", aio.columnar(interval=0.05)) as subscriber,
            ours.declare_subscriber("demo/**", aio.FifoChannel(2 * COUNT)) as samples,
        ):
            probe = theirs.declare_publisher("demo/probe")
            await until(lambda: probe.matching_status.matching)  # type: ignore[attr-defined]
            sent = publish(theirs)
            table = await rows_of(subscriber, COUNT)
            assert table.schema == SAMPLES
            assert (
                list(zip(table["key"].to_pylist(), table["payload"].to_pylist(), strict=True))
                == sent
            )
            # The same as samples: what they are made of is the same message.
            await until(lambda: len(samples.handler) == COUNT)
            for row, sample in zip(table.to_pylist(), samples.handler._items, strict=True):
                key, payload, kind, encoding, timestamp, attachment, *_ = shown(sample)
                assert (row["key"], row["payload"]) == (key, payload)
                assert row["kind"] == (kind is aio.SampleKind.DELETE)
                assert row["attachment"] == attachment
                assert (row["timestamp"] is None) == (timestamp == "None")
                assert (row["encoding"] is None) == (encoding == "zenoh/bytes")
                assert (row["encoding_schema"] == b"schema") == encoding.endswith(";schema")
                assert row["reliable"]
            (neighbour,) = ours.core.node.stats().neighbours
            assert neighbour.transport.rx_missing == 0
            assert subscriber.dropped == 0

    run(main())


@pytest.mark.parametrize(
    "how",
    [
        {"transport": {"unicast": {"lowlatency": True, "qos": {"enabled": False}}}},
        {"transport": {"unicast": {"compression": {"enabled": True}}}},
    ],
    ids=["low latency", "compression"],
)
def test_however_the_link_is(how: dict[str, Any], fast: str) -> None:
    more = {
        "transport__unicast__lowlatency": "lowlatency" in str(how),
        "transport__unicast__qos__enabled": "lowlatency" not in str(how),
        "transport__unicast__compression__enabled": "compression" in str(how),
    }
    port = free_port()

    async def main() -> None:
        async with (
            aio.open(config(listen=port, **how)) as ours,
            ours.declare_subscriber(
                "demo/**", aio.columnar(columns=["key", "payload"])
            ) as subscriber,
        ):
            with reference("peer", connect=port, **more) as theirs:
                publisher = theirs.declare_publisher("demo/a", congestion_control=BLOCK)
                await until(lambda: publisher.matching_status.matching)  # type: ignore[attr-defined]
                for at in range(500):
                    publisher.put(str(at))
                table = await rows_of(subscriber, 500)
            assert table["payload"].to_pylist() == [str(at).encode() for at in range(500)]
            assert set(table["key"].to_pylist()) == {"demo/a"}

    run(main())


def test_without_asyncio(port: int) -> None:
    with (
        zenwire.open(config("client", connect=port)) as ours,
        reference("client", connect=port) as theirs,
    ):
        subscriber: Any = ours.declare_subscriber("demo/**", zenwire.columnar(interval=0.02))
        probe = theirs.declare_publisher("demo/probe")
        while not probe.matching_status.matching:  # type: ignore[attr-defined]
            pass
        sent = publish(theirs)
        found: list[tuple[str, bytes]] = []
        for batch in subscriber:
            found += zip(batch["key"].to_pylist(), batch["payload"].to_pylist(), strict=True)
            if len(found) >= COUNT:
                break
        assert found == sent
        assert subscriber.dropped == 0


@pytest.mark.long
def test_all_that_is_tested_elsewhere() -> None:
    """The tests of publications, with the columnar data plane for everything.

    tests/unit/test_without_fast.py runs them without it.
    """
    here = Path(__file__).parent
    modules = [
        here / "test_aio_pubsub.py",
        here / "test_aio_network.py",
        here.parent / "unit" / "node" / "test_node.py",
    ]
    done = subprocess.run(  # our own tests
        [sys.executable, "-m", "pytest", "-q", "-x", *map(str, modules)],
        cwd=here.parent.parent,
        env=os.environ | {plane.VARIABLE: "all"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "passed" in done.stdout
