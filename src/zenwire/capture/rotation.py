"""Files that continue one another, as those of a rotating capture do: which comes when."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from zenwire.capture import kernels as k
from zenwire.capture.records import Part, RecordReader

__all__ = ["Turn", "check", "first_time", "in_turn"]

_HEAD: Final = 4096


class Turn(NamedTuple):
    """A file by when it comes: the time of its first packet in nanoseconds, then its name."""

    time: int
    path: str


def check(path: str) -> str | None:
    """Raises CaptureError for what is no capture or cannot be read; gives its compression."""
    reader = RecordReader(path, window=_HEAD)
    try:
        reader.begin()
    finally:
        reader.close()
    return reader.compression


def first_time(path: str) -> int | None:
    """Of the first packet that is there, in nanoseconds. Raises CaptureError for no capture."""
    reader = RecordReader(Part(path, growing=True), window=_HEAD)
    for records in reader:
        if records.count:
            reader.close()
            return int(records.table[k.R_TIME, 0])
    return None


def in_turn(paths: Iterable[str]) -> list[Turn]:
    """The files that hold a packet, one after the other. Raises CaptureError."""
    found = ((first_time(path), path) for path in paths)
    return sorted(Turn(time, path) for time, path in found if time is not None)
