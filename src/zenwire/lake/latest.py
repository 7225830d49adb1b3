"""``latest``: the newest sample of each key, found with Arrow and NumPy. No I/O.

Samples are ordered by their HLC timestamp; one without a timestamp counts with the time when it was
received. Equal timestamps are decided by clock id, receive time, spool and offset, so that every
order of merges gives the same table.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenwire.lake.schema import LATEST

__all__ = ["merged", "newest"]

_NANO: Final = 1_000_000_000
_LEAST: Final = np.iinfo(np.int64).min


def newest(rows: pa.Table, codes: np.ndarray, keys: int) -> pa.Table:
    """The newest of ``rows`` for each of ``keys`` keys, as rows of ``latest``.

    ``codes`` numbers the key of each row. A key without rows has none in the result.
    """
    received = rows.column("received_ns").to_numpy()
    last = np.full(keys, _LEAST, np.int64)
    np.maximum.at(last, codes, received)
    chosen = _newest_at(rows, codes, keys, received)
    few = rows.take(pa.array(chosen))
    few = few.append_column("last_received_ns", pa.array(last[codes[chosen]]))
    schema = LATEST.file_schema
    return pa.table([_plain(few.column(f.name)).cast(f.type) for f in schema], schema=schema)


def merged(tables: list[pa.Table]) -> pa.Table:
    """The newest row of each key of several tables of ``latest``, sorted by key."""
    rows = pa.concat_tables(tables)
    coded = rows.column("key").combine_chunks().dictionary_encode()
    codes, words = np.asarray(coded.indices), coded.dictionary
    received = rows.column("received_ns").to_numpy()
    last = np.full(len(words), _LEAST, np.int64)
    np.maximum.at(last, codes, rows.column("last_received_ns").to_numpy())
    chosen = _newest_at(rows, codes, len(words), received)
    chosen = chosen[np.asarray(pc.array_sort_indices(words.take(pa.array(codes[chosen]))))]
    few = rows.take(pa.array(chosen))
    at = few.schema.get_field_index("last_received_ns")
    return few.set_column(at, few.schema.field(at), pa.array(last[codes[chosen]]))


def _newest_at(rows: pa.Table, codes: np.ndarray, keys: int, received: np.ndarray) -> np.ndarray:
    """Index of the newest row of each key that has rows, in the order of codes."""
    stamp = _stamps(rows.column("ntp64"), received)
    best = np.zeros(keys, np.uint64)
    np.maximum.at(best, codes, stamp)
    left = np.flatnonzero(stamp == best[codes])
    if len(left) > len(np.unique(codes[left])):
        tied = rows.take(pa.array(left))
        order = np.lexsort(
            (
                tied.column("offset").to_numpy(),
                _ranks(tied.column("spool_id")),
                received[left],
                _ranks(tied.column("clock_id")),
                codes[left],
            )
        )
        left = left[order]
        left = left[np.append(codes[left][1:] != codes[left][:-1], True)]
    return left[np.argsort(codes[left], kind="stable")]


def _stamps(ntp64: pa.ChunkedArray, received: np.ndarray) -> np.ndarray:
    """Timestamps as unsigned NTP64 numbers; receive times where there is none."""
    # NTP64 begins in 1970: a clock that is before it counts as zero.
    seconds, rest = np.divmod(np.maximum(received, 0), _NANO)
    made = (seconds.astype(np.uint64) << np.uint64(32)) | (
        (rest.astype(np.uint64) << np.uint64(32)) // np.uint64(_NANO)
    )
    if ntp64.null_count == len(ntp64):
        return np.asarray(made)
    sent = pc.fill_null(ntp64, 0).to_numpy().view(np.uint64)
    return np.asarray(np.where(np.asarray(ntp64.is_null()), made, sent))


def _ranks(column: pa.ChunkedArray) -> np.ndarray:
    """Order of texts as numbers. Null comes first."""
    order = [("", "ascending", "at_start")]
    ranks = pc.rank(_plain(column), sort_keys=order, tiebreaker="dense")
    return np.asarray(ranks)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
