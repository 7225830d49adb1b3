"""Messages to batches: FRAMEs, fragments, and messages that are given up.

Batches are made when they are asked for, so the newest message of the highest priority is in the
next one. A batch takes FRAMEs of several priorities; a FRAGMENT fills the rest of its batch.
"""

from __future__ import annotations

from collections import deque

from zenwire.transport.codec import fragment_head
from zenwire.transport.gathered import Taken, joined
from zenwire.transport.queues import PRIORITIES, Queues
from zenwire.transport.runs import Queued, Run
from zenwire.transport.sequence import Counters, lane
from zenwire.transport.stats import Cause, Stats
from zenwire.transport.straight import Straight
from zenwire.wire.batch import stream_length
from zenwire.wire.buffer import Buffer
from zenwire.wire.values import Priority

__all__ = ["Outbox"]


class _Cut:
    """The message at the head of a queue that goes out in fragments."""

    __slots__ = ("moved", "sent")

    def __init__(self, now: float) -> None:
        self.sent = 0
        self.moved = now
        """When the last fragment went out."""


class _Batch:
    """A batch that is being made. ``left`` is the room that it has."""

    __slots__ = ("left", "parts")

    def __init__(self, room: int) -> None:
        self.left = room
        self.parts: list[Buffer] = [b""]

    def add(self, part: Buffer) -> None:
        self.parts.append(part)
        self.left -= len(part)


class Outbox(Queues):
    """The queues of one link, and the batches that are made of them.

    Without ``marked`` (no Patch) there is no way to tell that a message was given up.
    """

    __slots__ = ("_cuts", "_markers", "_stats", "marked")

    def __init__(
        self,
        counters: Counters,
        stats: Stats,
        *,
        room: int,
        qos: bool,
        marked: bool,
        queue_batches: tuple[int, ...],
        batching: bool = True,
    ) -> None:
        super().__init__(
            counters, room=room, qos=qos, queue_batches=queue_batches, batching=batching
        )
        self._stats = stats
        self.marked = marked
        self._cuts: list[_Cut | None] = [None] * len(PRIORITIES)
        self._markers: list[tuple[Priority, bool]] = []
        """Of messages that were given up."""

    def straight(self, priority: Priority, reliable: bool, prefix: int) -> Straight | None:
        """What batches of a lane need that go out past it; None if something waits here."""
        if not self.empty:
            return None
        to, counters = self.lane(priority, reliable), self._counters
        return Straight(to.at, to.heads, counters.next[to.at], counters.mask, self.packing, prefix)

    def went(self, straight: Straight, batches: int, messages: int) -> None:
        """So many batches of one FRAME each have gone out past it."""
        self._counters.next[straight.at] = straight.sn + batches & straight.mask
        self._stats.tx_frames += batches
        self._stats.tx_messages += messages

    def give_up_stalled(self, priority: Priority, before: float) -> bool:
        """Drop the message with Drop that is being cut, if its last fragment went before then."""
        cut, queue = self._cuts[priority], self._queues[priority]
        if cut is None or cut.moved > before:
            return False
        first = queue[0]
        assert type(first) is tuple
        data, reliable, droppable = first
        if not droppable:
            return False
        queue.popleft()
        self.queued -= 1
        self._bytes[priority] -= len(data) - cut.sent
        self._cuts[priority] = None
        self._stats.dropped[Cause.STALLED] += 1
        if self.marked:
            self._markers.append((priority, reliable))
            self.queued += 1
        else:
            # The number that is left out makes the other side forget what it has.
            self._counters.advance(lane(priority, reliable))
        self._renew_all(priority)
        return True

    def clear(self) -> int:
        """Forget everything, for good. How many messages that were."""
        self.shut()
        left = sum(one.count if type(one) is Run else 1 for queue in self._queues for one in queue)
        for queue in self._queues:
            queue.clear()
        self.queued = 0
        self._open = [None] * len(PRIORITIES)
        self._bytes = [0] * len(PRIORITIES)
        self._cuts = [None] * len(PRIORITIES)
        self._markers.clear()
        return left

    def pull(self, now: float, prefix: int = 0) -> bytes:
        """As ``take``, put together; nothing if nothing waits."""
        return joined(self.take(now, prefix))

    def take(self, now: float, prefix: int) -> Taken | None:
        """The content of the next batch; None if nothing waits.

        With ``prefix``, it has its length in so many bytes before it, as in a stream.
        """
        if not self.queued:
            return None
        if (lone := self.lone(prefix)) is not None:
            return lone
        out = _Batch(self._room)
        if self._markers:
            out.add(self._marker(*self._markers.pop(0)))
            self.queued -= 1
        else:
            for priority, queue in zip(PRIORITIES, self._queues, strict=True):
                if queue and not self._pack(out, priority, queue, now):
                    break
        size = self._room - out.left
        if prefix:
            out.parts[0] = stream_length(size, prefix)
        return b"", out.parts, prefix + size

    def lone(self, prefix: int) -> Taken | None:
        """As ``take``, if what waits is one run that may be added to, and fits. Else None."""
        priority = self._newest
        run = self._open[priority]
        if self.queued != 1 or run is None:
            return None
        if run.owner is not None:
            run.settle()
        to, next_, stats = run.lane, self._counters.next, self._stats
        sn = next_[to.at]
        head = to.heads.head(sn)
        size = len(head) + run.room - run.left
        if size > self._room:
            return None
        # As ``_taken``, for what needs no looking.
        next_[to.at] = sn + 1 & self._counters.mask
        self._queues[priority].clear()
        self.queued = 0
        self._open[priority] = None
        stats.tx_frames += 1
        stats.tx_messages += run.count
        to.run = Run(to, self._fits(to))
        run.by = None
        run.parts[0] = stream_length(size, prefix) + head if prefix else head
        return run.before, run.parts, prefix + size

    def alone(self, data: bytes, qos: int, reliable: bool, prefix: int) -> bytes:
        """The batch that has this message and no other, past the queues: nothing is in them.

        Nothing, and nothing is done, if that is not simple.
        """
        known = self._of_qos.get(2 * qos + reliable)
        if known is None:
            return b""
        to = known[0]
        if to.run.left < len(data):
            return b""
        at, next_, stats = to.at, self._counters.next, self._stats
        sn = next_[at]
        head = to.heads.head(sn)
        next_[at] = after = sn + 1 & self._counters.mask
        if after >> 7 != sn >> 7:
            # It may have more bytes than this one.
            self._renew(to)
        stats.tx_frames += 1
        stats.tx_messages += 1
        content = head + data
        return stream_length(len(content), prefix) + content if prefix else content

    def _pack(
        self, out: _Batch, priority: Priority, queue: deque[Queued | Run], now: float
    ) -> bool:
        """Add what fits of one queue. Whether the batch may take more after that."""
        while queue:
            run = queue[0]
            if type(run) is not Run:
                return self._cut(out, priority, queue, now)
            head = self._head(run.lane)
            size = len(head) + run.size
            if size > out.left:
                if size > self._room:
                    # Its number has more bytes by now, or it was made for another link.
                    self._split(priority, queue, run, len(head))
                    continue
                return False
            run.mix()
            run.parts[0] = head
            out.parts += run.parts
            out.left -= size
            queue.popleft()
            self._taken(run)
            if run.ends:
                return False
        return True

    def _taken(self, run: Run) -> None:
        """A run goes out in the batch that is made."""
        to = run.lane
        run.by = None
        priority = to.priority
        self._counters.advance(to.at)
        self.queued -= 1
        stats = self._stats
        stats.tx_frames += 1
        stats.tx_messages += run.count
        if self._open[priority] is run:
            self._open[priority] = None
            self._renew(to)
        else:
            self._bytes[priority] -= run.size
            self._renew_all(priority)

    def _split(self, priority: Priority, queue: deque[Queued | Run], run: Run, head: int) -> None:
        """Make runs that fit of one that does not."""
        if self._open[priority] is run:
            self.seal(priority)
        queue.popleft()
        self.queued -= 1
        parts = run.split(self._room - head)
        queue.extendleft(reversed(parts))
        self.queued += len(parts)

    def _cut(self, out: _Batch, priority: Priority, queue: deque[Queued | Run], now: float) -> bool:
        """Add a fragment of the message at the head of a queue. Nothing fits after it."""
        room = out.left
        if room < self._room // 2:
            return False
        cut = self._cuts[priority]
        if cut is None:
            cut = self._cuts[priority] = _Cut(now)
        whole = queue[0]
        assert type(whole) is tuple
        data, reliable, _ = whole
        at = lane(priority, reliable)
        sn = self._counters.next[at]
        first = not cut.sent
        size = room - len(fragment_head(priority, reliable, sn, more=True, first=first))
        piece = memoryview(data)[cut.sent : cut.sent + size]
        cut.sent += len(piece)
        cut.moved = now
        more = cut.sent < len(data)
        out.add(fragment_head(priority, reliable, sn, more=more, first=first))
        out.add(piece)
        self._counters.advance(at)
        self._stats.tx_fragments += 1
        self._bytes[priority] -= len(piece)
        if not more:
            queue.popleft()
            self.queued -= 1
            self._cuts[priority] = None
            self._stats.tx_messages += 1
        self._renew_all(priority)
        return False

    def _marker(self, priority: Priority, reliable: bool) -> bytes:
        """An empty fragment that says: I gave up."""
        at = lane(priority, reliable)
        sn = self._counters.next[at]
        self._counters.advance(at)
        self._stats.tx_fragments += 1
        return fragment_head(priority, reliable, sn, more=True, drop=True)
