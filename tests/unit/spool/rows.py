"""Rows for spools: each says which it is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from zenwire.columns.samples import SAMPLES
from zenwire.spool import LogReader, Spool

__all__ = ["losses", "numbers", "samples"]


def samples(
    ids: Iterable[int],
    *,
    size: int = 8,
    time: int | None = None,
    key: str | list[str] = "k",
    **columns: object,
) -> pa.RecordBatch:
    """Payloads begin with their number; ``time`` is that of the first, or its number."""
    found = list(ids)
    count = len(found)
    times = np.array(found, np.int64) if time is None else np.arange(time, time + count)
    given = {
        "key": pa.array([key] * count if isinstance(key, str) else key),
        "kind": pa.array(np.zeros(count, np.int8)),
        "payload": pa.array([i.to_bytes(8, "little").ljust(size, b"\xa5") for i in found]),
        "reliable": pa.array(np.ones(count, np.bool_)),
        "time": pa.array(times),
    }
    given |= {name: pa.array(c, SAMPLES.field(name).type) for name, c in columns.items()}
    arrays = [given.get(field.name, pa.nulls(count, field.type)) for field in SAMPLES]
    return pa.record_batch(arrays, schema=SAMPLES)


def numbers(log: LogReader, start: int | None = None, end: int | None = None) -> list[int]:
    """Of the rows, which are one after the other."""
    begin = log.earliest() if start is None else start
    found: list[int] = []
    at = begin
    for rows in log.read(begin, log.latest() if end is None else end):
        assert rows.first >= at
        at = rows.first + rows.batch.num_rows
        payloads = rows.batch.column("payload").to_pylist()
        found += [int.from_bytes(payload[:8], "little") for payload in payloads]
    return found


def losses(path: Path) -> list[dict[str, object]]:
    log = Spool.open(path).losses
    return [row for rows in log.read(0, log.latest()) for row in rows.batch.to_pylist()]
