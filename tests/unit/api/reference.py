"""Nodes of the reference implementation, for tests that run in an event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import zenoh

from tests.ports import free_port
from tests.unit.api.nodes import TIMEOUT

T = TypeVar("T")


@contextmanager
def reference(
    mode: str, connect: int | None = None, listen: int | None = None, **more: Any
) -> Iterator[zenoh.Session]:
    """A session of eclipse-zenoh; ``more`` are settings with ``__`` for the slashes."""
    config = zenoh.Config()
    settings: dict[str, Any] = {
        "mode": mode,
        "scouting/multicast/enabled": False,
        "scouting/gossip/enabled": False,
        "connect/endpoints": [] if connect is None else [f"tcp/127.0.0.1:{connect}"],
        "listen/endpoints": [] if listen is None else [f"tcp/127.0.0.1:{listen}"],
    }
    settings |= {name.replace("__", "/"): value for name, value in more.items()}
    for name, value in settings.items():
        config.insert_json5(name, json.dumps(value))
    session = zenoh.open(config)
    try:
        yield session
    finally:
        session.close()  # type: ignore[no-untyped-call] # its stub says nothing of it


@contextmanager
def router(**more: Any) -> Iterator[int]:
    """A router; gives its port."""
    port = free_port()
    with reference("router", listen=port, **more):
        yield port


class Taker(Generic[T]):
    """A callback for eclipse-zenoh, whose items are awaited here."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._items: asyncio.Queue[T] = asyncio.Queue()

    def __call__(self, item: T) -> None:
        self._loop.call_soon_threadsafe(self._items.put_nowait, item)

    async def get(self) -> T:
        return await asyncio.wait_for(self._items.get(), TIMEOUT)

    def empty(self) -> bool:
        return self._items.empty()
