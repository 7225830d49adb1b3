"""Publications to bytes: pieces for the queues of a link, or whole batches that go past them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from zenwire.columns import kernels
from zenwire.columns.emit_write import SPANS
from zenwire.wire.objects import encode
from zenwire.wire.transport import Frame
from zenwire.wire.values import Priority, QoS

if TYPE_CHECKING:
    from zenwire.columns.write import Publications
    from zenwire.transport import Straight

__all__ = ["Batches", "Packer", "Piece"]

_OUT: Final = 1 << 19
"""Bytes that the kernel fills at once. Each write wakes who reads it, so they are many."""
_ENDS: Final = 4096
"""Batches that it makes at once, at most."""


class Piece:
    """Messages back to back: rows ``start`` to ``end`` of those that were packed."""

    __slots__ = ("data", "end", "start")

    def __init__(self, data: bytes, start: int, end: int) -> None:
        self.data = data
        self.start = start
        self.end = end


class Batches(NamedTuple):
    """Whole batches back to back: how many, and of how many messages."""

    data: memoryview
    batches: int
    messages: int


class Packer:
    """Publications of one QoS to messages, as many as fit a batch, or to batches."""

    def __init__(self) -> None:
        self._kernel = kernels.ready(kernels.write)
        self._out = np.empty(_OUT, np.uint8)
        # One batch at a time, since the kernel does not say which rows are in which.
        self._end = np.empty(2, np.int32)
        self._ends = np.empty(_ENDS, np.int32)
        self._sns = np.zeros(len(Priority), np.uint64)
        self._state = np.zeros(3, np.uint64)

    def pack(self, rows: Publications, start: int, qos: QoS, packing: int) -> Piece:
        """Rows from ``start`` on; ``packing`` bounds them, unless it is one row that has more."""
        # The kernel makes batches. Their frames, with the numbers of a lane, are made when they
        # are sent: here each has the number 0, and is left out.
        head = len(encode(Frame(reliable=True, sn=0, priority=qos.priority)))
        self._sns[:] = 0
        size = self._fill(rows, start, True, 0, packing + head, 0, self._end)
        end = int(self._state[0])
        if end == start:
            return Piece(encode(rows.message(start)), start, start + 1)
        return Piece(self._out[head:size].tobytes(), start, end)

    def batches(
        self, rows: Publications, start: int, straight: Straight, qos: QoS, reliable: bool
    ) -> Batches:
        """Rows from ``start`` on as they are written to a link; none if the first needs fragments.

        What is there is overwritten by the next call, unless it is `lent`.
        """
        priority = qos.priority
        self._sns[priority] = straight.sn
        limit = straight.packing + len(straight.heads.head(straight.mask))
        size = self._fill(rows, start, reliable, straight.prefix, limit, straight.mask, self._ends)
        done, made = int(self._state[0]), int(self._state[1])
        return Batches(memoryview(self._out.data)[:size], made, done - start)

    def lent(self) -> None:
        """Whoever got the last batches needs them for longer."""
        self._out = np.empty(_OUT, np.uint8)

    def _fill(  # noqa: PLR0917 # as the kernel has them
        self,
        rows: Publications,
        start: int,
        reliable: bool,
        prefix: int,
        limit: int,
        mask: int,
        ends: npt.NDArray[np.int32],
    ) -> int:
        self._state[:] = start, 0, 0
        size: int = self._kernel(
            rows.int32,
            rows.uint64,
            rows.present,
            rows.count,
            *(rows.spans[name] for name in SPANS),
            reliable,
            prefix,
            limit,
            mask,
            self._out,
            ends,
            self._sns,
            self._state,
        )
        return size
