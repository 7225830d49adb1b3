"""What programs read from, or are called by, on top of the channels of the asyncio API."""

from __future__ import annotations

import inspect
from _thread import allocate_lock
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, cast

from zenwire import process
from zenwire.api.channel import NOTHING, Channel
from zenwire.api.columnar import Columnar
from zenwire.api.handlers import DEFAULT_CAPACITY as _DEFAULT_CAPACITY
from zenwire.api.handlers import (
    Callback,
    DefaultHandler,
    FifoChannel,
    IntoHandler,
    Overflow,
    refused,
)
from zenwire.api.query import Query
from zenwire.api.rows import RowSample
from zenwire.api.values import Reply, ReplyError, Sample
from zenwire.errors import ChannelClosed, ForkedSession, ZError
from zenwire.sync.workers import Strand
from zenwire.wire.data import Put

if TYPE_CHECKING:
    from zenwire.sync.thread import Loop

__all__ = ["CAPACITY", "MAX_BYTES", "Handler", "Reading", "Roomy"]

T = TypeVar("T")

CAPACITY: Final = 65_536
MAX_BYTES: Final = 64 * 1024 * 1024
"""What may wait where a program gave no capacity: the network has its own thread here, and may
bring a great many items before the reader has its turn."""

_ITEM: Final = 512
"""Bytes that an item takes beside its payload; about what its objects do."""


class Handler(Generic[T]):
    """Items that came: ``recv`` waits for the next one, ``for`` goes on until the end.

    Waiting ends with Ctrl-C. ``dropped`` counts items that had no room.
    """

    __slots__ = ("_channel", "_loop", "_made", "_owner")

    def __init__(
        self,
        loop: Loop,
        channel: Channel[Any],
        made: Callable[[Any], T] | None = None,
        owner: object = None,
    ) -> None:
        self._loop = loop
        self._channel = channel
        self._made = made
        self._owner = owner
        """What must live as long as it is read from."""

    @property
    def dropped(self) -> int:
        """How many items overflowed."""
        return self._channel.dropped

    def try_recv(self) -> T | None:
        """The next item, or None if there is none now. Raises ChannelClosed at the end."""
        self._loop.check("try_recv")
        item = self._channel.take(None)
        return None if item is NOTHING else self._of(item)

    def recv(self) -> T:
        """The next item, when there is one. Raises ChannelClosed at the end."""
        if process.pid != self._loop.pid:
            raise ForkedSession("recv", self._loop.pid)
        item = self._channel.take(None)
        while item is NOTHING:
            if self._loop.here:
                raise ZError(
                    "recv: there is nothing now, and nothing can come while the thread of the "
                    "network waits: leave out indirect=False"
                )
            gate = allocate_lock()
            gate.acquire()
            item = self._channel.take(gate.release)
            if item is NOTHING:
                gate.acquire()
                item = self._channel.take(None)
        return self._of(item)

    def of(self, owner: object) -> Handler[T]:
        """The same, which keeps its owner alive."""
        return Handler(self._loop, self._channel, self._made, owner)

    def _of(self, item: object) -> T:
        return cast(T, item) if self._made is None else self._made(item)

    def __len__(self) -> int:
        return len(self._channel)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        try:
            return self.recv()
        except ChannelClosed:
            raise StopIteration from None

    def __repr__(self) -> str:
        state = "closed, " if self._channel.closed else ""
        return f"Handler({state}{len(self)} waiting, {self.dropped} dropped)"


def _size(item: Any) -> int:
    """Bytes that an item holds, about."""
    if isinstance(item, Reply):
        result = item.result
        if isinstance(result, ReplyError):
            return _ITEM + len(result.payload)
        item = result
    if isinstance(item, RowSample):
        return _ITEM + item.size
    if isinstance(item, Sample):
        body = item.body
        payload = len(body.payload) if isinstance(body, Put) else 0
        return _ITEM + payload + len(body.attachment or b"")
    if isinstance(item, Query):
        return _ITEM + len(item.payload or b"") + len(item.attachment or b"")
    return _ITEM


def _is_coroutine_function(callback: object) -> bool:
    call = getattr(callback, "__call__", None)  # noqa: B004 # an object with an async __call__
    return any(map(inspect.iscoroutinefunction, (callback, call)))


class Roomy(FifoChannel[T]):
    """Bounded by the bytes of what waits, rather than by its number."""

    __slots__ = ()

    def __init__(self, overflow: Overflow = "drop_newest") -> None:
        super().__init__(CAPACITY, overflow)

    def open(self, on_drop: Callable[[T], None] | None = None) -> Channel[T]:
        return Channel(
            self.capacity, self.overflow, on_drop=on_drop, size=_size, max_bytes=MAX_BYTES
        )


class Reading(Generic[T]):
    """What a program gave to receive with: ``into`` is that for the asyncio API.

    Callbacks get a thread, and a channel before it. But those that are called by the network
    itself, and coroutine functions, run in the loop.
    """

    __slots__ = ("_callback", "_failed", "_made", "_receiver", "into")

    def __init__(
        self,
        handler: IntoHandler[T],
        made: Callable[[Any], T] | None = None,
        failed: Callable[[T, Exception], None] | None = None,
    ) -> None:
        self._made = made
        self._failed = failed
        self._receiver: Any = None
        self._callback: Callback[T] | None = None
        # Any: whichever of the kinds it is.
        self.into: Any = self._into(handler)

    def _into(self, handler: IntoHandler[T]) -> IntoHandler[Any]:
        if handler is None or isinstance(handler, DefaultHandler):
            return Roomy()
        if isinstance(handler, Columnar):
            return self._columnar(handler)
        if isinstance(handler, FifoChannel):
            return handler
        function: Any = handler
        if isinstance(handler, tuple):
            pair: tuple[Any, ...] = handler
            if len(pair) != 2:
                raise TypeError(
                    "handler is a tuple, but not of a callback and an object to read from"
                )
            function, self._receiver = pair
        if not callable(function):
            raise refused(function)
        callback = function if isinstance(function, Callback) else Callback(function)
        if _is_coroutine_function(callback.callback):
            return handler
        if not callback.indirect:
            return self._direct(callback)
        self._callback = callback
        if (callback.capacity, callback.overflow) == (_DEFAULT_CAPACITY, "drop_newest"):
            return Roomy()
        return FifoChannel(callback.capacity, callback.overflow)

    def _columnar(self, handler: Columnar) -> Columnar:
        """One whose callback, if it has one, runs as others do."""
        callback = handler.callback
        if callback is None or not callback.indirect or _is_coroutine_function(callback.callback):
            return handler
        self._callback = callback
        return handler.without_callback()

    def _direct(self, callback: Callback[T]) -> IntoHandler[Any]:
        made, call = self._made, callback.callback
        if made is None:
            into = callback
        else:
            into = Callback(lambda item: call(made(item)), callback.drop, indirect=False)
        return into if self._receiver is None else (into, self._receiver)

    def attach(self, loop: Loop, opened: Any) -> tuple[Any, Strand[T] | None]:
        """What the program reads from, and the calls of its callback if it has a thread.

        ``opened`` is what the asyncio API gave to read from. The calls are yet to be started.
        """
        if self._callback is not None:
            strand = Strand(opened, self._callback, self._made, self._failed)
            return self._receiver, strand
        if isinstance(opened, Channel):
            return Handler(loop, opened, self._made), None
        return self._receiver, None
