"""Rows of ``samples`` as files have them: in the order of keys and times, words as numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["SPARK", "TOGETHER", "by_key", "in_order", "new_file", "with_words"]

TOGETHER: Final = 96 << 20
"""Bytes of rows that are sorted and written at once."""
SPARK: Final = b"org.apache.spark.sql.parquet.row.metadata"
"""Where a file of Parquet tells Spark its columns."""
_WORDS: Final = (
    "spool",
    "kind",
    "encoding",
    "schema",
    "priority",
    "congestion_control",
    "reliability",
)
_EACH_ITS_OWN: Final = {"offset", "payload", "ntp64", "source_sn"}
"""Columns of which no two rows are the same: to look for words in them takes half of the time."""
_RISING: Final = {"offset"}
_LOOKED_AT: Final = 64
_OF_EACH: Final = 4096
"""Payloads, and bytes of each, by which it is found out whether they get smaller."""
_AS_LARGE: Final = 0.95
"""Of its size: what zstd leaves of a payload that is not worth its time."""


def by_key(
    rows: pa.RecordBatch, place: Callable[[str], str] = lambda _: ""
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Which row comes when, the numbers of keys in that order, and the places by these numbers.

    Keys are ordered by their place first.
    """
    keys = rows.column("key").dictionary_encode()
    words: list[str] = keys.dictionary.to_pylist()
    places = [place(word) for word in words]
    order = sorted(range(len(words)), key=lambda i: (places[i], words[i]))
    rank = np.empty(len(words), np.uint16 if len(words) < 1 << 16 else np.int64)
    rank[order] = np.arange(len(words))
    codes = rank[np.asarray(keys.indices)]
    times = np.asarray(rows.column("time"))
    if np.all(times[1:] >= times[:-1]):
        # The usual case, and numbers of 16 bits are sorted in no time.
        found = np.argsort(codes, kind="stable")
    else:
        found = np.lexsort((times, codes))
    return found, codes[found], [places[i] for i in order]


def in_order(rows: pa.RecordBatch, order: np.ndarray) -> pa.RecordBatch:
    """The rows, as ``order`` has them; columns without values are so already."""
    at = pa.array(order)
    arrays = [c if c.null_count == len(c) else c.take(at) for c in rows.columns]
    return pa.record_batch(arrays, names=rows.schema.names)


def with_words(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Words as numbers of them: so they are moved and written, and files are the same."""
    arrays = [
        column.dictionary_encode() if name in _WORDS else column
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
    ]
    return pa.record_batch(arrays, names=rows.schema.names)


def new_file(path: Path, first: pa.RecordBatch) -> pq.ParquetWriter:
    """For rows such as these. Its directory is made too. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = first.schema
    names = set(schema.names)
    file = pq.ParquetWriter(
        path,
        schema,
        compression=_compressions(first),
        store_schema=False,
        use_dictionary=sorted(names - _EACH_ITS_OWN),
        column_encoding=dict.fromkeys(sorted(names & _RISING), "DELTA_BINARY_PACKED"),
        write_statistics=sorted(names - {"payload"}),
    )
    if schema.metadata and SPARK in schema.metadata:
        file.add_key_value_metadata({SPARK.decode(): schema.metadata[SPARK].decode()})
    return file


def _compressions(rows: pa.RecordBatch) -> str | dict[str, str]:
    """For all columns, or by column: images and the like do not get smaller, but take most time."""
    if "payload" not in rows.schema.names or not _stays_as_large(rows.column("payload")):
        return "zstd"
    leaves = [
        f"{field.name}.{part.name}" if part is not field else field.name
        for field in rows.schema
        for part in (field.type if pa.types.is_struct(field.type) else [field])
    ]
    return {name: "none" if name == "payload" else "zstd" for name in leaves}


def _stays_as_large(payloads: pa.Array) -> bool:
    step = max(1, len(payloads) // _LOOKED_AT)
    some = [payloads[at].as_py() or b"" for at in range(0, len(payloads), step)]
    sample = b"".join(payload[:_OF_EACH] for payload in some)
    if len(sample) < _OF_EACH:
        return False
    return len(pa.compress(sample, "zstd", asbytes=True)) > _AS_LARGE * len(sample)
