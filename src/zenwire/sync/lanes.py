"""Calls that nobody waits for, on their way into the loop: what bounds them, and values in one go."""

from __future__ import annotations

import asyncio
import logging
import threading
from _thread import allocate_lock
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from zenwire.node.neighbour import Waiting
    from zenwire.sync.thread import Loop

__all__ = ["BURST", "LANE", "SMALL", "Burst", "Lane", "Puts", "lost"]

LANE: Final = 256
"""How many calls of a lane may be under way before the next one waits."""

_UNIT: Final = 32 * 1024
"""Bytes of a payload that count as one call more: eight MiB of them fill a lane."""

SMALL: Final = 4096
"""Bytes of a value that may go by a burst."""

BURST: Final = 2048
"""Values that may be in a burst before the next one waits."""

_log = logging.getLogger("zenwire.sync")


def lost(error: BaseException) -> None:
    """Tell of what failed, where nobody waits for it."""
    _log.error("a call that nobody waited for failed: %s", error, exc_info=error)


class Puts(Protocol):
    """Publishes values in the loop; gives those that have no room in the network yet."""

    def put_all(self, payloads: Sequence[Any], /) -> list[Waiting]: ...


class Burst:
    """Values on their way into the loop, which takes them all at once.

    Any thread may add to it, as long as nothing else was asked of the loop since
    (``loop.newest`` is this): so what a thread asks for is done in its order.
    """

    __slots__ = ("items", "lane", "queued", "to")

    def __init__(self, lane: Lane, to: Puts) -> None:
        self.lane = lane
        self.to = to
        self.items: list[Any] = []
        self.queued = False
        """It is among what the loop has to do. Else whoever has added something sees to it."""

    def take(self) -> None:
        """In the loop: publish what is there."""
        # Before anything is taken: who comes later queues it again.
        self.queued = False
        items = self.items
        values = items[:]
        del items[: len(values)]
        if not values:
            # Somebody queued it again for what was taken just before.
            return
        try:
            waiting = self.to.put_all(values)
        except Exception as e:  # noqa: BLE001 # nobody else would know
            lost(e)
            return
        if waiting:
            self.lane.hold(waiting)


class Lane:
    """Calls that nobody waits for, of one session and priority.

    They are bounded, as the queue of a priority is in the network: whoever fills it waits, and
    those of other priorities do not.
    """

    __slots__ = ("_lock", "_loop", "_used", "_waiting")

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._used = 0
        self._waiting: list[Any] = []

    def send(self, call: Callable[[], Coroutine[Any, Any, Any]], size: int = 0) -> None:
        """Let the loop do it. Waits while too much is under way, but never in the loop.

        It is the loop that calls: a coroutine would be left behind if Ctrl-C came meanwhile.
        """
        units = 1 + size // _UNIT
        if self._used >= LANE and not self._loop.here:
            self._room()
        with self._lock:
            self._used += units
        self._loop.post(partial(self._loop.begin, call, partial(self._left, units)))

    def begin(self, burst: Burst) -> Burst:
        """A burst that may be added to: this one, or another if it came to an end.

        Waits while too much is under way, but never in the loop.
        """
        loop = self._loop
        if self._used >= LANE and not loop.here:
            self._room()
        if loop.newest is not burst:
            burst = Burst(self, burst.to)
        return burst

    def go(self, burst: Burst) -> None:
        """Something was added to a burst that is not queued, or that is long."""
        loop = self._loop
        if not burst.queued:
            burst.queued = True
            loop.newest = burst
            loop.calls.append(burst.take)
            if not loop.woken:
                loop.wake()
        elif not loop.here:
            loop.room()

    def hold(self, waiting: list[Waiting]) -> None:
        """In the loop: a value that was ``put`` is under way for as long as these have no room."""
        for one in waiting:
            units = 1 + one.size // _UNIT
            with self._lock:
                self._used += units
            one.done.add_done_callback(partial(self._done, units))
        if self._used >= LANE:
            # Whoever adds to a burst must look again.
            self._loop.newest = None

    def _done(self, units: int, _future: asyncio.Future[None]) -> None:
        self._left(units)

    def _room(self) -> None:
        while True:
            with self._lock:
                if self._used < LANE:
                    return
                gate = allocate_lock()
                gate.acquire()
                self._waiting.append(gate)
            gate.acquire()

    def _left(self, units: int) -> None:
        with self._lock:
            self._used -= units
            # Who waits is woken for more than one call.
            if not self._waiting or self._used > LANE // 2:
                return
            waiting, self._waiting = self._waiting, []
        for gate in waiting:
            gate.release()
