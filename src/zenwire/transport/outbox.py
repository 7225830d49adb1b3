"""Messages to batches: a queue per priority, FRAMEs, fragments, and what congestion does.

Batches are made when they are asked for, so the newest message of the highest priority is in the
next one. What a queue gets is put together at once, in runs that fill a batch each. A batch takes
FRAMEs of several priorities; a FRAGMENT fills the rest of its batch.
"""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import Final

from zenwire.transport.codec import QOS, fragment_head
from zenwire.transport.gathered import Taken, joined
from zenwire.transport.packed import Packed
from zenwire.transport.runs import Lane, Queued, Run
from zenwire.transport.sequence import LANES, Counters, lane
from zenwire.transport.stats import Cause, Stats
from zenwire.transport.straight import Straight
from zenwire.wire.batch import stream_length
from zenwire.wire.buffer import Buffer
from zenwire.wire.repeat import FrameHeads
from zenwire.wire.values import Priority

__all__ = ["Outbox"]

_PRIORITIES: Final = tuple(Priority)


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


@cache
def _longest_head(mask: int) -> int:
    """Bytes before the messages of a FRAME whose number and priority take most room."""
    return len(FrameHeads(Priority.BACKGROUND, True).head(mask))


class Outbox:
    """What waits to be sent over one link.

    ``counters`` are the session's; ``room`` is what a batch may hold. Without ``qos`` everything
    goes as DATA. Without ``marked`` (no Patch) there is no way to tell that a message was given up.
    """

    __slots__ = (
        "_bytes",
        "_capacity",
        "_counters",
        "_cuts",
        "_lanes",
        "_markers",
        "_newest",
        "_of_qos",
        "_open",
        "_qos",
        "_queues",
        "_room",
        "_shut",
        "_stats",
        "batching",
        "marked",
        "packing",
        "queued",
    )

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
        self._counters = counters
        self._stats = stats
        self._room = room
        self.packing = room - _longest_head(counters.mask)
        """How many bytes of messages fit a batch of any lane, whatever its number."""
        self._qos = qos
        self.marked = marked
        self.batching = batching
        self._capacity = [n * room for n in queue_batches]
        self._queues: tuple[deque[Queued | Run], ...] = tuple([deque() for _ in _PRIORITIES])
        self.queued = 0
        """How many runs and messages are in all queues, with the markers of those given up."""
        self._newest = Priority.DATA
        self._open: list[Run | None] = [None] * len(_PRIORITIES)
        """By priority, the run at the end of its queue that may be added to."""
        self._bytes = [0] * len(_PRIORITIES)
        """By priority, without those of the run that may be added to."""
        self._cuts: list[_Cut | None] = [None] * len(_PRIORITIES)
        self._lanes: list[Lane | None] = [None] * LANES
        self._of_qos: dict[int, tuple[Lane, bool]] = {}
        """By a QoS and a reliability, where a message goes, and whether its batch ends with it."""
        self._markers: list[tuple[Priority, bool]] = []
        self._shut = False

    def lane_priority(self, priority: Priority) -> Priority:
        """The queue a priority goes to."""
        return priority if self._qos else Priority.DATA

    def lane(self, priority: Priority, reliable: bool) -> Lane:
        """What messages of a priority are added to; ``put`` does so too."""
        at = lane(priority, reliable)
        found = self._lanes[at]
        if found is None:
            found = self._lanes[at] = Lane(self, priority, reliable)
            self._renew(found)
        return found

    def full(self, priority: Priority) -> bool:
        """Whether a queue takes no more. One that is empty takes any message."""
        run = self._open[priority]
        size = self._bytes[priority] + (0 if run is None else run.size)
        return size >= self._capacity[priority]

    def add(self, data: bytes, qos: int, reliable: bool) -> bool:
        """As ``put``, if there is room where it goes, as most often. Else False."""
        known = self._of_qos.get(2 * qos + reliable)
        if known is None:
            priority, _, express = QOS[qos]
            to = self.lane(self.lane_priority(priority), reliable)
            known = self._of_qos[2 * qos + reliable] = to, express or not self.batching
        to, ends = known
        run = to.run
        if run.ends:
            self.seal(to.priority)
            run = to.run
        left = run.left - len(data)
        if left < 0 or run.owner is not None or run.before:
            return False
        if not run.count:
            priority = to.priority
            if self._open[priority] is not None:
                self.seal(priority)
            self._open[priority] = run
            self._queues[priority].append(run)
            self._newest = priority
            self.queued += 1
        run.by = None
        run.parts.append(data)
        run.left = left
        run.count += 1
        if ends:
            run.end()
        return True

    def put(
        self, data: bytes, priority: Priority, reliable: bool, express: bool, droppable: bool
    ) -> None:
        """A message goes to the end of its queue, whether that is full or not."""
        to = self._lanes[lane(priority, reliable)] or self.lane(priority, reliable)
        run = to.run
        run.by = None
        run.mix()
        if len(data) > run.left:
            if run.count:
                self.seal(priority)
                run = to.run
            if to.head_size(self._counters.next[to.at]) + len(data) > self._room:
                self.seal(priority)
                self._add(priority, (data, reliable, droppable), len(data))
                return
        if not run.count:
            self.begin(to)
        run.add(data)
        if express or not self.batching:
            run.end()

    def put_packed(
        self, packed: Packed, priority: Priority, reliable: bool, express: bool, droppable: bool
    ) -> None:
        """As ``put`` of all these messages. One alone may be larger than a batch."""
        data, count, to = packed.data, packed.count, self.lane(priority, reliable)
        self.seal(priority)
        if count == 1 and len(self._head(to)) + len(data) > self._room:
            self._add(priority, (bytes(data), reliable, droppable), len(data))
            return
        run = Run(to, 0)
        run.add(data, count)
        run.ends = express or not self.batching
        self._add(priority, run, len(data))

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

    def begin(self, to: Lane) -> None:
        """The run of a lane goes to the end of its queue; what is added to it then is sent."""
        priority = to.priority
        if self._open[priority] is not None:
            self.seal(priority)
        self._open[priority] = to.run
        self._queues[priority].append(to.run)
        self._newest = priority
        self.queued += 1

    def _add(self, priority: Priority, what: Queued | Run, size: int) -> None:
        self._queues[priority].append(what)
        self._newest = priority
        self.queued += 1
        self._bytes[priority] += size
        self._renew_all(priority)

    def seal(self, priority: Priority) -> None:
        """Nothing is added any more to the run at the end of a queue."""
        run = self._open[priority]
        if run is not None:
            self._open[priority] = None
            self._bytes[priority] += run.size
            self._renew(run.lane)

    def _renew(self, to: Lane) -> None:
        """A lane gets a run that is not queued yet; it takes nothing if the queue is full."""
        to.run = Run(to, self._fits(to))

    def _renew_all(self, priority: Priority) -> None:
        """There is more room, or less: for runs that are not queued yet."""
        at = lane(priority, False)
        for to in self._lanes[at : at + 2]:
            if to is not None and not to.run.count:
                to.run.resize(self._fits(to))

    def _fits(self, to: Lane) -> int:
        """Bytes for a run that comes next."""
        priority = to.priority
        left = self._capacity[priority] - self._bytes[priority]
        if self._shut or left <= 0:
            return 0
        room = self._room - to.head_size(self._counters.next[to.at])
        return min(left, room)

    @property
    def empty(self) -> bool:
        return not self.queued

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

    def shut(self) -> None:
        """Nothing is added any more; what is queued goes out."""
        self._shut = True
        for to in self._lanes:
            if to is not None:
                to.run.settle()
                to.run.close()

    def clear(self) -> int:
        """Forget everything, for good. How many messages that were."""
        self.shut()
        left = sum(one.count if type(one) is Run else 1 for queue in self._queues for one in queue)
        for queue in self._queues:
            queue.clear()
        self.queued = 0
        self._open = [None] * len(_PRIORITIES)
        self._bytes = [0] * len(_PRIORITIES)
        self._cuts = [None] * len(_PRIORITIES)
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
            for priority, queue in zip(_PRIORITIES, self._queues, strict=True):
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

    def _head(self, to: Lane) -> bytes:
        return to.heads.head(self._counters.next[to.at])

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
