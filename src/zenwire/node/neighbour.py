"""A node next to this one: its session, its links, and what waits for room in their queues."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from typing import TYPE_CHECKING, Final, Protocol

from zenwire.errors import EncodeError
from zenwire.node.clock import time_of
from zenwire.transport import ACCEPTED, Cause, Dropped, Full, Packed, Stats, Then, count_of
from zenwire.wire.values import CongestionControl, Priority, QoS

if TYPE_CHECKING:
    from zenwire.node.carrier import Carrier
    from zenwire.node.filters import Filtered
    from zenwire.routing import Face
    from zenwire.transport import Result, Session
    from zenwire.wire.network import NetworkMessage

__all__ = ["WAITING_MAX", "Neighbour", "Pressure", "Queue", "Waiting"]

_log = logging.getLogger("zenwire.node")

WAITING_MAX: Final = 131_072
"""Messages that may wait for room in the queues of one neighbour.

Twice as many as another may have declarations: it is told of all of them at once, and of their end.
"""


_PATIENCE: Final = 0.05
"""Seconds that whoever writes past the queues waits for a link, at most."""


class Pressure(Protocol):
    """A queue without room: the link that feeds it is read no further until ``done``."""

    @property
    def done(self) -> asyncio.Future[None]: ...


class Waiting:
    """A message without room. ``done`` is set when it was queued, or is gone."""

    __slots__ = ("done", "full", "message", "queue", "reliable")

    def __init__(
        self, queue: Queue, message: NetworkMessage | Packed, reliable: bool, full: Full | None
    ) -> None:
        self.queue = queue
        self.message = message
        self.reliable = reliable
        self.full = full
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def size(self) -> int:
        """Bytes of what is encoded already, as a measure."""
        return len(self.message.data) if type(self.message) is Packed else 0

    def settle(self) -> None:
        if not self.done.done():
            self.done.set_result(None)


class Sender(Protocol):
    """A session, or a multicast group."""

    @property
    def packing(self) -> int: ...

    def send(
        self,
        message: NetworkMessage | Packed,
        now: float,
        *,
        reliable: bool = ...,
        retry: Full | None = ...,
    ) -> Result: ...


class Queue:
    """What waits for room, in order, per priority.

    ``dropped`` counts, by cause, what was lost before a link had it: links count the rest.
    ``wait_before_drop`` and ``wait_before_close`` are in seconds: after the first, messages with
    Drop are dropped, after the second, best-effort ones with Block.
    """

    __slots__ = (
        "_loop",
        "_sender",
        "_time",
        "_timer",
        "_waiting",
        "dropped",
        "size",
        "wait_before_close",
        "wait_before_drop",
    )

    def __init__(self, sender: Sender, wait_before_drop: float, wait_before_close: float) -> None:
        self.dropped: Counter[Cause] = Counter()
        self.wait_before_drop = wait_before_drop
        self.wait_before_close = wait_before_close
        self._sender = sender
        self._waiting: dict[Priority, deque[Waiting]] = {}
        self.size = 0
        """How many messages have no room."""
        self._loop = asyncio.get_running_loop()
        self._time = time_of(self._loop)
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """How many messages have no room."""
        return self.size

    @property
    def overflown(self) -> bool:
        """Whoever makes this many messages wait is lost to us."""
        return self.size >= WAITING_MAX

    def send(self, message: NetworkMessage | Packed, reliable: bool) -> Waiting | None:
        """Queue a message, or let it wait for room."""
        result = None if self._waiting else self._try(message, reliable, None)
        if result is ACCEPTED:
            self.flush_soon()
            return None
        return self._wait(message, reliable, result)

    def _wait(
        self, message: NetworkMessage | Packed, reliable: bool, result: Result | None
    ) -> Waiting | None:
        """What is to be done with a message that was not queued at once, if it was tried."""
        priority = message.qos.priority
        full: Full | None = None
        if not self._waiting.get(priority):
            result = result or self._try(message, reliable, None)
            if isinstance(result, Full):
                # Room may be a write away.
                self.flush()
                result = self._try(message, reliable, result)
            if not isinstance(result, Full):
                self._count(message, result)
                self.flush_soon()
                return None
            full = result
        elif self.overflown:
            self._lose(message, Cause.CONGESTION)
            return None
        elif message.qos.congestion_control is CongestionControl.DROP:
            # Its time runs from now on, not from when its turn comes.
            full = Full(priority, self._time() + self.wait_before_drop, Then.DROP)
        elif not reliable:
            # The same: each would wait as long as the one before it, and its sender with it.
            full = Full(priority, self._time() + self.wait_before_close, Then.DROP)
        waiting = Waiting(self, message, reliable, full)
        self._waiting.setdefault(priority, deque()).append(waiting)
        self.size += 1
        self._watch(full)
        return waiting

    def _try(self, message: NetworkMessage | Packed, reliable: bool, retry: Full | None) -> Result:
        try:
            return self._sender.send(message, self._time(), reliable=reliable, retry=retry)
        except EncodeError as e:
            return self._unsent(e)

    def _unsent(self, error: EncodeError) -> Result:
        _log.warning("a message was not sent: %s", error)
        self.dropped[Cause.TOO_LARGE] += 1
        return ACCEPTED

    def _count(self, message: NetworkMessage | Packed, result: Result) -> None:
        if not isinstance(result, Dropped):
            return
        # What a link drops, that link has counted; where there is none, nobody has.
        if result.cause is Cause.NOT_OPEN:
            self._lose(message, result.cause)
        elif type(message) is Packed:
            message.lost = True

    def _lose(self, message: NetworkMessage | Packed, cause: Cause) -> None:
        self.dropped[cause] += count_of(message)
        if type(message) is Packed:
            message.lost = True

    @property
    def packing(self) -> int:
        """How many bytes of messages fit a batch; 0 if nobody is there."""
        return self._sender.packing

    def flush(self) -> None:
        """Write what is queued, as far as it goes."""
        raise NotImplementedError

    def flush_soon(self) -> None:
        """Write at the end of this round."""
        raise NotImplementedError

    def retry(self) -> None:
        """There may be room: the oldest first, the highest priority first."""
        for priority in sorted(self._waiting):
            queue = self._waiting[priority]
            while queue:
                first = queue[0]
                result = self._try(first.message, first.reliable, first.full)
                if isinstance(result, Full):
                    first.full = result
                    self._watch(result)
                    break
                self._count(first.message, result)
                queue.popleft().settle()
                self.size -= 1
            if not queue:
                del self._waiting[priority]
        self.flush_soon()

    def _watch(self, full: Full | None) -> None:
        """Ask again when a message has waited too long: that drops it."""
        if full is None or full.then is not Then.DROP:
            return
        if self._timer is not None:
            if self._timer.when() <= full.until:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(full.until, self._due)

    def _due(self) -> None:
        """The time of a message is over, even if it is not at the head of its queue."""
        self._timer = None
        now = self._time()
        for priority, queue in list(self._waiting.items()):
            late = [one for one in queue if _expired(one.full, now)]
            for one in late:
                self._lose(one.message, Cause.CONGESTION)
                one.settle()
            self.size -= len(late)
            left = deque(one for one in queue if not _expired(one.full, now))
            self._waiting[priority] = left
            for one in left:
                self._watch(one.full)
        self.retry()

    def waits(self) -> list[asyncio.Future[None]]:
        """What is done when nothing waits any more."""
        return [waiting.done for queue in self._waiting.values() for waiting in queue]

    def give_up(self) -> int:
        """There is nobody to send to. Gives how many messages had waited in vain."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lost, self.size = self.size, 0
        for queue in self._waiting.values():
            for waiting in queue:
                self._lose(waiting.message, Cause.LINK_LOST)
                waiting.settle()
        self._waiting.clear()
        return lost


def _expired(full: Full | None, now: float) -> bool:
    return full is not None and full.then is Then.DROP and now >= full.until


class Neighbour(Queue):
    """Another node, for as long as its session lasts; ``over`` is set when that ends."""

    __slots__ = ("carriers", "face", "farewell", "filtered", "over", "past", "session")

    direct = True
    """Nothing is filtered: whoever knows the lane may write into it."""

    def __init__(
        self, session: Session, face: Face, wait_before_drop: float, wait_before_close: float
    ) -> None:
        super().__init__(session, wait_before_drop, wait_before_close)
        self.session = session
        self.face = face
        self.carriers: list[Carrier] = []
        self.past: list[Stats] = []
        """What links that are gone have counted."""
        self.filtered: Counter[Filtered] = Counter()
        """What did not pass the filters, in either direction."""
        self.over = asyncio.Event()
        self.farewell = False
        """It has ended the session itself, and not for a fault."""

    def send(self, message: NetworkMessage | Packed, reliable: bool) -> Waiting | None:
        carriers = self.carriers
        if len(carriers) != 1 or self._waiting or isinstance(message, Packed):
            return super().send(message, reliable)
        # The same, as most often it is.
        carrier = carriers[0]
        try:
            if carrier.flushing:
                result = carrier.machine.send(message, self._time(), reliable=reliable)
            else:
                result = carrier.send(message, reliable)
        except EncodeError as e:
            result = self._unsent(e)
        # What a link drops, that link has counted.
        if result is ACCEPTED or isinstance(result, Dropped):
            return None
        return self._wait(message, reliable, result)

    @property
    def free(self) -> Carrier | None:
        """Its only link, if that takes what is written past the queues."""
        if not self.direct or self.size or len(self.carriers) != 1:
            return None
        carrier = self.carriers[0]
        return carrier if carrier.link.writable and not carrier.ended else None

    def patience(self, qos: QoS) -> float:
        """Seconds for a link that is full, before what comes next goes to the queues."""
        drops = qos.congestion_control is CongestionControl.DROP
        return self.wait_before_drop if drops else _PATIENCE

    def flush(self) -> None:
        for carrier in list(self.carriers):
            carrier.flush()

    def flush_soon(self) -> None:
        for carrier in self.carriers:
            if not carrier.flushing:
                carrier.flush_soon()
