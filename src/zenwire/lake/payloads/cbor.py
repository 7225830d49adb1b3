"""CBOR (RFC 8949) as what JSON can say.

What JSON has no form for is text, as with ``zenoh/serialized``: bytes in hexadecimal, NaN and
infinities, integers of more digits than VARIANT keeps, and the keys of maps. A tag is left out but
for big numbers. Nothing is allocated by a length that the payload declares.
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any, Final

from zenwire.lake.payloads.fault import Fault

__all__ = ["DEPTH_MAX", "decode"]

DEPTH_MAX: Final = 64
"""Of arrays, maps and tags in one another."""
_INDEFINITE: Final = 31
_BREAK: Final = 0xFF
_BIG_MAX: Final = 15
"""Bytes of a number that 38 digits hold."""
_FLOATS: Final = {25: struct.Struct(">e"), 26: struct.Struct(">f"), 27: struct.Struct(">d")}
_SIMPLE: Final[dict[int, Any]] = {20: False, 21: True, 22: None, 23: None}


def decode(data: bytes) -> Any:  # a value of JSON
    """The one item that the bytes are. Raises Fault."""
    reader = _Reader(data)
    value = reader.item(0)
    if reader.at != len(data):
        raise Fault(f"{len(data) - reader.at} bytes are left over")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise Fault(f"ends too early, at byte {len(self.data)}")
        self.at += count
        return self.data[self.at - count : self.at]

    def head(self) -> tuple[int, int, int]:
        """Major type, additional information, and the number that they say."""
        (first,) = self.take(1)
        kind, info = first >> 5, first & 31
        if info < 24:
            return kind, info, info
        if info < 28:
            return kind, info, int.from_bytes(self.take(1 << (info - 24)), "big")
        if info == _INDEFINITE and kind in (2, 3, 4, 5):
            return kind, info, 0
        raise Fault(f"byte {first:#04x} at {self.at - 1} begins no item")

    def item(self, depth: int) -> Any:
        if depth > DEPTH_MAX:
            raise Fault(f"nested deeper than {DEPTH_MAX}")
        kind, info, number = self.head()
        match kind:
            case 0:
                return number
            case 1:
                return -1 - number
            case 2:
                return self.string(2, info, number).hex()
            case 3:
                return _text(self.string(3, info, number))
            case 4:
                return self.array(info, number, depth)
            case 5:
                return self.map(info, number, depth)
            case 6:
                return self.tagged(number, depth)
        return self.simple(info, number)

    def string(self, kind: int, info: int, number: int) -> bytes:
        if info != _INDEFINITE:
            return self.take(number)
        parts = []
        while not self.ended():
            part, form, size = self.head()
            if part != kind or form == _INDEFINITE:
                raise Fault("a string of pieces has one of another kind")
            parts.append(self.take(size))
        return b"".join(parts)

    def ended(self) -> bool:
        if self.at >= len(self.data):
            raise Fault(f"ends too early, at byte {len(self.data)}")
        if self.data[self.at] != _BREAK:
            return False
        self.at += 1
        return True

    def array(self, info: int, number: int, depth: int) -> list[Any]:
        if info == _INDEFINITE:
            found = []
            while not self.ended():
                found.append(self.item(depth + 1))
            return found
        self.fits(number)
        return [self.item(depth + 1) for _ in range(number)]

    def map(self, info: int, number: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if info == _INDEFINITE:
            while not self.ended():
                self.pair(found, depth)
            return found
        self.fits(number)
        for _ in range(number):
            self.pair(found, depth)
        return found

    def pair(self, found: dict[str, Any], depth: int) -> None:
        key = self.item(depth + 1)
        found[key if isinstance(key, str) else json.dumps(key)] = self.item(depth + 1)

    def fits(self, number: int) -> None:
        """An item has a byte at least."""
        if number > len(self.data) - self.at:
            raise Fault(f"{number} items are declared where {len(self.data) - self.at} bytes are")

    def tagged(self, tag: int, depth: int) -> Any:
        if tag in (2, 3) and self.at < len(self.data) and self.data[self.at] >> 5 == 2:
            _, info, number = self.head()
            digits = self.string(2, info, number).lstrip(b"\0")
            if len(digits) > _BIG_MAX:
                return f"{'-' if tag == 3 else ''}0x{digits.hex()}"
            value = int.from_bytes(digits, "big")
            return value if tag == 2 else -1 - value
        return self.item(depth + 1)

    def simple(self, info: int, number: int) -> Any:
        form = _FLOATS.get(info)
        if form is not None:
            (value,) = form.unpack(number.to_bytes(form.size, "big"))
            return _number(value)
        if number in _SIMPLE and info != 24:
            return _SIMPLE[number]
        if info == 24 and number < 32:
            raise Fault(f"simple value {number} in two bytes")
        return f"simple({number})"


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as e:
        raise Fault(f"text that is not UTF-8, at its byte {e.start}") from None
