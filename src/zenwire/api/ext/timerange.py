"""``_time`` of a selector: which times are asked for, as in ``[now(-1h)..]``.

``[`` and ``]`` include their bound, turned outwards they exclude it. A bound is a time in RFC 3339
or relative to now; instead of the end there may be a duration, as in ``[now(-2h);1h]``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from zenwire.api.values import NTP64
from zenwire.errors import EncodeError

__all__ = ["TimeRange"]

_UNITS: Final = {
    "u": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0,
    "": 1.0,
}  # fmt: skip
_DURATION: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(u|ms|s|m|h|d|w|)", re.ASCII)
_NANOSECONDS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Bounds in seconds since 1970; None where there is none."""

    start: float | None
    end: float | None
    with_start: bool = True
    with_end: bool = True

    @classmethod
    def parse(cls, text: str, now: float) -> TimeRange:
        """Of a text, at a time. Raises EncodeError if it is no range."""
        if len(text) < 3 or text[0] not in "[]" or text[-1] not in "[]":
            raise _wrong(text)
        inside = text[1:-1]
        first, dots, second = inside.partition("..")
        if dots:
            start, end = _bound(first, now), _bound(second, now)
        else:
            first, semicolon, duration = inside.partition(";")
            start = _bound(first, now)
            if not semicolon or start is None:
                raise _wrong(text)
            end = start + _seconds(duration)
        return cls(start, end, text[0] == "[", text[-1] == "]")

    def contains(self, time: float) -> bool:
        start, end = self.start, self.end
        after = start is None or time > start or (self.with_start and time == start)
        before = end is None or time < end or (self.with_end and time == end)
        return after and before


def _wrong(text: str) -> EncodeError:
    return EncodeError(f"{text!r} is no range of times; write [now(-1h)..] or [from..to]")


def _seconds(text: str) -> float:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise _wrong(text)
    return float(match[1]) * _UNITS[match[2]]


def _bound(text: str, now: float) -> float | None:
    if not text:
        return None
    if text.startswith("now(") and text.endswith(")"):
        offset = text[4:-1]
        if not offset:
            return now
        return now - _seconds(offset[1:]) if offset[0] == "-" else now + _seconds(offset)
    return NTP64.parse_rfc3339(text).as_nanos() / _NANOSECONDS
