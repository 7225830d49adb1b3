"""Messages to batches in low latency: each is one."""

from __future__ import annotations

from collections import deque

from zenwire.transport.codec import message_sizes
from zenwire.transport.gathered import Taken
from zenwire.transport.packed import Packed
from zenwire.transport.stats import Stats
from zenwire.wire.batch import stream_length
from zenwire.wire.buffer import Buffer
from zenwire.wire.values import Priority

__all__ = ["BareOutbox"]


class BareOutbox:
    """What waits on a low-latency link: one queue, and each message is a batch of its own.

    ``packing`` is how many bytes a message may have.
    """

    __slots__ = ("_bytes", "_capacity", "_queue", "_stats", "packing")

    def __init__(self, stats: Stats, capacity: int, packing: int) -> None:
        self.packing = packing
        self._stats = stats
        self._capacity = capacity
        self._queue: deque[bytes] = deque()
        self._bytes = 0

    def lane_priority(self, priority: Priority) -> Priority:
        return Priority.DATA

    def full(self, priority: Priority) -> bool:
        return self._bytes >= self._capacity

    def add(self, data: bytes, qos: int, reliable: bool) -> bool:
        """See `Outbox.add`."""
        if self._bytes >= self._capacity or len(data) > self.packing:
            return False
        self._queue.append(data)
        self._bytes += len(data)
        return True

    def put(
        self, data: bytes, priority: Priority, reliable: bool, express: bool, droppable: bool
    ) -> None:
        self._queue.append(data)
        self._bytes += len(data)

    def put_packed(
        self, packed: Packed, priority: Priority, reliable: bool, express: bool, droppable: bool
    ) -> None:
        """See `Outbox.put_packed`."""
        whole, at = bytes(packed.data), 0
        for size in message_sizes(whole):
            self._queue.append(whole[at : at + size])
            at += size
        self._bytes += at

    @property
    def empty(self) -> bool:
        return not self._queue

    def give_up_stalled(self, priority: Priority, before: float) -> bool:
        """Nothing is cut here."""
        return False

    def shut(self) -> None:
        """Nothing is added but by calls."""

    def clear(self) -> int:
        left = len(self._queue)
        self._queue.clear()
        self._bytes = 0
        return left

    def take(self, now: float, prefix: int) -> Taken | None:
        """See `Outbox.take`."""
        if not self._queue:
            return None
        data = self._queue.popleft()
        size = len(data)
        self._bytes -= size
        self._stats.tx_messages += 1
        parts: list[Buffer] = [stream_length(size, prefix), data] if prefix else [data]
        return b"", parts, prefix + size
