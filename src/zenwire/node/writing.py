"""Messages to the bytes of one link, and what is due on it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

from zenwire.node.clock import time_of
from zenwire.transport import ACCEPTED, Unicast
from zenwire.transport.gathered import Gathered, joined

if TYPE_CHECKING:
    from collections.abc import Callable

    from zenwire.links import Link
    from zenwire.transport import Result, Straight
    from zenwire.wire.network import NetworkMessage

__all__ = ["Writing"]

_PAUSE: Final = 50e-6
"""Seconds without a write after which a message is not made to wait for others."""
_WRITE_MAX: Final = 1024 * 1024
"""Bytes that are enough for any write."""


class Writing(ABC):
    """What is sent over a link.

    A message that comes alone goes out at once. What is sent in one round of the loop after it
    goes out together, at its end. Whoever has dialled begins with ``flush_soon``.
    """

    __slots__ = (
        "_gathered",
        "_loop",
        "_parting",
        "_retained",
        "_time",
        "_timer",
        "_timer_at",
        "_written",
        "ended",
        "flushing",
        "link",
        "machine",
        "most",
        "on_drained",
        "retention",
    )

    def __init__(self, link: Link, machine: Unicast) -> None:
        self.link = link
        self.machine = machine
        self.ended = False
        self._loop = asyncio.get_running_loop()
        self._time = time_of(self._loop)
        self.flushing = False
        """Whoever made it so flushes in a moment."""
        self.retention = 0.0
        """Seconds that messages wait for others while the link is busy; 0: a round of the loop."""
        self._retained = False
        self.on_drained: list[Callable[[], None]] = []
        """Called once, when the link is writable again, or over."""
        self._written = float("-inf")
        self._gathered = Gathered()
        """What is out of the queues, and goes out with the next write."""
        self.most = 1
        """Bytes that are enough for a write; it is one batch at least."""
        self._parting = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")
        # That is when it is to be heard again: a link that opens needs no other timer.
        self._arm(machine.silent_until)
        self._arm(machine.deadline)

    def send(self, message: NetworkMessage, reliable: bool) -> Result:
        """To the queue of the machine, or past it: then it is written now. Raises EncodeError."""
        machine, now = self.machine, self._time()
        if (
            self.flushing
            or now - self._written < _PAUSE
            or self.ended
            or self._gathered.size
            or not self.link.writable
        ):
            result = machine.send(message, now, reliable=reliable)
        else:
            batch = machine.send_alone(message, now, reliable=reliable)
            if isinstance(batch, bytes):
                self._write(batch)
                if not machine.steady or self._timer is None:
                    self._look_ahead(now)
                return ACCEPTED
            result = batch
        if result is ACCEPTED and not self.flushing:
            self.flush_soon(express=message.qos.express)
        return result

    def flush_soon(self, *, express: bool = False) -> None:
        """Write now, or soon after another write at the end of this round of the loop.

        With ``retention`` that is so many seconds later, unless a message is express.
        """
        busy = self._time() - self._written < _PAUSE
        if self.retention and not express and (busy or self._retained):
            self._flush_retained()
        elif busy:
            self._flush_later()
        elif not self.flushing and not self.ended:
            self.flushing = True
            try:
                self.flush()
            finally:
                self.flushing = False

    def _flush_retained(self) -> None:
        if not self._retained and not self.ended:
            self._retained = True
            self._loop.call_later(self.retention, self._flush_now)

    def _flush_later(self) -> None:
        if not self.flushing and not self.ended:
            self.flushing = True
            self._loop.call_soon(self._flush_now)

    def _flush_now(self) -> None:
        self.flushing = self._retained = False
        self.flush()

    def flush(self) -> None:
        """Write what waits, as far as the link takes it."""
        if self.ended:
            return
        machine, now = self.machine, self._time()
        data = machine.pull_lone(now) if self.link.writable and not self._gathered.size else None
        if data:
            self._write(data)
        elif data is None:
            self._flush_all(now)
        if not machine.steady or self._timer is None:
            self._look_ahead(now)

    def _look_ahead(self, now: float) -> None:
        """What is due, or will be."""
        machine = self.machine
        deadline = machine.deadline
        if deadline is not None and deadline <= now:
            self._tick()
        else:
            self._arm(deadline)
        if machine.done:
            self.link.part() if self._parting else self.link.close()

    def _flush_all(self, now: float) -> None:
        machine, link = self.machine, self.link
        # The last words of a link go out even if nobody reads them: closing it has its own bound.
        while (link.writable or self._last_words) and (data := self._next(now)):
            self._write(data)
            if machine.drained:
                break

    def gather(self) -> None:
        """Make room in the queues: what waits there goes out with what comes, in this round."""
        if self.ended or not self.link.writable:
            return
        self._gather(self._time())
        if self._gathered.size >= self.most:
            self.flush()
        self._flush_later()

    def _gather(self, now: float) -> None:
        """Take batches, as many as one write has."""
        machine, gathered = self.machine, self._gathered
        while gathered.size < self.most and (batch := machine.take(now)) is not None:
            gathered.add(batch)
            if machine.drained:
                break

    def _next(self, now: float) -> bytes:
        """What the next write has; nothing if nothing waits."""
        gathered = self._gathered
        if not gathered.size:
            batch = self.machine.take(now)
            if batch is None or self.machine.drained:
                # One is all there is, as most often.
                return joined(batch)
            gathered.add(batch)
        self._gather(now)
        return gathered.take()

    def _write(self, data: bytes | memoryview) -> None:
        link, twice = self.link, 2 * len(data)
        link.write(data)
        self._written = self._time()
        # Each write has its price, so they grow for as long as the system takes them whole: what it
        # leaves over is out of reach of what has a higher priority.
        if not link.writable:
            self.most = 1
        elif self.most < twice and link.facts.streamed:
            self.most = min(twice, _WRITE_MAX)

    def write(
        self, straight: Straight, data: bytes | memoryview, batches: int, messages: int
    ) -> None:
        """Batches that were made past the queues, as many as that."""
        if self._gathered.size:
            self._write(self._gathered.take())
        self._write(data)
        self.machine.went(straight, batches, messages, len(data), self._written)

    def drain(self, seconds: float) -> asyncio.Future[None]:
        """Done when the link is writable again, or over, or after so many seconds."""
        done: asyncio.Future[None] = self._loop.create_future()

        def settle() -> None:
            timer.cancel()
            if not done.done():
                done.set_result(None)

        timer = self._loop.call_later(seconds, settle)
        if self.link.writable or self.ended:
            settle()
        else:
            self.on_drained.append(settle)
        return done

    @property
    def _last_words(self) -> bool:
        """Nothing but a CLOSE is left to be said."""
        return self.machine.closed and self.machine.deadline is None

    # Time.

    @abstractmethod
    def _tick(self) -> None:
        """Do what is due."""

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
        if deadline is not None and deadline <= self._time():
            self._tick()
        else:
            self._arm(deadline)

    # The end.

    def part(self) -> None:
        """Say good-bye; what is queued goes out before."""
        self._parting = self.machine.session is not None
        self.machine.close(self._time())
        self.flush()

    def abandon(self) -> None:
        """End now, without a word."""
        self.link.abort()
