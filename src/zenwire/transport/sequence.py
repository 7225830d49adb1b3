"""Sequence numbers: how they count, which are new, and the numbers of all lanes of a session.

A lane is a priority with a reliability. With QoS there are sixteen, else two, and each counts
for itself, FRAMEs and FRAGMENTs together. All start at the same number.
"""

from __future__ import annotations

from hashlib import shake_128

from zenwire.transport.stats import Cause
from zenwire.wire.values import Priority, Resolution, ZenohId

__all__ = ["LANES", "Counters", "Newest", "initial_sn", "lane"]

LANES = 2 * len(Priority)


def lane(priority: int, reliable: bool) -> int:
    """The place of a lane among all."""
    return 2 * priority + reliable


def initial_sn(own: ZenohId, other: ZenohId, resolution: Resolution) -> int:
    """Where our numbers towards ``other`` start: the same whenever these two meet again."""
    digest = shake_128(own.raw + other.raw).digest(4)
    return int.from_bytes(digest, "little") & resolution.sn_modulus - 1


class Counters:
    """The next number to be sent in each lane."""

    __slots__ = ("mask", "next")

    def __init__(self, resolution: Resolution, first: int) -> None:
        self.mask = resolution.sn_modulus - 1
        self.next = [first & self.mask] * LANES

    def advance(self, at: int) -> None:
        """The number of that lane was used."""
        self.next[at] = self.next[at] + 1 & self.mask


class Newest:
    """The newest number that one lane has received.

    A number is new if it is ahead by no more than half of the range; what it skips is missing.
    """

    __slots__ = ("half", "last", "mask")

    def __init__(self, resolution: Resolution, first: int) -> None:
        self.mask = resolution.sn_modulus - 1
        self.half = self.mask >> 1
        self.last = first - 1 & self.mask

    def accept(self, sn: int) -> int | Cause:
        """How many numbers were skipped; or why this one is not new."""
        ahead = sn - self.last & self.mask
        if 0 < ahead <= self.half:
            self.last = sn
            return ahead - 1
        return Cause.LATE if ahead else Cause.DUPLICATE
