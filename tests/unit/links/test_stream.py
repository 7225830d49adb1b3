"""The end of a link over TCP: nothing is lost that was written, or that had come."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest

from tests.unit.links.ends import TIMEOUT, listening, until
from zenwire.links import Listener
from zenwire.links import stream as stream_module

WORDS = bytes(range(256)) * 4000


def dialled(listener: Listener, room: int = 4096) -> socket.socket:
    """Somebody with little room for what it does not read."""
    host, _, port = listener.endpoint.address.rpartition(":")
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    sock.connect((host, int(port)))
    sock.setblocking(False)
    return sock


async def rest_of(sock: socket.socket) -> bytes:
    found = bytearray()
    async with asyncio.timeout(TIMEOUT):
        while data := await asyncio.get_running_loop().sock_recv(sock, 65_536):
            found += data
    return bytes(found)


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_what_was_written_arrives_whatever_comes_meanwhile(before: bool, after: bool) -> None:
    async def scenario() -> None:
        async with listening("tcp/127.0.0.1:0#so_sndbuf=4000000") as (listener, there):
            with dialled(listener) as slow:
                end = await there.get()
                link, loop = end.link, asyncio.get_running_loop()
                link.pause()
                link.write(WORDS)
                await until(lambda: not link.unsent)
                assert link.on_its_way
                if before:
                    await loop.sock_sendall(slow, b"not read")
                link.part()
                await asyncio.sleep(0.01)
                if after:
                    await loop.sock_sendall(slow, b"too late")
                    await asyncio.sleep(0.01)
                assert not end.ends
                assert await rest_of(slow) == WORDS
            assert await end.end() is None
            assert not end.data

    asyncio.run(scenario())


def test_a_link_that_parts_reads_no_more_than_it_must(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "LINGER_READ", 100_000)
    monkeypatch.setattr(stream_module, "CLOSE_TIMEOUT", 0.5)

    async def scenario() -> None:
        async with listening("tcp/127.0.0.1:0") as (listener, there):
            with dialled(listener) as flood:
                end = await there.get()
                while end.link.writable:
                    end.link.write(bytes(60_000))
                end.link.part()
                loop = asyncio.get_running_loop()
                sending = loop.create_task(loop.sock_sendall(flood, bytes(50_000_000)))
                error = await end.end()
                assert error is not None
                assert "could not be sent" in error.reason
                assert 100_000 <= end.link.bytes_in < 100_000 + stream_module.READ_SIZES[-1]
                assert not end.data
                await asyncio.wait([sending])
                assert isinstance(sending.exception(), OSError)

    asyncio.run(scenario())


@pytest.mark.parametrize("writes", [False, True])
def test_what_had_come_is_heard_when_a_link_breaks(writes: bool) -> None:
    async def scenario() -> None:
        async with listening("tcp/127.0.0.1:0") as (listener, there):
            with dialled(listener) as gone:
                end = await there.get()
                end.link.pause()
                await asyncio.get_running_loop().sock_sendall(gone, WORDS[:100_000])
                # Closing it is a reset then.
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if writes:
                end.link.write(b"who is there?")
            else:
                end.link.resume()
            error = await end.end()
            assert error is not None
            assert "reset" in error.reason.lower()
            assert end.data == WORDS[:100_000]

    asyncio.run(scenario())
