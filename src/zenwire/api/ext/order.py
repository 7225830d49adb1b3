"""The samples of sources in their order: what is delivered, what waits, and what is missed."""

from __future__ import annotations

from dataclasses import dataclass

from zenwire.api.ext.limits import HELD_BYTES, HELD_MAX
from zenwire.api.ext.sequence import between, next_sn
from zenwire.api.ext.sources import Numbered, Timed, size_of
from zenwire.api.values import EntityGlobalId, Sample

__all__ = ["Miss", "Order"]


@dataclass(frozen=True, slots=True)
class Miss:
    """``nb`` samples of a publisher in a row that did not come, and will not."""

    source: EntityGlobalId
    nb: int


class Order:
    """What comes out, in ``outputs``; and what all sources hold together, in ``held_bytes``."""

    def __init__(self) -> None:
        self.outputs: list[Sample | Miss] = []
        self.held_bytes = 0
        self.duplicates = 0
        """Samples that were not delivered: they had been, or were given up, or came too late."""
        self.missed = 0
        """Samples that were reported as missed."""

    def deliver(self, source: Numbered, sn: int, sample: Sample) -> None:
        """A sample, and those that waited for it."""
        held, following = source.held, next_sn(sn)
        self.outputs.append(sample)
        while held and following in held:
            self.outputs.append(self._unhold(source, following))
            sn, following = following, next_sn(following)
        source.last = sn

    def deliver_timed(self, source: Timed, time: tuple[int, bytes], sample: Sample) -> None:
        """A sample of a clock, which has no holes."""
        source.last = time
        self.outputs.append(sample)

    def hold(self, source: Numbered, sn: int, sample: Sample) -> None:
        """It waits for what comes before it; if too much waits, some of that is given up."""
        source.held[sn] = sample
        self.held_bytes += size_of(sample)
        while source.held and self._is_too_much(source):
            # Half of them, so that the next ones need not be put in order each.
            self.release(source, source.waiting()[: len(source.held) // 2 + 1])

    def hold_timed(self, source: Timed, time: tuple[int, bytes], sample: Sample) -> None:
        """It waits for earlier ones."""
        source.held[time] = sample
        self.held_bytes += size_of(sample)
        while source.held and self._is_too_much(source):
            self.release_timed(source, len(source.held) // 2 + 1)

    def release(self, source: Numbered, numbers: list[int]) -> None:
        """Deliver what is held, and give up what is missing before it."""
        for sn in numbers:
            if sn not in source.held:
                continue
            sample = self._unhold(source, sn)
            if source.is_old(sn):
                self.duplicates += 1
                continue
            if source.last is not None:
                self.miss(source, between(source.last, sn))
            self.deliver(source, sn, sample)

    def release_timed(self, source: Timed, count: int) -> None:
        """Deliver the earliest of what is held."""
        for time in source.waiting()[:count]:
            sample = source.held.pop(time)
            self.held_bytes -= size_of(sample)
            self.deliver_timed(source, time, sample)

    def release_all(self, source: Numbered | Timed) -> None:
        """Nothing more is waited for."""
        if isinstance(source, Timed):
            self.release_timed(source, len(source.held))
        else:
            self.release(source, source.waiting())

    def miss(self, source: Numbered, count: int) -> None:
        """So many in a row will not come."""
        if count:
            self.missed += count
            self.outputs.append(Miss(source.id, count))

    def _is_too_much(self, source: Numbered | Timed) -> bool:
        return len(source.held) > HELD_MAX or self.held_bytes > HELD_BYTES

    def _unhold(self, source: Numbered, sn: int) -> Sample:
        sample = source.held.pop(sn)
        self.held_bytes -= size_of(sample)
        return sample
