"""Messages to batches: a queue per priority, FRAMEs, fragments, and what congestion does.

Batches are made when they are asked for, so the newest message of the highest priority is in the
next one. A batch takes FRAMEs of several priorities; a FRAGMENT fills the rest of its batch.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from zenwire.transport.codec import fragment_head
from zenwire.transport.sequence import Counters, lane
from zenwire.transport.stats import Cause, Stats
from zenwire.wire.repeat import FrameHeads
from zenwire.wire.values import Priority

__all__ = ["BareOutbox", "Outbox", "Queued"]

Queued = tuple[bytes, bool, bool, bool]
"""A message: its bytes, reliable, express, may be dropped."""

_PRIORITIES: Final = tuple(Priority)


class _Cut:
    """The message at the head of a queue that goes out in fragments."""

    __slots__ = ("moved", "sent")

    def __init__(self, now: float) -> None:
        self.sent = 0
        self.moved = now
        """When the last fragment went out."""


class Outbox:
    """What waits to be sent over one link.

    ``counters`` are the session's; ``room`` is what a batch may hold. Without ``qos`` everything
    goes as DATA. Without ``marked`` (no Patch) there is no way to tell that a message was given up.
    """

    __slots__ = (
        "_batching",
        "_bytes",
        "_capacity",
        "_counters",
        "_cuts",
        "_heads",
        "_markers",
        "_newest",
        "_qos",
        "_queues",
        "_room",
        "_size",
        "_stats",
        "marked",
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
        self._qos = qos
        self.marked = marked
        self._batching = batching
        self._capacity = [n * room for n in queue_batches]
        self._queues: tuple[deque[Queued], ...] = tuple(deque() for _ in _PRIORITIES)
        self._size = 0
        self._newest = Priority.DATA
        self._bytes = [0] * len(_PRIORITIES)
        self._cuts: list[_Cut | None] = [None] * len(_PRIORITIES)
        self._heads: dict[int, FrameHeads] = {}
        self._markers: list[tuple[Priority, bool]] = []

    def lane_priority(self, priority: Priority) -> Priority:
        """The queue a priority goes to."""
        return priority if self._qos else Priority.DATA

    def full(self, priority: Priority) -> bool:
        """Whether a queue takes no more. One that is empty takes any message."""
        return self._bytes[priority] >= self._capacity[priority]

    def put(
        self, data: bytes, priority: Priority, reliable: bool, express: bool, droppable: bool
    ) -> None:
        """A message goes to the end of its queue, whether that is full or not."""
        self._queues[priority].append((data, reliable, express, droppable))
        self._newest = priority
        self._size += 1
        self._bytes[priority] += len(data)

    @property
    def empty(self) -> bool:
        return not self._size and not self._markers

    def give_up_stalled(self, priority: Priority, before: float) -> bool:
        """Drop the message with Drop that is being cut, if its last fragment went before then."""
        cut, queue = self._cuts[priority], self._queues[priority]
        if cut is None or cut.moved > before or not queue[0][3]:
            return False
        data, reliable, _, _ = queue.popleft()
        self._size -= 1
        self._bytes[priority] -= len(data) - cut.sent
        self._cuts[priority] = None
        self._stats.dropped[Cause.STALLED] += 1
        if self.marked:
            self._markers.append((priority, reliable))
        else:
            # The number that is left out makes the other side forget what it has.
            self._counters.advance(lane(priority, reliable))
        return True

    def clear(self) -> int:
        """Forget everything. How many messages that were."""
        left, self._size = self._size, 0
        for queue in self._queues:
            queue.clear()
        self._bytes = [0] * len(_PRIORITIES)
        self._cuts = [None] * len(_PRIORITIES)
        self._markers.clear()
        return left

    def pull(self, now: float) -> bytes:
        """The content of the next batch; nothing if nothing waits."""
        if self._markers:
            return self._marker(*self._markers.pop(0))
        if not self._size:
            return b""
        if self._size == 1 and (lone := self._lone()):
            return lone
        out = bytearray()
        for priority, queue in zip(_PRIORITIES, self._queues, strict=True):
            if queue and not self._pack(out, priority, queue, now):
                break
        return bytes(out)

    def _lone(self) -> bytes:
        """The only message that waits, if it was put last and fits."""
        priority = self._newest
        queue = self._queues[priority]
        if not queue or self._cuts[priority] is not None:
            return b""
        data, reliable, _, _ = queue[0]
        at = lane(priority, reliable)
        content = self._head(at, priority, reliable) + data
        if len(content) > self._room:
            return b""
        queue.popleft()
        self._size = 0
        self._bytes[priority] = 0
        self._counters.advance(at)
        self._stats.tx_frames += 1
        self._stats.tx_messages += 1
        return content

    def _pack(self, out: bytearray, priority: Priority, queue: deque[Queued], now: float) -> bool:
        """Add what fits of one queue. Whether the batch may take more after that."""
        counters, stats, room = self._counters, self._stats, self._room
        framed: bool | None = None
        while queue and self._cuts[priority] is None:
            data, reliable, express, _ = queue[0]
            if reliable is not framed:
                at = lane(priority, reliable)
                head = self._head(at, priority, reliable)
                if len(head) + len(data) > room:
                    self._cuts[priority] = _Cut(now)
                    break
                if len(out) + len(head) + len(data) > room:
                    return False
                out += head
                counters.advance(at)
                stats.tx_frames += 1
                framed = reliable
            elif len(out) + len(data) > room:
                return False
            out += data
            stats.tx_messages += 1
            self._bytes[priority] -= len(data)
            self._size -= 1
            queue.popleft()
            if express or not self._batching:
                return False
        return not queue or self._cut(out, priority, queue, now)

    def _head(self, at: int, priority: Priority, reliable: bool) -> bytes:
        heads = self._heads.get(at)
        if heads is None:
            heads = self._heads[at] = FrameHeads(priority, reliable)
        return heads.head(self._counters.next[at])

    def _cut(self, out: bytearray, priority: Priority, queue: deque[Queued], now: float) -> bool:
        """Add a fragment of the message at the head of a queue. Nothing fits after it."""
        room = self._room - len(out)
        if out and room < self._room // 2:
            return False
        cut = self._cuts[priority]
        assert cut is not None
        data, reliable, _, _ = queue[0]
        at = lane(priority, reliable)
        sn = self._counters.next[at]
        first = not cut.sent
        size = room - len(fragment_head(priority, reliable, sn, more=True, first=first))
        piece = memoryview(data)[cut.sent : cut.sent + size]
        cut.sent += len(piece)
        cut.moved = now
        more = cut.sent < len(data)
        out += fragment_head(priority, reliable, sn, more=more, first=first)
        out += piece
        self._counters.advance(at)
        self._stats.tx_fragments += 1
        self._bytes[priority] -= len(piece)
        if not more:
            queue.popleft()
            self._size -= 1
            self._cuts[priority] = None
            self._stats.tx_messages += 1
        return False

    def _marker(self, priority: Priority, reliable: bool) -> bytes:
        """An empty fragment that says: I gave up."""
        at = lane(priority, reliable)
        sn = self._counters.next[at]
        self._counters.advance(at)
        self._stats.tx_fragments += 1
        return fragment_head(priority, reliable, sn, more=True, drop=True)


class BareOutbox:
    """What waits on a low-latency link: one queue, and each message is a batch of its own."""

    __slots__ = ("_bytes", "_capacity", "_queue", "_stats")

    def __init__(self, stats: Stats, capacity: int) -> None:
        self._stats = stats
        self._capacity = capacity
        self._queue: deque[bytes] = deque()
        self._bytes = 0

    def lane_priority(self, priority: Priority) -> Priority:
        return Priority.DATA

    def full(self, priority: Priority) -> bool:
        return self._bytes >= self._capacity

    def put(
        self, data: bytes, priority: Priority, reliable: bool, express: bool, droppable: bool
    ) -> None:
        self._queue.append(data)
        self._bytes += len(data)

    @property
    def empty(self) -> bool:
        return not self._queue

    def give_up_stalled(self, priority: Priority, before: float) -> bool:
        """Nothing is cut here."""
        return False

    def clear(self) -> int:
        left = len(self._queue)
        self._queue.clear()
        self._bytes = 0
        return left

    def pull(self, now: float) -> bytes:
        if not self._queue:
            return b""
        data = self._queue.popleft()
        self._bytes -= len(data)
        self._stats.tx_messages += 1
        return data
