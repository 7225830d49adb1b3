"""What a kind is."""

from __future__ import annotations

from enum import IntEnum
from typing import Generic, TypeVar

from zenwire.wire.buffer import Reader, Writer

__all__ = ["Bits", "ExtEncoding", "FlaggedKind", "Kind"]

V = TypeVar("V")


class ExtEncoding(IntEnum):
    """Bits 6..5 of an extension header: how its body is skipped by who does not know it."""

    UNIT = 0x00
    Z64 = 0x20
    ZBUF = 0x40


class Bits:
    """Some bits of the header (``word`` 0), or of another flag word of the same message."""

    __slots__ = ("mask", "shift", "width", "word")

    def __init__(self, shift: int, width: int = 1, word: int = 0) -> None:
        self.shift = shift
        self.width = width
        self.word = word
        self.mask = (1 << width) - 1 << shift


class Kind(Generic[V]):
    """One way to put a value on the wire."""

    label = ""
    encoding = ExtEncoding.ZBUF
    """How an extension of this kind is encoded."""

    def read(self, r: Reader) -> V:
        raise NotImplementedError

    def write(self, w: Writer, value: V) -> None:
        raise NotImplementedError


class FlaggedKind(Generic[V]):
    """A kind that also owns bits of a flag word: ``mask`` of them, computed from the value."""

    label = ""
    word = 0
    mask = 0

    def read(self, r: Reader, word: int) -> V:
        raise NotImplementedError

    def write(self, w: Writer, value: V) -> None:
        raise NotImplementedError

    def bits(self, value: V) -> int:
        raise NotImplementedError
