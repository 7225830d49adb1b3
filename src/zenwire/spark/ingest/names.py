"""What the files of a lake are called, and which of them are put together. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["SMALL", "TARGET", "appended", "chosen", "merged", "minutes_of", "range_of", "stem_of"]

TARGET: Final = 128 << 20
"""Bytes of a file that small ones are put together to."""
SMALL: Final = 16
"""So many small files of a partition that is still written to are too many."""
_AT_ONCE: Final = 4
"""Files of the target's size that are made at once, so that nothing waits for long."""
_MINUTE: Final = 60_000_000_000
_RANGE: Final = re.compile(r"b(\d{12})(?:-b(\d{12}))?-(\d{4,})\.parquet")


def appended(batch: int, number: int) -> str:
    """A file of one micro-batch."""
    return f"b{batch:012d}-{number:04d}.parquet"


def merged(first: int, last: int, number: int) -> str:
    """A file of several, from the first to the last of them."""
    return f"b{first:012d}-b{last:012d}-{number:04d}.parquet"


def range_of(name: str) -> tuple[int, int] | None:
    """The micro-batches that the rows of a file came with; None for a file of another kind."""
    found = _RANGE.fullmatch(name)
    return None if found is None else (int(found[1]), int(found[2] or found[1]))


def chosen(sizes: Mapping[str, int], *, finished: bool, target: int = TARGET) -> list[str]:
    """Files of a partition that become fewer; none if it is well as it is."""
    small = sorted(
        name for name, size in sizes.items() if size < target // 2 and range_of(name) is not None
    )
    if len(small) < (2 if finished else SMALL):
        return []
    found: list[str] = []
    total = 0
    for name in small:
        total += sizes[name]
        if found and total > _AT_ONCE * target:
            break
        found.append(name)
    return found if len(found) > 1 else []


def stem_of(name: str) -> str:
    """What a file replaces: ``h13m47`` of ``day=2026-03-01/h13m47-b000000000012.parquet``."""
    return re.sub(r"(-b\d{12})?\.parquet$", "", name)


def minutes_of(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of time in nanoseconds as minutes since 1970, in order, those that touch put together."""
    found: list[tuple[int, int]] = []
    for first, last in sorted((a // _MINUTE, b // _MINUTE) for a, b in spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found
