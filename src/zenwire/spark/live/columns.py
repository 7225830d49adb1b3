"""Rows of a spool as rows of tables: the columns that ``samples`` of captures has too.

Made by Arrow where the rows are read: numbers of the wire become the protocol's words, by tables
of the few values that there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as t

from zenwire.columns.samples import DELETE, PUT
from zenwire.spark.schema import type_of
from zenwire.spool.losses import LOSSES
from zenwire.wire.encoding import CUSTOM, ENCODINGS
from zenwire.wire.values import QoS

__all__ = [
    "COLUMNS",
    "ERROR",
    "LOSS_COLUMNS",
    "loss_rows",
    "plain",
    "range_row",
    "sample_rows",
    "struct",
]

ERROR: Final = 2
"""The kind of an error reply, which no spool has."""
_TIME: Final = pa.timestamp("us", "UTC")
_SCHEMA: Final = pa.schema(
    [
        pa.field("spool", pa.string(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("time", pa.int64(), nullable=False),
        pa.field("received_at", _TIME, nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("kind", pa.string()),
        pa.field("payload", pa.binary(), nullable=False),
        pa.field("encoding", pa.string()),
        pa.field("schema", pa.string()),
        pa.field("timestamp", _TIME),
        pa.field("ntp64", pa.int64()),
        pa.field("clock_id", pa.binary()),
        pa.field("source_zid", pa.binary()),
        pa.field("source_eid", pa.int64()),
        pa.field("source_sn", pa.int64()),
        pa.field("priority", pa.string()),
        pa.field("congestion_control", pa.string()),
        pa.field("express", pa.bool_()),
        pa.field("reliability", pa.string()),
        pa.field("attachment", pa.binary()),
    ]
)
_LOSSES: Final = pa.schema(
    [
        pa.field("spool", pa.string(), nullable=False),
        pa.field("number", pa.int64(), nullable=False),
        *LOSSES,
    ]
)
_RANGES: Final = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("spool", pa.string(), nullable=False),
        pa.field("first", pa.int64(), nullable=False),
        pa.field("end", pa.int64(), nullable=False),
    ]
)
COLUMNS: Final = tuple(_SCHEMA.names)
LOSS_COLUMNS: Final = tuple(_LOSSES.names)


def struct(table: str, columns: Sequence[str]) -> t.StructType:
    """As Spark's."""
    schema = {"samples": _SCHEMA, "losses": _LOSSES, "ranges": _RANGES}[table]
    names = columns if table == "samples" else schema.names
    return t.StructType([_field(schema.field(name)) for name in names])


def _field(field: pa.Field) -> t.StructField:
    kind = t.TimestampType() if field.type == _TIME else type_of(field.type)
    return t.StructField(field.name, kind, field.nullable)


def sample_rows(
    spool: str,
    first: int,
    batch: pa.RecordBatch,
    columns: Sequence[str],
    keep: pa.Array | None,
) -> pa.RecordBatch:
    """Rows of SAMPLES, of which ``keep`` says which are wanted; their first offset is ``first``."""
    offsets = pa.array(np.arange(first, first + batch.num_rows))
    if keep is not None:
        batch, offsets = batch.filter(keep), offsets.filter(keep)
    arrays = []
    for name in columns:
        if name == "spool":
            array = _repeated(spool, batch.num_rows)
        elif name == "offset":
            array = offsets
        else:
            array = _MADE[name](batch) if name in _MADE else batch.column(name)
        arrays.append(array)
    return pa.record_batch(
        [plain(array) for array in arrays],
        schema=pa.schema([_SCHEMA.field(name) for name in columns]),
    )


def plain(array: pa.Array) -> pa.Array:
    """Without a dictionary."""
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def loss_rows(spool: str, first: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of LOSSES, with their own number."""
    numbers = pa.array(np.arange(first, first + batch.num_rows))
    arrays = [plain(_repeated(spool, batch.num_rows)), numbers, *batch.columns]
    return pa.record_batch(arrays, schema=_LOSSES)


def range_row(path: str, spool: str, first: int, end: int) -> pa.RecordBatch:
    """One row, for offsets that are to be read elsewhere."""
    return pa.record_batch([[path], [spool], [first], [end]], schema=_RANGES)


def _repeated(text: str, count: int) -> pa.Array:
    return _words(pa.array(np.zeros(count, np.int32)), [text])


def _words(indices: pa.Array, words: Iterable[str | None]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(indices, pa.array(words, pa.string()))


# Numbers as words.


def _of_values(numbers: pa.Array, word: Callable[[int], str | None]) -> pa.Array:
    """Asked once for each value that occurs; null stays null."""
    found = numbers.dictionary_encode()
    return _words(found.indices, map(word, found.dictionary.to_pylist()))


def _kind(batch: pa.RecordBatch) -> pa.Array:
    words = {PUT: "PUT", DELETE: "DELETE", ERROR: "ERROR"}
    return _of_values(batch.column("kind"), words.get)


def _encoding_word(number: int) -> str:
    if 0 <= number < len(ENCODINGS):
        return ENCODINGS[number]
    return "" if number == CUSTOM else f"unknown({number})"


def _encoding(batch: pa.RecordBatch) -> pa.Array:
    """What names none has the default one; but a DELETE has none."""
    valued = pc.not_equal(batch.column("kind"), DELETE)
    absent = pc.and_(valued, batch.column("encoding").is_null())
    numbers = pc.if_else(absent, pa.scalar(0, pa.int32()), batch.column("encoding"))
    return _of_values(numbers, _encoding_word)


def _schema(batch: pa.RecordBatch) -> pa.Array:
    column = batch.column("encoding_schema")
    if column.null_count == len(column):
        return _words(pa.nulls(len(column), pa.int32()), [])
    texts = column.dictionary_encode()
    return _words(
        texts.indices, [data.decode(errors="replace") for data in texts.dictionary.to_pylist()]
    )


def _micros(nanoseconds: pa.Array) -> pa.Array:
    return pa.array(np.asarray(nanoseconds) // 1000).cast(_TIME)


def _timestamp(batch: pa.RecordBatch) -> pa.Array:
    """As ``hlc_time`` does."""
    column = batch.column("timestamp")
    filled = np.asarray(pc.fill_null(column, 0)).view(np.uint64)
    fraction = (filled & np.uint64(0xFFFF_FFFF)) * np.uint64(1_000_000) >> np.uint64(32)
    micros = (filled >> np.uint64(32)) * np.uint64(1_000_000) + fraction
    valid = np.asarray(column.is_null())
    return pa.array(micros.astype(np.int64), mask=valid).cast(_TIME)


def _qos(get: Callable[[QoS], str]) -> Callable[[pa.RecordBatch], pa.Array]:
    """What has no QoS has the default one."""
    found = [get(QoS(raw)) for raw in range(64)]
    words = list(dict.fromkeys(found))
    numbers = np.array([words.index(word) for word in found], np.int32)

    def made(batch: pa.RecordBatch) -> pa.Array:
        return _words(pa.array(numbers[_qos_raw(batch)]), words)

    return made


def _qos_raw(batch: pa.RecordBatch) -> np.ndarray:
    return np.asarray(pc.fill_null(batch.column("qos"), QoS().raw)) & 63


def _express(batch: pa.RecordBatch) -> pa.Array:
    return pa.array(np.array([QoS(raw).express for raw in range(64)])[_qos_raw(batch)])


def _reliability(batch: pa.RecordBatch) -> pa.Array:
    return _words(batch.column("reliable").cast(pa.int32()), ["BEST_EFFORT", "RELIABLE"])


_MADE: Final[dict[str, Callable[[pa.RecordBatch], pa.Array]]] = {
    "received_at": lambda batch: _micros(batch.column("time")),
    "kind": _kind,
    "encoding": _encoding,
    "schema": _schema,
    "timestamp": _timestamp,
    "ntp64": lambda batch: batch.column("timestamp"),
    "clock_id": lambda batch: batch.column("timestamp_id"),
    "priority": _qos(lambda q: q.priority.name),
    "congestion_control": _qos(lambda q: q.congestion_control.name),
    "express": _express,
    "reliability": _reliability,
}
