"""The language of message definitions.

A message is a class whose attributes stand in wire order::

    @message("PUT", scope="data", id=0x01)
    class Put:
        T = flag(5)
        timestamp: Timestamp | None = field(k.timestamp, when=T, default=None)
        attachment: bytes | None = ext(0x3, k.rest, default=None)
        payload: bytes = field(k.payload)

``flag`` names bits of the header and ``word`` an additional flag byte; nobody sets them, they
follow from the values. ``default`` is the value that is not sent. Extensions come as one chain,
where the first of them stands, and are written in the order of the definition. A ``struct`` is
the same without a header.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any, TypeVar, cast, dataclass_transform, overload

from zenwire.wire.kinds import U8, Bits, ExtEncoding, FlaggedKind, Kind, Z, u8
from zenwire.wire.values import UnknownExt

__all__ = [
    "BitsField",
    "Element",
    "Ext",
    "Plain",
    "Spec",
    "Unknown",
    "Word",
    "bits",
    "blank_of",
    "boolean",
    "ext",
    "field",
    "flag",
    "message",
    "messages",
    "spec_of",
    "struct",
    "unknown_exts",
    "word",
]

C = TypeVar("C")
D = TypeVar("D")
N = TypeVar("N", bound=IntEnum)
V = TypeVar("V")

# Defaults are of any type, and dataclasses marks their absence by an object of its own.
_REQUIRED: Any = dataclasses.MISSING


@dataclass(frozen=True, slots=True)
class Word:
    """An additional flag word, at its place among the fields. Bits of it are ``Bits(word=1)``."""

    kind: U8 | Z
    when: Bits | None

    def flag(self, bit: int) -> Bits:
        return Bits(bit, 1, word=1)


@dataclass(frozen=True, slots=True)
class Plain:
    """A field: always there, or when some bits are set."""

    name: str
    kind: Kind[Any] | FlaggedKind[Any]
    when: Bits | None
    default: Any
    column: str


@dataclass(frozen=True, slots=True)
class BitsField:
    """A value that is bits of a flag word and nothing else."""

    name: str
    bits: Bits
    type: type[int]
    default: Any


@dataclass(frozen=True, slots=True)
class Ext:
    """An extension, recognised by its whole header but the Z bit."""

    name: str
    id: int
    kind: Kind[Any]
    mandatory: bool
    default: Any
    column: str

    @property
    def header(self) -> int:
        return self.id | self.kind.encoding | self.mandatory << 4


@dataclass(frozen=True, slots=True)
class Unknown:
    """Where the optional extensions are kept that we do not know."""

    name: str


Element = Word | Plain | BitsField | Ext | Unknown


@dataclass(frozen=True, slots=True)
class Spec:
    """A definition, in wire order. A struct has no scope and no id."""

    name: str
    cls: type
    elements: tuple[Element, ...]
    scope: str = ""
    id: int = 0
    variant: tuple[int, int] = (0, 0)
    """Header bits that tell two messages of one id apart: mask and value."""

    @property
    def fields(self) -> tuple[Plain | BitsField | Ext | Unknown, ...]:
        return tuple(e for e in self.elements if not isinstance(e, Word))

    @property
    def exts(self) -> tuple[Ext, ...]:
        return tuple(e for e in self.elements if isinstance(e, Ext))

    def matches(self, header: int) -> bool:
        mask, value = self.variant
        return header & 0x1F == self.id and header & mask == value


def flag(shift: int, width: int = 1) -> Bits:
    """Bits of the header."""
    return Bits(shift, width)


def word(kind: U8 | Z = u8, *, when: Bits | None = None) -> Word:
    """A flag word among the fields."""
    return Word(kind, when)


@overload
def field(
    kind: Kind[V] | FlaggedKind[V], *, when: Bits | None = ..., column: str | None = ...
) -> V: ...
@overload
def field(
    kind: Kind[V] | FlaggedKind[V],
    *,
    when: Bits | None = ...,
    default: D,
    column: str | None = ...,
) -> V | D: ...
def field(
    kind: Kind[Any] | FlaggedKind[Any],
    *,
    when: Bits | None = None,
    default: Any = _REQUIRED,
    column: str | None = None,
) -> Any:  # Any: what the overloads say; type checkers see a field specifier
    """A field. ``column`` is its name in tables where that differs from the attribute's."""
    made = Plain("", kind, when, default, column or "")
    return dataclasses.field(default=default, metadata={"element": made, "column": column})


def bits(of: Bits, type: type[N], *, default: N) -> N:
    """A field that is bits of a flag word."""
    made = BitsField("", of, type, default)
    return dataclasses.field(default=default, metadata={"element": made})


def boolean(of: Bits, *, default: bool) -> bool:
    """A field that is one bit of a flag word."""
    made = BitsField("", of, bool, default)
    return dataclasses.field(default=default, metadata={"element": made})


def ext(
    id: int,
    kind: Kind[V],
    *,
    default: D,
    mandatory: bool = False,
    column: str | None = None,
) -> V | D:
    """An extension. One that has its default is not sent."""
    made = Ext("", id, kind, mandatory, default, column or "")
    meta = {"element": made, "column": column}
    return cast("V | D", dataclasses.field(default=default, metadata=meta))


def unknown_exts(*, default: tuple[UnknownExt, ...]) -> tuple[UnknownExt, ...]:
    """Unknown optional extensions: kept, and written again after the known ones."""
    meta = {"element": Unknown("")}
    return dataclasses.field(default=default, metadata=meta)


_SPECS: dict[type, Spec] = {}


def spec_of(cls: type) -> Spec:
    """The definition of a message or struct class. Raises TypeError for another class."""
    spec = _SPECS.get(cls)
    if spec is None:
        raise TypeError(f"{cls.__name__} is not a message or struct of the protocol")
    return spec


@cache
def blank_of(cls: type) -> type:
    """What becomes one of a message or struct class when all fields are set: ``__class__`` then.

    A frozen dataclass sets its fields by calls. A class with the same slots that is not frozen
    has them set in a third of the time, and its objects may be declared to be of the other one.
    """
    slots = tuple(f.name for f in spec_of(cls).fields)
    blank = type(cls.__name__, (), {"__slots__": slots})
    blank().__class__ = cls  # raises TypeError if they differ in more than that
    return blank


def messages(scope: str) -> tuple[Spec, ...]:
    """All messages of a scope, in order of definition."""
    return tuple(s for s in _SPECS.values() if s.scope == scope)


@dataclass_transform(
    frozen_default=True,
    kw_only_default=True,
    field_specifiers=(field, bits, boolean, ext, unknown_exts),
)
def message(
    name: str, *, scope: str, id: int, variant: tuple[int, int] = (0, 0)
) -> Callable[[type[C]], type[C]]:
    """Make a frozen, keyword-only dataclass of a definition, and register it."""

    def define(cls: type[C]) -> type[C]:
        elements = _elements(cls)
        made = dataclass(frozen=True, slots=True, kw_only=True)(cls)
        spec = Spec(name, made, elements, scope, id, variant)
        for other in messages(scope):
            if other.id == id and other.variant[0] & variant[0] == 0:
                raise TypeError(f"{name} and {other.name} have the same id in {scope}")
        _SPECS[made] = spec
        return made

    return define


@dataclass_transform(
    frozen_default=True,
    kw_only_default=True,
    field_specifiers=(field, bits, boolean, ext, unknown_exts),
)
def struct(cls: type[C]) -> type[C]:
    """Make a frozen dataclass of a definition that has no header."""
    elements = _elements(cls)
    made = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    _SPECS[made] = Spec(cls.__name__, made, elements)
    return made


def _elements(cls: type) -> tuple[Element, ...]:
    """The class body in order: dataclass fields carry their element, words stand bare."""
    found: list[Element] = []
    for name, value in vars(cls).items():
        if isinstance(value, Word):
            found.append(value)
        elif isinstance(value, dataclasses.Field):
            element: Element = value.metadata["element"]
            changes: dict[str, Any] = {"name": name}
            if isinstance(element, Plain | Ext):
                column = value.metadata["column"]
                changes["column"] = name if column is None else column
            found.append(dataclasses.replace(element, **changes))
    _check(cls, found)
    return tuple(found)


def _check(cls: type, elements: list[Element]) -> None:
    """A definition that cannot be coded does not import."""
    chain = [i for i, e in enumerate(elements) if isinstance(e, Ext | Unknown)]
    if chain and chain != list(range(chain[0], chain[-1] + 1)):
        raise TypeError(f"{cls.__name__}: extensions form one chain, define them together")
    headers = [e.header for e in elements if isinstance(e, Ext)]
    if len(set(headers)) != len(headers):
        raise TypeError(f"{cls.__name__}: two extensions have one header")
    for e in elements:
        if isinstance(e, Ext) and e.kind.encoding is ExtEncoding.UNIT and e.default is not False:
            raise TypeError(f"{cls.__name__}.{e.name}: a Unit extension is False when absent")
        if isinstance(e, Plain) and e.when is not None and e.default is _REQUIRED:
            raise TypeError(f"{cls.__name__}.{e.name}: an optional field has a default")
    if sum(isinstance(e, Word) for e in elements) > 1:
        raise TypeError(f"{cls.__name__}: one additional flag word is all that is supported")
