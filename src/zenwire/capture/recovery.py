"""How a stream that lost bytes, or starts in the middle, finds a batch again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from zenwire.capture import kernels as k
from zenwire.errors import DecodeError
from zenwire.wire.batch import expand_batch, walk, walk_low_latency
from zenwire.wire.transport import Fragment, Frame

__all__ = ["Damage", "Found", "continues", "decodes", "find_batch", "hides_batches"]

MODES: Final = (k.PLAIN, k.COMPRESSED, k.LOW_LATENCY)
ENOUGH: Final = 2
"""Batches of a chain that are unmistakable."""

LOOKS: Final = 256
"""Places that are tried where no batch is expected."""

Int64 = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


@dataclass(slots=True)
class Damage:
    """Bytes of a stream that became no batch. ``resume`` is where the next one must be, if known."""

    why: str
    offset: int
    time: int
    skipped: int = 0
    missing: int = 0
    resume: int = -1
    misses: int = 0
    scratch: Int64 = field(default_factory=lambda: np.zeros(k.SCRATCH, np.int64))

    def save(self) -> tuple[object, ...]:
        """All but the scratch, which holds nothing between two calls."""
        return (
            self.why,
            self.offset,
            self.time,
            self.skipped,
            self.missing,
            self.resume,
            self.misses,
        )


class Found(NamedTuple):
    """Where a search got: up to ``at`` there is nothing, and there a batch of ``mode`` begins.

    Mode -1: none does, or more bytes must tell.
    """

    at: int
    mode: int


def prefix_of(mode: int) -> int:
    """Bytes of the length before each batch."""
    return 4 if mode == k.LOW_LATENCY else 2


def length_at(work: Bytes, at: int, mode: int) -> int:
    """The length that a batch announces."""
    return int.from_bytes(work[at : at + prefix_of(mode)].tobytes(), "little")


def continues(work: Bytes, at: int, end: int, *, final: bool, mode: int) -> bool | None:
    """Whether batches follow one another from here on; None if more bytes must tell.

    A batch whose own first byte is damaged does not break them, as long as its length is right.
    """
    scratch = np.zeros(k.SCRATCH, np.int64)
    if at == end and final:
        return True
    found = k.ready(k.chain)(work, at, end, int(final), mode, 0, scratch)
    if not found and at + prefix_of(mode) <= end:
        length = length_at(work, at, mode)
        after = at + prefix_of(mode) + length
        if length <= k.BATCH_MAX:
            if after >= end:
                return None if not final else after == end
            found = k.ready(k.chain)(work, after, end, int(final), mode, 0, scratch)
    return None if found < 0 else bool(found)


def decodes(work: Bytes, at: int, mode: int, count: int) -> int:
    """How many of ``count`` whole batches are unmistakable, -1 if one of them does not decode.

    Any bytes may follow the head of a FRAGMENT, so it tells little.
    """
    clear = 0
    for _ in range(count):
        start = at + prefix_of(mode)
        end = start + length_at(work, at, mode)
        data = work[start:end].tobytes()
        try:
            if mode == k.LOW_LATENCY:
                messages = [found.message for found in walk_low_latency(data)]
            else:
                content = expand_batch(data) if mode == k.COMPRESSED else data
                messages = [found.message for found in walk(content)]
        except DecodeError:
            return -1
        if not messages:
            return -1
        clear += not isinstance(messages[-1], Fragment | Frame)
        at = end
    return clear


def hides_batches(work: Bytes, at: int, end: int, mode: int) -> bool:
    """Whether a whole chain is in these bytes, so that what claims them all has a wrong length."""
    scratch = np.zeros(k.SCRATCH, np.int64)
    for _ in range(LOOKS):
        at = int(k.ready(k.search)(work, at, end, 1, mode, k.CHAIN_KNOWN, scratch))
        if at >= end:
            return False
        if scratch[0] >= k.CHAIN_KNOWN and decodes(work, at, mode, k.CHAIN_KNOWN) >= ENOUGH:
            return True
        at += 1
    return False


def find_batch(
    work: Bytes, at: int, end: int, damage: Damage, *, final: bool, mode: int, known: bool
) -> Found:
    """The next batch from ``at`` on, in ``mode`` or, if that is -1, in any.

    ``known`` says that the stream is Zenoh; otherwise a single batch proves nothing.
    """
    best = Found(end, -1)
    for one in MODES if mode < 0 else (mode,):
        found = _find_in(work, at, best.at, end, damage, final=final, mode=one, known=known)
        if found.at < best.at:
            best = found
    return best


def _find_in(
    work: Bytes,
    at: int,
    stop: int,
    end: int,
    damage: Damage,
    *,
    final: bool,
    mode: int,
    known: bool,
) -> Found:
    scratch = damage.scratch
    need = k.CHAIN_KNOWN if known else k.CHAIN_UNKNOWN
    while at < stop:
        found = int(k.ready(k.search)(work, at, end, int(final), mode, need, scratch))
        if found < 0:
            return Found(-1 - found, -1)
        if found >= stop:
            break
        whole = int(scratch[0])
        follow = int(scratch[-1])
        clear = decodes(work, found, mode, whole)
        if clear >= 0 and clear + follow >= (min(ENOUGH, whole) if known else ENOUGH):
            return Found(found, mode)
        damage.misses += 1
        # Bytes made to mislead cost less and less.
        at = found + 1 + damage.misses // 64
    return Found(end, -1)
