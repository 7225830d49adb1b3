"""What framing works on and gives: runs of bytes, phases of streams, batches and faults."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from zenwire.capture import kernels as k

__all__ = ["Framed", "Phase", "Run", "Saved", "StreamFault"]

Int64 = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

Saved = tuple[Any, ...]
"""The state of a step, which that step alone looks into; it is pickled."""


class Phase(IntEnum):
    """Where a stream is."""

    NEW = 0
    OPENING = 1
    """INIT was read."""
    WAITING = 2
    """OPEN was read, but not yet the InitAck."""
    FRAMED = k.FRAMED
    BROKEN = 4
    """Looking for a batch."""
    FOREIGN = 5
    """Not Zenoh."""
    ENDED = 6


class StreamFault(NamedTuple):
    """Bytes of a stream that are in no batch: there but ``skipped``, or ``missing``."""

    stream: int
    fault: str
    offset: int
    skipped: int
    missing: int
    time: int


@dataclass(frozen=True, slots=True)
class Framed:
    """Batches as rows (``kernels.B_*``) over ``work``; used again for the next one."""

    work: Bytes
    table: Int64
    count: int
    faults: tuple[StreamFault, ...]


@dataclass(slots=True)
class Run:
    """Bytes of a stream without a gap, as ``kernels.U_*``."""

    stream: int
    start: int
    end: int
    offset: int
    first: int
    stop: int
    after: int
    done: int

    @property
    def final(self) -> bool:
        """Whether it goes no further."""
        return self.after != k.NOTHING_YET

    def skip(self, to: int) -> int:
        """Goes on at a place of the work buffer; gives the number of bytes up to there."""
        count = to - self.start
        self.offset += count
        self.start = to
        return count
