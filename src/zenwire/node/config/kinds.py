"""Kinds of settings: what each accepts, what it becomes in Python, and how it is written as JSON.

A kind reports what is wrong to ``Problems`` and goes on with the rest, so that one reading tells
everything. A section of the tree is a class whose fields carry their kinds (`settings`, `option`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Any, Final, Generic, NoReturn, Protocol, TypeVar, cast, dataclass_transform

from zenwire.errors import ConfigProblem
from zenwire.node.config.nodes import Json, Node

__all__ = [
    "ANYTHING",
    "BOOL",
    "FLOAT",
    "I64",
    "SECRET",
    "TEXT",
    "U16",
    "U32",
    "U64",
    "Anything",
    "Choice",
    "Integer",
    "Kind",
    "ListOf",
    "Nullable",
    "Option",
    "Problems",
    "Refused",
    "Section",
    "computed",
    "nearest",
    "number_of",
    "option",
    "options_of",
    "own",
    "required",
    "section",
    "settings",
    "sub",
]

T = TypeVar("T")
E = TypeVar("E", bound=Enum)
T_co = TypeVar("T_co", covariant=True)


class Refused(Exception):  # noqa: N818 # not an error of the program: the problem is reported
    """A value was refused; why is in the Problems already."""


class Problems:
    """What was found wrong so far."""

    def __init__(self) -> None:
        self.found: list[ConfigProblem] = []

    def add(self, path: str, at: Node, reason: str, hint: str = "") -> None:
        self.found.append(ConfigProblem(path, reason, hint, at.line, at.column))

    def refuse(self, path: str, at: Node, reason: str, hint: str = "") -> NoReturn:
        self.add(path, at, reason, hint)
        raise Refused


class Kind(Protocol[T_co]):
    """How a setting is read and written."""

    def read(self, node: Node, path: str, problems: Problems) -> T_co:
        """The value. Reports and raises Refused if it is none of this kind."""
        ...

    # A kind writes the values that it reads; their type is not known where kinds are mixed.
    def plain(self, value: Any) -> Json:
        """The value as JSON."""
        ...


def sub(path: str, name: str | int) -> str:
    """The path of something inside of what has this path."""
    return f"{path}/{name}" if path else str(name)


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint at the name that was probably meant."""
    known = list(names)
    close = get_close_matches(name, known, n=1) or get_close_matches(name.lower(), known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"one of {', '.join(known)}"


@dataclass(frozen=True, slots=True)
class Scalar(Generic[T]):
    """Text, or true and false: taken as they are. A secret is not repeated in messages."""

    type: type[T]
    name: str
    secret: bool = False

    def read(self, node: Node, path: str, problems: Problems) -> T:
        if node.items is None and node.entries is None and type(node.value) is self.type:
            return node.value
        found = "" if self.secret else f", not {node.kind}"
        return problems.refuse(path, node, f"{self.name} is expected{found}")

    def plain(self, value: Any) -> Json:
        return cast(Json, value)


TEXT: Final = Scalar(str, "text")
SECRET: Final = Scalar(str, "text", secret=True)
BOOL: Final = Scalar(bool, "true or false")


def number_of(node: Node) -> int | float | None:
    """The number that a node is, if it is one."""
    if node.items is None and node.entries is None and type(node.value) in {int, float}:
        return cast("int | float", node.value)
    return None


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number within bounds. The reference bends others until they fit; here they are wrong.

    ``1e3`` is a whole number too, unless ``exact``.
    """

    low: int
    high: int
    exact: bool = False

    def read(self, node: Node, path: str, problems: Problems) -> int:
        value = number_of(node)
        if isinstance(value, float) and not self.exact and value.is_integer():
            value = int(value)
        if not isinstance(value, int):
            problems.refuse(path, node, f"a whole number is expected, not {node.kind}")
        if not self.low <= value <= self.high:
            reason = f"{value} is not between {self.low} and {self.high}"
            problems.refuse(path, node, reason)
        return value

    def plain(self, value: Any) -> Json:
        return cast(int, value)


U16: Final = Integer(0, 2**16 - 1)
U32: Final = Integer(0, 2**32 - 1)
U64: Final = Integer(0, 2**64 - 1)
I64: Final = Integer(-(2**63), 2**63 - 1)


@dataclass(frozen=True, slots=True)
class Float:
    """A number."""

    def read(self, node: Node, path: str, problems: Problems) -> float:
        value = number_of(node)
        if value is None:
            problems.refuse(path, node, f"a number is expected, not {node.kind}")
        if math.isinf(value) or math.isnan(value):
            problems.refuse(path, node, f"{value} is not a number to calculate with")
        try:
            return float(value)
        except OverflowError:
            problems.refuse(path, node, "this number is too large")

    def plain(self, value: Any) -> Json:
        return cast(float, value)


FLOAT: Final = Float()


@dataclass(frozen=True, slots=True)
class Choice(Generic[E]):
    """One of some names. The values of the enumeration are the names as they are written."""

    type: type[E]

    def read(self, node: Node, path: str, problems: Problems) -> E:
        names = [str(member.value) for member in self.type]
        text = TEXT.read(node, path, problems) if isinstance(node.value, str) else None
        if text is None:
            problems.refuse(path, node, f"one of {', '.join(names)} is expected, not {node.kind}")
        if text not in names:
            problems.refuse(path, node, f"{text!r} is not known", nearest(text, names))
        return self.type(text)

    def plain(self, value: Any) -> Json:
        return cast(str, value.value)


@dataclass(frozen=True, slots=True)
class Nullable(Generic[T]):
    """Null, which says nothing, or a value."""

    kind: Kind[T]

    def read(self, node: Node, path: str, problems: Problems) -> T | None:
        if node.items is None and node.entries is None and node.value is None:
            return None
        return self.kind.read(node, path, problems)

    def plain(self, value: Any) -> Json:
        return None if value is None else self.kind.plain(value)


@dataclass(frozen=True, slots=True)
class ListOf(Generic[T]):
    """Any number of values; at least one if ``not_empty``."""

    kind: Kind[T]
    not_empty: bool = False

    def read(self, node: Node, path: str, problems: Problems) -> tuple[T, ...]:
        if node.items is None:
            problems.refuse(path, node, f"an array is expected, not {node.kind}")
        if self.not_empty and not node.items:
            problems.refuse(path, node, "an array with something in it is expected")
        values: list[T] = []
        for at, item in enumerate(node.items):
            try:
                values.append(self.kind.read(item, sub(path, at), problems))
            except Refused:
                continue
        if len(values) < len(node.items):
            raise Refused
        return tuple(values)

    def plain(self, value: Any) -> Json:
        return [self.kind.plain(item) for item in value]


@dataclass(frozen=True, slots=True)
class Anything:
    """Any JSON. What JSON cannot say, such as NaN, is refused."""

    objects_only: bool = False

    def read(self, node: Node, path: str, problems: Problems) -> Json:
        if self.objects_only and node.entries is None:
            problems.refuse(path, node, f"an object is expected, not {node.kind}")
        if node.items is not None:
            return list(ListOf(Anything()).read(node, path, problems))
        if node.entries is not None:
            return _object(node, path, problems)
        if isinstance(node.value, float) and not math.isfinite(node.value):
            problems.refuse(path, node, f"{node.value} is not JSON")
        if isinstance(node.value, int) and not isinstance(node.value, bool):
            return I64.read(node, path, problems)
        return node.value

    def plain(self, value: Any) -> Json:
        return cast(Json, value)


ANYTHING: Final = Anything()


def _object(node: Node, path: str, problems: Problems) -> dict[str, Json]:
    values: dict[str, Json] = {}
    bad = False
    for entry in node.entries or ():
        where = sub(path, entry.key)
        if entry.key in values:
            problems.add(where, Node(line=entry.line, column=entry.column), "comes twice")
            bad = True
        try:
            values[entry.key] = ANYTHING.read(entry.node, where, problems)
        except Refused:
            bad = True
    if bad:
        raise Refused
    return dict(sorted(values.items()))


@dataclass(frozen=True, slots=True)
class Option:
    """What a field of a section carries beside its type and default.

    ``shown``: whether it appears when its section is written; ``own``: only if it is not the
    default, since zenoh does not know it and would refuse it. ``addressed``: whether a path goes
    on inside of it, as it does for sections of the tree but not for objects in arrays.
    """

    kind: Kind[Any]
    shown: bool = True
    addressed: bool = False
    own: bool = False


_OPTION: Final = "option"


def option(kind: Kind[T], *, default: T, shown: bool = True) -> Any:
    """A field of a section."""
    metadata = {_OPTION: Option(kind, shown=shown)}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=default.copy, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def own(kind: Kind[T], *, default: T) -> Any:
    """A field of a section that zenoh does not have."""
    return dataclasses.field(default=default, metadata={_OPTION: Option(kind, own=True)})


def computed(kind: Kind[T], *, factory: Callable[[], T]) -> Any:
    """A field of a section whose default depends on the machine."""
    return dataclasses.field(default_factory=factory, metadata={_OPTION: Option(kind)})


def required(kind: Kind[T]) -> Any:
    """A field of a section that must be there."""
    return dataclasses.field(metadata={_OPTION: Option(kind)})


def section(*, factory: type[T], addressed: bool = True) -> Any:
    """A field of a section that is a section itself, by default with all its defaults."""
    metadata = {_OPTION: Option(Section(factory), addressed=addressed)}
    return dataclasses.field(default_factory=factory, metadata=metadata)


@dataclass_transform(
    frozen_default=True,
    kw_only_default=True,
    field_specifiers=(option, own, computed, required, section),
)
def settings(cls: type[T]) -> type[T]:
    """Make a section of a class: frozen, slotted, by keywords only."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


def options_of(cls: type[Any]) -> dict[str, Option]:
    """The options of a section by name, in the order in which they are written."""
    return {field.name: field.metadata[_OPTION] for field in dataclasses.fields(cls)}


@dataclass(frozen=True, slots=True)
class Section(Generic[T]):
    """An object with known keys, which becomes a frozen dataclass.

    A dataclass with a method ``check`` is asked for what is wrong between its fields.
    """

    type: type[T]

    def read(self, node: Node, path: str, problems: Problems) -> T:
        if node.entries is None:
            problems.refuse(path, node, f"an object is expected, not {node.kind}")
        options = options_of(self.type)
        values: dict[str, object] = {}
        bad = False
        for entry in node.entries:
            where = sub(path, entry.key)
            at = Node(line=entry.line, column=entry.column)
            known = options.get(entry.key)
            if known is None or entry.key in values:
                if known is None:
                    problems.add(where, at, "no such setting", nearest(entry.key, options))
                else:
                    problems.add(where, at, "comes twice")
                bad = True
                continue
            values[entry.key] = None
            try:
                values[entry.key] = known.kind.read(entry.node, where, problems)
            except Refused:
                bad = True
        for field in dataclasses.fields(cast(Any, self.type)):
            if field.name not in values and _is_required(field):
                problems.add(path, node, f"{field.name!r} is missing")
                bad = True
        if bad:
            raise Refused
        made = self.type(**values)
        check = getattr(made, "check", None)
        reason = check() if check is not None else ""
        if reason:
            problems.refuse(path, node, reason)
        return made

    def plain(self, value: Any) -> Json:
        made: dict[str, Json] = {}
        for field in dataclasses.fields(cast(Any, self.type)):
            known, set_to = field.metadata[_OPTION], getattr(value, field.name)
            if known.shown and not (known.own and set_to == field.default):
                made[field.name] = known.kind.plain(set_to)
        return made


def _is_required(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing
