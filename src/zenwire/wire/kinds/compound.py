"""Kinds of several parts: ZenohIDs, encodings, locators, key expressions."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, TypeVar

from zenwire.errors import DecodeError, EncodeError, Fault
from zenwire.wire import limits
from zenwire.wire.buffer import Reader, Writer
from zenwire.wire.encoding import Encoding
from zenwire.wire.kinds.base import Bits, FlaggedKind, Kind
from zenwire.wire.kinds.numbers import z16
from zenwire.wire.kinds.spans import Sequence, Text, key_suffix, rest_suffix, schema
from zenwire.wire.locator import Locator
from zenwire.wire.values import Mapping, WhatAmI, WhatAmIMatcher, WireExpr, ZenohId

__all__ = [
    "EncodingKind",
    "LocatorKind",
    "Nibble",
    "OptionalPackedZid",
    "PackedZid",
    "PlainZid",
    "WireExprExt",
    "WireExprKind",
    "encoding",
    "locator_text",
    "locators",
    "optional_packed_zid",
    "packed_zid",
    "plain_zid",
    "whatami_index",
    "whatami_matcher",
    "wire_expr_ext",
]

V = TypeVar("V")


def _zid(r: Reader, n: int) -> ZenohId:
    start = r.pos
    raw = r.take(n).rstrip(b"\0")
    if not raw:
        raise DecodeError(Fault.INVALID, start, detail="a ZenohID must not be zero")
    return _usual_zid(raw)


# A node hears of few others, again and again.
_usual_zid = lru_cache(maxsize=4096)(ZenohId)


class PlainZid(Kind[ZenohId]):
    """A length, then the bytes."""

    label = "<u8;z> ZenohID"

    def read(self, r: Reader) -> ZenohId:
        return _zid(r, r.length(limits.ZID_MAX))

    def write(self, w: Writer, value: ZenohId) -> None:
        w.sized(value.raw, limits.ZID_MAX)


class PackedZid(Kind[ZenohId]):
    """Length minus one in the high half of a byte whose low half belongs to another field."""

    label = "(len-1)<<4, ZenohID"

    def read(self, r: Reader) -> ZenohId:
        byte = r.u8()
        r.nibble = byte & 0x0F
        return _zid(r, (byte >> 4) + 1)

    def write(self, w: Writer, value: ZenohId) -> None:
        w.nibble_at = len(w.out)
        w.out.append(len(value.raw) - 1 << 4)
        w.out += value.raw


class OptionalPackedZid(Kind[ZenohId | None]):
    """As PackedZid, but bit 3 of the low half says whether the id follows."""

    label = "(len-1)<<4 | I<<3, [ZenohID]"

    def read(self, r: Reader) -> ZenohId | None:
        byte = r.u8()
        r.nibble = byte & 0x07
        return _zid(r, (byte >> 4) + 1) if byte & 0x08 else None

    def write(self, w: Writer, value: ZenohId | None) -> None:
        w.nibble_at = len(w.out)
        if value is None:
            w.out.append(0)
        else:
            w.out.append(len(value.raw) - 1 << 4 | 0x08)
            w.out += value.raw


class Nibble(Kind[V]):
    """A value in the low half of the packed ZenohID byte that was read just before."""

    def __init__(self, label: str, values: tuple[V, ...]) -> None:
        self.label = label
        self.values = values

    def read(self, r: Reader) -> V:
        index = r.nibble & (3 if len(self.values) <= 4 else 7)
        if index >= len(self.values):
            raise DecodeError(Fault.INVALID, r.pos, detail=f"{index} is no {self.label}")
        return self.values[index]

    def write(self, w: Writer, value: V) -> None:
        if value not in self.values:
            raise EncodeError(f"{value!r} is no {self.label}")
        w.out[w.nibble_at] |= self.values.index(value)


class EncodingKind(Kind[Encoding]):
    """z(id << 1 | S), then a schema if S."""

    label = "z(id<<1 | S), [<u8;z8>]"
    bits = 17

    def read(self, r: Reader) -> Encoding:
        start = r.pos
        value = r.z()
        if value >> self.bits:
            raise DecodeError(Fault.OVERFLOW, start, detail="an encoding id has 16 bits")
        return Encoding(value >> 1, schema.read(r) if value & 1 else None)

    def write(self, w: Writer, value: Encoding) -> None:
        w.z(value.id << 1 | (value.schema is not None))
        if value.schema is not None:
            schema.write(w, value.schema)


class LocatorKind(Kind[Locator]):
    """A locator as text."""

    label = "<utf8;z8> locator"

    def read(self, r: Reader) -> Locator:
        start = r.pos
        text = locator_text.read(r)
        try:
            return Locator.parse(text)
        except EncodeError as e:
            raise DecodeError(Fault.INVALID, start, detail=str(e)) from None

    def write(self, w: Writer, value: Locator) -> None:
        locator_text.write(w, str(value))


# Keys come again and again: looking one up is faster than making it. Short ones only, so that
# nobody fills the memory with long ones.
_USUAL_SUFFIX: Final = 64
_usual = lru_cache(maxsize=4096)(WireExpr)


class WireExprKind(FlaggedKind[WireExpr]):
    """z16 scope, then a suffix if N.

    D_KEYEXPR has no M flag, and the reference looks its scope up in the receiver's table.
    """

    label = "z16 scope, [<utf8;z16> suffix]"

    def __init__(self, named: Bits, mapping: Bits | None) -> None:
        self.named = named
        self.mapping = mapping
        self.word = named.word
        self._named = named.mask
        self._mapping = mapping.mask if mapping else 0
        self.mask = self._named | self._mapping

    def read(self, r: Reader, word: int) -> WireExpr:
        scope = z16.read(r)
        suffix = key_suffix.read(r) if word & self._named else ""
        sender = word & self._mapping if self.mapping else not scope
        make = _usual if len(suffix) <= _USUAL_SUFFIX else WireExpr
        return make(scope, suffix, Mapping.SENDER if sender else Mapping.RECEIVER)

    def write(self, w: Writer, value: WireExpr) -> None:
        if self.mapping is None and value.mapping is not Mapping(not value.scope):
            raise EncodeError("D_KEYEXPR has no mapping: scope 0, or a scope of the receiver")
        z16.write(w, value.scope)
        if value.suffix:
            key_suffix.write(w, value.suffix)

    def bits(self, value: WireExpr) -> int:
        bits = self.named.mask if value.suffix else 0
        if self.mapping is not None and value.mapping:
            bits |= self.mapping.mask
        return bits


class WireExprExt(Kind[WireExpr]):
    """The WireExpr extension of U_*: flags (N, M), z16 scope, and the suffix to the end."""

    label = "flags N=1 M=2, z16 scope, [utf8 suffix to the end]"

    def read(self, r: Reader) -> WireExpr:
        flags = r.u8()
        scope = z16.read(r)
        suffix = rest_suffix.read(r) if flags & 1 else ""
        return WireExpr(scope, suffix, Mapping.SENDER if flags & 2 else Mapping.RECEIVER)

    def write(self, w: Writer, value: WireExpr) -> None:
        w.u8(bool(value.suffix) | value.mapping << 1)
        z16.write(w, value.scope)
        rest_suffix.write(w, value.suffix)


plain_zid = PlainZid()
packed_zid = PackedZid()
optional_packed_zid = OptionalPackedZid()
encoding = EncodingKind()
locator_text = Text(limits.LOCATOR_MAX)
locators = Sequence(LocatorKind(), limits.LOCATORS_MAX)
whatami_index = Nibble("WhatAmI", tuple(WhatAmI))
whatami_matcher = Nibble("WhatAmIMatcher", tuple(WhatAmIMatcher(i) for i in range(8)))
wire_expr_ext = WireExprExt()
