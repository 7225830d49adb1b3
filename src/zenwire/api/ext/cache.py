"""What an advanced publisher keeps of its samples, for those who come late or lost some."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import islice

from zenwire.api.checks import check, check_kinds
from zenwire.api.ext.sequence import is_after, sn_range
from zenwire.api.ext.timerange import TimeRange
from zenwire.api.values import CongestionControl, Parameters, Priority, Sample
from zenwire.errors import EncodeError

__all__ = ["Cache", "CacheConfig", "RepliesConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepliesConfig:
    """The QoS of replies. They travel with that of their query, as in the reference."""

    congestion_control: CongestionControl | None = None
    priority: Priority | None = None
    express: bool | None = None

    def __post_init__(self) -> None:
        check(
            congestion_control=self.congestion_control,
            priority=self.priority,
            express=self.express,
        )


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """How many samples to keep, by default one."""

    max_samples: int | None = None
    replies_config: RepliesConfig | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_kinds(
            {"max_samples": int, "replies_config": RepliesConfig},
            {"max_samples": self.max_samples, "replies_config": self.replies_config},
        )
        if self.max_samples is not None and self.max_samples < 1:
            raise ValueError(f"max_samples is above zero, not {self.max_samples}")


class Cache:
    """The last samples of a publisher, oldest first."""

    def __init__(self, config: CacheConfig) -> None:
        self._samples: deque[Sample] = deque(maxlen=config.max_samples or 1)
        self.added = 0
        """How many there were so far, with those that gave way."""

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, sample: Sample) -> None:
        """Keep a sample; the oldest gives way to it."""
        self._samples.append(sample)
        self.added += 1

    def select(self, parameters: Parameters, now: float, since: int = 0) -> list[Sample]:
        """What a query asks for. ``now`` is in seconds since 1970.

        ``since``: of those alone that came when so many had been ``added``.
        A parameter that nobody can read asks for nothing in particular, as in the reference.
        """
        numbers = sn_range(parameters.get("_sn", "..") or "..")
        times = _times(parameters, now)
        found = [
            sample
            for sample in islice(self._samples, max(0, since - self.added + len(self)), None)
            if (numbers is None or _numbered(sample, numbers)) and _timed(sample, times)
        ]
        most = parameters.get("_max", "") or ""
        if most.isascii() and most.isdigit() and len(most) <= 10:
            count = int(most)
            return found[-count:] if count else []
        return found


def _times(parameters: Parameters, now: float) -> TimeRange | None:
    text = parameters.get("_time")
    if text is None:
        return None
    try:
        return TimeRange.parse(text, now)
    except EncodeError:
        return None


def _numbered(sample: Sample, numbers: tuple[int | None, int | None]) -> bool:
    info = sample.body.source_info
    if info is None:
        return False
    start, end = numbers
    return (start is None or not is_after(start, info.sn)) and (
        end is None or not is_after(info.sn, end)
    )


def _timed(sample: Sample, times: TimeRange | None) -> bool:
    stamp = sample.timestamp
    return (
        times is None
        or stamp is None
        or times.contains(stamp.get_time_as_ntp64().as_nanos() / 1_000_000_000)
    )
