"""Rows of both readers in one plain form, so that they can be compared.

From objects: a walk over the definitions that knows nothing of programs, slots or bits.
From columns: what the arrays say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zenwire.columns.layout import Form, join_name
from zenwire.columns.scan import Rows, Scan, Scanner, Spans
from zenwire.errors import DecodeError
from zenwire.wire import kinds as k
from zenwire.wire.batch import walk, walk_low_latency
from zenwire.wire.buffer import Reader
from zenwire.wire.define import BitsField, Ext, Plain, Spec, Unknown, Word, spec_of
from zenwire.wire.encoding import Encoding
from zenwire.wire.objects import OneOf, Struct, codec_of, encode
from zenwire.wire.structs import TimestampStack
from zenwire.wire.transport import InitAck, InitSyn, Join, OpenAck, OpenSyn
from zenwire.wire.values import WireExpr, ZenohId

SCANNER = Scanner()
BARE = (InitSyn, InitAck, OpenSyn, OpenAck, Join)
Row = dict[str, Any]


@dataclass
class Found:
    """What a reader makes of a batch: rows, and where it stopped."""

    rows: list[Row]
    fault: tuple[int, int] | None


def by_objects(data: bytes, *, low_latency: bool = False) -> Found:
    rows: list[Row] = []
    try:
        for located in (walk_low_latency if low_latency else walk)(data):
            spec = spec_of(type(located.message))
            row: Row = {
                "scope": spec.scope,
                "message": spec.id,
                "at": located.start,
                "end": located.end,
            }
            if not isinstance(located.message, BARE):
                row["body"] = _flatten(spec, located.message, row)
            rows.append(_sound(row))
    except DecodeError as e:
        return Found(rows, (e.fault.value, e.offset))
    return Found(rows, None)


def _flatten(spec: Spec, message: object, row: Row) -> int:
    """Adds the values of a message's fields; gives the id of its innermost body."""
    body = 0
    for e in spec.elements:
        if isinstance(e, Word):
            continue
        value = getattr(message, e.name)
        if isinstance(e, Unknown):
            row[e.name] = (row.get(e.name) or 0) + len(value) or None
        elif isinstance(e, BitsField):
            row[e.name] = value if e.type is bool else int(value)
        elif isinstance(e.kind, OneOf):
            inner = spec_of(type(value))
            body = _flatten(inner, value, row) or inner.id
        else:
            _flatten_value(e, value, e.column, row)
    return body


def _flatten_value(e: Plain | Ext, value: Any, name: str, row: Row) -> None:
    if value is None:
        return
    kind = e.kind
    if isinstance(value, WireExpr):
        row[join_name(name, "scope")] = value.scope
        row[join_name(name, "suffix")] = value.suffix.encode() or None
        row[join_name(name, "mapping")] = bool(value.mapping)
    elif isinstance(value, Encoding):
        row[name] = value.id
        row[join_name(name, "schema")] = value.schema
    elif isinstance(value, ZenohId):
        row[name] = value.raw
    elif isinstance(kind, k.OamBody):
        row[join_name(name, "value" if isinstance(value, int) else "body")] = value
    elif isinstance(kind, Struct):
        inner = spec_of(kind.cls)
        parts = [x for x in inner.elements if isinstance(x, Plain)]
        if any(isinstance(x.kind, k.Sequence) for x in parts):
            row[name] = encode(value)
            return
        for part in parts:
            _flatten_value(part, getattr(value, part.name), join_name(name, part.column), row)
    elif isinstance(value, str):
        row[name] = value.encode() or None
    elif isinstance(value, bytes | bool):
        row[name] = value
    else:
        row[name] = kind.raw(value) if isinstance(kind, k.ZValue) else int(value)


def by_columns(data: bytes, *, low_latency: bool = False) -> Found:
    buffer = np.frombuffer(data, np.uint8)
    spans = Spans(np.array([0], np.int32), np.array([len(data)], np.int32))
    (scan,) = SCANNER.scan(buffer, spans, low_latency=low_latency)
    return found_in(scan, 0)


def found_in(scan: Scan, batch: int) -> Found:
    """What a scan says of one of its batches."""
    bad = [i for i, b in enumerate(scan.bad.batch) if b == batch]
    fault = (int(scan.bad.fault[bad[0]]), int(scan.bad.offset[bad[0]])) if bad else None
    rows = [*_rows(scan, scan.transport, "transport"), *_rows(scan, scan.network, "network")]
    return Found(sorted(rows, key=lambda row: int(row["at"])), fault)


def _rows(scan: Scan, rows: Rows, scope: str) -> list[Row]:
    return [_row(scan, rows, i, scope) for i in range(rows.count)]


def _row(scan: Scan, rows: Rows, i: int, scope: str) -> Row:
    message, body = int(rows.message[i]), int(rows.body[i])
    row: Row = {
        "scope": scope,
        "message": message,
        "at": int(rows.fixed("at")[i]),
        "end": int(rows.fixed("end")[i]),
    }
    if scope == "transport" and message in {spec_of(cls).id for cls in BARE}:
        return row
    row["body"] = body
    for column in rows.layout.columns.values():
        there = int(rows.present[i]) >> column.bit & 1
        if column.form is Form.BOOL:
            row[column.name] = bool(there)
        elif there:
            row[column.name] = _value(scan, rows, i, column.form, column.slot)
            if column.name == "timestamp_stack":
                # A span of bytes as they were; the object's have the shortest integers.
                read = codec_of(TimestampStack).read
                row[column.name] = encode(read(Reader(row[column.name])))
        elif rows.layout.defaults[message, body] >> column.bit & 1:
            row[column.name] = column.default
    return _sound(row)


def _value(scan: Scan, rows: Rows, i: int, form: Form, slot: int) -> Any:
    if form is Form.INT32:
        return int(rows.int32[slot, i]) & 0xFFFF_FFFF
    if form is Form.UINT64:
        return int(rows.uint64[slot, i])
    start, length = int(rows.int32[slot, i]), int(rows.int32[slot + 1, i])
    return scan.buffer[start : start + length].tobytes()


def _sound(row: Row) -> Row:
    """Absent, False and empty text are one: what is not there is not in the row."""
    texts = ("key_suffix", "parameters")
    gone = {n for n, v in row.items() if v is None or v is False or (n in texts and not v)}
    return {name: value for name, value in row.items() if name not in gone}
