"""What a message does that finds its queue full: Drop, Block, BlockFirst.

Block applies to best-effort messages too, but they never close a link: they are dropped after the
time that closes it for reliable ones. The reference drops them after the time of Drop; zenoh-pico
sends the FRAGMENTs of reliable messages as best effort, and they would be lost.

Waiting is the sender's: it gets Full, keeps the message, and comes again when Writable has come.
Here is only who waits, and until when.
"""

from __future__ import annotations

from zenwire.transport.events import Dropped, Full, Then
from zenwire.transport.settings import Settings
from zenwire.transport.stats import Cause, Stats
from zenwire.wire.values import CongestionControl, Priority

__all__ = ["Congestion"]


class Congestion:
    """The priorities of one link that have refused a message since they last had room.

    ``closes``: a message with Block that waits for too long ends the link. Else it is dropped.
    """

    __slots__ = ("_blocked", "_closes", "_first", "_settings", "_stats", "waiting")

    def __init__(self, settings: Settings, stats: Stats, *, closes: bool = True) -> None:
        self._closes = closes
        self._settings = settings
        self._stats = stats
        self.waiting: set[Priority] = set()
        self._blocked: dict[Priority, float] = {}
        self._first: dict[Priority, Full] = {}

    def refuse(
        self,
        priority: Priority,
        congestion: CongestionControl,
        reliable: bool,
        now: float,
        retry: Full | None,
        *,
        count: int = 1,
    ) -> Full | Dropped:
        """The answer to a message, or to so many at once, for which there is no room."""
        if congestion is CongestionControl.DROP:
            wait = self._settings.wait_before_drop
            full = retry or Full(priority, now + wait, Then.DROP)
            if now >= full.until:
                return self._drop(Cause.CONGESTION, count)
            self.waiting.add(priority)
            return full
        if congestion is CongestionControl.BLOCK_FIRST:
            first = self._first.get(priority)
            if first is not None and first is not retry:
                return self._drop(Cause.BLOCK_FIRST, count)
        until = now + self._settings.wait_before_close
        if self._closes and reliable:
            full = Full(priority, self._blocked.setdefault(priority, until), Then.CLOSE)
        else:
            full = retry or Full(priority, until, Then.DROP)
            if now >= full.until:
                self._first.pop(priority, None)
                return self._drop(Cause.CONGESTION, count)
        self.waiting.add(priority)
        if congestion is CongestionControl.BLOCK_FIRST:
            self._first[priority] = full
        return full

    def _drop(self, cause: Cause, count: int) -> Dropped:
        self._stats.dropped[cause] += count
        return Dropped(cause)

    def relieve(self, priority: Priority) -> None:
        """There is room again."""
        self.waiting.discard(priority)
        self._blocked.pop(priority, None)
        self._first.pop(priority, None)

    @property
    def deadline(self) -> float | None:
        """When a message with Block has waited for too long."""
        return min(self._blocked.values(), default=None)
