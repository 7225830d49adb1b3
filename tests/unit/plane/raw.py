"""A peer that says what a test wants, over TCP."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from zenwire.transport import LinkFacts, Opened, Sessions, Settings
from zenwire.wire.values import WhatAmI, ZenohId


class Raw:
    """Its session is open; what follows is for the test to say."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, opened: Opened
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.peer = opened.peer
        self.first_sn = opened.session.counters.next[0]
        self.mask = opened.session.counters.mask
        self._reading = asyncio.create_task(self._read(reader))

    @classmethod
    async def connect(cls, port: int, **settings: Any) -> Raw:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        how = {"whatami": WhatAmI.PEER} | settings
        offers = Settings(zid=ZenohId(os.urandom(16)), **how)
        machine = Sessions(offers, os.urandom(32), os.urandom).connect(LinkFacts(), 0.0)
        events: list[Any] = []
        while not events:
            while data := machine.pull(0.0):
                writer.write(data)
            events = machine.receive(await reader.read(65_536), 0.0)
        opened = events[0]
        assert isinstance(opened, Opened)
        return cls(reader, writer, opened)

    @staticmethod
    async def _read(reader: asyncio.StreamReader) -> None:
        while await reader.read(65_536):
            pass

    async def say(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def close(self) -> None:
        self.writer.close()
        await self._reading
