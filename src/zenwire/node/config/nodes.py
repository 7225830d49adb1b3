"""What a text of any format becomes before its meaning is looked at: values with positions."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn, TypeAlias

from zenwire.errors import ConfigError, ConfigProblem

__all__ = [
    "DEPTH_MAX",
    "NODES_MAX",
    "TEXT_MAX",
    "Entry",
    "Json",
    "Node",
    "Scalar",
    "from_plain",
    "paths_of",
    "syntax_error",
]

TEXT_MAX: Final = 4 << 20
"""Characters of a configuration. Those of large fleets have a few ten thousand."""
DEPTH_MAX: Final = 64
"""How deep objects and arrays may be nested; zenoh's own tree has seven levels."""
NODES_MAX: Final = 200_000
"""Values in a configuration, where each use of a YAML alias counts again."""

Scalar: TypeAlias = str | int | float | bool | None
Json: TypeAlias = Scalar | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of an object with its own position, and its value."""

    key: str
    line: int
    column: int
    node: Node


@dataclass(frozen=True, slots=True)
class Node:
    """A value: a scalar, a list of nodes (array), or a list of entries (object).

    ``line`` and ``column`` count from 1, and are 0 where there is no text.
    """

    value: Scalar = None
    items: tuple[Node, ...] | None = field(default=None, kw_only=True)
    entries: tuple[Entry, ...] | None = field(default=None, kw_only=True)
    line: int = 0
    column: int = 0

    @property
    def kind(self) -> str:
        """What it is, in words for a message."""
        if self.entries is not None:
            return "an object"
        if self.items is not None:
            return "an array"
        match self.value:
            case None:
                return "null"
            case bool():
                return str(self.value).lower()
            case str():
                return reprlib.repr(self.value)
        return str(self.value)


def paths_of(node: Node, path: str = "") -> Iterator[str]:
    """Yield the path of every key of an object, and of the objects in it."""
    for entry in node.entries or ():
        where = f"{path}/{entry.key}" if path else entry.key
        yield where
        yield from paths_of(entry.node, where)


def syntax_error(reason: str, line: int, column: int) -> NoReturn:
    """The text is not of its format. No more than this one problem can be told."""
    raise ConfigError((ConfigProblem("", reason, line=line, column=column),))


def from_plain(value: object) -> Node:
    """From what Python programs write: dicts, lists, tuples, strings, numbers, None.

    Raises ConfigError for anything else, with its path.
    """
    return _from_plain(value, (), [0])


def _from_plain(value: object, path: tuple[str, ...], count: list[int]) -> Node:
    count[0] += 1
    if len(path) > DEPTH_MAX or count[0] > NODES_MAX:
        _refuse(path, "nested too deep" if len(path) > DEPTH_MAX else "too many values")
    if value is None or isinstance(value, str | bool | int | float):
        return Node(value)
    if isinstance(value, Mapping):
        entries = []
        for key, item in value.items():
            if not isinstance(key, str):
                _refuse(path, f"a key is text, not {key!r}")
            entries.append(Entry(key, 0, 0, _from_plain(item, (*path, key), count)))
        return Node(entries=tuple(entries))
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        items = (_from_plain(item, (*path, str(at)), count) for at, item in enumerate(value))
        return Node(items=tuple(items))
    return _refuse(path, f"{type(value).__name__} is not a value of a configuration")


def _refuse(path: tuple[str, ...], reason: str) -> NoReturn:
    raise ConfigError((ConfigProblem("/".join(path[:DEPTH_MAX]), reason),))
