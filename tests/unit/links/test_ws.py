from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from websockets.asyncio.client import connect as ws_connect
from websockets.asyncio.server import serve as ws_serve

from tests.unit.links.ends import TIMEOUT, Ends, listening, pair
from zenwire.links import LinkError, connect


def test_a_batch_is_a_message() -> None:
    async def scenario() -> None:
        async with pair("ws/127.0.0.1:0") as (here, there, _):
            assert not here.link.facts.streamed
            assert here.link.facts.mtu == 65_535
            for data in (b"a", bytes(65_535), b""):
                here.link.write(data)
            await there.until(lambda end: len(end.pieces) == 3)
            assert [len(piece) for piece in there.pieces] == [1, 65_535, 0]
            with pytest.raises(LinkError, match="more than a message may have"):
                here.link.write(bytes(65_536))

    asyncio.run(scenario())


def test_another_client_may_use_fragments_pings_and_any_path() -> None:
    async def scenario() -> None:
        async with listening("ws/127.0.0.1:0") as (listener, there):
            url = f"ws://{listener.endpoint.address}/any/path"
            async with ws_connect(url) as other, asyncio.timeout(TIMEOUT):
                await other.send([b"in ", b"", b"three ", b"parts"])
                end = await there.get()
                await end.size(14)
                assert end.pieces == [b"in three parts"]
                await (await other.ping())
                end.link.write(b"back")
                assert await other.recv() == b"back"
            assert await end.end() is None

    asyncio.run(scenario())


def test_another_server_gets_no_ping_and_an_end() -> None:
    async def scenario() -> None:
        got: list[object] = []

        async def serve(other: object) -> None:
            async for message in other:  # type: ignore[attr-defined] # a ServerConnection
                got.append(message)
                await other.send(message)  # type: ignore[attr-defined] # the same

        async with ws_serve(serve, "127.0.0.1", 0) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            ends = Ends()
            link = await connect(f"ws/127.0.0.1:{port}", ends.attach)
            link.write(b"echo")
            assert await ends[0].size(4) == b"echo"
            link.close()
            assert await ends[0].end() is None
        assert got == [b"echo"]

    asyncio.run(scenario())


def test_a_server_that_is_no_websocket_is_told_apart() -> None:
    async def scenario() -> None:
        async with listening("tcp/127.0.0.1:0") as (listener, there):

            async def answer() -> None:
                end = await there.get()
                await end.size(1)
                end.link.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

            task = asyncio.ensure_future(answer())
            with pytest.raises(LinkError, match="upgrade to a WebSocket failed"):
                await connect(f"ws/{listener.endpoint.address}", Ends().attach)
            await task

    asyncio.run(scenario())


def test_without_the_package_there_is_a_hint() -> None:
    program = (
        "import asyncio, sys\n"
        "sys.modules['websockets'] = None\n"
        "from zenwire.links import LinkError, connect, listen\n"
        "for opening in (connect, listen):\n"
        "    try:\n"
        "        asyncio.run(opening('ws/127.0.0.1:1', lambda link: None))\n"
        "    except LinkError as e:\n"
        "        print(e)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    said = "ws/127.0.0.1:1: ws needs the package websockets, which is not installed; pip install 'zenwire[ws]'"
    assert result.stdout.splitlines() == [said, said]
