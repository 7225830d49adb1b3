"""``key_stats``: counts of each key in windows of ten seconds, found with Arrow and NumPy. No I/O.

Partial results add up, whatever ranges the rows came in. ``counts`` has how many samples, bytes, and
gaps or latencies fell into which bin of which window. ``segments`` has the first and the last
receive time of each key in a run of rows: the gaps between runs are found when they are merged.

Bins are 2 % wide, so a percentile is right within 1 % of its value.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenwire.lake.schema import BINS, INSTANT, KEY_STATS, PERCENTILES

__all__ = ["COUNTS", "SEGMENTS", "WINDOW", "counted", "merged", "value_of_bin"]

WINDOW: Final = 10
"""Seconds of a window."""
BASE: Final = 1e-6
"""Seconds: shorter times are in bin 0."""
WIDTH: Final = 1.02
"""Each bin ends at this multiple of the end of the one before."""
MESSAGE, GAP, LATENCY = 0, 1, 2
COUNTS: Final = pa.schema(
    [
        ("key", pa.string()),
        ("start", pa.int64()),
        ("what", pa.int8()),
        ("bin", pa.int32()),
        ("n", pa.int64()),
        ("bytes", pa.int64()),
    ]
)
"""``start`` in seconds since 1970, ``what`` is MESSAGE, GAP or LATENCY."""
SEGMENTS: Final = pa.schema([("key", pa.string()), ("first", pa.int64()), ("last", pa.int64())])
"""Receive times in nanoseconds since 1970; rows of a spool in the order of their offsets."""
_SPAN: Final = WINDOW * 1_000_000_000
_PERCENTILES: Final = np.array([0.5, 0.9, 0.99])
_DENSE: Final = 1 << 22
"""Combinations of window and bin up to which counting uses an array instead of sorting."""


def counted(rows: pa.Table, codes: np.ndarray, keys: pa.Array) -> tuple[pa.Table, pa.Table]:
    """COUNTS and SEGMENTS of rows of ``samples`` that follow each other in a spool.

    ``codes`` numbers the key of each row, ``keys`` has the keys by these numbers.
    """
    received = rows.column("received_ns").to_numpy()
    small = codes.astype(np.uint16) if len(keys) < 1 << 16 else codes
    order = np.argsort(small, kind="stable")
    codes, received = codes[order], received[order]
    new_key = np.append(True, codes[1:] != codes[:-1])
    start = received // _SPAN
    new_window = new_key | np.append(True, start[1:] != start[:-1])
    begins = np.flatnonzero(new_window)
    window = np.cumsum(new_window) - 1
    sizes = _sizes(rows.column("payload"))[order]
    numbers = np.arange(len(begins))
    bounds = np.append(begins, len(codes))
    parts = [_part(numbers, MESSAGE, 0, np.diff(bounds), np.add.reduceat(sizes, begins))]
    after = np.flatnonzero(~new_key)
    gaps = np.maximum(received[after] - received[after - 1], 0) / 1e9
    parts.append(_binned(window[after], len(begins), GAP, gaps))
    stamped = rows.column("timestamp")
    if stamped.null_count < len(stamped):
        have = np.asarray(stamped.is_valid())[order]
        late = pc.subtract(rows.column("received_at").cast(pa.int64()), stamped.cast(pa.int64()))
        seconds = pc.fill_null(late, 0).to_numpy()[order][have] / 1e6
        parts.append(_binned(window[have], len(begins), LATENCY, seconds))
    flat = np.concatenate(parts, axis=1)
    at = begins[flat[0]]
    counts = pa.table(
        [
            keys.take(pa.array(codes[at])),
            pa.array(start[at] * WINDOW),
            pa.array(flat[1].astype(np.int8)),
            pa.array(flat[2].astype(np.int32)),
            pa.array(flat[3]),
            pa.array(flat[4]),
        ],
        schema=COUNTS,
    )
    firsts = np.flatnonzero(new_key)
    lasts = np.append(firsts[1:], len(codes)) - 1
    highest = np.maximum.reduceat(received, firsts)
    segments = pa.table(
        [keys.take(pa.array(codes[lasts])), pa.array(received[firsts]), pa.array(highest)],
        schema=SEGMENTS,
    )
    return counts, segments


def _sizes(payloads: pa.ChunkedArray) -> np.ndarray:
    sizes = pc.fill_null(pc.binary_length(payloads), 0)
    return np.asarray(sizes).astype(np.int64)


def _part(
    window: np.ndarray, what: int, bins: np.ndarray | int, n: np.ndarray, size: np.ndarray | int
) -> np.ndarray:
    """Rows of counts: window number, what, bin, n, bytes."""
    made = np.empty((5, len(window)), np.int64)
    made[0], made[1], made[2], made[3], made[4] = window, what, bins, n, size
    return made


def _binned(window: np.ndarray, windows: int, what: int, seconds: np.ndarray) -> np.ndarray:
    """How many values fell into which bin of which window."""
    if not len(window):
        return _part(window[:0], what, 0, window[:0], 0)
    bins = bin_of(seconds)
    low = int(bins.min())
    width = int(bins.max()) - low + 1
    both = window * width + (bins - low)
    if windows * width <= _DENSE:
        n = np.bincount(both)
        found = np.flatnonzero(n)
        n = n[found]
    else:
        found, n = np.unique(both, return_counts=True)
    return _part(found // width, what, found % width + low, n, 0)


def bin_of(seconds: np.ndarray) -> np.ndarray:
    """Number of the bin of each value. Negative values have negative bins."""
    magnitude = np.abs(seconds)
    ratio = np.ceil(np.log(np.maximum(magnitude, BASE) / BASE) / math.log(WIDTH))
    return np.where(magnitude <= BASE, 0.0, np.sign(seconds) * ratio).astype(np.int64)


def value_of_bin(bins: np.ndarray) -> np.ndarray:
    """Seconds: the middle of each bin."""
    value = BASE * np.power(WIDTH, np.abs(bins) - 0.5)
    return np.where(bins == 0, 0.0, np.sign(bins) * value)


def merged(
    before: list[pa.Table], counts: list[pa.Table], segments: list[pa.Table], seen: pa.Table
) -> pa.Table:
    """Windows of ``key_stats``: those of ``before``, with partial results added. Sorted.

    ``seen`` has the columns ``key`` and ``last_received_ns``: the newest receive time of each key
    before the first segment.
    """
    flat = [*counts, _gaps_between(segments, seen), *map(_flattened, before)]
    summed = (
        pa.concat_tables(flat)
        .group_by(["start", "key", "what", "bin"])
        .aggregate([("n", "sum"), ("bytes", "sum")])
        .sort_by([(name, "ascending") for name in ("start", "key", "what", "bin")])
    )
    return _nested(summed)


def _gaps_between(segments: list[pa.Table], seen: pa.Table) -> pa.Table:
    """The gap before the first sample of each segment, counted in that sample's window."""
    rows = pa.concat_tables([SEGMENTS.empty_table(), *segments])
    if not rows.num_rows:
        return COUNTS.empty_table()
    known = seen.filter(pc.is_in(seen.column("key"), value_set=rows.column("key").unique()))
    last = known.column("last_received_ns")
    rows = pa.concat_tables([pa.table([known.column("key"), last, last], schema=SEGMENTS), rows])
    coded = rows.column("key").combine_chunks().dictionary_encode()
    codes = np.asarray(coded.indices)
    first, end = rows.column("first").to_numpy(), rows.column("last").to_numpy()
    # Segments are in arrival order, even if clocks jump. The entries of `seen` precede them
    # and have no gap of their own.
    own = np.arange(len(codes)) >= known.num_rows
    order = np.argsort(codes, kind="stable")
    codes, first, end, own = codes[order], first[order], end[order], own[order]
    same = np.flatnonzero((codes[1:] == codes[:-1]) & own[1:]) + 1
    reached = _running_max(end, codes)
    gaps = np.maximum(first[same] - reached[same - 1], 0) / 1e9
    return pa.table(
        [
            coded.dictionary.take(pa.array(codes[same])),
            pa.array(first[same] // _SPAN * WINDOW),
            pa.array(np.full(len(same), GAP, np.int8)),
            pa.array(bin_of(gaps).astype(np.int32)),
            pa.array(np.ones(len(same), np.int64)),
            pa.array(np.zeros(len(same), np.int64)),
        ],
        schema=COUNTS,
    )


def _running_max(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The greatest value so far within each run of equal codes."""
    # Codes ascend, so a step larger than the spread of the values separates the runs.
    low = values.min()
    spread = int(values.max() - low) + 1
    if spread < (1 << 62) // (int(codes[-1]) + 1):
        lifted = (values - low) + codes.astype(np.int64) * spread
        reached: np.ndarray = np.maximum.accumulate(lifted)
        lowered: np.ndarray = reached - codes.astype(np.int64) * spread + low
        return lowered
    begins = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    parts = np.split(values, begins[1:])
    found: np.ndarray = np.concatenate([np.maximum.accumulate(part) for part in parts])
    return found


def _flattened(windows: pa.Table) -> pa.Table:
    """Windows of the table as COUNTS."""
    starts = pa.array(windows.column("window_start").cast(pa.int64()).to_numpy() // 1_000_000)
    keys = windows.column("key").combine_chunks()
    zeros = np.zeros(windows.num_rows, np.int64)
    found = [
        pa.table(
            [
                keys,
                starts,
                pa.array(zeros.astype(np.int8)),
                pa.array(zeros.astype(np.int32)),
                windows.column("messages"),
                windows.column("bytes"),
            ],
            schema=COUNTS,
        )
    ]
    for what, name in ((GAP, "gap_bins"), (LATENCY, "latency_bins")):
        lists = windows.column(name).combine_chunks()
        at, flat = pc.list_parent_indices(lists), pc.list_flatten(lists)
        found.append(
            pa.table(
                [
                    keys.take(at),
                    starts.take(at),
                    pa.array(np.full(len(flat), what, np.int8)),
                    flat.field("bin"),
                    flat.field("n"),
                    pa.array(np.zeros(len(flat), np.int64)),
                ],
                schema=COUNTS,
            )
        )
    return pa.concat_tables(found)


def _nested(summed: pa.Table) -> pa.Table:
    """Sorted COUNTS as windows of the table."""
    start = summed.column("start").to_numpy()
    coded = summed.column("key").combine_chunks().dictionary_encode()
    codes, what = np.asarray(coded.indices), summed.column("what").to_numpy()
    bins, n = summed.column("bin").to_numpy(), summed.column("n_sum").to_numpy()
    new = np.append(True, (start[1:] != start[:-1]) | (codes[1:] != codes[:-1]))
    begins, window = np.flatnonzero(new), np.cumsum(new) - 1
    messages = np.zeros(len(begins), np.int64)
    size = np.zeros(len(begins), np.int64)
    own = what == MESSAGE
    messages[window[own]] = n[own]
    size[window[own]] = summed.column("bytes_sum").to_numpy()[own]
    begin = start[begins] * 1_000_000
    columns: dict[str, pa.Array] = {
        "key": coded.dictionary.take(pa.array(codes[begins])),
        "window_start": pa.array(begin).cast(INSTANT),
        "window_end": pa.array(begin + WINDOW * 1_000_000).cast(INSTANT),
        "messages": pa.array(messages),
        "bytes": pa.array(size),
        "rate": pa.array(messages / WINDOW),
    }
    for kind, name in ((GAP, "gap"), (LATENCY, "latency")):
        some = what == kind
        columns[name] = _percentiles(window[some], bins[some], n[some], len(begins))
        columns[f"{name}_bins"] = _lists(window[some], bins[some], n[some], len(begins))
    schema = KEY_STATS.file_schema
    return pa.table([columns[field.name] for field in schema], schema=schema)


def _offsets(window: np.ndarray, windows: int) -> np.ndarray:
    offsets = np.zeros(windows + 1, np.int32)
    np.cumsum(np.bincount(window, minlength=windows), out=offsets[1:])
    return offsets


def _lists(window: np.ndarray, bins: np.ndarray, n: np.ndarray, windows: int) -> pa.Array:
    pairs = pa.StructArray.from_arrays(
        [pa.array(bins.astype(np.int32)), pa.array(n)], fields=list(BINS.value_type)
    )
    return pa.ListArray.from_arrays(pa.array(_offsets(window, windows)), pairs, type=BINS)


def _percentiles(window: np.ndarray, bins: np.ndarray, n: np.ndarray, windows: int) -> pa.Array:
    """Nearest rank of each window. A window without values has null."""
    offsets = _offsets(window, windows)
    total = np.add.reduceat(np.append(n, 0), offsets[:-1]) if windows else np.zeros(0, np.int64)
    empty = offsets[1:] == offsets[:-1]
    total[empty] = 0
    # Ranks of one window lie between the sums before it and behind it.
    before = np.concatenate([[0], np.cumsum(total)])[:-1]
    reached = np.cumsum(n)
    rank = before[:, None] + np.maximum(np.ceil(total[:, None] * _PERCENTILES), 1)
    at = np.minimum(np.searchsorted(reached, rank), max(len(bins) - 1, 0))
    values = value_of_bin(bins)[at] if len(bins) else np.zeros(rank.shape)
    flat = pa.array(values[~empty].reshape(-1))
    sizes = np.where(empty, 0, len(_PERCENTILES)).astype(np.int32)
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(bounds), flat, type=PERCENTILES, mask=pa.array(empty))
