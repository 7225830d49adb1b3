"""What goes out over one unicast link: messages to its queues, and batches out of them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from zenwire.transport.bare import BareOutbox
from zenwire.transport.codec import QOS, encode
from zenwire.transport.congestion import Congestion
from zenwire.transport.events import ACCEPTED, Dropped, Event, Full, Peer, Result, Writable
from zenwire.transport.framing import Framing
from zenwire.transport.gathered import Taken, alone, joined
from zenwire.transport.outbox import Outbox
from zenwire.transport.packed import Packed, count_of
from zenwire.transport.states import State
from zenwire.transport.stats import Cause, Stats
from zenwire.wire.network import NetworkMessage
from zenwire.wire.rewrite import KnownWriter
from zenwire.wire.transport import Close
from zenwire.wire.values import CloseReason, CongestionControl, Priority, QoS

if TYPE_CHECKING:
    from zenwire.transport.runs import Lane
    from zenwire.transport.sequence import Counters
    from zenwire.transport.settings import Settings
    from zenwire.transport.straight import Straight

__all__ = ["Sending"]

_DEFAULT_QOS = QoS()
_OPEN: Final = State.OPEN
"""Looked up once: of an enumeration that costs as much as a call, and there is one per message."""


class Sending:
    """The half of a machine that sends; `Unicast` is the whole of it."""

    def __init__(self, settings: Settings, framing: Framing, state: State, now: float) -> None:
        self.stats = Stats()
        self.state = state
        self.steady = False
        """The deadline that was asked for last is not too late: whatever came since moves it on."""
        self.drained = False
        """What was taken last was all there was."""
        self._settings = settings
        self._framing = framing
        self._congestion = Congestion(settings, self.stats)
        self._write = KnownWriter().write
        self._outbox: Outbox | BareOutbox | None = None
        self._largest = settings.max_message_size
        """Bytes of the largest message that is sent."""
        self._plain: Outbox | None = None
        """The outbox, if its batches go out as they are."""
        self._prefix = 0
        """Bytes for the length of a batch that the outbox makes."""
        self._ready: deque[bytes] = deque()
        """Batches of the transport itself: they go first."""
        self._events: list[Event] = []
        """What is told with the next that comes."""
        self._close_reason = CloseReason.GENERIC
        self._sent = now
        self._ends: float | None = None
        """When a handshake, or the last words of a link, have taken too long."""

    def _begin(self, peer: Peer, counters: Counters) -> None:
        """Messages may be sent, as both sides have agreed in the handshake."""
        settings, framing = self._settings, self._framing
        if framing.stream and not framing.compression:
            self._prefix = framing.prefix
        if peer.lowlatency:
            self._largest = min(self._largest, framing.room)
            capacity = settings.queue_batches[Priority.DATA] * peer.batch_size
            self._outbox = BareOutbox(self.stats, capacity, framing.room)
            return
        self._outbox = outbox = Outbox(
            counters,
            self.stats,
            room=framing.room,
            qos=peer.qos,
            marked=peer.patch >= 1,
            queue_batches=settings.queue_batches,
            batching=settings.batching,
        )
        self._plain = None if framing.compression else outbox

    def send(
        self,
        message: NetworkMessage | bytes | Packed,
        now: float,
        *,
        reliable: bool = True,
        qos: QoS | None = None,
        retry: Full | None = None,
    ) -> Result:
        """Queue a message, encoded or not; of one that is encoded, the QoS has to be told.

        ``retry`` is the Full that the same message got before. Raises EncodeError.
        """
        if self.state is not _OPEN:
            return self._drop(Cause.NOT_OPEN, count_of(message))
        outbox, data = self._outbox, b""
        assert outbox is not None
        if isinstance(message, bytes):
            qos, data = qos or _DEFAULT_QOS, message
        else:
            qos = qos or message.qos
            if not isinstance(message, Packed):
                data = self._write(message)
        if data and len(data) <= self._largest and outbox.add(data, qos.raw, reliable):
            return ACCEPTED
        priority, congestion, express = QOS[qos.raw]
        priority = outbox.lane_priority(priority)
        if outbox.full(priority):
            stalled = now - self._settings.wait_before_drop_fragments
            if not outbox.give_up_stalled(priority, stalled) or outbox.full(priority):
                self.steady = False
                return self._congestion.refuse(
                    priority, congestion, reliable, now, retry, count=count_of(message)
                )
        droppable = congestion is CongestionControl.DROP
        if type(message) is Packed:
            # Only one message alone may be as large as that.
            if len(message.data) > self._largest:
                return self._drop(Cause.TOO_LARGE, message.count)
            outbox.put_packed(message, priority, reliable, express, droppable)
            return ACCEPTED
        if len(data) > self._largest:
            return self._drop(Cause.TOO_LARGE, 1)
        outbox.put(data, priority, reliable, express, droppable)
        return ACCEPTED

    def send_alone(
        self, message: NetworkMessage, now: float, *, reliable: bool = True
    ) -> bytes | Result:
        """As ``send`` and ``pull``, if nothing waits: the batch, which is to be written now.

        If it is not so simple, the same as ``send``.
        """
        outbox, qos = self._plain, message.qos
        waiting = self._ready or self._congestion.waiting
        if outbox is None or outbox.queued or waiting or self.state is not _OPEN:
            return self.send(message, now, reliable=reliable)
        data, batch = self._write(message), b""
        if len(data) <= self._largest:
            batch = outbox.alone(data, qos.raw, reliable, self._prefix)
        if not batch:
            return self.send(data, now, reliable=reliable, qos=qos)
        stats = self.stats
        stats.tx_bytes += len(batch)
        stats.tx_batches += 1
        self._sent = now
        return batch

    def _drop(self, cause: Cause, count: int) -> Dropped:
        self.stats.dropped[cause] += count
        return Dropped(cause)

    def lane(self, priority: Priority, reliable: bool) -> Lane | None:
        """Where messages may be added without ``send``; None in low latency, or if it is over."""
        outbox = self._outbox
        if self.state is not _OPEN or not isinstance(outbox, Outbox):
            return None
        return outbox.lane(outbox.lane_priority(priority), reliable)

    def straight(self, priority: Priority, reliable: bool) -> Straight | None:
        """What batches need that are made elsewhere and written as they are; None if none may be.

        Only a stream takes them, where nothing waits. ``went`` is told of what was written.
        """
        outbox, prefix = self._outbox, self._prefix
        if self.state is not _OPEN or not prefix or self._ready or self._congestion.waiting:
            return None
        if not isinstance(outbox, Outbox):
            return None
        return outbox.straight(outbox.lane_priority(priority), reliable, prefix)

    def went(self, straight: Straight, batches: int, messages: int, size: int, now: float) -> None:
        """So many batches were written, with so many bytes."""
        assert isinstance(self._outbox, Outbox)
        self._outbox.went(straight, batches, messages)
        self._sent = now
        self.stats.tx_bytes += size
        self.stats.tx_batches += batches

    @property
    def packing(self) -> int:
        """How many bytes of messages fit a batch, whatever its number; 0 if it is not open."""
        return 0 if self._outbox is None else self._outbox.packing

    def pull(self, now: float) -> bytes:
        """The next batch, as the link wants it; nothing if nothing waits."""
        return joined(self.take(now))

    def pull_lone(self, now: float) -> bytes | None:
        """As ``pull``, if what waits is one batch that needs no looking, or nothing. Else None."""
        outbox = self._plain
        if outbox is None or self._ready or self._congestion.waiting or self.state is not _OPEN:
            return None
        if not outbox.queued:
            return b""
        batch = outbox.lone(self._prefix)
        if batch is None:
            return None
        before, parts, size = batch
        stats = self.stats
        stats.tx_bytes += size
        stats.tx_batches += 1
        self._sent = now
        return before.join(parts)

    def take(self, now: float) -> Taken | None:
        """As ``pull``, but in parts; None if nothing waits."""
        self.drained = False
        outbox = self._outbox
        if self._ready:
            batch = alone(self._ready.popleft())
            self.drained = self._idle and self.state is not State.CLOSING
        elif outbox is not None and (found := outbox.take(now, self._prefix)) is not None:
            batch = found
            if self._framing.compression:
                batch = alone(self._framing.wrap(joined(batch)))
            if self._congestion.waiting:
                self._relieve()
            self.drained = self.state is _OPEN and outbox.empty
        elif self.state is State.CLOSING:
            self.state, self._ends = State.CLOSED, None
            batch = alone(self._framing.wrap(encode(Close(reason=self._close_reason))))
        else:
            return None
        self._sent = now
        self.stats.tx_bytes += batch[2]
        self.stats.tx_batches += 1
        return batch

    def _relieve(self) -> None:
        congestion, outbox = self._congestion, self._outbox
        if outbox is None or not congestion.waiting:
            return
        for priority in sorted(congestion.waiting):
            if not outbox.full(priority):
                congestion.relieve(priority)
                self._events.append(Writable(priority))
                self.steady = False

    def _say(self, message: object) -> None:
        """A transport message in a batch of its own."""
        self._ready.append(self._framing.wrap(encode(message)))

    @property
    def _idle(self) -> bool:
        return not self._ready and (self._outbox is None or self._outbox.empty)

    def _lose_queued(self) -> None:
        if self._outbox is not None and (lost := self._outbox.clear()):
            self.stats.dropped[Cause.LINK_LOST] += lost
