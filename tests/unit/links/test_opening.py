"""What holds for links of every protocol, with real sockets."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.unit.links.ends import Ends, listening, pair
from zenwire.links import LinkError, connect, listen
from zenwire.wire.locator import Locator

STREAMS = ["tcp", "tcp6", "tls", "mtls", "unixsock-stream", "memory"]
EVERY = [*STREAMS, "ws", "udp", "udp6", "memory-datagram"]


@pytest.fixture
def where(request: pytest.FixtureRequest, certificates: Path, tmp_path: Path) -> tuple[str, str]:
    """An endpoint to listen on, and the configuration of who connects to it."""
    protocol: str = request.param
    own = f"listen_certificate_file={certificates}/server.pem;listen_private_key_file={certificates}/server.key"
    ca = f"root_ca_certificate_file={certificates}/ca.pem"
    client = f"connect_certificate_file={certificates}/client.pem;connect_private_key_file={certificates}/client.key"
    return {
        "tcp": ("tcp/127.0.0.1:0", ""),
        "tcp6": ("tcp/[::1]:0", ""),
        "ws": ("ws/127.0.0.1:0", ""),
        "udp": ("udp/127.0.0.1:0", ""),
        "udp6": ("udp/[::1]:0", ""),
        "unixsock-stream": (f"unixsock-stream/{tmp_path}/a.sock", ""),
        "memory": ("memory/a", ""),
        "memory-datagram": ("memory/a?rel=0", ""),
        "tls": (f"tls/localhost:0#{own}", f"#{ca}"),
        "mtls": (
            f"tls/localhost:0#{own};{ca};enable_mtls=true",
            f"#{ca};{client};enable_mtls=true",
        ),
    }[protocol]


@pytest.mark.parametrize("where", EVERY, indirect=True)
def test_bytes_go_both_ways(where: tuple[str, str]) -> None:
    async def scenario() -> None:
        async with pair(*where) as (here, there, listener):
            here.link.write(b"ping" * 100)
            assert await there.size(400) == b"ping" * 100
            there.link.write(bytearray(b"pong") * 100)
            there.link.write(memoryview(b"!"))
            assert await here.size(401) == b"pong" * 100 + b"!"
            assert here.link.bytes_out == there.link.bytes_in
            assert there.link.bytes_out == here.link.bytes_in == 401
            assert listener.counters.accepted == 1
            if not here.link.facts.streamed:
                assert here.pieces == [b"pong" * 100, b"!"]
            if here.link.dst.protocol != "unixsock-stream":
                assert (here.link.src, here.link.dst) == (there.link.dst, there.link.src)

    asyncio.run(scenario())


@pytest.mark.parametrize("where", EVERY, indirect=True)
@pytest.mark.parametrize("from_listener", [False, True])
def test_either_side_may_close(where: tuple[str, str], from_listener: bool) -> None:
    async def scenario() -> None:
        async with pair(*where) as (here, there, _):
            one, other = (there, here) if from_listener else (here, there)
            one.link.write(b"last words")
            one.link.close()
            one.link.close()
            one.link.write(b"too late")
            assert await one.end() is None
            assert await other.size(10) == b"last words"
            if one.link.facts.reliable or one.link.src.protocol == "memory":
                assert await other.end() is None
            assert one.ends == [None]

    asyncio.run(scenario())


@pytest.mark.parametrize("where", [*STREAMS, "ws"], indirect=True)
def test_large_data_waits_for_a_reader_that_is_slow(where: tuple[str, str]) -> None:
    async def scenario() -> None:
        data = random.Random(1).randbytes(50_000)
        async with pair(*where) as (here, there, _):
            there.link.pause()
            sent = 0
            while here.link.writable:
                here.link.write(data)
                sent += len(data)
                await asyncio.sleep(0)
            assert sent > len(data)
            assert here.drains == 0
            # What the system and TLS buffer is not ours to bound; that it stops is.
            assert len(there.data) <= sent
            there.link.resume()
            await here.until(lambda end: end.drains > 0)
            assert here.link.writable
            assert await there.size(sent) == data * (sent // len(data))

    asyncio.run(scenario())


@pytest.mark.parametrize("where", EVERY, indirect=True)
def test_abort_hands_its_error_on(where: tuple[str, str]) -> None:
    async def scenario() -> None:
        async with pair(*where) as (here, there, _):
            error = LinkError("tcp/x:1", "enough")
            here.link.abort(error)
            here.link.abort()
            assert await here.end() is error
            if here.link.facts.reliable:
                await there.end()
            # All of these are harmless now.
            here.link.abort()
            here.link.close()
            here.link.write(b"x")
            here.link.pause()
            here.link.resume()
            await asyncio.sleep(0)
            assert here.ends == [error]

    asyncio.run(scenario())


@pytest.mark.parametrize("where", EVERY, indirect=True)
def test_a_listener_takes_many_and_frees_its_place(where: tuple[str, str]) -> None:
    async def scenario() -> None:
        async with listening(where[0]) as (listener, there):
            here = Ends()
            place = listener.endpoint
            for index in range(5):
                link = await connect(f"{place.locator}{where[1]}", here.attach)
                link.write(bytes([index]))
            got = sorted([await (await there.get(index)).size(1) for index in range(5)])
            assert got == [bytes([index]) for index in range(5)]
            await here.close()
        again = await listen(place, Ends().attach)
        await again.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("where", EVERY, indirect=True)
def test_a_listener_that_closes_leaves_nothing_to_connect_to(where: tuple[str, str]) -> None:
    async def scenario() -> None:
        async with listening(where[0]) as (listener, _):
            place = f"{listener.endpoint.locator}{where[1]}"
        ends = Ends()
        if place.startswith("udp"):
            link = await connect(place, ends.attach)
            link.write(b"anybody?")
            error = await ends[0].end()
            assert error is not None
            assert "nothing listens there" in error.hint
            return
        with pytest.raises(LinkError) as e:
            await connect(place, ends.attach)
        assert e.value.hint
        assert len(ends) == 0

    asyncio.run(scenario())


def test_a_locator_of_another_node_is_good_enough() -> None:
    async def scenario() -> None:
        async with listening("tcp/127.0.0.1:0") as (listener, there):
            ends = Ends()
            await connect(Locator("tcp", listener.endpoint.address, "future=1"), ends.attach)
            await there.get()
            await ends.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("where", ["tcp6", "ws", "tls"], indirect=True)
def test_cancelling_connect_leaves_nothing_behind(where: tuple[str, str]) -> None:
    async def scenario() -> None:
        async with listening(where[0]) as (listener, _):
            ends = Ends()
            stopped = 0
            for rounds in range(6):
                task = asyncio.ensure_future(
                    connect(f"{listener.endpoint.locator}{where[1]}", ends.attach)
                )
                for _ in range(rounds):
                    await asyncio.sleep(0)
                if task.cancel():
                    stopped += 1
                    with pytest.raises(asyncio.CancelledError):
                        await task
            assert stopped > 2
            await ends.close()

    asyncio.run(scenario())
