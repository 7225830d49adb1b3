"""``zenoh/serialized`` from and to values of Python, with the types that say how large numbers are.

    z_serialize({"speed": Float32(1.5)})
    z_deserialize(dict[str, Float32], payload)

``int`` is Int32 and ``float`` is Float64. What is read is of the type that was named, in lists
too, so that it can be written again as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from types import EllipsisType
from typing import Any, ClassVar, Final, Self, TypeVar, get_args, get_origin

from zenwire.api.values import ZBytes
from zenwire.errors import DecodeError, EncodeError
from zenwire.wire.serialized import (
    BOOL,
    BYTES,
    TEXT,
    Reader,
    list_reader,
    map_reader,
    number_reader,
    read_whole,
    tuple_reader,
    write_bool,
    write_bytes,
    write_count,
    write_number,
    write_text,
)

__all__ = [
    "Float32",
    "Float64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Int128",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "UInt128",
    "ZDeserializeError",
    "z_deserialize",
    "z_serialize",
]

T = TypeVar("T")


class ZDeserializeError(DecodeError):
    """Bytes that are no value of the type that was named."""


class _Sized(int):
    """An integer of ``BITS`` bits. Raises EncodeError for one that has no room in them."""

    __slots__ = ()
    BITS: ClassVar[int]
    SIGNED: ClassVar[bool]

    def __new__(cls, i: int) -> Self:
        least = -(1 << cls.BITS - 1) if cls.SIGNED else 0
        if not least <= i < least + (1 << cls.BITS):
            raise EncodeError(f"{i} has no room in {cls.__name__}")
        return super().__new__(cls, i)


class Int8(_Sized):
    """A signed integer of 8 bits."""

    __slots__ = ()
    BITS, SIGNED = 8, True


class Int16(_Sized):
    """A signed integer of 16 bits."""

    __slots__ = ()
    BITS, SIGNED = 16, True


class Int32(_Sized):
    """A signed integer of 32 bits."""

    __slots__ = ()
    BITS, SIGNED = 32, True


class Int64(_Sized):
    """A signed integer of 64 bits."""

    __slots__ = ()
    BITS, SIGNED = 64, True


class Int128(_Sized):
    """A signed integer of 128 bits."""

    __slots__ = ()
    BITS, SIGNED = 128, True


class UInt8(_Sized):
    """An unsigned integer of 8 bits."""

    __slots__ = ()
    BITS, SIGNED = 8, False


class UInt16(_Sized):
    """An unsigned integer of 16 bits."""

    __slots__ = ()
    BITS, SIGNED = 16, False


class UInt32(_Sized):
    """An unsigned integer of 32 bits."""

    __slots__ = ()
    BITS, SIGNED = 32, False


class UInt64(_Sized):
    """An unsigned integer of 64 bits."""

    __slots__ = ()
    BITS, SIGNED = 64, False


class UInt128(_Sized):
    """An unsigned integer of 128 bits."""

    __slots__ = ()
    BITS, SIGNED = 128, False


class Float32(float):
    """A number of 32 bits on the wire; here it keeps the digits that it has."""

    __slots__ = ()


class Float64(float):
    """A number of 64 bits."""

    __slots__ = ()


_SIZED: Final = (Int8, Int16, Int32, Int64, Int128, UInt8, UInt16, UInt32, UInt64, UInt128)
# Any: each is called with values of its type, and makes them.
_NUMBERS: Final[dict[type, tuple[str, Callable[[Any], Any] | None]]] = {
    int: ("i32", None),
    float: ("f64", None),
    Float32: ("f32", Float32),
    Float64: ("f64", Float64),
} | {kind: (f"{'i' if kind.SIGNED else 'u'}{kind.BITS}", kind) for kind in _SIZED}


# --- writing ------------------------------------------------------------------------------------


def z_serialize(obj: Any) -> ZBytes:
    """The bytes of a value.

    Raises TypeError for types that the format has not, ValueError for collections of several
    types, and EncodeError, which is one, for numbers without room.
    """
    out = bytearray()
    _write(out, obj, _kind(obj))
    return ZBytes(bytes(out))


def _kind(obj: Any) -> type:
    kind = type(obj)
    if kind not in _WRITE:
        raise TypeError(
            f"values of type {kind.__name__} cannot be serialized; numbers, bool, str, bytes, and "
            "lists, sets, dicts and tuples of them can"
        )
    return kind


def _write(out: bytearray, obj: Any, kind: type) -> None:
    _WRITE[kind](out, obj)


def _write_items(out: bytearray, items: list[Any] | set[Any] | frozenset[Any]) -> None:
    write_count(out, len(items))
    _write_alike(out, items)


def _write_alike(out: bytearray, items: Iterable[Any]) -> None:
    first: type | None = None
    for item in items:
        kind = _kind(item)
        if first is None:
            first = kind
        elif kind is not first:
            raise ValueError(
                f"all items of serialized collections must have the same type: {first.__name__} "
                f"and {kind.__name__} are two; use a tuple"
            )
        _WRITE[kind](out, item)


def _write_map(out: bytearray, items: dict[Any, Any]) -> None:
    write_count(out, len(items))
    kinds: tuple[type, type] | None = None
    for key, value in items.items():
        pair = _kind(key), _kind(value)
        if kinds is None:
            kinds = pair
        elif kinds != pair:
            raise ValueError("all items of serialized collections must have the same type")
        _WRITE[pair[0]](out, key)
        _WRITE[pair[1]](out, value)


def _write_tuple(out: bytearray, parts: tuple[Any, ...]) -> None:
    for part in parts:
        _write(out, part, _kind(part))


def _write_zbytes(out: bytearray, value: ZBytes) -> None:
    write_bytes(out, value.view())


_WRITE: Final[dict[type, Callable[[bytearray, Any], None]]] = {
    bool: write_bool,
    str: write_text,
    bytes: write_bytes,
    bytearray: write_bytes,
    ZBytes: _write_zbytes,
    list: _write_items,
    set: _write_items,
    frozenset: _write_items,
    dict: _write_map,
    tuple: _write_tuple,
}


def _writer(name: str) -> Callable[[bytearray, Any], None]:
    return lambda out, value: write_number(out, name, value)


_WRITE.update({kind: _writer(name) for kind, (name, _) in _NUMBERS.items()})


# --- reading ------------------------------------------------------------------------------------


def z_deserialize(tp: type[T], zbytes: ZBytes | bytes | bytearray | memoryview) -> T:
    """The value that the bytes are, all of them.

    Raises ZDeserializeError if they are none of that type, and TypeError or ValueError for a type
    that the format has not.
    """
    kind: Any = tp
    reader = _reader(kind)
    if not isinstance(zbytes, ZBytes | bytes | bytearray | memoryview):
        raise TypeError(f"expected ZBytes, found {type(zbytes).__name__!r}")
    try:
        value: T = read_whole(reader, ZBytes(zbytes).to_bytes())
    except DecodeError as e:
        name = getattr(tp, "__name__", "") if get_origin(tp) is None else str(tp)
        raise ZDeserializeError(e.fault, e.offset, "", f"as {name}") from None
    return value


_PLAIN: Final[dict[Any, Reader]] = {
    bool: BOOL,
    str: TEXT,
    bytes: BYTES,
}
_COLLECTIONS: Final[dict[Any, Callable[[list[Any]], Any]]] = {
    list: list,
    set: set,
    frozenset: frozenset,
}


def _made(make: Callable[[bytes], Any]) -> Reader:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        value, end = BYTES.read(data, at)
        return make(value), end

    return Reader(read, BYTES.least)


@cache
def _reader(tp: Any) -> Reader:
    """Of a type. Raises TypeError or ValueError for one that the format has not."""
    if tp in _PLAIN:
        return _PLAIN[tp]
    if tp in _NUMBERS:
        return number_reader(*_NUMBERS[tp])
    if tp is bytearray or tp is ZBytes:
        return _made(tp)
    origin, args = get_origin(tp), get_args(tp)
    if tp in (*_COLLECTIONS, dict, tuple):
        raise ValueError(
            f"collection types must be specialized with their generic parameter(s): {tp.__name__} "
            f"alone does not say of what"
        )
    if origin in _COLLECTIONS:
        return list_reader(_reader(args[0]), _COLLECTIONS[origin])
    if origin is dict:
        return map_reader(_reader(args[0]), _reader(args[1]))
    if origin is tuple:
        if any(isinstance(arg, EllipsisType) for arg in args):
            raise TypeError("any size tuples are not supported: tuples have no count on the wire")
        return tuple_reader([_reader(arg) for arg in args])
    raise TypeError(f"type {tp!r} is not supported")
