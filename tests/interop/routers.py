"""Networks of routers, ours and the reference's, with sessions of both at their ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import zenoh

from tests.interop.exchange import PATIENT, node_settings, opened
from tests.ports import free_port
from zenwire import aio

__all__ = ["Net", "chain"]

AnySession = aio.Session | zenoh.Session


class Net:
    """Routers by their place, each of ours (Z) or of the reference (E)."""

    def __init__(self, stack: AsyncExitStack, kinds: str) -> None:
        self._stack = stack
        self.kinds = kinds
        self.ports = [free_port() for _ in kinds]
        self.routers: list[AnySession] = []

    async def router(self, links: Sequence[int] = (), **more: Any) -> None:
        """The next one, linked to some of those that are there."""
        at = len(self.routers)
        self.routers.append(await self._open(self.kinds[at], "router", links, at, **more))

    async def ours(self, mode: str, *links: int, **more: Any) -> aio.Session:
        """A session of ours at one of the routers."""
        session = await self._open("Z", mode, links, None, **more)
        assert isinstance(session, aio.Session)
        return session

    async def theirs(self, mode: str, *links: int, **more: Any) -> zenoh.Session:
        """A session of the reference at one of the routers."""
        session = await self._open("E", mode, links, None, **more)
        assert isinstance(session, zenoh.Session)
        return session

    async def _open(
        self, kind: str, mode: str, links: Sequence[int], place: int | None, **more: Any
    ) -> AnySession:
        settings = node_settings(mode, **PATIENT) | more
        if links:
            settings["connect"] = {"endpoints": [f"tcp/127.0.0.1:{self.ports[at]}" for at in links]}
        if place is not None:
            settings["listen"] = {"endpoints": [f"tcp/127.0.0.1:{self.ports[place]}"]}
        if kind == "E":
            return await self._stack.enter_async_context(opened(settings))
        return await self._stack.enter_async_context(aio.open(aio.Config.from_dict(settings)))


@asynccontextmanager
async def chain(kinds: str, **more: Any) -> AsyncIterator[Net]:
    """Routers in a row, each linked to the one before."""
    async with AsyncExitStack() as stack:
        net = Net(stack, kinds)
        for at in range(len(kinds)):
            await net.router(range(max(at - 1, 0), at), **more)
        yield net
