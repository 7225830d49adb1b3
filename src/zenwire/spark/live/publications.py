"""Rows of tables as publications: the way back from words to numbers of the wire.

The columns are those that ``samples`` has. ``key`` and ``payload`` are needed (``key`` may be an
option instead), the others are used if they are there. Where a sample was seen says nothing about
where it goes, so those columns are passed over; a column of another name is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as t

from zenwire.columns.samples import DELETE, PUT
from zenwire.wire.encoding import CUSTOM, Encoding
from zenwire.wire.values import CongestionControl, Priority, QoS

__all__ = ["Numbering", "check", "table_of"]

_TEXT: Final = (t.StringType,)
_BYTES: Final = (t.BinaryType, t.StringType)
_TAKEN: Final[dict[str, tuple[type[t.DataType], ...]]] = {
    "key": _TEXT,
    "payload": _BYTES,
    "kind": _TEXT,
    "encoding": _TEXT,
    "schema": _TEXT,
    "attachment": _BYTES,
    "timestamp": (t.TimestampType,),
    "ntp64": (t.LongType,),
    "clock_id": (t.BinaryType,),
    "priority": _TEXT,
    "congestion_control": _TEXT,
    "express": (t.BooleanType,),
    "reliability": _TEXT,
}
_PASSED_OVER: Final = frozenset(
    {"spool", "offset", "time", "received_at", "source_zid", "source_eid", "source_sn"}
)
_UNKNOWN: Final = re.compile(r"unknown\((\d{1,5})\)")
_KINDS: Final = {"PUT": PUT, "DELETE": DELETE}
_RELIABILITY: Final = {"BEST_EFFORT": False, "RELIABLE": True}


def check(schema: t.StructType, *, has_key: bool) -> None:
    """Raises ValueError for columns that cannot be published."""
    for field in schema.fields:
        allowed = _TAKEN.get(field.name)
        if allowed is None and field.name not in _PASSED_OVER:
            raise ValueError(
                f"format zenoh cannot write {field.name}; it takes {', '.join(_TAKEN)}"
            )
        if allowed is not None and not isinstance(field.dataType, allowed):
            words = " or ".join(kind.typeName() for kind in allowed)
            kind = field.dataType.simpleString()
            raise ValueError(f"column {field.name} is {words}, not {kind}")
    names = schema.names
    if "payload" not in names or ("key" not in names and not has_key):
        raise ValueError("rows need the columns key and payload; key may be an option")


class Numbering:
    """Source ids and numbers of the rows of one task, the same if it is done again.

    Rows of one priority and reliability are an entity of their own, with numbers from 0 on: the
    network keeps the order of those alone, and a receiver looks for gaps in the order. The entity
    is the number of the partition, and of the lane above bit 24; that of the default is 0.
    """

    def __init__(self, source: bytes, partition: int) -> None:
        self.source = source
        self._partition = partition
        self._counts = np.zeros(16, np.int64)

    def columns(self, qos: Any, reliable: Any) -> dict[str, pa.Array]:
        """For rows with these QoS bytes and reliabilities, in order."""
        priorities = np.asarray(qos, np.int64) & 7
        lanes = (priorities ^ int(Priority.DATA)) << 1 | ~np.asarray(reliable, np.bool_)
        numbers = np.empty(len(lanes), np.int64)
        for lane in np.unique(lanes):
            its = lanes == lane
            count = int(its.sum())
            numbers[its] = np.arange(self._counts[lane], self._counts[lane] + count)
            self._counts[lane] += count
        return {
            "source_zid": _repeated(self.source, len(lanes)),
            "source_eid": pa.array(lanes << 24 | self._partition),
            "source_sn": pa.array(numbers & 0xFFFF_FFFF),
        }


def _repeated(value: bytes, count: int) -> pa.Array:
    return pa.array([value], pa.binary()).take(pa.array(np.zeros(count, np.int32)))


def table_of(rows: pa.RecordBatch, *, key: str | None, qos: QoS, numbering: Numbering) -> pa.Table:
    """For ``put_batch``. Raises ValueError for a word that the protocol does not have."""
    count = rows.num_rows
    column = {name: rows.column(name) for name in rows.schema.names}
    kinds = _words(column.get("kind"), _KINDS, "kind", PUT, count)
    deletes = np.asarray(kinds) == DELETE
    qualities = _qos(column, qos, count)
    reliable = _words(column.get("reliability"), _RELIABILITY, "reliability", True, count)
    found: dict[str, Any] = {
        "key": pa.array([key] * count) if "key" not in column else column["key"],
        "kind": pa.array(kinds, pa.int8()),
        "payload": _bytes(column["payload"]),
        "qos": pa.array(qualities, pa.int32()),
        "reliable": pa.array(reliable, pa.bool_()),
        **numbering.columns(qualities, reliable),
    }
    if "encoding" in column:
        found |= _encodings(column["encoding"], column.get("schema"), deletes)
    if "attachment" in column:
        found["attachment"] = _bytes(column["attachment"])
    found |= _times(column, numbering.source)
    return pa.table(found)


def _bytes(column: pa.Array) -> pa.Array:
    return column.cast(pa.binary())


def _words(
    column: pa.Array | None, words: dict[str, Any], name: str, default: Any, count: int
) -> list[Any]:
    """Null is the default one."""
    if column is None:
        return [default] * count
    found = column.dictionary_encode()
    values = [_word(text, words, name) for text in found.dictionary.to_pylist()]
    return [default if i is None else values[i] for i in found.indices.to_pylist()]


def _word(text: str, words: dict[str, Any], name: str) -> Any:
    try:
        return words[text.upper()]
    except KeyError:
        raise ValueError(f"{name} is one of {', '.join(words)}, not {text!r}") from None


def _qos(column: dict[str, pa.Array], default: QoS, count: int) -> Any:
    """Each combination that occurs is made once."""
    known = ("priority", "congestion_control", "express")
    if not any(name in column for name in known):
        return np.full(count, default.raw)
    priorities = _words(
        column.get("priority"), dict(Priority.__members__), "priority", default.priority, count
    )
    controls = _words(
        column.get("congestion_control"),
        dict(CongestionControl.__members__),
        "congestion_control",
        default.congestion_control,
        count,
    )
    express = [default.express] * count
    if "express" in column:
        express = [default.express if e is None else e for e in column["express"].to_pylist()]
    made: dict[tuple[Any, ...], int] = {}
    return [
        made.get(how) or made.setdefault(how, QoS.of(*how).raw)
        for how in zip(priorities, controls, express, strict=True)
    ]


def _encodings(texts: pa.Array, schemas: pa.Array | None, deletes: Any) -> dict[str, pa.Array]:
    """Names, with a schema behind a semicolon or in a column of its own."""
    names = texts.to_pylist()
    of_schemas: Sequence[str | None] = (
        [None] * len(names) if schemas is None else schemas.to_pylist()
    )
    known: dict[tuple[str, str | None], Encoding] = {}
    numbers: list[int | None] = []
    found: list[bytes | None] = []
    for name, schema, delete in zip(names, of_schemas, deletes.tolist(), strict=True):
        if name is None or delete:
            numbers.append(None)
            found.append(None)
            continue
        encoding = known.get((name, schema))
        if encoding is None:
            encoding = known.setdefault((name, schema), _encoding(name, schema))
        numbers.append(encoding.id)
        found.append(encoding.schema or None)
    return {
        "encoding": pa.array(numbers, pa.int32()),
        "encoding_schema": pa.array(found, pa.binary()),
    }


def _encoding(name: str, schema: str | None) -> Encoding:
    """As the tables name them: empty is a custom one, ``unknown(N)`` a number without a name."""
    unknown = _UNKNOWN.fullmatch(name)
    if unknown or not name:
        number = int(unknown[1]) if unknown else CUSTOM
        return Encoding(number, (schema or "").encode())
    return Encoding.parse(f"{name};{schema}" if schema else name)


def _times(column: dict[str, pa.Array], source: bytes) -> dict[str, pa.Array]:
    """``ntp64`` and ``clock_id`` as they are; a ``timestamp`` alone is of our own clock."""
    if "ntp64" in column and "clock_id" in column:
        both = pc.and_(column["ntp64"].is_valid(), column["clock_id"].is_valid())
        return {
            "timestamp": pc.if_else(both, column["ntp64"], pa.scalar(None, pa.int64())),
            "timestamp_id": pc.if_else(both, column["clock_id"], pa.scalar(None, pa.binary())),
        }
    if "timestamp" not in column:
        return {}
    times = column["timestamp"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    absent = np.asarray(times.is_null())
    micros = np.asarray(pc.fill_null(times, 0))
    if (micros < 0).any():
        raise ValueError("a timestamp does not lie before 1970")
    seconds, rest = micros // 1_000_000, micros % 1_000_000
    # Rounded up, so that it is the same microsecond again when it is read.
    ntp64 = (seconds << 32) | -(-(rest << 32) // 1_000_000)
    ids = _repeated(source, len(micros))
    return {
        "timestamp": pa.array(ntp64, mask=absent),
        "timestamp_id": pc.if_else(times.is_valid(), ids, pa.scalar(None, pa.binary())),
    }
