"""ROS 2 messages in CDR, as what JSON can say, by the definition of their type.

XCDR1 (``00 00``, ``00 01``) and plain XCDR2 (``00 06``, ``00 07``) of either byte order. Sequences of
bytes are text in hexadecimal, and above ``BYTES_MAX`` their number alone: the payload has them.
Nothing is allocated by a length that the payload declares.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Final

from zenwire.lake.payloads.fault import Fault
from zenwire.lake.payloads.messages import PRIMITIVES, Definitions, Field, plain_name

__all__ = ["BYTES_MAX", "DEPTH_MAX", "ITEMS_MAX", "decode"]

DEPTH_MAX: Final = 32
ITEMS_MAX: Final = 100_000
"""Values of one payload."""
BYTES_MAX: Final = 4096
_PADDING: Final = 3
"""Bytes that may follow, to make the whole a multiple of four."""
_XCDR2: Final = 4
_FORMS: Final = {0x0000: (">", 8), 0x0001: ("<", 8), 0x0006: (">", _XCDR2), 0x0007: ("<", _XCDR2)}
"""Byte order, and what alignment is limited to."""


def decode(data: bytes, name: str, definitions: Definitions) -> Any:  # a value of JSON
    """The message of that type. Raises Fault."""
    if len(data) < 4:
        raise Fault(f"ends too early, at byte {len(data)}")
    form = _FORMS.get(int.from_bytes(data[:2], "big"))
    if form is None:
        raise Fault(f"a representation that is not known: {data[:2].hex()}")
    reader = _Reader(data[4:], *form, definitions)
    value = reader.message(plain_name(name), 0)
    if len(reader.data) - reader.at > _PADDING:
        raise Fault(f"{len(reader.data) - reader.at} bytes are left over")
    return value


class _Reader:
    def __init__(self, data: bytes, order: str, align: int, definitions: Definitions) -> None:
        self.data = data
        self.at = 0
        self.order = order
        self.align_max = align
        self.definitions = definitions
        self.items = 0

    def message(self, name: str, depth: int) -> dict[str, Any]:
        fields = self.definitions.get(name)
        if fields is None:
            raise Fault(f"no definition of {name}")
        if depth > DEPTH_MAX:
            raise Fault(f"nested deeper than {DEPTH_MAX}")
        if not fields:
            # A struct of C has a member at least.
            self.take(1)
        return {field.name: self.field(field, depth) for field in fields}

    def field(self, field: Field, depth: int) -> Any:
        if field.size is None:
            return self.value(field.type, depth)
        letter = PRIMITIVES.get(field.type)
        if letter is None and self.align_max == _XCDR2:
            # How many bytes follow, which is of no use here.
            self.number("I")
        number = field.size or self.number("I")
        if letter is not None:
            return self.numbers(letter, number)
        # The smallest of anything is a byte, so that a lie about the number ends early.
        if number > len(self.data) - self.at:
            raise Fault(f"{number} elements are declared in {len(self.data) - self.at} bytes")
        return [self.value(field.type, depth) for _ in range(number)]

    def value(self, kind: str, depth: int) -> Any:
        self.count(1)
        letter = PRIMITIVES.get(kind)
        if letter is not None:
            return _plain(self.number(letter))
        if kind == "string":
            return self.text()
        if kind == "wstring":
            raise Fault("wstring, whose characters are not the same everywhere")
        return self.message(kind, depth + 1)

    def numbers(self, letter: str, number: int) -> Any:
        if not number:
            return "" if letter == "B" else []
        form = struct.calcsize(letter)
        self.align(form)
        data = self.take(form * number)
        if letter == "B":
            return data.hex() if number <= BYTES_MAX else f"{number} bytes"
        self.count(number)
        return [*map(_plain, struct.unpack(f"{self.order}{number}{letter}", data))]

    def number(self, letter: str) -> Any:
        size = struct.calcsize(letter)
        self.align(size)
        (value,) = struct.unpack(self.order + letter, self.take(size))
        return value

    def text(self) -> str:
        size = self.number("I")
        data = self.take(size)
        try:
            return data.removesuffix(b"\0").decode()
        except UnicodeDecodeError as e:
            raise Fault(f"text that is not UTF-8, at its byte {e.start}") from None

    def align(self, size: int) -> None:
        self.at += -self.at % min(size, self.align_max)

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise Fault(f"ends too early, at byte {len(self.data) + 4}")
        self.at += size
        return self.data[self.at - size : self.at]

    def count(self, items: int) -> None:
        self.items += items
        if self.items > ITEMS_MAX:
            raise Fault(f"more than {ITEMS_MAX} values")


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value
