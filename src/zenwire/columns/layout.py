"""Which columns there are, derived from the message definitions.

A table of rows is an int32 array and a uint64 array, one row of the array per column, and one
uint64 of presence bits per message. A value is written only where its bit is set. The same
layout serves the scanner, the writer, the Arrow schema and the generator of the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, Final

from zenwire.wire import kinds as k
from zenwire.wire.define import BitsField, Element, Ext, Plain, Spec, Unknown, Word, spec_of
from zenwire.wire.network import Declare, Interest, Oam, Push, Request, Response, ResponseFinal
from zenwire.wire.objects import OneOf, Struct
from zenwire.wire.transport import Close, Fragment, Frame, KeepAlive, TransportOam

__all__ = [
    "BODY_SHIFT",
    "MESSAGE_SHIFT",
    "NETWORK",
    "TRANSPORT",
    "Column",
    "Form",
    "Layout",
    "column_names",
    "is_opaque",
    "join_name",
]

AnyKind = k.Kind[Any] | k.FlaggedKind[Any]  # Any: whatever the field holds

BODY_SHIFT: Final = 48
"""Bits of the presence word from here up: the id of the innermost body."""
MESSAGE_SHIFT: Final = 56
"""And from here up: the id of the message."""


class Form(Enum):
    """How a column is stored."""

    BOOL = auto()
    """The presence bit is the value."""
    INT32 = auto()
    """One row of the int32 array; unsigned values up to 32 bits keep their bits."""
    UINT64 = auto()
    """One row of the uint64 array."""
    SPAN = auto()
    """Two rows of the int32 array: where the bytes start, and how many there are."""


_Part = tuple[str, Form, bool, bool]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table, and where its values are."""

    name: str
    form: Form
    bit: int
    slot: int
    text: bool = False
    """A span of UTF-8."""
    wide: bool = False
    """An INT32 whose unsigned values need 33 bits."""
    default: int | None = None
    """What absence stands for, in messages that have the field."""


@dataclass(eq=False)
class Layout:
    """The columns of one table. ``fixed`` are rows of the int32 array that every message has."""

    fixed: tuple[str, ...]
    specs: tuple[Spec, ...]
    columns: dict[str, Column] = field(default_factory=dict)
    int32: int = 0
    uint64: int = 0
    defaults: dict[tuple[int, int], int] = field(default_factory=dict)
    """(message id, body id) -> bits of the columns that have a default there: False for a BOOL."""

    def __post_init__(self) -> None:
        self.int32 = len(self.fixed)
        for spec in self.specs:
            self._message(spec, spec.id, 0)
        if len(self.columns) > BODY_SHIFT:
            raise TypeError("more columns than presence bits")

    def _message(self, spec: Spec, message: int, bits: int, body: int = 0) -> None:
        """Columns of a message and of each body it may have; defaults add up on the way."""
        inner: OneOf[Any] | None = None
        for e in spec.elements:
            bits |= self._element(e)
            if isinstance(e, Plain) and isinstance(e.kind, OneOf):
                inner = e.kind
        if inner is None:
            self.defaults[message, body] = bits
            return
        for sub in inner.specs:
            self._message(sub, message, bits, sub.id)

    def _element(self, e: Element) -> int:
        """Adds the element's columns; gives the bits of those with a default."""
        if isinstance(e, Word):
            return 0
        if isinstance(e, Unknown):
            self.add(e.name, Form.INT32)
            return 0
        if isinstance(e, BitsField):
            self.add(e.name, Form.BOOL if e.type is bool else Form.INT32)
            return 1 << self.columns[e.name].bit if e.type is bool else 0
        self._kind(e.kind, e.column)
        if isinstance(e.kind, k.Unit):
            return 1 << self.columns[e.column].bit
        if isinstance(e.kind, k.WireExprKind | k.WireExprExt):
            return 1 << self.columns[join_name(e.column, "mapping")].bit
        default = _raw_default(e)
        if default is None:
            return 0
        column = self.columns[e.column]
        if column.default is None:
            column = replace(column, default=default)
            self.columns[e.column] = column
        elif column.default != default:
            raise TypeError(f"{e.column} has two defaults")
        return 1 << column.bit

    def _kind(self, kind: AnyKind, name: str) -> None:
        for part, form, text, wide in _parts(kind, name):
            self.add(part, form, text=text, wide=wide)

    def add(self, name: str, form: Form, *, text: bool = False, wide: bool = False) -> None:
        """A column; one that several messages have is there once."""
        known = self.columns.get(name)
        if known is not None:
            if (known.form, known.text) != (form, text):
                raise TypeError(f"{name} has two forms")
            return
        slot = 0
        if form is Form.UINT64:
            slot, self.uint64 = self.uint64, self.uint64 + 1
        elif form is not Form.BOOL:
            slot, self.int32 = self.int32, self.int32 + (2 if form is Form.SPAN else 1)
        self.columns[name] = Column(name, form, len(self.columns), slot, text, wide)


def column_names(kind: AnyKind, name: str) -> list[str]:
    """The columns that a field or extension of this kind has."""
    return [part for part, _, _, _ in _parts(kind, name)]


def _parts(kind: AnyKind, name: str) -> list[_Part]:
    """Name, form, whether text, whether wide, of each column of a kind."""

    def one(form: Form, *, text: bool = False, wide: bool = False) -> _Part:
        return name, form, text, wide

    match kind:
        case OneOf():
            return []
        case k.Unit():
            return [one(Form.BOOL)]
        case k.WireExprKind() | k.WireExprExt():
            return [
                (join_name(name, "scope"), Form.INT32, False, False),
                (join_name(name, "suffix"), Form.SPAN, True, False),
                (join_name(name, "mapping"), Form.BOOL, False, False),
            ]
        case k.EncodingKind():
            return [one(Form.INT32), (join_name(name, "schema"), Form.SPAN, False, False)]
        case k.OamBody():
            return [
                (join_name(name, "value"), Form.UINT64, False, False),
                (join_name(name, "body"), Form.SPAN, False, False),
            ]
        case Struct() if not is_opaque(kind):
            fields = [e for e in spec_of(kind.cls).elements if isinstance(e, Plain)]
            return [p for e in fields for p in _parts(e.kind, join_name(name, e.column))]
        case Struct() | k.Bytes() | k.Rest() | k.PlainZid() | k.PackedZid():
            return [one(Form.SPAN)]
        case k.Text() | k.RestText():
            return [one(Form.SPAN, text=True)]
        case k.Z(bits=64):
            return [one(Form.UINT64)]
        case k.ZValue() if min(kind.keep, kind.top) >> 32:
            return [one(Form.UINT64)]
        case k.Z(bits=32) | k.Optional32():
            return [one(Form.INT32, wide=True)]
        case k.U8() | k.U16() | k.Z() | k.ZValue():
            return [one(Form.INT32)]
    raise TypeError(f"no column for {type(kind).__name__}")


def join_name(prefix: str, name: str) -> str:
    """``source`` and ``zid`` make ``source_zid``; an empty part adds nothing."""
    return f"{prefix}_{name}" if prefix and name else prefix or name


def is_opaque(kind: Struct[Any]) -> bool:
    """A struct that repeats something has no columns of its own: it is one span."""
    parts = [e.kind for e in spec_of(kind.cls).elements if isinstance(e, Plain | Ext)]
    return any(isinstance(part, k.Sequence | k.Repeat) for part in parts)


def _raw_default(e: Plain | Ext) -> int | None:
    """The default as the column holds it; None where absence is a null."""
    default = e.default
    if isinstance(e.kind, k.ZValue):
        return e.kind.raw(default)
    if isinstance(e.kind, k.EncodingKind) and e.default.schema is None:
        return int(default.id)
    return default if isinstance(e.kind, k.Z) and isinstance(default, int) else None


NETWORK: Final = Layout(
    ("frame", "at", "end", "body_at"),
    tuple(spec_of(cls) for cls in (Push, Request, Response, ResponseFinal, Declare, Interest, Oam)),
)
"""One row per network message, its body included.

``frame`` is the FRAME's row of TRANSPORT; without a FRAME (low latency) it is -1 - batch.
"""

TRANSPORT: Final = Layout(
    ("batch", "at", "end"),
    tuple(spec_of(cls) for cls in (TransportOam, Close, KeepAlive, Frame, Fragment)),
)
"""One row per transport message. INIT, OPEN and JOIN have no columns but where they stand:
they are few, and ``zenwire.wire`` reads them."""
