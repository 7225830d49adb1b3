"""What could not be kept, as rows: ``losses`` of a spool. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

__all__ = ["KINDS", "LOSSES", "Loss", "Losses", "rows_of"]

KINDS: Final = ("overflow", "session", "link", "source", "recorder", "damage", "retention")
"""``overflow``: no room to wait for the disk, or no disk; ``session``: the recorder lost one;
``link``: one that is connected has dropped frames; ``source``: a gap in a publisher's numbers;
``recorder``: it ended without closing the spool; ``damage``: rows of the spool that are broken;
``retention``: removed before a registered reader had read them."""

LOSSES: Final = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("count", pa.int64()),
        pa.field("bytes", pa.int64()),
        pa.field("source_zid", pa.binary()),
        pa.field("source_eid", pa.int64()),
        pa.field("from_sn", pa.int64()),
        pa.field("to_sn", pa.int64()),
        pa.field("time", pa.int64(), nullable=False),
        pa.field("until", pa.int64(), nullable=False),
    ]
)
"""``offset`` is that of the first sample after the loss; ``count`` and ``bytes`` are null where
nobody can know them; ``time`` to ``until`` is when it was noticed, in nanoseconds since 1970."""

_MANY: Final = 4096
"""Rows that may wait; further ones are put together by kind and reason."""


@dataclass(slots=True)
class Loss:
    """A row of ``losses``."""

    kind: str
    reason: str
    offset: int
    time: int
    count: int | None = None
    size: int | None = None
    source_zid: bytes | None = None
    source_eid: int | None = None
    from_sn: int | None = None
    to_sn: int | None = None
    until: int | None = None


class Losses:
    """Those that wait to be written. What is of one kind and reason, at one offset, is one row."""

    def __init__(self) -> None:
        self._rows: dict[object, Loss] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, loss: Loss) -> None:
        key: object = loss.kind, loss.reason
        if len(self._rows) < _MANY:
            key = (*key, loss.offset, loss.source_zid, loss.source_eid, loss.from_sn)  # type: ignore[misc] # the tuple above
        known = self._rows.get(key)
        until = loss.time if loss.until is None else loss.until
        if known is None:
            loss.until = until
            self._rows[key] = loss
            return
        known.count = _sum(known.count, loss.count)
        known.size = _sum(known.size, loss.size)
        known.until = max(until, known.until or 0)
        if known.from_sn != loss.from_sn:
            # Several gaps in one row: their numbers are not one range any more.
            known.from_sn = known.to_sn = None
            known.source_zid = known.source_eid = None

    def take(self) -> list[Loss]:
        """All, and then there are none."""
        found, self._rows = list(self._rows.values()), {}
        return found


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def rows_of(losses: Iterable[Loss]) -> pa.RecordBatch:
    """As Arrow."""
    rows = list(losses)
    names = ["size" if name == "bytes" else name for name in LOSSES.names]
    columns = [[getattr(loss, name) for loss in rows] for name in names]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, LOSSES, strict=True)]
    return pa.record_batch(arrays, schema=LOSSES)
