"""The queue between the network and a reader: bounded, and never in the way of the network.

The network puts, a reader takes: in a coroutine (`Channel`) or a thread (`Handler`). A queue that
is full drops, by a policy with a name, and counts what it dropped. So a reader that does not
read stalls nobody but itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, Literal, Self, TypeAlias, TypeVar, cast

from zenwire.api.waiter import Soon, Waiter
from zenwire.errors import ChannelClosed

__all__ = ["NOTHING", "Channel", "Handler", "Overflow", "finish_future", "wake_future"]

T = TypeVar("T")

Overflow: TypeAlias = Literal["drop_newest", "drop_oldest"]
"""What a full queue drops: what comes, or what has waited longest."""

NOTHING: Final = object()
"""Stands for no item."""


class Channel(Generic[T]):
    """A queue that any thread may put into. It is read by coroutines: ``async for``, ``recv``.

    ``dropped`` counts what overflowed, and ``on_drop`` is told of it. After `close` the rest can
    be read, then ChannelClosed is raised, and ``async for`` ends. With ``size``, which gives the
    bytes of an item, ``max_bytes`` bounds what waits, but for one item that is larger.
    """

    __slots__ = (
        "_bytes",
        "_items",
        "_lock",
        "_on_drop",
        "_size",
        "_waiting",
        "capacity",
        "closed",
        "dropped",
        "max_bytes",
        "overflow",
        "soon",
    )

    def __init__(
        self,
        capacity: int,
        overflow: Overflow = "drop_newest",
        *,
        on_drop: Callable[[T], None] | None = None,
        size: Callable[[T], int] | None = None,
        max_bytes: int = sys.maxsize,
    ) -> None:
        if capacity < 1:
            raise ValueError(f"a channel holds at least one item, not {capacity}")
        if overflow not in {"drop_newest", "drop_oldest"}:
            raise ValueError(f"{overflow!r} is no policy; 'drop_newest' or 'drop_oldest'")
        self.capacity = capacity
        self.overflow: Overflow = overflow
        self.max_bytes = max_bytes
        self.dropped = 0
        self.soon: Soon | None = None
        """How whoever waits goes on at once, if whoever puts knows when that may be."""
        self._on_drop = on_drop
        self._size = size
        self._bytes = 0
        """Of all that wait but the first."""
        self._items: deque[T] = deque()
        self.closed = False
        """Nothing more comes."""
        self._waiting: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def put(self, item: T) -> bool:
        """Hand an item over. False if one was dropped for it, or itself; never waits."""
        with self._lock:
            items = self._items
            waiting: list[Callable[[], None]] = []
            dropped: list[T] = []
            room = not items or self._has_room(item)
            if not room and self.overflow == "drop_oldest" and not self.closed:
                dropped, room = self._make_room(item), True
            if room and not self.closed:
                # Most are taken before another one comes, and need not be weighed.
                if items and self._size is not None:
                    self._bytes += self._size(item)
                items.append(item)
                # Not the list itself if it is empty: readers may add to that in a moment.
                if self._waiting:
                    waiting, self._waiting = self._waiting, waiting
            else:
                dropped.append(item)
        for wake in waiting:
            wake()
        if not dropped:
            return True
        self.dropped += len(dropped)
        if self._on_drop is not None:
            for one in dropped:
                self._on_drop(one)
        return False

    def put_many(self, many: Iterable[T]) -> None:
        """The same for items that came together."""
        items, fits = list(many), 0
        if self._size is None:
            waiting: list[Callable[[], None]] = []
            with self._lock:
                there = self._items
                fits = 0 if self.closed else max(self.capacity - len(there), 0)
                there.extend(items[:fits])
                if items and fits:
                    waiting, self._waiting = self._waiting, waiting
            for wake in waiting:
                wake()
        # For what is left there is a rule.
        for item in items[fits:]:
            self.put(item)

    def _has_room(self, item: T) -> bool:
        """Whether one more may wait behind those that do."""
        items, size = self._items, self._size
        if len(items) >= self.capacity:
            return False
        return size is None or size(items[0]) + self._bytes + size(item) <= self.max_bytes

    def _popleft(self) -> T:
        items = self._items
        item = items.popleft()
        if items and self._size is not None:
            self._bytes -= self._size(items[0])
        return item

    def _make_room(self, item: T) -> list[T]:
        """What waited longest, until an item has room."""
        dropped: list[T] = []
        while self._items and not self._has_room(item):
            dropped.append(self._popleft())
        return dropped

    def drain(self) -> list[T]:
        """All that waits, at once."""
        with self._lock:
            items = list(self._items)
            self._items.clear()
            self._bytes = 0
        return items

    def close(self) -> None:
        """Nothing more comes."""
        with self._lock:
            self.closed = True
            waiting, self._waiting = self._waiting, []
        for wake in waiting:
            wake()
        # It leads to the session, which should not be kept by what may still be read here.
        self.soon = None

    @property
    def over(self) -> bool:
        """Closed, and nothing is left to be read."""
        return self.closed and not self._items

    def __len__(self) -> int:
        return len(self._items)

    def try_recv(self) -> T | None:
        """The next item, or None if there is none now. Raises ChannelClosed at the end."""
        item = self.take(None)
        return None if item is NOTHING else cast(T, item)

    async def recv(self) -> T:
        """The next item, when there is one. Raises ChannelClosed at the end."""
        # Most often there is nothing to wait for; if it is not so any more, that comes out below.
        if self._items or self.closed:
            item: T = self.take(None)
            if item is not NOTHING:
                return item
        loop = asyncio.get_running_loop()
        while True:
            waiter = Waiter(loop, self.soon)
            wake = waiter.wake
            item = self.take(wake)
            if item is not NOTHING:
                return item
            try:
                await waiter
            except asyncio.CancelledError:
                # Whoever wakes has forgotten it; nobody has woken this one.
                self._forget(wake)
                raise
            item = self.take(None)
            if item is not NOTHING:
                return item

    def recv_blocking(self, timeout: float | None = None) -> T | None:
        """The next item, for a thread that may wait. None if nothing comes within ``timeout``."""
        while True:
            event = threading.Event()
            item = self.take(event.set)
            if item is not NOTHING:
                return cast(T, item)
            try:
                if not event.wait(timeout):
                    return None
            finally:
                self._forget(event.set)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        try:
            return await self.recv()
        except ChannelClosed:
            raise StopAsyncIteration from None

    def __repr__(self) -> str:
        state = "closed, " if self.closed else ""
        return f"Channel({state}{len(self)} of {self.capacity}, {self.dropped} dropped)"

    def take(self, wake: Callable[[], None] | None) -> Any:  # Any: an item, or NOTHING
        """The next item; or nothing, and then ``wake`` is called when it is worth another look."""
        with self._lock:
            if self._items:
                return self._popleft()
            if self.closed:
                raise ChannelClosed
            if wake is not None:
                self._waiting.append(wake)
            return NOTHING

    def _forget(self, wake: Callable[[], None]) -> None:
        with self._lock, contextlib.suppress(ValueError):
            self._waiting.remove(wake)


def wake_future(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    """Finish a future of a loop, from any thread."""
    try:
        running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is loop:
        finish_future(future)
        return
    # The reader's loop may be closed already: then nobody waits.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(finish_future, future)


def finish_future(future: asyncio.Future[None]) -> None:
    """Finish a future of this loop, unless it is done."""
    if not future.done():
        future.set_result(None)


class Handler(Generic[T]):
    """A channel for threads: ``recv`` waits, ``for`` goes on until the end."""

    __slots__ = ("channel",)

    def __init__(self, channel: Channel[T]) -> None:
        self.channel = channel

    @property
    def dropped(self) -> int:
        """How many items overflowed."""
        return self.channel.dropped

    def try_recv(self) -> T | None:
        """The next item, or None if there is none now. Raises ChannelClosed at the end."""
        return self.channel.try_recv()

    def recv(self) -> T:
        """The next item, when there is one. Raises ChannelClosed at the end."""
        return cast(T, self.channel.recv_blocking())

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        try:
            return self.recv()
        except ChannelClosed:
            raise StopIteration from None

    def __repr__(self) -> str:
        return f"Handler({self.channel!r})"
