"""YAML with positions, by PyYAML (the extra ``yaml``).

PyYAML reads the syntax; what a plain scalar means is decided here, by the core schema of
YAML 1.2 as in the reference: ``yes`` is text. No tag makes an object of Python.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final

from zenwire.errors import ConfigError, ConfigProblem
from zenwire.node.config.nodes import (
    DEPTH_MAX,
    NODES_MAX,
    TEXT_MAX,
    Entry,
    Node,
    Scalar,
    syntax_error,
)

__all__ = ["parse_yaml"]

_TAG: Final = "tag:yaml.org,2002:"
_INT: Final = re.compile(r"[+-]?(?:0x[0-9a-fA-F]+|0o[0-7]+|0b[01]+|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[+-]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][+-]?[0-9]+)?")
_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{f"{sign}.{word}": math.inf for sign in ("", "+") for word in ("inf", "Inf", "INF")},
    **{f"-.{word}": -math.inf for word in ("inf", "Inf", "INF")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_DIGITS_MAX: Final = 400

# PyYAML is optional and ships no annotations: its module, events and marks are untyped here.
Yaml = Any


def parse_yaml(text: str) -> Node:
    """The value that the only document of a text holds. Raises ConfigError with line and column."""
    if len(text) > TEXT_MAX:
        syntax_error(f"a configuration has at most {TEXT_MAX} characters", 1, 1)
    try:
        yaml: Yaml = import_module("yaml")
    except ImportError:
        hint = "pip install 'zenwire[yaml]', or write the configuration in JSON5"
        raise ConfigError((ConfigProblem("", "reading YAML needs PyYAML", hint),)) from None
    try:
        return _Composer(yaml, yaml.parse(text, yaml.SafeLoader)).document()
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None) or getattr(e, "context_mark", None)
        reason = getattr(e, "problem", None) or getattr(e, "reason", None) or str(e)
        if mark is None:
            syntax_error(f"not YAML: {reason}", 1, 1)
        syntax_error(f"not YAML: {reason}", mark.line + 1, mark.column + 1)


class _Composer:
    """Events to nodes. Aliases share their node; each use counts as if it were written out."""

    def __init__(self, yaml: Yaml, events: Iterator[Yaml]) -> None:
        self.yaml = yaml
        self.events = events
        self.anchors: dict[str, tuple[Node, int, int]] = {}
        self.nodes = 0

    def document(self) -> Node:
        yaml = self.yaml
        event = next(self.events)
        while isinstance(event, yaml.StreamStartEvent | yaml.DocumentStartEvent):
            event = next(self.events)
        if isinstance(event, yaml.StreamEndEvent):
            return Node(line=1, column=1)
        node, _ = self.value(event, 0)
        next(self.events)
        end = next(self.events)
        if not isinstance(end, yaml.StreamEndEvent):
            syntax_error("a configuration is one document", *_position(end))
        return node

    def value(self, event: Yaml, depth: int) -> tuple[Node, int]:
        """The node of an event and those after it that belong to it, and its height."""
        yaml = self.yaml
        line, column = _position(event)
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event, depth)
        before = self.nodes
        self.count(1, depth, line, column)
        height = 0
        if isinstance(event, yaml.ScalarEvent):
            node = Node(_scalar(event), line=line, column=column)
        elif isinstance(event, yaml.SequenceStartEvent):
            items = []
            for each in iter(self.until(yaml.SequenceEndEvent), None):
                item, below = self.value(each, depth + 1)
                items.append(item)
                height = max(height, below + 1)
            node = Node(items=tuple(items), line=line, column=column)
        else:
            entries = []
            for each in iter(self.until(yaml.MappingEndEvent), None):
                entry, below = self.entry(each, depth)
                entries.append(entry)
                height = max(height, below + 1)
            node = Node(entries=tuple(entries), line=line, column=column)
        if event.anchor is not None:
            self.anchors[event.anchor] = node, self.nodes - before, height
        return node, height

    def entry(self, event: Yaml, depth: int) -> tuple[Entry, int]:
        line, column = _position(event)
        if not isinstance(event, self.yaml.ScalarEvent):
            syntax_error("a key is text", line, column)
        node, height = self.value(next(self.events), depth + 1)
        return Entry(event.value, line, column, node), height

    def alias(self, event: Yaml, depth: int) -> tuple[Node, int]:
        line, column = _position(event)
        known = self.anchors.get(event.anchor)
        if known is None:
            syntax_error(f"there is no complete value named &{event.anchor}", line, column)
        node, size, height = known
        self.count(size, depth + height, line, column)
        return node, height

    def count(self, nodes: int, depth: int, line: int, column: int) -> None:
        self.nodes += nodes
        if self.nodes > NODES_MAX:
            syntax_error(f"more than {NODES_MAX} values", line, column)
        if depth > DEPTH_MAX:
            syntax_error(f"nested deeper than {DEPTH_MAX} levels", line, column)

    def until(self, end: type[Yaml]) -> Callable[[], Yaml | None]:
        def following() -> Yaml | None:
            event = next(self.events)
            return None if isinstance(event, end) else event

        return following


def _position(event: Yaml) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _scalar(event: Yaml) -> Scalar:
    text: str = event.value
    line, column = _position(event)
    tag = event.tag
    if tag in {"!", f"{_TAG}str"} or (tag is None and not event.implicit[0]):
        return text
    if tag is not None and tag.removeprefix(_TAG) not in {"int", "float", "bool", "null"}:
        syntax_error(f"the tag {tag!r} means nothing here", line, column)
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= _DIGITS_MAX:
        if _INT.fullmatch(text):
            return int(text, 0)
        if _FLOAT.fullmatch(text) and not re.match(r"[+-]?0[0-9]", text):
            return float(text)
    return text
