"""The manifest: what a spool is, in JSON that a person can read. No I/O.

It is replaced as a whole, never changed. Which segments there are and who wrote them last stands
there; how far the last one goes stands in its index, where it changes several times a second.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

__all__ = ["FORMAT", "LOGS", "Manifest", "ManifestFault", "Segment", "time_of", "time_text"]

FORMAT: Final = "zenwire spool 1"
LOGS: Final = ("samples", "losses")
_NANO: Final = 1_000_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_OFFSET_MAX: Final = (1 << 63) - 1


class ManifestFault(ValueError):  # noqa: N818 - becomes SpoolDamaged, which knows the file
    """Text that is no manifest."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Offsets from ``first`` up to ``end``, which is None while it is being written.

    ``bytes`` are those of its data, ``time_min`` and ``time_max`` those of its rows (None if it has
    none, or is being written), ``note`` what happened to it.
    """

    first: int
    end: int | None = None
    bytes: int = 0
    time_min: int | None = None
    time_max: int | None = None
    note: str = ""

    @property
    def stem(self) -> str:
        return f"{self.first:020d}"

    @property
    def data(self) -> str:
        """The name of its file of Arrow record batches."""
        return f"{self.stem}.arrow"

    @property
    def index(self) -> str:
        """The name of its index."""
        return f"{self.stem}.index"


@dataclass(frozen=True, slots=True)
class Manifest:
    """``writer`` is the last one, ``closed`` when it closed the spool: None while it writes.

    ``logs`` are the segments of ``samples`` and ``losses``, in order; ``next`` is the offset with
    which the segment after them begins, which counts where there are none.
    """

    name: str
    id: str
    created: int
    writer: str = ""
    closed: int | None = None
    logs: Mapping[str, tuple[Segment, ...]] = field(default_factory=dict)
    next: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)

    def with_log(self, log: str, segments: Sequence[Segment], after: int) -> Manifest:
        """The same with other segments."""
        logs, following = {**self.logs, log: tuple(segments)}, {**self.next, log: after}
        return replace(self, logs=logs, next=following)

    def to_text(self) -> str:
        """A line for each segment: there may be thousands."""
        said = {
            "format": FORMAT,
            "name": self.name,
            "id": self.id,
            "created": time_text(self.created),
            "writer": self.writer,
            "closed": None if self.closed is None else time_text(self.closed),
            "settings": dict(self.settings),
            "next": dict(self.next),
        }
        parts = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in said.items()]
        for log in LOGS:
            rows = [f"\n    {json.dumps(_said(segment))}" for segment in self.logs.get(log, ())]
            parts.append(f'  "{log}": [{",".join(rows)}]')
        return "{\n" + ",\n".join(parts) + "\n}\n"

    @classmethod
    def of_text(cls, text: str | bytes) -> Manifest:
        """Raises ManifestFault."""
        try:
            said = json.loads(text)
        except (ValueError, RecursionError) as e:
            raise ManifestFault(f"it is no JSON ({e})") from None
        if not isinstance(said, dict) or said.get("format") != FORMAT:
            found = said.get("format") if isinstance(said, dict) else None
            raise ManifestFault(f"its format is {found!r}, not {FORMAT!r}")
        try:
            closed = said["closed"]
            return cls(
                _text(said["name"]),
                _text(said["id"]),
                time_of(said["created"]),
                _text(said["writer"]),
                None if closed is None else time_of(closed),
                {log: _segments(said[log]) for log in LOGS},
                {log: _offset(said["next"][log]) for log in LOGS},
                dict(said["settings"]),
            )
        except (KeyError, TypeError, ValueError) as e:
            raise ManifestFault(f"it has no good {e}" if isinstance(e, KeyError) else str(e)) from e


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _offset(value: object) -> int:
    if type(value) is not int or not 0 <= value <= _OFFSET_MAX:
        raise ValueError(f"{value!r} is no offset")
    return value


def _said(segment: Segment) -> dict[str, Any]:
    said: dict[str, Any] = {
        "file": segment.data,
        "first": segment.first,
        "end": segment.end,
        "bytes": segment.bytes,
        "from": None if segment.time_min is None else time_text(segment.time_min),
        "to": None if segment.time_max is None else time_text(segment.time_max),
    }
    return said | {"note": segment.note} if segment.note else said


def _segments(rows: object) -> tuple[Segment, ...]:
    if not isinstance(rows, list):
        raise TypeError("segments are a list")
    found: list[Segment] = []
    before = 0
    for number, row in enumerate(rows):
        first, end = row["first"], row["end"]
        if type(first) is not int or not before <= first <= _OFFSET_MAX:
            raise ValueError(f"segment {number} begins at {first!r}, before offset {before}")
        if end is None:
            if number + 1 != len(rows):
                raise ValueError(f"segment {number} has no end, and is not the last")
        elif type(end) is not int or not first <= end <= _OFFSET_MAX:
            raise ValueError(f"segment {number} ends at {end!r}, and begins at {first}")
        else:
            before = end
        size = row["bytes"]
        if type(size) is not int or size < 0:
            raise ValueError(f"segment {number} has {size!r} bytes")
        low, high = (None if row[name] is None else time_of(row[name]) for name in ("from", "to"))
        found.append(Segment(first, end, size, low, high, _text(row.get("note", ""))))
    return tuple(found)


def time_text(nanoseconds: int) -> str:
    """In UTC, with all nine digits; a time that no calendar has is its number."""
    seconds, rest = divmod(nanoseconds, _NANO)
    try:
        day = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return str(nanoseconds)
    return f"{day:%Y-%m-%dT%H:%M:%S}.{rest:09d}Z" if day.year >= 1000 else str(nanoseconds)


def time_of(text: object) -> int:
    """Nanoseconds since 1970 of what ``time_text`` wrote. Raises ValueError, TypeError."""
    said = _text(text)
    if said.lstrip("-").isdigit():
        return int(said)
    day, _, digits = said.removesuffix("Z").partition(".")
    since = datetime.fromisoformat(day).replace(tzinfo=UTC) - _EPOCH
    if digits and not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"{said!r} is no time")
    return (since.days * 86_400 + since.seconds) * _NANO + int(digits.ljust(9, "0")[:9] or "0")
