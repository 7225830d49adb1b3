"""One link and the machine of its transport: bytes to events, and no more than can be heard."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from zenwire.node.plane import ENOUGH
from zenwire.node.writing import Writing
from zenwire.transport import Event, Received, ReceivedRun, Unicast, Writable
from zenwire.wire.values import Priority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from zenwire.links import Link, LinkError
    from zenwire.node.neighbour import Pressure
    from zenwire.node.plane import Plane
    from zenwire.node.turns import Turns
    from zenwire.transport import Bursts
    from zenwire.wire.network import NetworkMessage

__all__ = ["Carrier"]

_PIECE: Final = 256
"""Bytes of compressed batches that are read at once: they may become the 250-fold."""
_PORTION: Final = 64 * 1024
"""Bytes of other batches, of those that wait for a turn."""
_MESSAGES: Final = 256
"""Messages that are decoded, and then processed, before others may have their turn."""
_AT_LEAST: Final = 256
"""Bytes that may be many messages."""
_REST: Final = 0.008
"""Seconds. Each read has its price, so a link that brings many messages, all of them for those who do
not mind waiting, is not read as soon as something is there, but so much later."""
_RESTED: Final = 32 * 1024
"""Bytes that are enough for a read."""
_PATIENCE: Final = 0.05
"""Seconds after many messages came, in which a link is that of the patient."""


class Carrier(Writing):
    """Receives for a link, and writes to it.

    ``on_events`` gets what the machine says, in order, ``on_few`` what is like a batch before.
    ``over`` is set when the link is gone. Messages that take too long are postponed: ``turns`` has
    the order in which links go on with them. Nothing is read from the link meanwhile.
    """

    __slots__ = (
        "_enough",
        "_held",
        "_late",
        "_lost",
        "_on_end",
        "_on_events",
        "_on_few",
        "_on_read",
        "_patient",
        "_rest",
        "_resting",
        "_turns",
        "_unread",
        "over",
        "plane",
        "queued",
        "reading",
        "spent",
    )

    def __init__(
        self,
        link: Link,
        machine: Unicast,
        on_events: Callable[[Carrier, list[Event]], None],
        turns: Turns,
        *,
        on_few: Callable[[Carrier, list[NetworkMessage], bool, float], None],
        on_end: Callable[[Carrier], None],
        on_read: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(link, machine)
        self.over = asyncio.Event()
        self._on_events = on_events
        self._on_few = on_few
        self._on_end = on_end
        self._on_read = on_read
        self.reading = False
        """What a link says is being heard; ``on_read`` is called after that."""
        self._held = 0
        self._turns = turns
        self.spent = 0.0
        self.queued = False
        self._late = False
        """Something waits for a turn: events, or bytes that are not decoded."""
        self._rest: list[Event] = []
        self._unread: deque[bytes] = deque()
        self._lost: str | None = None
        """Why the link was lost while something waited for a turn."""
        self.plane: Plane | None = None
        """What reads many messages at once, if anything does."""
        self._enough = _AT_LEAST
        self._resting = False
        self._patient = 0.0

    # What the link says.

    def received(self, data: bytes) -> None:
        if self._late:
            self._unread.append(data)
            return
        machine, turns, now = self.machine, self._turns, self._time()
        flushing, self.flushing = self.flushing, True
        self.reading = True
        try:
            few = machine.receive_few(data, now)
            if few is not None:
                messages, frame = few
                self._on_few(self, messages, frame.reliable, now)
            elif turns.exhausted and machine.session is not None:
                self._unread.append(data)
                self._wait_turn()
            else:
                self._feed(data)
                self._finish()
        finally:
            self.flushing = flushing
            self.reading = False
            if turns.touched:
                turns.charge(self, now)
        # What was said in answer goes out before anything else is read, or goes on.
        self.flush()
        self._on_read()

    def _finish(self) -> None:
        """Go on with publications at once; everything else waits for a turn."""
        machine = self.machine
        while machine.unread and not (self._late or self._held or self._turns.touched):
            events = machine.receive(b"", self._time(), _MESSAGES)
            if events:
                self._on_events(self, events)
        if self._unread or machine.unread:
            self._wait_turn()

    def received_many(self, data: memoryview, fresh: int) -> int:
        """Bytes of a stream, the last ``fresh`` of them new; how many need not come again.

        They are the link's: when this returns, it uses their place for others.
        """
        plane, size = self.plane, len(data)
        if fresh == size < _AT_LEAST and not self._patient and not (plane and plane.always):
            # As most often.
            self.received(bytes(data))
            return size
        stats = self.machine.stats
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
        machine, turns, now = self.machine, self._turns, self._time()
        machine.bursts, plane.hasty = bursts, False
        flushing, self.flushing = self.flushing, True
        self.reading = True
        most = 0 if turns.exhausted else _MESSAGES
        try:
            events, done = machine.receive_many(data, now, fresh, most)
            if events:
                self._on_events(self, events)
            if machine.unread:
                rest = bytes(data[done:])
                machine.stats.rx_bytes -= len(rest)
                self._unread.append(rest)
                self._wait_turn()
                done = len(data)
        finally:
            self.flushing = flushing
            self.reading = False
            if turns.touched:
                turns.charge(self, now)
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

    def _feed(self, data: bytes) -> None:
        """Hand bytes to the machine in portions, and no further than their events were processed."""
        machine = self.machine
        step = _PIECE if machine.expands else _PORTION
        if len(data) <= step:
            events = machine.receive(data, self._time(), _MESSAGES)
            if events:
                self._on_events(self, events)
            return
        for start in range(0, len(data), step):
            if self._rest or self._held or machine.unread:
                self._unread.appendleft(data[start:])
                break
            events = machine.receive(data[start : start + step], self._time(), _MESSAGES)
            if events:
                self._on_events(self, events)

    def _say(self, events: list[Event]) -> None:
        """Deliver timer and link events after postponed ones; Writable events at once."""
        if self._late:
            self._rest += [event for event in events if type(event) is not Writable]
            events = [event for event in events if type(event) is Writable]
        if events:
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
        if self._late:
            self._lost = text
        else:
            self._lose(text)
        self._on_end(self)
        self.over.set()
        while self.on_drained:
            self.on_drained.pop()()

    def _lose(self, text: str) -> None:
        events = self.machine.lost(self._time(), text)
        if events:
            self._on_events(self, events)

    # Reading less.

    def hold(self, waiting: Iterable[Pressure]) -> None:
        """Pause reading until every one of these queues has room."""
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
        """Process these events in a later turn of the loop."""
        # What they refer to is used again before that.
        self._rest = [
            Received(event.run.messages(), Priority.DATA, event.run.reliable)
            if type(event) is ReceivedRun
            else event
            for event in events
        ]
        self._wait_turn()

    def _wait_turn(self) -> None:
        self._late = True
        if not self.ended:
            self.link.pause()
        self._turns.add(self)

    @property
    def behind(self) -> bool:
        """True while this side does not read, so that silence does not count against the peer."""
        return self._behind

    @property
    def _behind(self) -> bool:
        """There is something that must be done before more is read."""
        return bool(self._held or self._late or self._resting)

    def _go_on(self) -> None:
        """Resume reading, or queue the bytes already read for a turn."""
        if self._held:
            return
        if self._late:
            self._turns.add(self)
        else:
            if not self._behind and not self.ended:
                self.link.resume()
            self.flush()

    def proceed(self) -> bool:
        """See `Turns`. While messages wait for room, ``_release`` brings the link back."""
        machine, turns = self.machine, self._turns
        flushing, self.flushing = self.flushing, True
        try:
            while self._late and not (self._held or turns.over):
                rest, self._rest = self._rest, []
                if rest:
                    self._on_events(self, rest)
                elif machine.unread:
                    events = machine.receive(b"", self._time(), _MESSAGES)
                    if events:
                        self._on_events(self, events)
                elif self._unread:
                    self._feed(self._unread.popleft())
                self._late = bool(self._rest or self._unread or machine.unread)
            if not self._late and self._lost is not None:
                text, self._lost = self._lost, None
                self._lose(text)
        finally:
            self.flushing = flushing
        if not self._behind and not self.ended:
            self.link.resume()
        self.flush()
        return self._late and not self._held

    # Time.

    def _tick(self) -> None:
        now = self._time()
        if self._behind:
            # It is we who do not listen: the silence is not the other side's.
            self.machine.excuse(now)
        events = self.machine.tick(now)
        if events:
            self._say(events)
        if not self.ended:
            self.flushing = False
            self._flush_later()
