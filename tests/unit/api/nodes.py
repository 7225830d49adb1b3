"""Sessions for tests: alone, or connected to a port of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from zenwire import aio

TIMEOUT = 30.0
"""Long enough for a busy machine; nothing waits for it to pass."""

T = TypeVar("T")


def config(
    mode: str = "peer", connect: int | None = None, listen: int | None = None, **more: Any
) -> aio.Config:
    """Without scouting, so that tests find nobody but whom they name."""
    ports = {"connect": connect, "listen": listen}
    ends = {
        name: {"endpoints": [] if port is None else [f"tcp/127.0.0.1:{port}"]}
        for name, port in ports.items()
    }
    scouting = {"multicast": {"enabled": False}, "gossip": {"enabled": False}}
    return aio.Config.from_dict({"mode": mode, "scouting": scouting, **ends} | more)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a test that ends, one way or the other."""

    async def bounded() -> T:
        return await within(main)

    return asyncio.run(bounded())


async def within(what: Awaitable[T]) -> T:
    return await asyncio.wait_for(what, TIMEOUT)


async def until(true: Callable[[], Any]) -> None:
    """Wait for something that will be."""
    async with asyncio.timeout(TIMEOUT):
        while not true():  # noqa: ASYNC110 # others have no event to wait for
            await asyncio.sleep(0.005)
