"""Publications to bytes: pieces for the queues of a link, or whole batches that go past them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from zenwire.columns import kernels
from zenwire.columns.alike import Alike
from zenwire.columns.emit_write import SPANS
from zenwire.transport import Straight
from zenwire.wire.objects import encode
from zenwire.wire.repeat import FrameHeads
from zenwire.wire.values import Priority, QoS

if TYPE_CHECKING:
    from zenwire.columns.write import Publications

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
        self._write = kernels.ready(kernels.write)
        self._alike = kernels.ready(kernels.alike)
        self._out = np.empty(_OUT, np.uint8)
        # One batch at a time, since the kernel does not say which rows are in which.
        self._end = np.empty(2, np.int32)
        self._ends = np.empty(_ENDS, np.int32)
        self._sns = np.zeros(len(Priority), np.uint64)
        self._state = np.zeros(3, np.uint64)

    def pack(self, rows: Publications | Alike, start: int, qos: QoS, packing: int) -> Piece:
        """Rows from ``start`` on; ``packing`` bounds them, unless it is one row that has more."""
        # The kernel makes batches. Their frames, with the numbers of a lane, are made when they
        # are sent: here each has the number 0, and is left out.
        frames = FrameHeads(qos.priority, True)
        head = len(frames.head(0))
        straight = Straight(0, frames, 0, 0, packing, 0)
        size = self._fill(rows, start, straight, packing + head, qos, True, self._end)
        end = int(self._state[0])
        if end == start:
            return Piece(encode(rows.message(start)), start, start + 1)
        return Piece(self._out[head:size].tobytes(), start, end)

    def batches(
        self,
        rows: Publications | Alike,
        start: int,
        straight: Straight,
        qos: QoS,
        reliable: bool,
    ) -> Batches:
        """Rows from ``start`` on as they are written to a link; none if the first needs fragments.

        What is there is overwritten by the next call, unless it is `lent`.
        """
        limit = straight.packing + len(straight.heads.head(straight.mask))
        size = self._fill(rows, start, straight, limit, qos, reliable, self._ends)
        done, made = int(self._state[0]), int(self._state[1])
        return Batches(memoryview(self._out.data)[:size], made, done - start)

    def lent(self) -> None:
        """Whoever got the last batches needs them for longer."""
        self._out = np.empty(_OUT, np.uint8)

    def _fill(  # noqa: PLR0917 # as the kernels have them
        self,
        rows: Publications | Alike,
        start: int,
        straight: Straight,
        limit: int,
        qos: QoS,
        reliable: bool,
        ends: npt.NDArray[np.int32],
    ) -> int:
        """Batches of up to ``limit`` bytes; there is room for one less than ``ends``."""
        self._state[:] = start, 0, 0
        prefix, mask, sns = straight.prefix, straight.mask, self._sns
        size: int
        if isinstance(rows, Alike):
            before, after = (np.frombuffer(part, np.uint8) for part in straight.heads.around)
            sns[0] = straight.sn
            size = self._alike(
                rows.head,
                rows.size,
                rows.offsets,
                rows.payload,
                rows.count,
                before,
                after,
                prefix,
                limit,
                mask,
                len(ends) - 1,
                self._out,
                sns,
                self._state,
            )
            return size
        sns[qos.priority] = straight.sn
        size = self._write(
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
            sns,
            self._state,
        )
        return size
