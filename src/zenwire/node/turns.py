"""Fair shares of the event loop for links whose messages take long to process.

Publications are processed as they are read. Declarations, interests and queries may cost as much
as all that others have declared, so a link has a slice of time for them; the rest is postponed.
Postponed links wait in a queue, ordered by the time that each has used (start-time fair queueing):
a link that has used little is next, however many others wait. All of them together have a bounded
part of each turn of the loop, then sockets are polled again.
"""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, Protocol

from zenwire.node.clock import time_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SLICE", "TURN", "Turns"]

TURN: Final = 0.001
"""Seconds of one turn of the loop for postponed messages, of all links together."""
SLICE: Final = 0.000_5
"""Seconds that one link has before the next one is served."""


class Postponed(Protocol):
    """A link with messages that wait for their turn."""

    spent: float
    """Virtual seconds used; at least the virtual time when the link was queued."""
    queued: bool
    """True while the link waits in the queue or is being served."""

    def proceed(self) -> bool:
        """Process messages until `Turns.over`. Whether there are more."""


class Turns:
    """The queue of one node. Owned by the loop thread."""

    __slots__ = (
        "_count",
        "_ends",
        "_loop",
        "_scheduled",
        "_used",
        "_virtual",
        "_waiting",
        "exhausted",
        "time",
        "touched",
    )

    def __init__(self) -> None:
        self.exhausted = False
        """This turn of the loop has no time left: messages that are not decoded yet have to wait."""
        self.touched = False
        """Messages other than publications were processed since this was last reset."""
        self._loop = asyncio.get_running_loop()
        self.time: Callable[[], float] = time_of(self._loop)
        self._waiting: list[tuple[float, int, Postponed]] = []
        self._count = 0
        self._virtual = 0.0
        """Virtual time: that of the link that was served last."""
        self._used = 0.0
        """Seconds of this turn of the loop, and of those before it that were not used up."""
        self._ends = 0.0
        """When the link that is being served has to stop; 0 if none is."""
        self._scheduled = False

    def until(self, now: float) -> float:
        """When the link that is being processed has to stop."""
        return self._ends or now + SLICE

    @property
    def over(self) -> bool:
        """Whether the link that is being served has to stop."""
        return self.time() >= self._ends

    def charge(self, link: Postponed, began: float) -> None:
        """Count the time since ``began`` for a link that was processed as it was read."""
        self.touched = False
        used = self.time() - began
        link.spent = max(link.spent, self._virtual) + used
        self._used += used
        if self._used >= TURN:
            # Not before: each turn of the loop has its price, and most messages take little time.
            self.exhausted = True
            self._schedule()

    def add(self, link: Postponed) -> None:
        """Let a link wait for its turn, once."""
        if not link.queued:
            link.queued = True
            self._push(link)
            self._schedule()

    def _push(self, link: Postponed) -> None:
        # A slice of credit: a new link precedes links that have used their slice.
        link.spent = max(link.spent, self._virtual - SLICE)
        self._count += 1
        heappush(self._waiting, (link.spent, self._count, link))

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        """Serve queued links until the time of this turn is used up."""
        self._scheduled = False
        began = now = self.time()
        limit = began + TURN
        try:
            while self._waiting and now < limit:
                now = self._serve(now, limit)
        finally:
            self._ends = 0.0
            self.touched = False
            self._used = now - began
            self.exhausted = self._used >= TURN
            if self._waiting or self.exhausted:
                # Also if nobody waits: the next turn has its time again.
                self._schedule()

    def _serve(self, now: float, limit: float) -> float:
        """Serve the next link. Gives the time after that."""
        spent, _, link = heappop(self._waiting)
        self._virtual = max(self._virtual, spent)
        self._ends = min(limit, now + SLICE)
        more = False
        try:
            more = link.proceed()
        finally:
            after = self.time()
            link.spent = spent + after - now
            link.queued = more
            if more:
                self._push(link)
        return after
