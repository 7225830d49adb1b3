"""Which segments go. No I/O, no clock.

Ages are counted by a clock that does not jump: a segment that was complete when the writer began
is as old as the calendar said then, and one that was completed since by what has passed. So a
calendar that is set a year ahead removes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from zenwire.spool.manifest import Segment
from zenwire.spool.settings import Retention

__all__ = ["Ages", "to_drop"]

_NANO: Final = 1_000_000_000


class Ages:
    """When each segment was complete, on the clock that does not jump. Seconds."""

    def __init__(self, segments: Sequence[Segment], now: int, monotonic: float) -> None:
        self._since = {
            s.first: monotonic - max(now - s.time_max, 0) / _NANO
            for s in segments
            if s.time_max is not None
        }

    def age(self, segment: Segment, monotonic: float) -> float:
        return monotonic - self._since.setdefault(segment.first, monotonic)

    def forget(self, segments: Sequence[Segment]) -> None:
        for segment in segments:
            self._since.pop(segment.first, None)


def to_drop(
    segments: Sequence[Segment],
    total: int,
    *,
    retention: Retention,
    ages: Ages,
    readers: Mapping[str, int],
    monotonic: float,
) -> int:
    """How many of the first complete segments go. ``readers`` are how far each has read."""
    if retention.age is not None:
        for segment in segments:
            # From the first time that it is seen here.
            ages.age(segment, monotonic)
    least = min(readers.values(), default=None)
    count = 0
    for segment in segments:
        old = retention.age is not None and ages.age(segment, monotonic) > retention.age
        much = retention.bytes is not None and total > retention.bytes
        if not old and not much:
            break
        unread = least is not None and segment.end is not None and segment.end > least
        if unread and not retention.unread:
            break
        total -= segment.bytes
        count += 1
    return count
