"""One link and the machine of its transport: bytes to events, messages to bytes, time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from zenwire.transport import Event, Unicast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from zenwire.links import Link, LinkError
    from zenwire.node.neighbour import Waiting

__all__ = ["Carrier"]


class Carrier:
    """Receives for a link. ``on_events`` gets what the machine says, in order.

    What is sent in one round of the loop goes out together, at its end. Whoever has dialled calls
    ``flush`` once the link works. ``over`` is set when the link is gone.
    """

    __slots__ = (
        "_flushing",
        "_held",
        "_loop",
        "_on_end",
        "_on_events",
        "_timer",
        "_timer_at",
        "ended",
        "link",
        "machine",
        "over",
    )

    def __init__(
        self,
        link: Link,
        machine: Unicast,
        on_events: Callable[[Carrier, list[Event]], None],
        on_end: Callable[[Carrier], None],
    ) -> None:
        self.link = link
        self.machine = machine
        self.ended = False
        self.over = asyncio.Event()
        self._on_events = on_events
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._flushing = False
        self._held = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")
        self._arm(machine.deadline)

    # What the link says.

    def received(self, data: bytes) -> None:
        events = self.machine.receive(data, self._loop.time())
        if events:
            self._on_events(self, events)
        # What was said in answer goes out before anything else is read.
        self.flush()

    def drained(self) -> None:
        self.flush()

    def closed(self, error: LinkError | None) -> None:
        self.ended = True
        if self._timer is not None:
            self._timer.cancel()
        text = "the other side has closed the link" if error is None else str(error)
        events = self.machine.lost(self._loop.time(), text)
        if events:
            self._on_events(self, events)
        self._on_end(self)
        self.over.set()

    # What goes out.

    def flush_soon(self) -> None:
        """Write at the end of this round of the loop, together with what else is sent in it."""
        if not self._flushing and not self.ended:
            self._flushing = True
            self._loop.call_soon(self._flush_now)

    def _flush_now(self) -> None:
        self._flushing = False
        self.flush()

    def flush(self) -> None:
        """Write what waits, as far as the link takes it."""
        machine, link = self.machine, self.link
        if self.ended:
            return
        # The last words of a link go out even if nobody reads them: closing it has its own bound.
        while link.writable or self._last_words:
            data = machine.pull(self._loop.time())
            if not data:
                break
            link.write(data)
        deadline = machine.deadline
        if deadline is not None and deadline <= self._loop.time():
            self._tick()
        else:
            self._arm(deadline)
        if machine.done:
            link.close()

    @property
    def _last_words(self) -> bool:
        """Nothing but a CLOSE is left to be said."""
        return self.machine.closed and self.machine.deadline is None

    # Reading less.

    def hold(self, waiting: Iterable[Waiting]) -> None:
        """Read no more until these messages, which came of what was read, have found room."""
        for one in waiting:
            self._held += 1
            one.done.add_done_callback(self._release)
        if self._held and not self.ended:
            self.link.pause()

    def _release(self, _done: asyncio.Future[None]) -> None:
        self._held -= 1
        if not self._held and not self.ended:
            self.link.resume()

    # Time.

    def _tick(self) -> None:
        now = self._loop.time()
        events: list[Event] = []
        if self._held:
            # It is we who do not listen: the silence is not the other side's.
            events = self.machine.receive(b"", now)
        events += self.machine.tick(now)
        if events:
            self._on_events(self, events)
        if not self.ended:
            self.flush_soon()

    def _arm(self, deadline: float | None) -> None:
        """A timer that is early finds out when it runs: most deadlines only move on."""
        if deadline is None or (self._timer is not None and self._timer_at <= deadline):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self._loop.call_at(deadline, self._due)

    def _due(self) -> None:
        self._timer = None
        if self.ended:
            return
        deadline = self.machine.deadline
        if deadline is not None and deadline <= self._loop.time():
            self._tick()
        else:
            self._arm(deadline)

    # The end.

    def abandon(self) -> None:
        """End now, without a word."""
        self.link.abort()
