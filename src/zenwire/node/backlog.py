"""Back-pressure of a receiver's queue on the links that feed it.

A full queue pauses reading of the links that deliver to it, so that TCP slows their senders. A
pause is kept short: senders of the reference close a session that took nothing for 5 s.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

__all__ = ["Backlog"]

_PAUSE: Final = 1.0
"""Seconds of a pause before a portion is admitted although the queue is still full."""
_PORTIONS: Final = 48
"""A portion is this fraction of the free space: 4 MiB of the 192 MiB between both marks of a spool.

Portions shrink with the free space, so that the rate of admission meets that of a slow disk before
the queue reaches its bound. TCP opens a window again once 1/16 of its buffer is free, mostly 2 MiB.
"""


class Backlog:
    """Pauses links while a queue is full. Owned by the loop thread, except `drained`.

    ``level`` returns the size of the queue; any unit. Links that deliver while it is at ``soft`` or
    above are paused until it is below. Between ``soft`` and ``hard`` a portion is admitted after
    each second of a pause; with equal marks, nothing is. ``refuse`` is called with the number of
    rows dropped because their source cannot wait.
    """

    def __init__(
        self,
        level: Callable[[], int],
        soft: int,
        hard: int,
        refuse: Callable[[int], None] = lambda _rows: None,
    ) -> None:
        if not 0 < soft <= hard:
            raise ValueError(f"marks of a backlog are 0 < soft <= hard, not {soft} and {hard}")
        self._level = level
        self._soft = self._mark = soft
        self._hard = hard
        self.refuse = refuse
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self._loop.create_future()
        """Done when links may be read again. Of the pause that is under way or was the last.

        Whoever awaits it shields it: links wait for the same one.
        """
        self.done.set_result(None)
        self.full = False
        """Links that deliver are to be paused."""
        self.careful = False
        """Full, or admitting a portion: what is delivered counts at once."""
        self._watchers: list[Callable[[bool], None]] = []
        self._closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._paused_at = 0.0
        self._paused = 0.0

    @property
    def paused(self) -> float:
        """Seconds of all pauses so far."""
        return self._paused + (self._loop.time() - self._paused_at if self.full else 0.0)

    def watch(self, tell: Callable[[bool], None]) -> None:
        """Call ``tell`` with each new value of ``careful``."""
        self._watchers.append(tell)

    def unwatch(self, tell: Callable[[bool], None]) -> None:
        """Undo `watch`. The last one closes the backlog."""
        self._watchers.remove(tell)
        if not self._watchers:
            self.close()

    def check(self) -> bool:
        """Return whether links that deliver now must wait. Call after adding to the queue."""
        if not self.full and not self._closed and self._level() >= self._mark:
            self._fill()
        return self.full

    def _fill(self) -> None:
        self.full = True
        self.done = self._loop.create_future()
        self._paused_at = self._loop.time()
        if not self.careful:
            self._set_careful(True)
        if self._soft < self._hard:
            self._timer = self._loop.call_later(_PAUSE, self._admit)
        # A reader that took something before ``careful`` was set has not called `look`.
        self._loop.call_soon(self.look)

    def drained(self) -> None:
        """Report that the queue has become smaller. Any thread."""
        if self.careful:
            # The loop may be closed: then there is no link to read.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.look)

    def look(self) -> None:
        """Let links go on if there is room."""
        if self.careful and self._level() < self._soft:
            self._mark = self._soft
            self._set_careful(False)
            self._release()

    def _admit(self) -> None:
        """End a pause before there is room, for one portion."""
        level = self._level()
        portion = (self._hard - level) // _PORTIONS
        if portion > 0:
            self._mark = level + portion
            self._release()
        else:
            self._timer = self._loop.call_later(_PAUSE, self._admit)

    def _set_careful(self, careful: bool) -> None:
        self.careful = careful
        for tell in self._watchers:
            tell(careful)

    def _release(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.full:
            self._paused = self.paused
            self.full = False
            self.done.set_result(None)

    def close(self) -> None:
        """Let links go on; nothing is paused from here on."""
        self._closed = True
        if self.careful:
            self._set_careful(False)
        self._release()
