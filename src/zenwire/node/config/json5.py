"""JSON5 with positions: what the text says, and where.

The whole of https://spec.json5.org: comments, trailing commas, single quotes, identifiers as
keys, hexadecimal, signs, Infinity and NaN, line continuations. A key that comes twice is left
for the reader of the tree, which knows its path.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from typing import Final, NoReturn

from zenwire.node.config.nodes import (
    DEPTH_MAX,
    NODES_MAX,
    TEXT_MAX,
    Entry,
    Node,
    Scalar,
    syntax_error,
)

__all__ = ["parse_json5"]

_BLANK: Final = re.compile(
    "(?:[\\s\\ufeff]++|//[^\\n\\r\\u2028\\u2029]*+|/\\*(?:[^*]++|\\*(?!/))*+\\*/)*+"
)
_LINE_END: Final = re.compile("\r\n|[\n\r\u2028\u2029]")
_NUMBER: Final = re.compile(
    r"[+-]?(?:(?P<hex>0[xX][0-9a-fA-F]+)"
    r"|(?P<float>(?:0|[1-9]\d*)?\.\d+(?:[eE][+-]?\d+)?"
    r"|(?:0|[1-9]\d*)\.?[eE][+-]?\d+|(?:0|[1-9]\d*)\.)"
    r"|(?P<int>0|[1-9]\d*)|(?P<word>Infinity|NaN))",
    re.ASCII,
)
_DIGITS_MAX: Final = 400
"""A longer number is no setting, and Python takes quadratic time for it."""
_PLAIN: Final = {
    "'": re.compile(r"[^'\\\n\r]*+"),
    '"': re.compile(r'[^"\\\n\r]*+'),
}
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_WORDS: Final[dict[str, Scalar]] = {"true": True, "false": False, "null": None}
_HEX: Final = re.compile("[0-9a-fA-F]+")


def parse_json5(text: str) -> Node:
    """The value that a text holds. Raises ConfigError with line and column."""
    if len(text) > TEXT_MAX:
        syntax_error(f"a configuration has at most {TEXT_MAX} characters", 1, 1)
    return _Parser(text).document()


class _Parser:
    """Recursive descent; the depth is bounded before it recurses."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.nodes = 0
        self.line_starts = [0, *(end.end() for end in _LINE_END.finditer(text))]

    def document(self) -> Node:
        self.blank()
        node = self.value(0)
        self.blank()
        if self.at < len(self.text):
            self.fail("the configuration ends before this")
        return node

    def position(self, at: int) -> tuple[int, int]:
        line = bisect_right(self.line_starts, at)
        return line, at - self.line_starts[line - 1] + 1

    def fail(self, reason: str, at: int | None = None) -> NoReturn:
        syntax_error(reason, *self.position(self.at if at is None else at))

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def blank(self) -> None:
        blank = _BLANK.match(self.text, self.at)
        assert blank is not None
        self.at = blank.end()
        if self.text.startswith("/*", self.at):
            self.fail("this comment has no '*/'")

    def value(self, depth: int) -> Node:
        self.nodes += 1
        if depth > DEPTH_MAX:
            self.fail(f"nested deeper than {DEPTH_MAX} levels")
        if self.nodes > NODES_MAX:
            self.fail(f"more than {NODES_MAX} values")
        line, column = self.position(self.at)
        char = self.peek()
        if char == "{":
            return Node(entries=self.object(depth), line=line, column=column)
        if char == "[":
            return Node(items=self.array(depth), line=line, column=column)
        if char in _PLAIN:
            return Node(self.string(), line=line, column=column)
        number = _NUMBER.match(self.text, self.at)
        if number is not None:
            return Node(self.number(number), line=line, column=column)
        start = self.at
        word = self.identifier() if char else ""
        if word in _WORDS:
            return Node(_WORDS[word], line=line, column=column)
        if not char:
            self.fail("a value is missing: the text ends here")
        if word:
            self.fail(f"{word!r} is not a value; put text in quotes", start)
        return self.fail(f"{char!r} does not start a value")

    def object(self, depth: int) -> tuple[Entry, ...]:
        entries = []
        self.at += 1
        self.blank()
        while self.peek() != "}":
            line, column = self.position(self.at)
            key = self.key()
            self.blank()
            if self.peek() != ":":
                self.fail(f"a ':' is missing after the key {key!r}")
            self.at += 1
            self.blank()
            entries.append(Entry(key, line, column, self.value(depth + 1)))
            self.separator("}")
        self.at += 1
        return tuple(entries)

    def array(self, depth: int) -> tuple[Node, ...]:
        items = []
        self.at += 1
        self.blank()
        while self.peek() != "]":
            items.append(self.value(depth + 1))
            self.separator("]")
        self.at += 1
        return tuple(items)

    def separator(self, end: str) -> None:
        self.blank()
        char = self.peek()
        if char == ",":
            self.at += 1
            self.blank()
        elif char != end:
            self.fail(f"a ',' or {end!r} is missing here" if char else f"{end!r} is missing")

    def key(self) -> str:
        char = self.peek()
        if char in _PLAIN:
            return self.string()
        name = self.identifier() if char else ""
        if not name:
            self.fail(
                "a key is missing here" if not char or char in ",:" else f"{char!r} is no key"
            )
        return name

    def identifier(self) -> str:
        """The identifier that starts here, or nothing."""
        name = ""
        while self.at < len(self.text):
            char, start = self.text[self.at], self.at
            if char == "\\" and self.text.startswith("u", self.at + 1):
                self.at += 2
                char = chr(self.hexadecimal(4, start))
            else:
                self.at += 1
            if char not in "$\u200c\u200d" and not f"{'_' if name else ''}{char}".isidentifier():
                self.at = start
                break
            name += char
        return name

    def string(self) -> str:
        start, quote = self.at, self.text[self.at]
        plain = _PLAIN[quote]
        parts = []
        self.at += 1
        while True:
            run = plain.match(self.text, self.at)
            assert run is not None
            parts.append(run[0])
            self.at = run.end()
            char = self.peek()
            if char == quote:
                self.at += 1
                break
            if char != "\\":
                self.fail("this text has no closing quote", start)
            parts.append(self.escape())
        text = "".join(parts)
        if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
            # Pairs of escapes join; what is left alone is no character.
            try:
                text = text.encode("utf-16", "surrogatepass").decode("utf-16")
            except UnicodeDecodeError:
                self.fail("half a surrogate pair is no text", start)
        return text

    def escape(self) -> str:
        start = self.at
        self.at += 1
        end = _LINE_END.match(self.text, self.at)
        if end is not None:
            self.at = end.end()
            return ""
        char = self.peek()
        self.at += 1
        if char == "u":
            return chr(self.hexadecimal(4, start))
        if char == "x":
            return chr(self.hexadecimal(2, start))
        if char == "0" and not self.peek().isdecimal():
            return "\0"
        if char.isdecimal() or not char:
            self.fail("no such escape", start)
        return _ESCAPES.get(char, char)

    def hexadecimal(self, digits: int, start: int) -> int:
        text = self.text[self.at : self.at + digits]
        if len(text) < digits or _HEX.fullmatch(text) is None:
            self.fail(f"this escape has {digits} hexadecimal digits", start)
        self.at += digits
        return int(text, 16)

    def number(self, match: re.Match[str]) -> int | float:
        text = match[0]
        start, self.at = self.at, match.end()
        if len(text) > _DIGITS_MAX:
            self.fail("this number is too long", start)
        following = self.peek()
        if following and (following == "\\" or following in "$." or f"_{following}".isidentifier()):
            self.fail(f"{self.text[start : self.at + 1]!r} is not a number", start)
        sign = -1 if text.startswith("-") else 1
        if match["hex"]:
            return sign * int(match["hex"], 16)
        if match["int"]:
            return sign * int(match["int"])
        if match["word"]:
            return sign * (math.inf if match["word"] == "Infinity" else math.nan)
        value = float(text)
        if math.isinf(value):
            self.fail("this number is too large", start)
        return value
