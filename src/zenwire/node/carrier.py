"""One link and the machine of its transport: bytes to events, messages to bytes, time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from zenwire.node.clock import time_of
from zenwire.node.plane import ENOUGH
from zenwire.transport import ACCEPTED, Event, Received, ReceivedRun, Unicast
from zenwire.transport.gathered import Gathered, joined
from zenwire.wire.values import Priority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from zenwire.links import Link, LinkError
    from zenwire.node.neighbour import Waiting
    from zenwire.node.plane import Plane
    from zenwire.transport import Bursts, Result, Straight
    from zenwire.wire.network import NetworkMessage

__all__ = ["Carrier"]

_PIECE: Final = 256
"""Bytes of compressed batches that are read at once: they may become the 250-fold."""
_AT_LEAST: Final = 256
"""Bytes that may be many messages."""
_REST: Final = 0.008
"""Seconds. Each read has its price, so a link that brings many messages, all of them for those who do
not mind waiting, is not read as soon as something is there, but so much later."""
_RESTED: Final = 32 * 1024
"""Bytes that are enough for a read."""
_PATIENCE: Final = 0.05
"""Seconds after many messages came, in which a link is that of the patient."""
_PAUSE: Final = 50e-6
"""Seconds without a write after which a message is not made to wait for others."""
_WRITE_MAX: Final = 1024 * 1024
"""Bytes that are enough for any write."""


class Carrier:
    """Receives for a link.

    ``on_events`` gets what the machine says, in order, ``on_few`` what is like a batch before.
    A message that comes alone goes out at once. What is sent in one round of the loop after it
    goes out together, at its end. Whoever has dialled begins with ``flush_soon``. ``over`` is set
    when the link is gone.
    """

    __slots__ = (
        "_enough",
        "_gathered",
        "_held",
        "_loop",
        "_on_end",
        "_on_events",
        "_on_few",
        "_on_read",
        "_parting",
        "_patient",
        "_rest",
        "_resting",
        "_time",
        "_timer",
        "_timer_at",
        "_unread",
        "_written",
        "ended",
        "flushing",
        "link",
        "machine",
        "most",
        "on_drained",
        "over",
        "plane",
        "reading",
    )

    def __init__(
        self,
        link: Link,
        machine: Unicast,
        on_events: Callable[[Carrier, list[Event]], None],
        *,
        on_few: Callable[[Carrier, Received, float], None],
        on_end: Callable[[Carrier], None],
        on_read: Callable[[], None] = lambda: None,
    ) -> None:
        self.link = link
        self.machine = machine
        self.ended = False
        self.over = asyncio.Event()
        self._on_events = on_events
        self._on_few = on_few
        self._on_end = on_end
        self._on_read = on_read
        self._loop = asyncio.get_running_loop()
        self._time = time_of(self._loop)
        self.reading = False
        """What a link says is being heard; ``on_read`` is called after that."""
        self.flushing = False
        """Whoever made it so flushes in a moment."""
        self.on_drained: list[Callable[[], None]] = []
        """Called once, when the link is writable again, or over."""
        self._written = float("-inf")
        self._held = 0
        self._gathered = Gathered()
        """What is out of the queues, and goes out with the next write."""
        self.most = 1
        """Bytes that are enough for a write; it is one batch at least."""
        self._rest: list[Event] = []
        self._unread = b""
        self.plane: Plane | None = None
        """What reads many messages at once, if anything does."""
        self._enough = _AT_LEAST
        self._resting = False
        self._patient = 0.0
        self._parting = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")
        self._arm(machine.deadline)

    # What the link says.

    def received(self, data: bytes) -> None:
        machine, now = self.machine, self._time()
        flushing, self.flushing = self.flushing, True
        self.reading = True
        try:
            few = None if self._rest else machine.receive_few(data, now)
            if few is not None:
                self._on_few(self, few, now)
            elif not machine.expands or (len(data) <= _PIECE and not self._unread):
                events = machine.receive(data, now)
                if events:
                    self._say(events)
            else:
                self._expand(self._unread + data)
        finally:
            self.flushing = flushing
            self.reading = False
        # What was said in answer goes out before anything else is read, or goes on.
        self.flush()
        self._on_read()

    def received_many(self, data: memoryview, fresh: int) -> int:
        """Bytes of a stream, the last ``fresh`` of them new; how many need not come again.

        They are the link's: when this returns, it uses their place for others.
        """
        plane, size, stats = self.plane, len(data), self.machine.stats
        before, done = stats.rx_messages, size
        if plane is None or (size < self._enough and not plane.always):
            if fresh < size:
                stats.rx_bytes -= size - fresh
            self.received(bytes(data))
            if size >= _AT_LEAST:
                self._learn(size, stats.rx_messages - before)
            if self._patient and self._time() < self._patient:
                self._take_a_rest()
            return size
        bursts = None if self.machine.expands or self._behind else plane.bursts()
        if bursts is None:
            stats.rx_bytes -= size - fresh
            self.received(bytes(data))
            plane.missed(stats.rx_messages - before)
        else:
            done = self._burst(plane, bursts, data, fresh)
        self._learn(done, stats.rx_messages - before)
        return done

    def _learn(self, size: int, messages: int) -> None:
        """How many bytes are as many messages as are worth it, of the size that these had."""
        self._enough = max(_AT_LEAST, ENOUGH * size // messages) if messages else _AT_LEAST

    def _burst(self, plane: Plane, bursts: Bursts, data: memoryview, fresh: int) -> int:
        machine = self.machine
        machine.bursts, plane.hasty = bursts, False
        flushing, self.flushing = self.flushing, True
        self.reading = True
        try:
            events, done = machine.receive_many(data, self._time(), fresh)
            if events:
                self._say(events)
        finally:
            self.flushing = flushing
            self.reading = False
        self.flush()
        self._on_read()
        if not events:
            return done
        self._patient = 0.0
        if not plane.hasty and all(type(event) is ReceivedRun for event in events):
            self._patient = self._time() + _PATIENCE
            if fresh < _RESTED:
                self._take_a_rest()
        return done

    def _take_a_rest(self) -> None:
        if not self._behind and not self.ended:
            self._resting = True
            self.link.pause()
            self._loop.call_later(_REST, self._rested)

    def _rested(self) -> None:
        self._resting = False
        self._go_on()

    def _expand(self, data: bytes) -> None:
        """Piece by piece, and no further than what came of it was heard."""
        self._unread = b""
        for start in range(0, len(data), _PIECE):
            if self._rest or self._held:
                self._unread = data[start:]
                break
            events = self.machine.receive(data[start : start + _PIECE], self._time())
            if events:
                self._say(events)

    def _say(self, events: list[Event]) -> None:
        """What was said before is heard before."""
        if self._rest:
            self._rest += events
        else:
            self._on_events(self, events)

    def drained(self) -> None:
        self.flush()
        while self.on_drained and self.link.writable:
            self.on_drained.pop()()

    def closed(self, error: LinkError | None) -> None:
        self.ended = True
        if self._timer is not None:
            self._timer.cancel()
        text = "the other side has closed the link" if error is None else str(error)
        events = self.machine.lost(self._time(), text)
        if events:
            self._say(events)
        self._on_end(self)
        self.over.set()
        while self.on_drained:
            self.on_drained.pop()()

    # What goes out.

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
            self.flush_soon()
        return result

    def flush_soon(self) -> None:
        """Write now, or soon after another write at the end of this round of the loop."""
        if self._time() - self._written < _PAUSE:
            self._flush_later()
        elif not self.flushing and not self.ended:
            self.flushing = True
            try:
                self.flush()
            finally:
                self.flushing = False

    def _flush_later(self) -> None:
        if not self.flushing and not self.ended:
            self.flushing = True
            self._loop.call_soon(self._flush_now)

    def _flush_now(self) -> None:
        self.flushing = False
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
        if not self._held:
            self._go_on()

    def postpone(self, events: list[Event]) -> None:
        """These would be too much for one turn of the loop: they come back with a later one."""
        # What they refer to is used again before that.
        self._rest = [
            Received(event.run.messages(), Priority.DATA, event.run.reliable)
            if type(event) is ReceivedRun
            else event
            for event in events
        ]
        if not self.ended:
            self.link.pause()
        self._loop.call_soon(self._go_on)

    @property
    def _behind(self) -> bool:
        """There is something that must be done before more is read."""
        return bool(self._held or self._rest or self._unread or self._resting)

    def _go_on(self) -> None:
        """With what was postponed, then with what is not read yet, then with reading."""
        if self._held:
            return
        rest, self._rest = self._rest, []
        if rest:
            self._on_events(self, rest)
        if self._unread and not self._rest:
            self._expand(self._unread)
        if not self._behind and not self.ended:
            self.link.resume()
        self.flush()

    # Time.

    def _tick(self) -> None:
        now = self._time()
        events: list[Event] = []
        if self._behind:
            # It is we who do not listen: the silence is not the other side's.
            events = self.machine.receive(b"", now)
        events += self.machine.tick(now)
        if events:
            self._say(events)
        if not self.ended:
            self.flushing = False
            self._flush_later()

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
