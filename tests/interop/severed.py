"""A way between two nodes that can be cut, and mended."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

__all__ = ["Way"]


class Way:
    """Passes bytes from one port to another, as long as it is whole."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        # While it is cut somebody else's connection could be given its port, so that is kept.
        self._kept = socket.socket()
        self._kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._kept.bind(("127.0.0.1", 0))
        self.port: int = self._kept.getsockname()[1]

    async def mend(self) -> None:
        """Let connections through."""
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", self.port, reuse_port=True
        )

    async def close(self) -> None:
        """Cut it for good."""
        await self.cut()
        self._kept.close()

    async def cut(self) -> None:
        """End all connections, and let none through."""
        if self._server is not None:
            self._server.close()
            self._server = None
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        there: asyncio.StreamWriter | None = None
        try:
            with suppress(OSError):
                back, there = await asyncio.open_connection("127.0.0.1", self._target)
                await asyncio.gather(_pass(reader, there), _pass(back, writer))
        except asyncio.CancelledError:
            pass
        finally:
            self._tasks.discard(task)
            for one in (writer, there):
                if one is not None:
                    one.transport.abort()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.transport.abort()
