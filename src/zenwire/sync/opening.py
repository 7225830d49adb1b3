"""Opening sessions, and finding out whom there is to open one with."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, overload

from zenwire.api import opening as aio
from zenwire.api.core import GRACE
from zenwire.api.handlers import Called, Channelled, H, IntoHandler, Paired
from zenwire.api.values import Hello, WhatAmI, WhatAmIMatcher
from zenwire.errors import ChannelClosed, ZError
from zenwire.sync.handler import Handler, Reading
from zenwire.sync.session import Session
from zenwire.sync.thread import Loop, current

if TYPE_CHECKING:
    from zenwire.api.stamps import TimestampCallback
    from zenwire.node.config import Config

__all__ = ["Scout", "open", "scout"]


def open(  # noqa: A001 # eclipse-zenoh's name
    config: Config | Mapping[str, object] | None = None,
    *,
    timestamp_callback: TimestampCallback | None = None,
) -> Session:
    """Open a session: ``with zenwire.open(config) as session``, or without ``with``.

    A configuration may be written as a dict: ``{"mode": "client", "connect": {"endpoints": [...]}}``.
    A client is connected then; a peer goes on connecting. Raises ConfigError and LinkError.
    ``timestamp_callback`` makes the times that instrumented messages collect, in the thread of
    the network.
    """
    loop = current()
    inner = loop.run(lambda: aio.open(config, timestamp_callback=timestamp_callback), task=True)
    return Session(loop, inner)


class Scout(Generic[H]):
    """Gets a Hello of each node there is, and of new ones, until it is stopped or let go."""

    def __init__(self, loop: Loop, inner: aio.Scout, reading: Reading[Hello]) -> None:
        self._loop = loop
        self._inner = inner
        self._handler, self._strand = reading.attach(loop, inner.handler)
        if self._strand is not None:
            self._strand.start()

    @property
    def handler(self) -> H:
        """A Handler; of a pair, what it had to read from; for a callback None."""
        handler: H = self._handler
        return handler

    def stop(self) -> None:
        """Look no further. Once more is no matter. Raises LinkError if looking has failed."""
        self._loop.run(self._inner.stop, task=True)
        if self._strand is not None:
            self._strand.close(GRACE)

    def try_recv(self) -> Hello | None:
        """The next Hello, or None if there is none now. Raises ChannelClosed at the end."""
        hello: Hello | None = self._readable("try_recv").try_recv()
        return hello

    def recv(self) -> Hello:
        """The next Hello, when there is one. Raises ChannelClosed at the end."""
        try:
            hello: Hello = self._readable("recv").recv()
        except ChannelClosed:
            # It may have ended because looking failed.
            self.stop()
            raise
        return hello

    def __iter__(self) -> Handler[Hello]:
        handler = self._readable("__iter__")
        return handler.of(self) if isinstance(handler, Handler) else iter(handler)

    def _readable(self, call: str) -> Any:
        if self._handler is None:
            raise ZError(f"scout.{call}: this scout has a callback, which gets everything")
        return self._handler

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def __del__(self) -> None:
        if getattr(self, "_inner", None) is not None:
            self._loop.later(self._inner.stop)


@overload
def scout(
    handler: Channelled[Hello] = None,
    what: WhatAmIMatcher | WhatAmI | str | None = None,
    config: Config | Mapping[str, object] | None = None,
) -> Scout[Handler[Hello]]: ...
@overload
def scout(
    handler: Paired[Hello, H],
    what: WhatAmIMatcher | WhatAmI | str | None = None,
    config: Config | Mapping[str, object] | None = None,
) -> Scout[H]: ...
@overload
def scout(
    handler: Called[Hello],
    what: WhatAmIMatcher | WhatAmI | str | None = None,
    config: Config | Mapping[str, object] | None = None,
) -> Scout[None]: ...
def scout(
    handler: IntoHandler[Hello] = None,
    what: WhatAmIMatcher | WhatAmI | str | None = None,
    config: Config | Mapping[str, object] | None = None,
) -> Scout[Any]:
    """Look for nodes: ``with zenwire.scout() as scout: for hello in scout``.

    Without ``what``, for nodes of all kinds.
    """
    loop, reading = current(), Reading(handler)
    inner = loop.run(lambda: aio.scout(reading.into, what, config), task=True)
    return Scout(loop, inner, reading)
