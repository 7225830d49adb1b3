"""Kinds whose value is a number on the wire."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, TypeVar, cast

from zenwire.errors import DecodeError, EncodeError, Fault
from zenwire.wire.buffer import Reader, Writer
from zenwire.wire.kinds.base import Bits, ExtEncoding, FlaggedKind, Kind
from zenwire.wire.values import (
    ConsolidationMode,
    Priority,
    QoS,
    QoSLink,
    QueryableInfo,
    QueryTarget,
    Resolution,
    WhatAmI,
)

__all__ = [
    "U8",
    "U16",
    "Lease",
    "NonZeroU8",
    "Optional32",
    "QoSLinkKind",
    "ResolutionKind",
    "WhatAmIBitmap",
    "Z",
    "ZValue",
    "consolidation",
    "priority",
    "qos",
    "qos_link",
    "query_target",
    "queryable_info",
    "resolution",
    "u8",
    "u8_not_zero",
    "u16",
    "whatami_bitmap",
    "z16",
    "z32",
    "z32_or_none",
    "z64",
]

V = TypeVar("V")
E = TypeVar("E", bound=IntEnum)


class U8(Kind[int]):
    """A byte."""

    label = "u8"

    def read(self, r: Reader) -> int:
        return r.u8()

    def write(self, w: Writer, value: int) -> None:
        w.u8(value)


class NonZeroU8(U8):
    """A byte that must not be zero."""

    label = "u8, not 0"

    def read(self, r: Reader) -> int:
        value = r.u8()
        if not value:
            raise DecodeError(Fault.INVALID, r.pos - 1, detail="must not be 0")
        return value

    def write(self, w: Writer, value: int) -> None:
        if not value:
            raise EncodeError("must not be 0")
        w.u8(value)


class U16(Kind[int]):
    """Two bytes."""

    label = "u16 little endian"

    def read(self, r: Reader) -> int:
        return r.u16()

    def write(self, w: Writer, value: int) -> None:
        w.u16(value)


class Z(Kind[int]):
    """A variable-length integer of at most ``bits`` bits."""

    encoding = ExtEncoding.Z64

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.label = f"z{bits}"

    def read(self, r: Reader) -> int:
        start = r.pos
        value = r.z()
        if value >> self.bits:
            raise DecodeError(Fault.OVERFLOW, start, detail=f"{value} is wider than {self.label}")
        return value

    def write(self, w: Writer, value: int) -> None:
        if value >> self.bits:
            raise EncodeError(f"{value} is wider than {self.label}")
        w.z(value)


class ZValue(Kind[V]):
    """A z64 that stands for a value: ``keep`` masks the bits that mean something.

    What is above ``top`` is ``otherwise`` if that is given, and an INVALID fault if not.
    """

    encoding = ExtEncoding.Z64

    def __init__(
        self,
        label: str,
        parse: Callable[[int], V],
        *,
        keep: int = 2**64 - 1,
        top: int = 2**64 - 1,
        otherwise: int | None = None,
        raw: Callable[[V], int] | None = None,
    ) -> None:
        self.label = label
        self.parse = parse
        self.keep = keep
        self.top = top
        self.otherwise = otherwise
        # Where there are few, all are made: to make one costs more than to read a message.
        most = min(keep, top)
        self._all = tuple(map(parse, range(most + 1))) if most <= 0xFF else ()
        self.raw = raw or cast("Callable[[V], int]", int)

    def read(self, r: Reader) -> V:
        start = r.pos
        value = r.z() & self.keep
        if value > self.top:
            if self.otherwise is None:
                raise DecodeError(Fault.INVALID, start, detail=f"{value} is no {self.label}")
            value = self.otherwise
        return self._all[value] if self._all else self.parse(value)

    def write(self, w: Writer, value: V) -> None:
        raw = self.raw(value)
        if raw & self.keep != raw or raw > self.top:
            raise EncodeError(f"{value!r} is no {self.label}")
        w.z(raw)


class QoSLinkKind(Kind[QoSLink]):
    """A z64 of bit fields; see QoSLink."""

    label = "QoSLink"
    encoding = ExtEncoding.Z64

    def read(self, r: Reader) -> QoSLink:
        start = r.pos
        try:
            return QoSLink.parse(r.z())
        except ValueError as e:
            raise DecodeError(Fault.INVALID, start, detail=str(e)) from None

    def write(self, w: Writer, value: QoSLink) -> None:
        w.z(int(value))


class Optional32(Kind[int | None]):
    """A z32 in which 0 says the same as absence."""

    label = "z32, 0 = none"
    encoding = ExtEncoding.Z64

    def read(self, r: Reader) -> int | None:
        return z32.read(r) or None

    def write(self, w: Writer, value: int | None) -> None:
        if not value:
            raise EncodeError("0 says the same as None: leave it out")
        z32.write(w, value)


class WhatAmIBitmap(Kind[WhatAmI]):
    """The coding of link state: one byte, 1, 2 or 4."""

    label = "u8 1|2|4"

    def read(self, r: Reader) -> WhatAmI:
        start = r.pos
        try:
            return WhatAmI(r.u8())
        except ValueError as e:
            raise DecodeError(Fault.INVALID, start, detail=str(e)) from None

    def write(self, w: Writer, value: WhatAmI) -> None:
        w.u8(value)


class ResolutionKind(Kind[Resolution]):
    """A byte of which the low half means something."""

    label = "u8 resolution"

    def read(self, r: Reader) -> Resolution:
        return Resolution(r.u8() & 0x0F)

    def write(self, w: Writer, value: Resolution) -> None:
        if value.raw & 0x0F != value.raw:
            raise EncodeError(f"{value!r} has more than four bits")
        w.u8(value.raw)


class Lease(FlaggedKind[int]):
    """Milliseconds; the T flag says that the number on the wire is in seconds."""

    label = "z64 lease"

    def __init__(self, seconds: Bits) -> None:
        self.seconds = seconds
        self.mask = seconds.mask

    def read(self, r: Reader, word: int) -> int:
        return r.z() * (1000 if word & self.mask else 1)

    def write(self, w: Writer, value: int) -> None:
        w.z(value // 1000 if value % 1000 == 0 else value)

    def bits(self, value: int) -> int:
        return self.mask if value % 1000 == 0 else 0


def _qos_raw(value: QoS) -> int:
    return value.raw


def _enum(label: str, enum: type[E], **rules: Any) -> ZValue[E]:  # Any: forwarded to ZValue
    return ZValue(label, enum, **rules)


u8 = U8()
u8_not_zero = NonZeroU8()
u16 = U16()
z16, z32, z64 = Z(16), Z(32), Z(64)
z32_or_none = Optional32()
whatami_bitmap = WhatAmIBitmap()
qos_link = QoSLinkKind()
resolution = ResolutionKind()
qos = ZValue("QoS", QoS, keep=0xFF, raw=_qos_raw)
priority = _enum("Priority", Priority, keep=0x07)
query_target = _enum("QueryTarget", QueryTarget, top=QueryTarget.ALL_COMPLETE)
consolidation = _enum(
    "ConsolidationMode",
    ConsolidationMode,
    top=ConsolidationMode.LATEST,
    otherwise=ConsolidationMode.AUTO,
)
queryable_info = ZValue("QueryableInfo", QueryableInfo.parse, keep=0xFF_FF01)
