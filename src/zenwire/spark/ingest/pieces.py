"""What ``latest`` and ``key_stats`` need of many rows, as few rows: found by Arrow and NumPy.

A piece is some rows of a spool that follow each other. Of each of its keys there are the counts of
its windows, without the gap before its first row, and when its first and its last row came: gaps
between pieces are found from those.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenwire.spark.ingest.key_stats import (
    BASE,
    FIRST,
    GAP,
    LATE,
    MESSAGE,
    SEEN,
    SPAN,
    WIDTH,
    WINDOW,
)

__all__ = ["PIECES", "newest", "pieces"]

_PART: Final = pa.struct(
    [("what", pa.int32()), ("bin", pa.int32()), ("n", pa.int64()), ("bytes", pa.int64())]
)
PIECES: Final = pa.schema(
    [
        ("key", pa.string()),
        ("kind", pa.int32()),
        ("time", pa.int64()),
        ("spool", pa.string()),
        ("offset", pa.int64()),
        ("start", pa.timestamp("us", "UTC")),
        ("parts", pa.list_(_PART)),
    ]
)
_NANO: Final = 1_000_000_000
_LEAST: Final = np.iinfo(np.int64).min


def _begins(codes: np.ndarray) -> np.ndarray:
    """Where each run of the same begins."""
    return np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))


def _int64(column: pa.Array, null: int) -> np.ndarray:
    whole = column.cast(pa.int64()) if column.type != pa.int64() else column
    return np.asarray(pc.fill_null(whole, null))


# latest.


def newest(rows: pa.RecordBatch, codes: np.ndarray) -> np.ndarray:
    """Which rows may be the newest of their keys, and which were received last.

    ``rows`` are sorted by key; ``codes`` tell keys apart. The order is that of ``latest``.
    """
    if not len(codes):
        return np.empty(0, np.int64)
    begins = _begins(codes)
    group = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(codes))))
    time = _int64(rows.column("time"), _LEAST)
    last = _best(group, [time])
    stamped = pc.coalesce(rows.column("timestamp"), rows.column("received_at"))
    order = [_int64(stamped, _LEAST)]
    if rows.column("ntp64").null_count < len(codes):
        order += [_int64(rows.column("ntp64"), _LEAST), _ranks(rows.column("clock_id"))]
    order += [time, _int64(rows.column("offset"), _LEAST)]
    return np.unique(np.concatenate([last, _best(group, order)]))


def _ranks(column: pa.Array) -> np.ndarray:
    found = column.dictionary_encode()
    words: list[bytes] = found.dictionary.to_pylist()
    rank = {word: i for i, word in enumerate(sorted(words))}
    ranks = np.array([rank[word] for word in words] or [0], np.int64)
    indices = np.asarray(pc.fill_null(found.indices, 0))
    return np.where(np.asarray(column.is_null()), -1, ranks[indices])


def _best(group: np.ndarray, order: list[np.ndarray]) -> np.ndarray:
    """The row of each group whose values are greatest, the first ones first."""
    left = np.arange(len(group))
    for values in order:
        begins = _begins(group[left])
        if len(begins) == len(left):
            break
        greatest = np.maximum.reduceat(values[left], begins)
        lengths = np.diff(np.append(begins, len(left)))
        left = left[values[left] == np.repeat(greatest, lengths)]
    lasts: np.ndarray = np.append(_begins(group[left])[1:], len(left)) - 1
    return np.take(left, lasts)


# key_stats.


def pieces(rows: pa.RecordBatch, codes: np.ndarray) -> pa.RecordBatch:
    """``PIECES`` of rows that are sorted by key and time, and of one spool."""
    time = np.asarray(rows.column("time"))
    begins = _begins(codes)
    ends = np.append(begins[1:], len(codes)) - 1
    start = time // (SPAN * _NANO) * SPAN
    windows = _runs(codes, start)
    window = np.repeat(np.arange(len(windows)), np.diff(np.append(windows, len(codes))))
    sizes = np.asarray(pc.fill_null(pc.binary_length(rows.column("payload")), 0)).astype(np.int64)
    count = np.diff(np.append(windows, len(codes)))
    whole = np.add.reduceat(sizes, windows)
    parts = [_part(np.arange(len(windows)), MESSAGE, np.zeros(len(windows)), count, whole)]
    same = np.flatnonzero(codes[1:] == codes[:-1]) + 1
    gaps = np.maximum(time[same] - time[same - 1], 0) / 1e9
    parts.append(_binned(window[same], GAP, gaps))
    stamped = rows.column("timestamp")
    have = np.flatnonzero(np.asarray(stamped.is_valid()))
    if len(have):
        late = _int64(rows.column("received_at"), 0)[have] - _int64(stamped, 0)[have]
        parts.append(_binned(window[have], LATE, late / 1e6))
    keys = rows.column("key")
    single = begins == ends
    return pa.concat_batches(
        [
            _made(keys.take(pa.array(windows)), WINDOW, start=start[windows], parts=parts),
            _ends(rows, begins, FIRST),
            # One row is its own last one.
            _ends(rows, ends[~single], SEEN),
        ]
    )


def _runs(codes: np.ndarray, start: np.ndarray) -> np.ndarray:
    other = (codes[1:] != codes[:-1]) | (start[1:] != start[:-1])
    return np.flatnonzero(np.append(True, other))


def _part(
    window: np.ndarray, what: int, number: np.ndarray, n: np.ndarray, size: np.ndarray
) -> np.ndarray:
    return np.stack([window, np.full(len(window), what), number, n, size]).astype(np.int64)


def _binned(window: np.ndarray, what: int, seconds: np.ndarray) -> np.ndarray:
    """How many fell into which bin; as Spark counts them in ``key_stats``."""
    magnitude = np.abs(seconds)
    ratio = np.ceil(np.log(np.maximum(magnitude, BASE) / BASE) / math.log(WIDTH))
    bins = np.where(magnitude <= BASE, 0.0, np.sign(seconds) * ratio).astype(np.int64)
    both = (window << 32) + (bins + (1 << 31))
    found, n = np.unique(both, return_counts=True)
    number = (found & 0xFFFF_FFFF) - (1 << 31)
    return _part(found >> 32, what, number, n, np.zeros(len(n)))


def _ends(rows: pa.RecordBatch, at: np.ndarray, kind: int) -> pa.RecordBatch:
    some = rows.select(["key", "time", "spool", "offset"]).take(pa.array(at))
    return _made(
        some.column("key"),
        kind,
        time=some.column("time"),
        spool=some.column("spool").cast(pa.string()),
        offset=some.column("offset"),
    )


def _made(
    keys: pa.Array,
    kind: int,
    *,
    time: pa.Array | None = None,
    spool: pa.Array | None = None,
    offset: pa.Array | None = None,
    start: np.ndarray | None = None,
    parts: list[np.ndarray] | None = None,
) -> pa.RecordBatch:
    rows = len(keys)
    given = {
        "key": keys,
        "kind": pa.array(np.full(rows, kind, np.int32)),
        "time": pa.array(np.zeros(rows, np.int64)) if time is None else time,
        "spool": pa.array([""]).take(pa.array(np.zeros(rows, np.int32)))
        if spool is None
        else spool,
        "offset": pa.array(np.zeros(rows, np.int64)) if offset is None else offset,
    }
    if start is not None:
        given["start"] = pa.array(start * 1_000_000).cast(PIECES.field("start").type)
    if parts is not None:
        given["parts"] = _lists(np.concatenate(parts, axis=1), rows)
    arrays = [given.get(f.name, pa.nulls(rows, f.type)) for f in PIECES]
    return pa.record_batch(arrays, schema=PIECES)


def _lists(flat: np.ndarray, rows: int) -> pa.Array:
    flat = flat[:, np.argsort(flat[0], kind="stable")]
    offsets = np.zeros(rows + 1, np.int32)
    np.cumsum(np.bincount(flat[0], minlength=rows), out=offsets[1:])
    columns = [
        pa.array(column).cast(field.type) for column, field in zip(flat[1:], _PART, strict=True)
    ]
    structs = pa.StructArray.from_arrays(columns, fields=list(_PART))
    return pa.ListArray.from_arrays(pa.array(offsets), structs, type=PIECES.field("parts").type)
