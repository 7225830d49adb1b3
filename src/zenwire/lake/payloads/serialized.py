"""``zenoh/serialized``: values that carry no types, read by a type that somebody names.

A type is written ``bool``, ``u8`` to ``u128``, ``i8`` to ``i128``, ``f32``, ``f64``, ``str``,
``bytes``, ``[T]`` for lists, sets and arrays, ``{K: V}`` for maps and ``(T, U)`` for tuples.
Bytes that are left over, or too few, mean that the type is the wrong one: there is no value then.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zenwire.errors import DecodeError
from zenwire.wire.serialized import (
    BOOL,
    BYTES,
    NUMBERS,
    TEXT,
    Reader,
    list_reader,
    map_reader,
    number_reader,
    read_whole,
    tuple_reader,
)

__all__ = ["Type", "column_of", "json_of", "parse_type"]

DEPTH_MAX: Final = 16
"""Of lists in lists: deeper types are nobody's."""
_JSON_DIGITS: Final = 38
"""What VARIANT keeps of an integer exactly."""

_NUMBERS: Final[dict[str, pa.DataType]] = {
    "u8": pa.int16(),
    "u16": pa.int32(),
    "u32": pa.int64(),
    "u64": pa.decimal128(20, 0),
    "i8": pa.int8(),
    "i16": pa.int16(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "f32": pa.float32(),
    "f64": pa.float64(),
}
"""What Spark has for them."""
_TOKEN: Final = re.compile(r"\s*(?:([a-z][a-z0-9]*)|([\[\]{}():,]))")


@dataclass(frozen=True)
class Type:
    """A type of serialized values. ``name`` is its text, ``parts`` what it consists of.

    ``size`` is the number of bytes, None where it is not always the same.
    """

    name: str
    arrow: pa.DataType
    size: int | None
    parts: tuple[Type, ...] = ()

    def __str__(self) -> str:
        return self.name


def parse_type(text: str) -> Type:
    """Raises ValueError for text that is no type."""
    found = _Parser(text)
    kind = found.type(0)
    found.end()
    return kind


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.wrong()
            self.tokens.append(match[1] or match[2])
            at = match.end()
        self.tokens.reverse()

    def wrong(self) -> ValueError:
        return ValueError(
            f"{self.text!r} is no type: write u32, str, [f64], {{str: i64}} or (u8, str)"
        )

    def next(self, *wanted: str) -> str:
        token = self.tokens.pop() if self.tokens else ""
        if not token or (wanted and token not in wanted):
            raise self.wrong()
        return token

    def end(self) -> None:
        if self.tokens:
            raise self.wrong()

    def type(self, depth: int) -> Type:
        if depth > DEPTH_MAX:
            raise self.wrong()
        match self.next():
            case "[":
                item = self.type(depth + 1)
                self.next("]")
                return Type(f"[{item}]", pa.list_(item.arrow), None, (item,))
            case "{":
                key = self.type(depth + 1)
                self.next(":")
                value = self.type(depth + 1)
                self.next("}")
                return Type(
                    f"{{{key}: {value}}}", pa.map_(key.arrow, value.arrow), None, (key, value)
                )
            case "(":
                return self._tuple(depth)
            case name:
                return self._scalar(name)

    def _tuple(self, depth: int) -> Type:
        parts = [self.type(depth + 1)]
        while self.next(",", ")") == ",":
            if self.tokens and self.tokens[-1] == ")":
                continue
            parts.append(self.type(depth + 1))
        fields = [pa.field(f"_{i}", part.arrow) for i, part in enumerate(parts, 1)]
        sizes = [part.size for part in parts]
        whole = None if None in sizes else sum(size for size in sizes if size)
        inside = ", ".join(map(str, parts)) + ("," if len(parts) == 1 else "")
        return Type(f"({inside})", pa.struct(fields), whole, tuple(parts))

    def _scalar(self, name: str) -> Type:
        if name in _NUMBERS:
            return Type(name, _NUMBERS[name], NUMBERS[name].size)
        match name:
            case "bool":
                return Type(name, pa.bool_(), 1)
            case "u128" | "i128":
                # Spark has no integers of that size, and its decimals have one digit too few.
                return Type(name, pa.string(), 16)
            case "str":
                return Type(name, pa.string(), None)
            case "bytes":
                return Type(name, pa.binary(), None)
        raise self.wrong()


# --- one value ----------------------------------------------------------------------------------


@cache
def _reader(kind: Type) -> Reader:
    match kind.name[0], kind.name:
        case _, "bool":
            return BOOL
        case _, "u128" | "i128":
            return number_reader(kind.name, str)
        case _, "str":
            return TEXT
        case _, "bytes":
            return BYTES
        case "[", _:
            return list_reader(_reader(kind.parts[0]))
        case "{", _:
            return map_reader(_reader(kind.parts[0]), _reader(kind.parts[1]), _pairs)
        case "(", _:
            names = [f"_{i}" for i in range(1, len(kind.parts) + 1)]
            parts = [_reader(part) for part in kind.parts]
            return tuple_reader(parts, lambda found: dict(zip(names, found, strict=True)))
    return number_reader(kind.name)


def _pairs(pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    try:
        # The last one of a key holds, as in the reference.
        return list(dict(pairs).items())
    except TypeError:
        return pairs


# Any: a value is of whatever type was named.
def _value(kind: Type, data: bytes | None) -> Any:
    """None for bytes that are no such value, or more than one."""
    if data is None:
        return None
    try:
        return read_whole(_reader(kind), data)
    except DecodeError:
        return None


def json_of(kind: Type, data: bytes) -> str | None:
    """The value as JSON; None for bytes that are no such value.

    What JSON has no form for is text: bytes in hexadecimal, NaN and infinities, integers of more
    digits than VARIANT keeps, and the keys of maps.
    """
    value = _value(kind, data)
    return None if value is None else json.dumps(_plain(kind, value))


def _plain(kind: Type, value: Any) -> Any:
    match kind.name[0]:
        case "[":
            return [_plain(kind.parts[0], item) for item in value]
        case "(":
            return [_plain(part, v) for part, v in zip(kind.parts, value.values(), strict=True)]
        case "{":
            keys, values = kind.parts
            return {_text(_plain(keys, k)): _plain(values, v) for k, v in value}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if kind.size == 16 and len(value.lstrip("-")) <= _JSON_DIGITS:
        return int(value)
    return value


def _text(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)


# --- columns of values --------------------------------------------------------------------------


def column_of(kind: Type, payloads: pa.Array) -> pa.Array:
    """The values of a column; null where the bytes are no such value."""
    if kind.size is not None and _is_flat(kind):
        return _fixed(kind, payloads)
    return pa.array([_value(kind, data) for data in payloads.to_pylist()], kind.arrow)


def _is_flat(kind: Type) -> bool:
    return kind.size != 16 and (kind.name[0] != "(" or all(map(_is_flat, kind.parts)))


def _fixed(kind: Type, payloads: pa.Array) -> pa.Array:
    """Values of one size: NumPy reads all at once."""
    assert kind.size is not None
    n = len(payloads)
    _, offsets, values = payloads.buffers()
    at = np.frombuffer(offsets, np.int32)[payloads.offset : payloads.offset + n + 1]
    data = np.frombuffer(values, np.uint8) if values else np.zeros(0, np.uint8)
    good = np.diff(at) == kind.size
    if payloads.null_count:
        good &= payloads.is_valid().to_numpy(zero_copy_only=False)
    rows = np.zeros((n, kind.size), np.uint8)
    rows[good] = data[at[:-1][good, None] + np.arange(kind.size)]
    array, bad = _read_rows(kind, rows)
    good &= ~bad
    if good.all():
        return array
    return array.take(pa.array(np.where(good, np.arange(n), -1), mask=~good))


def _read_rows(kind: Type, rows: npt.NDArray[np.uint8]) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    bad = np.zeros(len(rows), np.bool_)
    if kind.parts:
        arrays, at = [], 0
        for part in kind.parts:
            assert part.size is not None
            array, wrong = _read_rows(part, rows[:, at : at + part.size])
            arrays.append(array)
            bad |= wrong
            at += part.size
        return pa.StructArray.from_arrays(arrays, fields=list(kind.arrow)), bad
    if kind.name == "bool":
        return pa.array(rows[:, 0] == 1), rows[:, 0] > 1
    # NumPy has the letters of struct.
    numbers = np.ascontiguousarray(rows).view(np.dtype(NUMBERS[kind.name].format))[:, 0]
    return pa.array(numbers).cast(_NUMBERS[kind.name]), bad
