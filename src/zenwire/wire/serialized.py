"""``zenoh/serialized``: values without types, whose reader must know what they are.

Numbers are little endian and of fixed size, a bool is a byte that is 0 or 1; text and bytes have
their length before them, lists and maps the number of their items, both in LEB128; the parts of a
tuple follow each other (PROTOCOL 11.3).

A reader takes the bytes and a position, and gives a value and the position behind it. It raises
DecodeError, and allocates nothing by a number that was only declared.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from zenwire.errors import DecodeError, EncodeError, Fault

__all__ = [
    "BOOL",
    "BYTES",
    "COUNT_SIZE",
    "EMPTY_ITEMS_MAX",
    "NUMBERS",
    "TEXT",
    "WIDE_NUMBERS",
    "Reader",
    "list_reader",
    "map_reader",
    "number_reader",
    "read_whole",
    "tuple_reader",
    "write_bool",
    "write_bytes",
    "write_count",
    "write_number",
    "write_text",
]

NUMBERS: Final = {
    name: struct.Struct(f"<{letter}")
    for name, letter in {
        "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
        "i8": "b", "i16": "h", "i32": "i", "i64": "q", "f32": "f", "f64": "d",
    }.items()
}  # fmt: skip
WIDE_NUMBERS: Final = {"u128": False, "i128": True}
"""Of sixteen bytes: whether they have a sign."""
_WIDE: Final = 16

COUNT_SIZE: Final = 10
"""Bytes of a number of 64 bits in LEB128, at most."""
_COUNT_MAX: Final = 2**64 - 1

EMPTY_ITEMS_MAX: Final = 65_536
"""Items without bytes, such as empty tuples, that a list may have: the bytes do not bound them."""


# Any: a value is of whatever type the reader is for.
@dataclass(frozen=True, slots=True)
class Reader:
    """``read`` gives a value of at least ``least`` bytes, and where it ends."""

    read: Callable[[bytes, int], tuple[Any, int]]
    least: int


def read_whole(reader: Reader, data: bytes) -> Any:
    """The value that the bytes are, all of them. Raises DecodeError."""
    value, end = reader.read(data, 0)
    if end != len(data):
        raise DecodeError(Fault.TRAILING, end)
    return value


# --- reading ------------------------------------------------------------------------------------


def _read_count(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for i in range(at, min(at + COUNT_SIZE, len(data))):
        value |= (data[i] & 0x7F) << shift
        if data[i] < 0x80:
            if value > _COUNT_MAX:
                break
            return value, i + 1
        shift += 7
    fault = Fault.TRUNCATED if len(data) - at < COUNT_SIZE else Fault.OVERFLOW
    raise DecodeError(fault, at)


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, start = _read_count(data, at)
    if size > len(data) - start:
        raise DecodeError(Fault.TRUNCATED, at)
    return data[start : start + size], start + size


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    content, end = _read_bytes(data, at)
    try:
        return content.decode(), end
    except UnicodeDecodeError as e:
        raise DecodeError(Fault.UTF8, end - len(content) + e.start) from None


def _read_bool(data: bytes, at: int) -> tuple[bool, int]:
    if at >= len(data):
        raise DecodeError(Fault.TRUNCATED, at)
    if data[at] > 1:
        raise DecodeError(Fault.INVALID, at)
    return data[at] == 1, at + 1


BOOL: Final = Reader(_read_bool, 1)
TEXT: Final = Reader(_read_text, 1)
BYTES: Final = Reader(_read_bytes, 1)


def number_reader(name: str, make: Callable[[Any], Any] | None = None) -> Reader:
    """For a number of that name, such as u16. ``make`` makes of it what is wanted."""
    if name in NUMBERS:
        form = NUMBERS[name]
        size, unpack = form.size, form.unpack_from

        def value_at(data: bytes, at: int) -> Any:
            return unpack(data, at)[0]
    else:
        size, signed = _WIDE, WIDE_NUMBERS[name]

        def value_at(data: bytes, at: int) -> Any:
            return int.from_bytes(data[at : at + _WIDE], "little", signed=signed)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        end = at + size
        if end > len(data):
            raise DecodeError(Fault.TRUNCATED, at)
        value = value_at(data, at)
        return value if make is None else make(value), end

    return Reader(read, size)


def _read_items(data: bytes, at: int, least: int) -> tuple[int, int]:
    """The number of items, if there can be as many."""
    count, start = _read_count(data, at)
    if count * least > len(data) - start:
        raise DecodeError(Fault.TRUNCATED, at)
    if not least and count > EMPTY_ITEMS_MAX:
        raise DecodeError(Fault.LIMIT, at)
    return count, start


def list_reader(item: Reader, make: Callable[[list[Any]], Any] = list) -> Reader:
    """For lists, sets and arrays."""
    read_item, least = item.read, item.least

    def read(data: bytes, at: int) -> tuple[Any, int]:
        count, at = _read_items(data, at, least)
        found = []
        for _ in range(count):
            value, at = read_item(data, at)
            found.append(value)
        return make(found), at

    return Reader(read, 1)


def map_reader(
    key: Reader, value: Reader, make: Callable[[list[tuple[Any, Any]]], Any] = dict
) -> Reader:
    """For maps, whose pairs are made into one."""
    read_key, read_value, least = key.read, value.read, key.least + value.least

    def read(data: bytes, at: int) -> tuple[Any, int]:
        count, at = _read_items(data, at, least)
        pairs = []
        for _ in range(count):
            k, at = read_key(data, at)
            v, at = read_value(data, at)
            pairs.append((k, v))
        return make(pairs), at

    return Reader(read, 1)


def tuple_reader(parts: Sequence[Reader], make: Callable[[list[Any]], Any] = tuple) -> Reader:
    """For values that follow each other."""
    reads = [part.read for part in parts]

    def read(data: bytes, at: int) -> tuple[Any, int]:
        found = []
        for part in reads:
            value, at = part(data, at)
            found.append(value)
        return make(found), at

    return Reader(read, sum(part.least for part in parts))


# --- writing ------------------------------------------------------------------------------------


def write_count(out: bytearray, count: int) -> None:
    """A number of items or bytes."""
    while count > 0x7F:
        out.append(count & 0x7F | 0x80)
        count >>= 7
    out.append(count)


def write_bytes(out: bytearray, value: bytes | bytearray | memoryview) -> None:
    """Bytes, after their number."""
    write_count(out, len(value))
    out += value


def write_text(out: bytearray, value: str) -> None:
    """Text. Raises EncodeError for half of a surrogate pair, which UTF-8 has not."""
    try:
        write_bytes(out, value.encode())
    except UnicodeEncodeError as e:
        raise EncodeError(f"text that is not UTF-8: {e}") from None


def write_bool(out: bytearray, value: bool) -> None:
    """A byte that is 0 or 1."""
    out.append(value)


def write_number(out: bytearray, name: str, value: float) -> None:
    """A number of that name, such as u16. Raises EncodeError if it has no room in it."""
    try:
        if name in NUMBERS:
            out += NUMBERS[name].pack(value)
        else:
            out += int(value).to_bytes(_WIDE, "little", signed=WIDE_NUMBERS[name])
    except (OverflowError, struct.error):
        if name != "f32":
            raise EncodeError(f"{value} has no room in {name}") from None
        # What is too large for it is infinite, as where floats are converted by the processor.
        out += NUMBERS[name].pack(math.copysign(math.inf, value))
