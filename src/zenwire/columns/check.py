"""Whether all rows of a table of samples can be sent: looked at before the first one is."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from zenwire.columns.samples import DELETE, PUT
from zenwire.errors import EncodeError, KeyExprError
from zenwire.keyexpr import validate
from zenwire.wire import limits

__all__ = ["check", "texts"]


def check(table: pa.Table, key: str | None) -> None:
    """Raise EncodeError or KeyExprError, naming a row, if any row cannot be sent.

    With ``key``, rows have that one, whether they say so or not.
    """
    columns = {name: table.column(name) for name in table.schema.names}
    if "payload" not in columns:
        raise EncodeError("there is no column 'payload'")
    if key is None:
        if "key" not in columns:
            raise EncodeError("there is no column 'key'")
        _check_keys(columns["key"])
    elif "key" in columns:
        same = pc.equal(texts(columns["key"]), key)
        _refuse(pc.invert(pc.fill_null(same, False)), f"the key of this publisher is {key!r}")
    _within("kind", columns, DELETE)
    _within("qos", columns, 0xFF)
    _within("encoding", columns, 0xFFFF)
    _within("source_eid", columns, 0xFFFF_FFFF)
    _within("source_sn", columns, 0xFFFF_FFFF)
    kind = columns.get("kind")
    puts = pa.scalar(True) if kind is None else pc.not_equal(pc.fill_null(kind, PUT), DELETE)
    payload = columns["payload"]
    if payload.null_count:
        _refuse(pc.and_(puts, pc.is_null(payload)), "a PUT without a payload: an empty one is b''")
    if kind is not None:
        full = pc.greater(pc.fill_null(_length(payload), 0), 0)
        _refuse(pc.and_not(full, puts), "a DELETE carries no payload")
        if "encoding" in columns:
            given = pc.fill_null(pc.not_equal(columns["encoding"].cast(pa.int64()), 0), False)
            _refuse(pc.and_not(given, puts), "a DELETE carries no encoding")
    _together(columns, "timestamp", "timestamp_id")
    _together(columns, "source_zid", "source_eid")
    _together(columns, "source_zid", "source_sn")
    _together(columns, "encoding_schema", "encoding", both=False)
    _lengths(columns, "encoding_schema", 0, limits.SCHEMA_MAX)
    for name in ("timestamp_id", "source_zid"):
        _lengths(columns, name, 1, limits.ZID_MAX)
        if name in columns and not pa.types.is_null(columns[name].type):
            zero = pc.ends_with(columns[name].cast(pa.binary()), b"\0")
            _refuse(pc.fill_null(zero, False), f"{name}: a ZenohID does not end with a zero byte")


def _check_keys(keys: pa.ChunkedArray) -> None:
    if keys.null_count:
        _refuse(pc.is_null(keys), "there is no key")
    keys = texts(keys)
    for key in pc.unique(keys).to_pylist():
        try:
            validate(key)
        except KeyExprError as e:
            row = pc.index(keys, key).as_py()
            raise KeyExprError(e.text, e.position, f"{e.reason}, in row {row}") from None


def texts(keys: Any) -> Any:
    """Keys in the one type that is worked with."""
    if pa.types.is_dictionary(keys.type):
        keys = keys.cast(keys.type.value_type)
    return keys.cast(pa.large_string())


def _within(name: str, columns: dict[str, pa.ChunkedArray], top: int) -> None:
    values = columns.get(name)
    if values is not None and len(values) and not pa.types.is_null(values.type):
        wrong = pc.or_(pc.less(values, 0), pc.greater(values.cast(pa.int64()), top))
        _refuse(pc.fill_null(wrong, False), f"{name} is outside of 0 to {top}")


def _together(
    columns: dict[str, pa.ChunkedArray], one: str, two: str, *, both: bool = True
) -> None:
    """Where there is one, there is the other."""
    if one not in columns and (two not in columns or not both):
        return
    there = [
        pc.is_valid(columns[name]) if name in columns else pa.scalar(False) for name in (one, two)
    ]
    wrong = pc.xor(*there) if both else pc.and_not(*there)
    _refuse(wrong, f"{one} and {two} go together")


def _length(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_null(values.type):
        values = values.cast(pa.binary())
    elif str(values.type).endswith("_view"):
        values = values.cast(pa.large_binary())
    return pc.binary_length(values)


def _lengths(columns: dict[str, pa.ChunkedArray], name: str, low: int, high: int) -> None:
    if name in columns:
        length = _length(columns[name])
        wrong = pc.or_(pc.less(length, low), pc.greater(length, high))
        _refuse(pc.fill_null(wrong, False), f"{name} has {low} to {high} bytes")


def _refuse(wrong: Any, why: str) -> None:
    """Raise, if anything is wrong."""
    if isinstance(wrong, pa.Scalar):
        if wrong.as_py():
            raise EncodeError(f"row 0: {why}")
        return
    row = pc.index(wrong, True).as_py()
    if row >= 0:
        raise EncodeError(f"row {row}: {why}")
