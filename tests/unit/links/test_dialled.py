"""Links that were dialled on this machine: they speak before asyncio has their socket."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import pytest

from tests.unit.links.ends import TIMEOUT, End, Ends
from zenwire.links import connect
from zenwire.links.dialled import Dialled

STAGES = ("alone", "handing", "carried")
"""How far asyncio is with a transport."""


@asynccontextmanager
async def dialled(stage: str) -> AsyncIterator[tuple[Dialled, End, socket.socket]]:
    """A link at this stage, its end, and the socket on the other side."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(TIMEOUT)
        ends = Ends()
        link = await connect(f"tcp/127.0.0.1:{server.getsockname()[1]}", ends.attach)
        assert isinstance(link, Dialled)
        other, _ = server.accept()
        with other:
            other.settimeout(TIMEOUT)
            if stage != "alone":
                link.established()
            if stage == "carried":
                while link._transport is None:  # noqa: ASYNC110 # nothing tells of it
                    await asyncio.sleep(0)
            yield link, await ends.get(), other


def read(sock: socket.socket, size: int) -> bytes:
    """Exactly so much, or what there is before the end."""
    data = b""
    while len(data) < size and (piece := sock.recv(size - len(data))):
        data += piece
    return data


@pytest.mark.parametrize("stage", STAGES)
def test_words_go_both_ways_and_stay_in_order(stage: str) -> None:
    async def scenario() -> None:
        async with dialled(stage) as (link, end, other):
            link.write(b"one ")
            other.sendall(b"uno ")
            link.established()
            link.write(b"two ")
            await end.size(4)
            link.write(b"three")
            other.sendall(b"due")
            assert await end.size(7) == b"uno due"
            assert read(other, 13) == b"one two three"
            assert link.bytes_out == 13
            assert link.bytes_in == 7

    asyncio.run(scenario())


@pytest.mark.parametrize("stage", STAGES)
def test_what_does_not_fit_waits_and_is_told_when_there_is_room(stage: str) -> None:
    async def scenario() -> None:
        async with dialled(stage) as (link, end, other):
            words = bytes(range(256)) * 64_000
            link.write(words)
            assert not link.writable
            link.write(b"end")
            reading = asyncio.to_thread(read, other, len(words) + 3)
            assert await reading == words + b"end"
            await end.until(lambda end: end.drains > 0)
            assert link.writable

    asyncio.run(scenario())


@pytest.mark.parametrize("stage", STAGES)
def test_who_does_not_want_to_read_need_not(stage: str) -> None:
    async def scenario() -> None:
        async with dialled(stage) as (link, end, other):
            link.pause()
            other.sendall(b"words")
            link.established()
            for _ in range(20):
                await asyncio.sleep(0.001)
            assert not end.data
            link.resume()
            assert await end.size(5) == b"words"

    asyncio.run(scenario())


@pytest.mark.parametrize("size", [3, 16_000_000])
@pytest.mark.parametrize("stage", STAGES)
def test_what_was_written_before_the_end_arrives(stage: str, size: int) -> None:
    async def scenario() -> None:
        async with dialled(stage) as (link, end, other):
            link.write(bytes(size))
            link.close()
            link.write(b"too late")
            assert await asyncio.to_thread(read, other, size + 1) == bytes(size)
            assert await end.end() is None
            assert len(end.ends) == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("stage", STAGES)
def test_an_end_without_a_word(stage: str) -> None:
    async def scenario() -> None:
        async with dialled(stage) as (link, end, other):
            link.abort()
            link.write(b"too late")
            assert await end.end() is None
            assert await asyncio.to_thread(read, other, 1) == b""
            for _ in range(5):
                await asyncio.sleep(0)
            assert len(end.ends) == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("stage", STAGES)
def test_the_other_side_goes(stage: str, reset: bool) -> None:
    async def scenario() -> None:
        async with dialled(stage) as (_, end, other):
            if reset:
                other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, *bytes(7)]))
            other.close()
            error = await end.end()
            assert (error is not None) == reset
            assert len(end.ends) == 1

    asyncio.run(scenario())


def test_who_talks_on_and_on_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with dialled("alone") as (link, _, _):
            # There is something to read whenever somebody looks, at steps of 50 us.
            heard, clock = iter(range(1000)), count(step=50e-6)
            monkeypatch.setattr(link, "_readable", lambda: next(heard) >= 0)
            monkeypatch.setattr(time, "monotonic", lambda: next(clock))
            link._hear_at_once()
            monkeypatch.undo()
            assert next(heard) < 100

    asyncio.run(scenario())
