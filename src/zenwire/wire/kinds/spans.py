"""Kinds whose value is bytes, text, or several of another kind."""

from __future__ import annotations

from typing import TypeVar

from zenwire.errors import DecodeError, EncodeError, Fault
from zenwire.wire import limits
from zenwire.wire.buffer import Reader, Writer, utf8
from zenwire.wire.kinds.base import Bits, ExtEncoding, FlaggedKind, Kind

__all__ = [
    "Bytes",
    "OamBody",
    "Repeat",
    "Rest",
    "RestText",
    "Sequence",
    "Text",
    "Unit",
    "cookie",
    "key_suffix",
    "parameters",
    "payload",
    "region_name",
    "rest",
    "rest_suffix",
    "schema",
    "unit",
]

V = TypeVar("V")


class Unit(Kind[bool]):
    """An extension without a body: its presence is the value."""

    label = "present or not"
    encoding = ExtEncoding.UNIT

    def read(self, r: Reader) -> bool:
        return True

    def write(self, w: Writer, value: bool) -> None:
        pass


class Bytes(Kind[bytes]):
    """A length, then that many bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.label = "<u8;z>"

    def read(self, r: Reader) -> bytes:
        return r.sized(self.limit)

    def write(self, w: Writer, value: bytes) -> None:
        w.sized(value, self.limit)


class Text(Kind[str]):
    """A length, then that many bytes of UTF-8."""

    label = "<utf8;z>"

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def read(self, r: Reader) -> str:
        return r.text(r.length(self.limit))

    def write(self, w: Writer, value: str) -> None:
        w.text(value, self.limit)


class Rest(Kind[bytes]):
    """Everything up to the end of the extension, or of the batch."""

    label = "bytes to the end"

    def read(self, r: Reader) -> bytes:
        return r.take(r.end - r.pos)

    def write(self, w: Writer, value: bytes) -> None:
        w.out += value


class RestText(Kind[str]):
    """UTF-8 up to the end of the extension; ``least`` and ``limit`` bound its bytes."""

    label = "utf8 to the end"

    def __init__(self, limit: int, least: int = 0) -> None:
        self.limit = limit
        self.least = least

    def read(self, r: Reader) -> str:
        n = r.end - r.pos
        if not self.least <= n <= self.limit:
            raise DecodeError(Fault.LIMIT, r.pos, detail=f"length {n}")
        return r.text(n)

    def write(self, w: Writer, value: str) -> None:
        data = utf8(value)
        if not self.least <= len(data) <= self.limit:
            raise EncodeError(f"text has {self.least} to {self.limit} bytes, not {len(data)}")
        w.out += data


class Sequence(Kind[tuple[V, ...]]):
    """A count, then that many items. Each takes at least a byte, so the count buys no memory."""

    def __init__(self, kind: Kind[V], limit: int) -> None:
        self.kind = kind
        self.limit = limit
        self.label = f"z n, n x {kind.label}"

    def read(self, r: Reader) -> tuple[V, ...]:
        start = r.pos
        n = r.z()
        if n > self.limit:
            raise DecodeError(Fault.LIMIT, start, detail=f"count {n} is above {self.limit}")
        read = self.kind.read
        return tuple([read(r) for _ in range(n)])

    def write(self, w: Writer, value: tuple[V, ...]) -> None:
        if len(value) > self.limit:
            raise EncodeError(f"{len(value)} items are above the limit of {self.limit}")
        w.z(len(value))
        for item in value:
            self.kind.write(w, item)


class Repeat(Kind[tuple[V, ...]]):
    """A fixed number of items."""

    def __init__(self, kind: Kind[V], times: int) -> None:
        self.kind = kind
        self.times = times
        self.label = f"{times} x {kind.label}"

    def read(self, r: Reader) -> tuple[V, ...]:
        return tuple([self.kind.read(r) for _ in range(self.times)])

    def write(self, w: Writer, value: tuple[V, ...]) -> None:
        if len(value) != self.times:
            raise EncodeError(f"{self.times} items, not {len(value)}")
        for item in value:
            self.kind.write(w, item)


class OamBody(FlaggedKind[int | bytes | None]):
    """Nothing, a z64 or a sized buffer, as two header bits say: coded as in an extension."""

    label = "Unit, z64 or <u8;z32>"

    def __init__(self, encoding: Bits) -> None:
        self.mask = encoding.mask

    def read(self, r: Reader, word: int) -> int | bytes | None:
        match word & self.mask:
            case ExtEncoding.UNIT:
                return None
            case ExtEncoding.Z64:
                return r.z()
            case ExtEncoding.ZBUF:
                return payload.read(r)
        raise DecodeError(Fault.RESERVED_ENCODING, r.pos)

    def write(self, w: Writer, value: int | bytes | None) -> None:
        if isinstance(value, int):
            w.z(value)
        elif value is not None:
            payload.write(w, value)

    def bits(self, value: int | bytes | None) -> int:
        if value is None:
            return ExtEncoding.UNIT
        return ExtEncoding.Z64 if isinstance(value, int) else ExtEncoding.ZBUF


unit = Unit()
rest = Rest()
payload = Bytes(limits.PAYLOAD_MAX)
cookie = Bytes(limits.COOKIE_MAX)
schema = Bytes(limits.SCHEMA_MAX)
parameters = Text(limits.PARAMETERS_MAX)
key_suffix = Text(limits.KEY_SUFFIX_MAX)
rest_suffix = RestText(limits.KEY_SUFFIX_MAX)
region_name = RestText(limits.REGION_NAME_MAX, least=1)
