"""A recorder that cannot keep up: links wait, nothing that came by them is lost."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import zenoh
import zenoh.ext

from tests.interop.exchange import node_settings
from tests.interop.saturation import SENDERS, SIZES, saturate
from tests.interop.test_record import BLOCK, losses, number, rows
from tests.ports import free_port
from tests.unit.api.nodes import run, until
from zenwire import aio
from zenwire.record import Recorder
from zenwire.spool import Settings, Spool, Writer

pytestmark = pytest.mark.interop

SMALL = Settings(queue_bytes=1 << 20, overflow="accept")
"""A queue that an eclipse-zenoh publisher fills in no time."""


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sender", SENDERS)
def test_nothing_is_lost_at_saturation(sender: str, size: str) -> None:
    outcome = saturate(sender, SIZES[size], 2.0)
    assert outcome.sent > 0
    assert (outcome.lost, outcome.told, outcome.sessions) == (0, 0, 0), outcome.line()
    assert max(mib for _, mib in outcome.memory) < 1500


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sender", SENDERS)
def test_nothing_is_lost_in_a_minute_of_saturation(sender: str, size: str) -> None:
    outcome = saturate(sender, SIZES[size], 60.0)
    assert (outcome.lost, outcome.told, outcome.sessions) == (0, 0, 0), outcome.line()
    assert outcome.growth < 50, outcome.line()


class SlowWriter(Writer):
    """Takes so many bytes a second: its encoder sleeps for each that it takes."""

    rate = 8e6
    stopped = False

    def _take(self) -> Any:
        batches, work = super()._take()
        time.sleep(sum(one.size for one in batches) / self.rate)
        while self.stopped and not self._closing:
            time.sleep(0.05)
        return batches, work


class Published:
    """Publishers of the reference in a thread of their own, until told to stop."""

    def __init__(self, session: zenoh.Session, *, size: int, key: str = "k/a") -> None:
        self._publisher: Any = session.declare_publisher(key, congestion_control=BLOCK)
        self._rest = bytes(size - 4)
        self.sent = 0
        self.longest = 0.0
        """Seconds that a put has waited."""
        self._over = False

    def run(self) -> None:
        while not self._over:
            before = time.monotonic()
            self._publisher.put(self.sent.to_bytes(4, "little") + self._rest)
            self.longest = max(self.longest, time.monotonic() - before)
            self.sent += 1

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        await until(lambda: bool(self._publisher.matching_status.matching))
        task = asyncio.create_task(asyncio.to_thread(self.run))
        try:
            yield
        finally:
            self._over = True
            await task


@asynccontextmanager
async def recorded(
    spool: Path, writer: Writer, *, listen: list[str], keys: tuple[str, ...] = ("k/**",)
) -> AsyncIterator[tuple[aio.Session, Recorder]]:
    """Every link waits when a MiB does."""
    settings = node_settings("peer") | {"listen": {"endpoints": listen}}
    # The writer goes last: what came goes to it at the end of the recorder.
    try:
        async with (
            aio.open(settings) as session,
            Recorder(session, writer, keys, spool=spool) as recorder,
        ):
            yield session, recorder
    finally:
        await asyncio.to_thread(writer.close)


@pytest.fixture
def other(free: str) -> Iterator[zenoh.Session]:
    settings = node_settings("peer", connect=free) | {
        "connect": {"endpoints": [free], "timeout_ms": -1}
    }
    with zenoh.open(zenoh.Config.from_json5(json.dumps(settings))) as session:
        yield session


@pytest.fixture
def free() -> str:
    return f"tcp/127.0.0.1:{free_port()}"


@pytest.mark.parametrize("size", [1000, 300_000], ids=["rows", "fragments"])
def test_a_slow_disk_slows_the_sender(
    tmp_path: Path, free: str, other: zenoh.Session, size: int
) -> None:
    """Reading goes on at the rate of the disk; no put waits as long as 5 s, which ends a session."""

    async def main() -> None:
        # Batches have up to 8 MiB: a queue that has fewer would fill and empty in one step.
        writer = SlowWriter.open(tmp_path, Settings(queue_bytes=64 << 20, overflow="accept"))
        published = Published(other, size=size)
        async with recorded(tmp_path, writer, listen=[free]) as (session, recorder):
            async with published.running():
                await asyncio.sleep(5)
            await until(lambda: recorder.status().rows == published.sent)
            status = recorder.status()
            assert status.lost == 0
            assert status.paused > 1
            assert len(session.info.transports()) == 1
        assert published.longest < 4
        assert [number({"payload": row["payload"][:4]}) for row in rows(tmp_path)] == list(
            range(published.sent)
        )
        assert losses(tmp_path) == []

    run(main())


def test_a_session_outlives_a_disk_that_stands_still(tmp_path: Path, free: str) -> None:
    """Longer than both leases: KEEP_ALIVEs go out, ours does not expire, other links are read."""
    lease: dict[str, Any] = {"transport": {"link": {"tx": {"lease": 2000}}}}
    aside = f"tcp/127.0.0.1:{free_port()}"

    async def main(other: zenoh.Session) -> None:
        writer = SlowWriter.open(tmp_path, SMALL)
        published = Published(other, size=10_000)
        third = node_settings("peer", connect=aside, **lease)
        async with (
            recorded(tmp_path, writer, listen=[free, aside]) as (session, recorder),
            aio.open(third) as quiet,
        ):
            answers = await session.declare_queryable("q", lambda query: query.reply("q", b"1"))
            async with published.running():
                writer.stopped = True
                await until(lambda: recorder.status().paused > 5)
                held = recorder.status().rows
                # Somebody else's link is not concerned, neither way.
                replies = [reply async for reply in quiet.get("q", timeout=5)]
                assert [bytes(reply.ok.payload) for reply in replies if reply.ok] == [b"1"]
                await asyncio.sleep(1)
                # Portions of a small queue are a row or two.
                assert recorder.status().rows < held + 50
                assert len(session.info.transports()) == 2
                writer.stopped, writer.rate = False, 1e9
                await until(lambda: recorder.status().rows > held + 50)
            await answers.undeclare()
            await until(lambda: recorder.status().rows == published.sent)
            assert recorder.status().lost == 0
        assert len(rows(tmp_path)) == published.sent

    them = node_settings("peer", connect=free, **patient(lease))
    them["connect"]["timeout_ms"] = -1
    with zenoh.open(zenoh.Config.from_json5(json.dumps(them))) as other:
        run(main(other))


def patient(settings: dict[str, Any]) -> dict[str, Any]:
    """With publishers that wait as long as it takes."""
    block = {"wait_before_close": 60_000_000}
    tx = settings["transport"]["link"]["tx"] | {"queue": {"congestion_control": {"block": block}}}
    return {"transport": {"link": {"tx": tx}}}


def test_it_ends_while_links_wait(tmp_path: Path, free: str, other: zenoh.Session) -> None:
    """What came is written; whoever waits for us goes on without us."""

    async def main() -> None:
        writer = SlowWriter.open(tmp_path, SMALL)
        published = Published(other, size=10_000)
        async with (
            recorded(tmp_path, writer, listen=[free]) as (_, recorder),
            AsyncExitStack() as stack,
        ):
            await stack.enter_async_context(published.running())
            writer.stopped = True
            await until(lambda: recorder.status().paused > 1)
            late = stack.pop_all()
        await late.aclose()
        found = [number({"payload": row["payload"][:4]}) for row in rows(tmp_path)]
        assert found == list(range(recorder.status().rows))

    run(main())


def test_what_a_sender_drops_is_told_by_its_numbers(
    tmp_path: Path, free: str, other: zenoh.Session
) -> None:
    """With congestion control DROP the rows of the spool and of its losses are all that was put."""

    async def main() -> None:
        ext: Any = zenoh.ext  # its stubs are not complete
        writer = SlowWriter.open(tmp_path, SMALL)
        async with recorded(tmp_path, writer, listen=[free]) as (_, recorder):
            await until(lambda: len(other.info.peers_zid()) == 1)
            await recorder.filled.wait()
            publisher = ext.declare_advanced_publisher(
                other,
                "k/a",
                sample_miss_detection=ext.MissDetectionConfig(),
                congestion_control=zenoh.CongestionControl.DROP,
            )
            await asyncio.sleep(0.5)
            sent = 0

            def put() -> None:
                nonlocal sent
                ends = time.monotonic() + 3
                while time.monotonic() < ends:
                    publisher.put(sent.to_bytes(4, "little") + bytes(20_000))
                    sent += 1

            await asyncio.to_thread(put)
            # The last one must be recorded, for nobody tells of a gap at the end. It may be dropped
            # as well while others wait, so it is put until it is there.
            log = Spool.open(tmp_path).samples
            while True:
                publisher.put(sent.to_bytes(4, "little"))
                sent += 1
                await asyncio.sleep(0.5)
                (last,) = log.read(log.latest() - 1, log.latest())
                if last.batch.column("payload")[0].as_py()[:4] == (sent - 1).to_bytes(4, "little"):
                    break
        kept = {number({"payload": row["payload"][:4]}) for row in rows(tmp_path)}
        told = [row for row in losses(tmp_path) if row["kind"] == "source"]
        missing = set(range(min(kept), sent)) - kept
        assert missing, "nothing was dropped: the test shows nothing"
        assert sum(row["count"] for row in told) == len(missing)
        assert {row["kind"] for row in losses(tmp_path)} == {"source"}

    run(main())


def test_datagrams_cannot_wait_and_are_told(tmp_path: Path) -> None:
    """Rows of a UDP link are dropped while the queue is full, each is counted."""
    where = f"udp/127.0.0.1:{free_port(socket.SOCK_DGRAM)}"

    async def main() -> None:
        writer = SlowWriter.open(tmp_path, SMALL)
        async with (
            recorded(tmp_path, writer, listen=[where]) as (session, recorder),
            aio.open(node_settings("peer", connect=where)) as sender,
        ):
            await until(lambda: len(session.info.transports()) == 1)
            await recorder.filled.wait()
            writer.stopped = True
            count = 3000
            for n in range(count):
                payload = n.to_bytes(4, "little") + bytes(1000)
                await sender.put("k/a", payload, congestion_control=aio.CongestionControl.BLOCK)
                if not n % 20:
                    await asyncio.sleep(0.002)
            await until(lambda: recorder.status().rows + recorder.status().lost >= count)
            assert recorder.status().lost > 0
            assert writer.queued_bytes < 2 * SMALL.queue_bytes
            writer.stopped = False
        told = sum(row["count"] for row in losses(tmp_path) if row["kind"] == "overflow")
        assert len(rows(tmp_path)) + told == count

    run(main())
