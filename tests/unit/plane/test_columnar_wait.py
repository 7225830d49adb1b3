"""Columnar subscribers with ``overflow="wait"``: a full queue pauses the links that feed it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.ports import free_port

pytest.importorskip("numba")
pytest.importorskip("pyarrow")

import zenwire
from tests.unit.api.nodes import config, run, until, within
from zenwire import aio
from zenwire.node import plane

BLOCK = aio.CongestionControl.BLOCK
ROWS, CAPACITY = 100, 4
COUNT = 60_000
"""With 1000 bytes each, more than the buffers of a connection hold."""


@pytest.fixture(params=["0", "all"], ids=["objects", "rows"], autouse=True)
def fast(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plane.VARIABLE, request.param)


def waiting(callback: Any = None, **more: Any) -> Any:
    given: dict[str, Any] = {"rows": ROWS, "interval": 0.05, "capacity": CAPACITY} | more
    return aio.columnar(callback, columns=["payload"], overflow="wait", **given)


async def put(session: aio.Session, count: int, key: str = "k/a") -> None:
    publisher = await session.declare_publisher(key, congestion_control=BLOCK)
    rest = bytes(1000)
    for n in range(count):
        await publisher.put(n.to_bytes(4, "little") + rest)


def numbers(batch: Any) -> list[int]:
    return [int.from_bytes(one[:4], "little") for one in batch["payload"].to_pylist()]


async def stalled(subscriber: Any, sending: asyncio.Task[None]) -> int:
    """Wait until no more batches come; gives how many wait."""
    before = -1
    while (there := len(subscriber.handler)) > before:
        before = there
        await asyncio.sleep(0.5)
    assert before >= CAPACITY
    assert not sending.done()
    return before


def test_a_reader_that_stops_stops_the_sender_and_loses_nothing() -> None:
    port = free_port()

    async def main() -> None:
        async with (
            aio.open(config(listen=port)) as ours,
            ours.declare_subscriber("k/**", waiting()) as subscriber,
            aio.open(config(connect=port)) as theirs,
        ):
            await until(ours.info.transports)
            await asyncio.sleep(0.2)
            sending = asyncio.create_task(put(theirs, COUNT))
            there = await stalled(subscriber, sending)
            # Batches of what was read at once are above the capacity, and no more.
            assert there < COUNT // ROWS // 2
            got: list[int] = []
            while len(got) < COUNT:
                got += numbers(await within(subscriber.recv()))
            assert got == list(range(COUNT))
            assert subscriber.dropped == 0
            await within(sending)

    run(main())


def test_other_links_and_other_keys_go_on() -> None:
    """Only the link that feeds the full queue waits; another one is read, and answered."""
    port = free_port()

    async def main() -> None:
        async with (
            aio.open(config(listen=port)) as ours,
            ours.declare_subscriber("k/**", waiting()) as subscriber,
            ours.declare_subscriber("other", aio.FifoChannel(10)) as other,
            aio.open(config(connect=port)) as busy,
            aio.open(config(connect=port)) as quiet,
        ):
            await until(lambda: len(ours.info.transports()) == 2)
            await asyncio.sleep(0.2)
            sending = asyncio.create_task(put(busy, COUNT))
            await stalled(subscriber, sending)
            await quiet.put("other", b"1", congestion_control=BLOCK)
            assert bytes((await within(other.recv())).payload) == b"1"
            # Until it brings rows for that queue itself.
            await quiet.put("k/b", b"last", congestion_control=BLOCK)
            await asyncio.sleep(0.2)
            await quiet.put("other", b"2", congestion_control=BLOCK)
            await asyncio.sleep(0.5)
            assert other.try_recv() is None
            got = 0
            while got < COUNT + 1:
                got += (await within(subscriber.recv())).num_rows
            assert bytes((await within(other.recv())).payload) == b"2"
            await sending

    run(main())


def test_undeclaring_lets_the_link_go_on() -> None:
    port = free_port()

    async def main() -> None:
        async with (
            aio.open(config(listen=port)) as ours,
            aio.open(config(connect=port)) as theirs,
            ours.declare_subscriber("end", aio.FifoChannel(1)) as end,
        ):
            subscriber = await ours.declare_subscriber("k/**", waiting())
            await until(theirs.info.transports)
            await asyncio.sleep(0.2)
            sending = asyncio.create_task(put(theirs, COUNT))
            await stalled(subscriber, sending)
            await within(subscriber.undeclare())
            await within(sending)
            await theirs.put("end", b"", congestion_control=BLOCK)
            await within(end.recv())
            assert subscriber.dropped == 0

    run(main())


def test_closing_ends_while_links_wait() -> None:
    port = free_port()

    async def main() -> None:
        theirs = await aio.open(config(connect=port, listen=None))  # dials until there is somebody
        async with aio.open(config(listen=port)) as ours:
            subscriber = await ours.declare_subscriber("k/**", waiting())
            await until(ours.info.transports)
            await asyncio.sleep(0.2)
            sending = asyncio.create_task(put(theirs, COUNT))
            await stalled(subscriber, sending)
            await within(ours.close())
        await within(sending)
        await theirs.close()

    run(main())


def test_puts_of_the_same_session_do_not_wait(caplog: pytest.LogCaptureFixture) -> None:
    """They would wait for their own loop: rows without room are dropped and counted."""

    async def main() -> None:
        async with (
            aio.open(config()) as session,
            session.declare_subscriber("k/**", waiting()) as subscriber,
        ):
            await within(put(session, 10 * ROWS * CAPACITY))
            assert len(subscriber.handler) <= CAPACITY + 1
            assert subscriber.dropped >= 8 * ROWS * CAPACITY
            got: list[int] = []
            while (batch := subscriber.try_recv()) is not None:
                got += numbers(batch)
            assert got == list(range(len(got)))
            assert len(got) + subscriber.dropped == 10 * ROWS * CAPACITY
            # And there is room again.
            await put(session, ROWS)
            assert numbers(await within(subscriber.recv())) == list(range(ROWS))

    run(main())
    assert "does not keep up" in caplog.text


def test_callbacks_are_waited_for() -> None:
    """A coroutine function that is slow, and puts something itself."""
    port, count = free_port(), 20_000

    async def main() -> None:
        async with (
            aio.open(config(listen=port)) as ours,
            aio.open(config(connect=port)) as theirs,
        ):
            got: list[int] = []

            async def take(batch: Any) -> None:
                await ours.put("k/local", b"", congestion_control=BLOCK)
                await asyncio.sleep(0.001)
                got.extend(n for n in numbers(batch) if n or not got)

            subscriber = await ours.declare_subscriber("k/a", waiting(take))
            await until(theirs.info.transports)
            await asyncio.sleep(0.2)
            await within(put(theirs, count))
            await until(lambda: len(got) == count)
            assert got == list(range(count))
            assert subscriber.dropped == 0

    run(main())


def test_threads() -> None:
    """The same from the API without a loop: ``recv`` in one thread lets another one put."""
    port = free_port()
    settings: dict[str, Any] = {
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}}
    }
    here, there = f"tcp/127.0.0.1:{port}", 20_000
    with (
        zenwire.open({"mode": "peer", "listen": {"endpoints": [here]}} | settings) as ours,
        ours.declare_subscriber("k/**", waiting()) as subscriber,
        zenwire.open(
            {"mode": "peer", "connect": {"endpoints": [here]}, "listen": {"endpoints": []}}
            | settings
        ) as theirs,
    ):
        publisher = theirs.declare_publisher("k/a", congestion_control=BLOCK)
        while not publisher.matching_status.matching:
            pass

        def send() -> None:
            for n in range(there):
                publisher.put(n.to_bytes(4, "little") + bytes(1000))

        thread = threading.Thread(target=send)
        thread.start()
        thread.join(1)
        got: list[int] = []
        while len(got) < there:
            got += numbers(subscriber.recv())
        thread.join()
        assert got == list(range(there))
        assert subscriber.dropped == 0
