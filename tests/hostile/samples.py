"""Every message and struct with all it may have, and every place where it stands in a batch.

All of it follows from the definitions: a new message is attacked by existing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any

from fuzz.fields import Field, extension_end, fields_of, in_message, put_z
from tests.strategies import label, specs
from zenwire.errors import DecodeError, Fault
from zenwire.wire import kinds as k
from zenwire.wire.buffer import Reader
from zenwire.wire.define import BitsField, Ext, Plain, Spec, Unknown, spec_of
from zenwire.wire.encoding import Encoding
from zenwire.wire.linkstate import Link, LinksKind
from zenwire.wire.locator import Locator
from zenwire.wire.objects import OneOf, Struct, codec_of, decode, encode
from zenwire.wire.transport import Close, Frame, KeepAlive
from zenwire.wire.values import (
    Mapping,
    Priority,
    QoSLink,
    Resolution,
    UnknownExt,
    WhatAmI,
    WireExpr,
    ZenohId,
)

FRAME = encode(Frame(reliable=True, sn=7))
ZID = ZenohId(b"\x01\x02\x03\x04")
KEY = WireExpr(3, "key/a", Mapping.SENDER)
UNKNOWN = 0x0F
"""The header of a Unit extension that no message knows."""


# Values: one that is not the default for each kind.

_VALUES: dict[type, Callable[[Any], list[Any]]] = {
    k.U8: lambda _: [9],
    k.U16: lambda _: [513],
    k.Z: lambda _: [5],
    k.ZValue: lambda kind: [kind.parse(min(kind.keep, kind.top))],
    k.Optional32: lambda _: [7],
    k.Unit: lambda _: [True],
    k.Bytes: lambda _: [b"bytes"],
    k.Text: lambda _: ["text"],
    k.Rest: lambda _: [b"rest"],
    k.RestText: lambda _: ["name"],
    k.PlainZid: lambda _: [ZID],
    k.PackedZid: lambda _: [ZID],
    k.OptionalPackedZid: lambda _: [ZID],
    k.Nibble: lambda kind: [kind.values[1]],
    k.WhatAmIBitmap: lambda _: [WhatAmI.PEER],
    k.EncodingKind: lambda _: [Encoding(5, b"schema")],
    k.LocatorKind: lambda _: [Locator("tcp", "h:1")],
    k.ResolutionKind: lambda _: [Resolution.of(16, 64)],
    k.QoSLinkKind: lambda _: [QoSLink(True, (Priority.REAL_TIME, Priority.DATA), True)],
    k.Sequence: lambda kind: [(item, item) for item in values(kind.kind)],
    k.Repeat: lambda kind: [tuple(values(kind.kind) * kind.times)],
    k.WireExprKind: lambda kind: [KEY if kind.mapping else WireExpr(3, "key/a", Mapping.RECEIVER)],
    k.WireExprExt: lambda _: [KEY],
    k.Lease: lambda _: [10_000],
    k.OamBody: lambda _: [b"body", 5, None],
    Struct: lambda kind: full(kind.cls),
    OneOf: lambda kind: [m for spec in kind.specs for m in full(spec.cls)],
    LinksKind: lambda _: [(Link(1, 2), Link(3, 4))],
}


def values(kind: k.Kind[Any] | k.FlaggedKind[Any]) -> list[Any]:
    for cls in type(kind).__mro__:
        if cls in _VALUES:
            return _VALUES[cls](kind)
    raise TypeError(f"no value for {type(kind).__name__}: add one to {__file__}")


def full(cls: type) -> list[Any]:
    """Instances that have every field and every extension; several where a body may be several."""
    spec = spec_of(cls)
    choices = {e.name: _choices(spec, e) for e in spec.fields}
    count = max((len(some) for some in choices.values()), default=1)
    return [cls(**{n: some[i % len(some)] for n, some in choices.items()}) for i in range(count)]


def _choices(spec: Spec, e: Plain | BitsField | Ext | Unknown) -> list[Any]:
    if isinstance(e, Unknown):
        return [unknown(spec)]
    if isinstance(e, BitsField):
        return [list(e.type)[-1] if issubclass(e.type, IntEnum) else True]
    return values(e.kind)


def unknown(spec: Spec) -> tuple[UnknownExt, ...]:
    """An extension of each encoding that the message does not know."""
    bodies = ((k.ExtEncoding.UNIT, None), (k.ExtEncoding.Z64, 300), (k.ExtEncoding.ZBUF, b"xyz"))
    known = {e.header for e in spec.exts}
    ids = {encoding: max(set(range(16)) - {h ^ encoding for h in known}) for encoding, _ in bodies}
    return tuple(UnknownExt(encoding | ids[encoding], body) for encoding, body in bodies)


# Samples.


@dataclass(frozen=True, eq=False)
class Sample:
    """A message or struct, its bytes, and what they are."""

    spec: Spec
    message: Any
    data: bytes
    fields: tuple[Field, ...]
    chain: tuple[int, int]
    """Where its own extensions are, or would be."""

    def read(self, data: bytes) -> Any:
        """As ``zenwire.wire`` reads it alone. Raises DecodeError."""
        if self.spec.scope:
            return decode(data, self.spec.scope)
        r = Reader(data)
        found: object = codec_of(self.spec.cls).read(r)
        if r.pos != r.end:
            raise DecodeError(Fault.TRAILING, r.pos, self.spec.name)
        return found

    def value(self, field: Field) -> int:
        return Reader(self.data, field.start).z()

    def around(self, field: Field) -> list[Field]:
        """The lengths that count a field in, from the outside."""
        return [
            f
            for f in self.fields
            if f.form == "length"
            and f.end <= field.start
            and field.end <= f.end + self.value(f)
            and f is not field
        ]

    def replaced(self, field: Field, new: bytes) -> tuple[bytes, int]:
        """Other bytes for a field, and all lengths around it right; where the field is then."""
        data = self.data[: field.start] + new + self.data[field.end :]
        more = len(new) - (field.end - field.start)
        moved = 0
        for f in reversed(self.around(field)):
            length = put_z(self.value(f) + more)
            data = data[: f.start] + length + data[f.end :]
            more += len(length) - (f.end - f.start)
            moved += len(length) - (f.end - f.start)
        return data, field.start + moved

    def chained(self, chain: bytes) -> bytes:
        """With other extensions than its own; none if there are no bytes."""
        start, end = self.chain
        head = self.data[:start]
        if self.spec.scope:
            head = bytes([head[0] & 0x7F | (0x80 if chain else 0)]) + head[1:]
        return head + chain + self.data[end:]


@cache
def samples() -> tuple[Sample, ...]:
    """Of every definition there is, in all variants."""
    return tuple(_sample(spec, m) for spec in specs() for m in full(spec.cls))


def _sample(spec: Spec, message: Any) -> Sample:
    data = encode(message)
    fields = fields_of(data, in_message(spec.scope) if spec.scope else codec_of(spec.cls).read)
    start = end = len(data)
    if spec.exts or any(isinstance(e, Unknown) for e in spec.elements):
        start = end = next(f.start for f in fields if f.form == "ext")
        more = True
        while more:
            more = data[end] & 0x80 != 0
            end = extension_end(data, end)
    return Sample(spec, message, data, fields, (start, end))


def of(cls: type) -> Sample:
    """The first sample of a class."""
    return next(s for s in samples() if s.spec.cls is cls)


def name(sample: Sample) -> str:
    """Unique, for test ids."""
    same = [s for s in samples() if s.spec is sample.spec]
    number = f"-{same.index(sample)}" if len(same) > 1 else ""
    return f"{label(sample.spec)}{number}"


# Places.


@dataclass(frozen=True)
class Place:
    """What is before and after a message in a batch. ``sized``: its length comes first."""

    head: bytes = b""
    tail: bytes = b""
    sized: bool = False
    outer: Place | None = None
    low_latency: bool = False

    def put(self, data: bytes) -> tuple[bytes, int]:
        """The batch, and where in it the data begins."""
        head = self.head + (put_z(len(data)) if self.sized else b"")
        whole = head + data + self.tail
        if self.outer is None:
            return whole, len(head)
        whole, at = self.outer.put(whole)
        return whole, at + len(head)


@cache
def places(spec: Spec) -> tuple[Place, ...]:
    """Where a message or struct may stand in a batch; nowhere for those of scouting."""
    if spec.scope == "transport":
        bare = spec.cls in (Close, KeepAlive)
        return (Place(), Place(low_latency=True)) if bare else (Place(),)
    if spec.scope == "network":
        return (Place(FRAME), Place(low_latency=True))
    found = []
    for sample in {s.spec: s for s in reversed(samples())}.values():
        for e in sample.spec.elements:
            if isinstance(e, Plain) and isinstance(e.kind, OneOf) and spec in e.kind.specs:
                found += _as_body(sample)
            elif isinstance(e, Ext) and isinstance(e.kind, Struct) and e.kind.cls is spec.cls:
                found += _as_extension(sample, e)
    return tuple(found)


def _as_body(sample: Sample) -> list[Place]:
    body = next(f for f in sample.fields if isinstance(f.kind, OneOf))
    rest = len(sample.data) - body.start
    head = sample.chained(b"")[:-rest]
    return [_inside(place, head) for place in places(sample.spec)]


def _as_extension(sample: Sample, e: Ext) -> list[Place]:
    start, end = sample.chain
    head = sample.chained(bytes([e.header]))[: start + 1]
    tail = sample.data[end:]
    return [_inside(place, head, tail, sized=True) for place in places(sample.spec)]


def _inside(outer: Place, head: bytes, tail: bytes = b"", *, sized: bool = False) -> Place:
    return Place(head, tail, sized, outer, outer.low_latency)
