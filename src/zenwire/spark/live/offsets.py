"""Offsets of several spools together: as Spark keeps them, and how much one micro-batch takes.

``{"fleet": {"0": 17, "id": "6f..."}}``: so many rows of that spool were read. The id tells a spool
that was made anew from the one that the offsets are of. No I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

__all__ = ["At", "Offsets", "as_json", "of_json", "share"]

_PARTITION: Final = "0"


class At(NamedTuple):
    """The first offset that was not read, of which spool."""

    offset: int
    id: str


Offsets = Mapping[str, At]
"""By the spools' names."""


def as_json(offsets: Offsets) -> dict[str, Any]:
    """Spark compares the text, so the order is always the same."""
    return {
        name: {_PARTITION: offsets[name].offset, "id": offsets[name].id} for name in sorted(offsets)
    }


def of_json(said: Mapping[str, Any]) -> dict[str, At]:
    """Raises ValueError."""
    try:
        return {name: At(int(at[_PARTITION]), str(at["id"])) for name, at in said.items()}
    except (KeyError, TypeError, AttributeError) as e:
        raise ValueError(
            f"{said!r} are no offsets of format zenoh: is the checkpoint of it?"
        ) from e


def share(left: Mapping[str, int], most: int) -> dict[str, int]:
    """So much of all spools together: one of each, and the rest by how much each has left."""
    total = sum(left.values())
    if total <= most:
        return dict(left)
    # Where not even one of each has room, those that wait longest come first.
    order = sorted(left, key=lambda name: (-left[name], name))
    shares = dict.fromkeys(left, 0)
    for name in order[:most]:
        shares[name] = min(left[name], 1)
    rest, total = most - sum(shares.values()), total - sum(shares.values())
    for name in order:
        its = left[name] - shares[name]
        # Of what is still to be given, among those that still come.
        more = -(-rest * its // total) if total else 0
        shares[name] += more
        rest, total = rest - more, total - its
    return shares
