"""What waits to be sent over one link: a queue per priority.

What a queue gets is put together at once, in runs that fill a batch each; a message that is larger
than a batch waits as it is.
"""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import Final

from zenwire.transport.codec import QOS
from zenwire.transport.packed import Packed
from zenwire.transport.runs import Lane, Queued, Run
from zenwire.transport.sequence import LANES, Counters, lane
from zenwire.wire.repeat import FrameHeads
from zenwire.wire.values import Priority

__all__ = ["PRIORITIES", "Queues"]

PRIORITIES: Final = tuple(Priority)


@cache
def _longest_head(mask: int) -> int:
    """Bytes before the messages of a FRAME whose number and priority take most room."""
    return len(FrameHeads(Priority.BACKGROUND, True).head(mask))


class Queues:
    """One for each priority, and how full it is.

    ``counters`` are the session's; ``room`` is what a batch may hold. Without ``qos`` everything
    goes as DATA.
    """

    __slots__ = (
        "_bytes",
        "_capacity",
        "_counters",
        "_lanes",
        "_newest",
        "_of_qos",
        "_open",
        "_qos",
        "_queues",
        "_room",
        "_shut",
        "batching",
        "packing",
        "queued",
    )

    def __init__(
        self,
        counters: Counters,
        *,
        room: int,
        qos: bool,
        queue_batches: tuple[int, ...],
        batching: bool = True,
    ) -> None:
        self._counters = counters
        self._room = room
        self.packing = room - _longest_head(counters.mask)
        """How many bytes of messages fit a batch of any lane, whatever its number."""
        self._qos = qos
        self.batching = batching
        self._capacity = [n * room for n in queue_batches]
        self._queues: tuple[deque[Queued | Run], ...] = tuple([deque() for _ in PRIORITIES])
        self.queued = 0
        """How many runs and messages are in all queues, with what else is to be sent."""
        self._newest = Priority.DATA
        self._open: list[Run | None] = [None] * len(PRIORITIES)
        """By priority, the run at the end of its queue that may be added to."""
        self._bytes = [0] * len(PRIORITIES)
        """By priority, without those of the run that may be added to."""
        self._lanes: list[Lane | None] = [None] * LANES
        self._of_qos: dict[int, tuple[Lane, bool]] = {}
        """By a QoS and a reliability, where a message goes, and whether its batch ends with it."""
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

    @property
    def empty(self) -> bool:
        return not self.queued

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

    def _head(self, to: Lane) -> bytes:
        return to.heads.head(self._counters.next[to.at])

    def shut(self) -> None:
        """Nothing is added any more; what is queued goes out."""
        self._shut = True
        for to in self._lanes:
            if to is not None:
                to.run.settle()
                to.run.close()
