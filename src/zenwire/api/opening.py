"""Opening sessions, and finding out whom there is to open one with."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Self, cast

from zenwire.api.awaited import Awaited
from zenwire.api.declared import Receiving
from zenwire.api.handlers import IntoHandler, Opened, open_handler
from zenwire.api.pump import Pump
from zenwire.api.session import Session
from zenwire.api.values import Hello, WhatAmI, WhatAmIMatcher, ZenohId
from zenwire.node import scouting
from zenwire.node.config import Config
from zenwire.node.opening import open_node

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from zenwire.api.stamps import TimestampCallback
    from zenwire.wire import scouting as wire

__all__ = ["Scout", "open", "scout"]


def open(  # noqa: A001 # eclipse-zenoh's name
    config: Config | Mapping[str, object] | None = None,
    *,
    timestamp_callback: TimestampCallback | None = None,
) -> Awaited[Session]:
    """Open a session: ``async with zenwire.aio.open(config) as session``, or ``await``.

    A configuration may be written as a dict: ``{"mode": "client", "connect": {"endpoints": [...]}}``.
    A client is connected then; a peer goes on connecting. Raises ConfigError and LinkError.
    ``timestamp_callback`` makes the times that instrumented messages collect.
    """
    chosen = _chosen(config)

    async def start() -> Session:
        node = await open_node(chosen)
        return Session(node, chosen, timestamp_callback)

    return Awaited(start())


def _chosen(config: object) -> Config:
    """What is held is a copy: what the program changes later is not for this session."""
    if config is None:
        return Config()
    if isinstance(config, Config):
        return config.copy()
    if isinstance(config, Mapping):
        return Config.from_dict(config)
    hint = "try Config.from_file(path), Config.from_json5(text) or a dict"
    raise TypeError(f"config is a Config or a dict, not {type(config).__name__}: {hint}")


class Scout(Receiving[Hello]):
    """Gets a Hello of each node there is, and of new ones, until it is stopped."""

    WHAT: ClassVar[str] = "scout"

    def __init__(self, handler: IntoHandler[Hello], what: WhatAmIMatcher, config: Config) -> None:
        self._opened: Opened[Hello] = open_handler(handler)
        tasks = [asyncio.create_task(self._ask(what, config))]
        if self._opened.callback is not None:
            tasks.append(Pump(self._opened).start())
        self._tasks = tasks

    async def _ask(self, what: WhatAmIMatcher, config: Config) -> None:
        heard: set[tuple[object, ...]] = set()
        asking = cast("AsyncGenerator[wire.Hello]", scouting.scout(what.wire, config))
        try:
            async with aclosing(asking) as hellos:
                async for hello in hellos:
                    # A node answers each time it is asked.
                    known = hello.zid, hello.whatami, hello.locators
                    if known not in heard:
                        heard.add(known)
                        self._opened.sink.put(_hello(hello))
        finally:
            self._opened.sink.close()

    async def stop(self) -> None:
        """Look no further. Once more is no matter. Raises LinkError if looking has failed."""
        asking = self._tasks[0]
        asking.cancel()
        await asyncio.wait([asking])
        if not asking.cancelled():
            asking.result()

    async def __anext__(self) -> Hello:
        try:
            return await super().__anext__()
        except StopAsyncIteration:
            await self.stop()
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()


def _hello(hello: wire.Hello) -> Hello:
    locators = [str(locator) for locator in hello.locators or ()]
    return Hello(WhatAmI(hello.whatami), ZenohId.from_wire(hello.zid), locators)


def _matcher(what: object) -> WhatAmIMatcher:
    """The kinds of nodes that an argument stands for; all without one. Raises TypeError."""
    if what is None:
        return WhatAmIMatcher.of("router|peer|client")
    if isinstance(what, (WhatAmIMatcher, WhatAmI, str)):
        return WhatAmIMatcher.of(what)
    raise TypeError(f"what is a WhatAmIMatcher, WhatAmI or str, not {type(what).__name__}")


def scout(
    handler: IntoHandler[Hello] = None,
    what: WhatAmIMatcher | WhatAmI | str | None = None,
    config: Config | Mapping[str, object] | None = None,
) -> Awaited[Scout]:
    """Look for nodes: ``async with zenwire.aio.scout() as scout: async for hello in scout``.

    Without ``what``, for nodes of all kinds.
    """
    matcher = _matcher(what)
    chosen = _chosen(config)

    async def start() -> Scout:
        return Scout(handler, matcher, chosen)

    return Awaited(start())
