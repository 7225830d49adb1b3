"""Numbers of samples: 32 bits that start at 0, and at 0 again after the last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["SN_MAX", "between", "in_order", "is_after", "next_sn", "sn_range", "sn_text"]

SN_MAX: Final = 2**32 - 1
_HALF: Final = SN_MAX // 2


def next_sn(sn: int) -> int:
    """The number after another."""
    return sn + 1 & SN_MAX


def is_after(sn: int, other: int) -> bool:
    """Whether a number is later: less than half of them away."""
    return 0 < (sn - other & SN_MAX) <= _HALF


def between(last: int, sn: int) -> int:
    """How many numbers there are from one to another, without both."""
    return sn - last - 1 & SN_MAX


def in_order(numbers: Iterable[int]) -> list[int]:
    """Numbers of which none is too far away from the others."""
    found = list(numbers)
    if not found:
        return found
    some = found[0] - _HALF
    return sorted(found, key=lambda sn: sn - some & SN_MAX)


def sn_text(start: int | None, end: int | None) -> str:
    """As ``_sn`` of a query: both are included, None is no bound."""
    return f"{'' if start is None else start}..{'' if end is None else end}"


def sn_range(text: str) -> tuple[int | None, int | None] | None:
    """From ``_sn`` of a query: None if it asks for all there are.

    A bound that is no number is none; one number alone is both.
    """
    first, dots, rest = text.partition("..")
    start = _number(first)
    end = _number(rest.partition("..")[0]) if dots else start
    return None if start is None and end is None else (start, end)


def _number(text: str) -> int | None:
    digits = text.removeprefix("+")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10):
        return None
    number = int(digits)
    return number if number <= SN_MAX else None
