"""Convert record batches of a spool into rows of ``samples`` and ``losses``.

Columns with few distinct values stay dictionary-encoded: the conversion runs once for each distinct
value, and Parquet writes the dictionary as it is. No I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenwire.columns.samples import DELETE, PUT
from zenwire.lake.schema import INSTANT, LOSSES, SAMPLES
from zenwire.wire.encoding import CUSTOM, ENCODINGS
from zenwire.wire.values import QoS, ZenohId

__all__ = ["Origin", "loss_rows", "sample_rows"]

_MICRO: Final = 1_000
_KINDS: Final = {PUT: "PUT", DELETE: "DELETE"}


class Origin(NamedTuple):
    """The spool that rows come from, and the offset of the first of them."""

    name: str
    id: str
    first: int


def sample_rows(origin: Origin, batch: pa.RecordBatch, values: pa.StructArray) -> pa.RecordBatch:
    """Rows of ``samples``, dictionary-encoded, in the order of the table's files.

    ``values`` has the fields ``json`` and ``fault`` of each payload.
    """
    encoding, schema = _encodings(batch)
    columns = {
        **_where(origin, batch.num_rows, "offset"),
        "received_at": _instants(batch.column("time")),
        "received_ns": batch.column("time"),
        "key": batch.column("key").dictionary_encode(),
        "kind": _mapped(batch.column("kind"), _KINDS.get),
        "payload": batch.column("payload"),
        "encoding": encoding,
        "encoding_schema": schema,
        "value": values.field("json"),
        "value_fault": values.field("fault"),
        "timestamp": _hlc_times(batch.column("timestamp")),
        "ntp64": batch.column("timestamp"),
        "clock_id": _ids(batch.column("timestamp_id")),
        "source_zid": _ids(batch.column("source_zid")),
        "source_eid": batch.column("source_eid"),
        "source_sn": batch.column("source_sn"),
        **_qos(batch.column("qos")),
        "reliability": _coded(batch.column("reliable").cast(pa.int32()), _RELIABILITY),
        "attachment": batch.column("attachment"),
    }
    arrays = [columns[name] for name in SAMPLES.file_schema.names]
    fields = [
        pa.field(column.name, array.type, column.nullable)
        for column, array in zip(SAMPLES.file_schema, arrays, strict=True)
    ]
    return pa.record_batch(arrays, schema=pa.schema(fields))


def loss_rows(origin: Origin, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of ``losses``."""
    columns = {
        **_where(origin, batch.num_rows, "number"),
        **{name: batch.column(name) for name in batch.schema.names},
        "source_zid": _ids(batch.column("source_zid")),
        "noticed_at": _instants(batch.column("time")),
        "until": _instants(batch.column("until")),
    }
    schema = LOSSES.file_schema
    return pa.record_batch([_plain(columns[f.name]) for f in schema], schema=schema)


def _where(origin: Origin, rows: int, position: str) -> dict[str, pa.Array]:
    """Name and id of the spool, and the offsets, of rows that follow each other."""
    zeros = pa.array(np.zeros(rows, np.int32))
    return {
        "spool": _coded(zeros, [origin.name]),
        "spool_id": _coded(zeros, [origin.id]),
        position: pa.array(np.arange(origin.first, origin.first + rows)),
    }


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _coded(indices: pa.Array, words: Sequence[str | None]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(indices, pa.array(words, pa.string()))


def _mapped(column: pa.Array, text: Callable[[Any], str | None]) -> pa.DictionaryArray:
    """Text of each distinct value. Null stays null."""
    if column.null_count == len(column):
        return _coded(pa.nulls(len(column), pa.int32()), [])
    coded = column.dictionary_encode()
    return _coded(coded.indices, [text(value) for value in coded.dictionary.to_pylist()])


def _encodings(batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
    """Encoding and its schema, each dictionary-encoded.

    A PUT without encoding has the default one, a DELETE has none. A custom encoding is sent as
    number 65535 with its whole text as schema: that text is split as its publisher wrote it.
    """
    numbers, schemas = batch.column("encoding"), batch.column("encoding_schema")
    if numbers.null_count or DELETE in batch.column("kind").unique().to_pylist():
        sent = pc.not_equal(batch.column("kind"), DELETE)
        numbers = pc.if_else(sent, pc.fill_null(numbers, 0), pa.scalar(None, pa.int32()))
    if schemas.null_count == len(schemas):
        return _mapped(numbers, _name), _coded(pa.nulls(len(schemas), pa.int32()), [])
    number, schema = numbers.dictionary_encode(), schemas.dictionary_encode()
    known, texts = number.dictionary.to_pylist(), schema.dictionary.to_pylist()
    # Each distinct pair once: a pair is the number's code, and the schema's behind it.
    width = len(texts) + 1
    pairs = _codes(number.indices).astype(np.int64) * width + _codes(schema.indices) + width + 1
    found, indices = np.unique(pairs, return_inverse=True)
    split = [
        _split(
            known[pair // width - 1] if pair >= width else None,
            texts[pair % width - 1] if pair % width else None,
        )
        for pair in found.tolist()
    ]
    at = pa.array(indices.astype(np.int32))
    names, rest = ([pair[i] for pair in split] for i in range(2))
    return _recoded(at, names), _recoded(at, rest)


def _recoded(indices: pa.Array, words: Sequence[str | None]) -> pa.Array:
    """Dictionary-encoded, with each word once and null as null."""
    return _coded(indices, words).dictionary_decode().dictionary_encode()


def _codes(indices: pa.Array) -> np.ndarray:
    return np.asarray(pc.fill_null(indices, -1))


def _name(number: int) -> str:
    if 0 <= number < len(ENCODINGS):
        return ENCODINGS[number]
    return "" if number == CUSTOM else f"unknown({number})"


def _split(number: int | None, schema: bytes | None) -> tuple[str | None, str | None]:
    text = None if schema is None else schema.decode(errors="replace")
    if number != CUSTOM or text is None:
        return None if number is None else _name(number), text
    name, behind, rest = text.partition(";")
    return name, rest if behind else None


def _instants(nanoseconds: pa.Array) -> pa.Array:
    return pa.array(np.asarray(nanoseconds) // _MICRO).cast(INSTANT)


def _hlc_times(column: pa.Array) -> pa.Array:
    """NTP64 numbers as instants, rounded down to microseconds."""
    if column.null_count == len(column):
        return pa.nulls(len(column), INSTANT)
    sent = np.asarray(pc.fill_null(column, 0)).view(np.uint64)
    fraction = (sent & np.uint64(0xFFFF_FFFF)) * np.uint64(1_000_000) >> np.uint64(32)
    micros = (sent >> np.uint64(32)) * np.uint64(1_000_000) + fraction
    return pa.array(micros.astype(np.int64), mask=np.asarray(column.is_null())).cast(INSTANT)


def _ids(column: pa.Array) -> pa.DictionaryArray:
    return _mapped(column, _id)


def _id(raw: bytes) -> str:
    """As zenoh prints it. A spool may hold bytes that are no id: those are hexadecimal."""
    try:
        return str(ZenohId(raw))
    except ValueError:
        return raw.hex()


_RELIABILITY: Final = ("BEST_EFFORT", "RELIABLE")
_ALL_QOS: Final = tuple(QoS(raw) for raw in range(64))
_PRIORITIES: Final = tuple(sorted({q.priority.name for q in _ALL_QOS}))
_CONTROLS: Final = tuple(sorted({q.congestion_control.name for q in _ALL_QOS}))
_PRIORITY: Final = np.array([_PRIORITIES.index(q.priority.name) for q in _ALL_QOS], np.int32)
_CONTROL: Final = np.array([_CONTROLS.index(q.congestion_control.name) for q in _ALL_QOS], np.int32)
_EXPRESS: Final = np.array([q.express for q in _ALL_QOS])


def _qos(column: pa.Array) -> dict[str, pa.Array]:
    """A message without QoS has the default one."""
    raw = np.asarray(pc.fill_null(column, QoS().raw)) & 63
    return {
        "priority": _coded(pa.array(_PRIORITY[raw]), _PRIORITIES),
        "congestion_control": _coded(pa.array(_CONTROL[raw]), _CONTROLS),
        "express": pa.array(_EXPRESS[raw]),
    }
