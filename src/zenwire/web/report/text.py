"""Numbers, times and foreign text as people read them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

__all__ = [
    "bytes_of",
    "clock",
    "count",
    "duration",
    "number",
    "rate",
    "seconds",
    "short",
    "visible",
]

_MINUS: Final = "\N{MINUS SIGN}"
_THIN: Final = "\N{NARROW NO-BREAK SPACE}"


def number(n: int) -> str:
    """1234567 as 1,234,567."""
    return f"{n:,}".replace("-", _MINUS)


def count(n: int, one: str, many: str = "") -> str:
    """3 gaps, 1 gap."""
    return f"{number(n)} {one if n == 1 else many or one + 's'}"


def _three(value: float) -> str:
    """Three digits that matter; round numbers without a fraction."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def bytes_of(n: float) -> str:
    """Bytes with a decimal prefix."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if n < 1000 or unit == "TB":
            break
        n /= 1000
    return f"{n:.0f}{_THIN}B" if unit == "B" else f"{_three(n)}{_THIN}{unit}"


def rate(n: float, unit: str = "/s") -> str:
    """Per second, with prefix: 12.5 k/s."""
    for prefix in ("", "k", "M", "G"):
        if n < 1000 or prefix == "G":
            break
        n /= 1000
    whole = not prefix and n == int(n)
    return f"{n:.0f}{_THIN}{unit}" if whole else f"{_three(n)}{_THIN}{prefix}{unit}"


def seconds(value: float | None) -> str:
    """A duration in its unit; a dash for none."""
    if value is None:
        return "\N{EN DASH}"
    if value <= 0:
        return f"0{_THIN}s"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return _of_many(value) if value >= 120 else f"{_trim(value / size)}{_THIN}{unit}"
    return f"{value * 1e9:.0f}{_THIN}ns"


def _trim(value: float) -> str:
    text = _three(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _of_many(value: float) -> str:
    total = round(value)
    days, rest = divmod(total, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, left = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (left, "s")]
    while parts and not parts[0][0]:
        parts.pop(0)
    return " ".join(f"{n}{_THIN}{unit}" for n, unit in parts[:2] if n)


def duration(nanoseconds: int) -> str:
    """A span of time."""
    return seconds(nanoseconds / 1e9)


def clock(nanoseconds: int, *, date: bool = True, digits: int = 3) -> str:
    """UTC; years that Python does not know stay nanoseconds."""
    try:
        when = datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{nanoseconds} ns"
    fraction = f".{nanoseconds % 1_000_000_000:09d}"[: digits + 1] if digits else ""
    return f"{when:%Y-%m-%d %H:%M:%S}{fraction}" if date else f"{when:%H:%M:%S}{fraction}"


def short(node: str) -> str:
    """The beginning of an id; addresses stay whole."""
    return node if ":" in node or len(node) <= 10 else node[:8]


def visible(text: str, keep: str = _THIN) -> str:
    """Text with what cannot be seen, or changes how the rest is seen, as an escape.

    Those are controls, direction marks, what has no width, unassigned and private characters, and
    all space but the common one; ``keep`` is left, by default the space before our units.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else f"\\u{{{ord(c):x}}}" for c in text)
