"""The key expression as a value."""

from __future__ import annotations

from enum import IntEnum, unique
from typing import Self

from zenwire.errors import KeyExprError
from zenwire.keyexpr.canon import canonize, validate
from zenwire.keyexpr.match import includes, intersects

__all__ = ["KeyExpr", "SetIntersectionLevel"]


@unique
class SetIntersectionLevel(IntEnum):
    """How the keys of one expression relate to those of another; each level implies the lower."""

    DISJOINT = 0
    """No key is in both."""
    INTERSECTS = 1
    """Some key is in both."""
    INCLUDES = 2
    """Every key of the other is in this one."""
    EQUALS = 3
    """Both are the same expression."""

    def __repr__(self) -> str:
        return f"SetIntersectionLevel.{self.name}"

    __str__ = __repr__


class KeyExpr:
    """A canonical key expression. Immutable, and equal to its own text.

    ``KeyExpr(text)`` raises `KeyExprError` unless the text is canonical. Where a method
    takes another expression, a text must be canonical too, except in `join`.
    """

    __slots__ = ("_text",)

    _text: str

    def __init__(self, key_expr: str) -> None:
        validate(key_expr)
        self._text = key_expr

    @classmethod
    def autocanonize(cls, key_expr: str) -> Self:
        """The expression whose canonical form this text has; `KeyExprError` if there is none."""
        return cls(canonize(key_expr))

    def intersects(self, other: KeyExpr | str) -> bool:
        """Whether some key belongs to both."""
        return intersects(self._text, _canonical_text(other))

    def includes(self, other: KeyExpr | str) -> bool:
        """Whether every key of the other belongs to this one."""
        return includes(self._text, _canonical_text(other))

    def relation_to(self, other: KeyExpr | str) -> SetIntersectionLevel:
        """The highest level that holds, from this expression's point of view."""
        a, b = self._text, _canonical_text(other)
        if a == b:
            return SetIntersectionLevel.EQUALS
        if not intersects(a, b):
            return SetIntersectionLevel.DISJOINT
        if includes(a, b):
            return SetIntersectionLevel.INCLUDES
        return SetIntersectionLevel.INTERSECTS

    def join(self, other: KeyExpr | str) -> KeyExpr:
        """The canonical form of both with a slash between them."""
        return KeyExpr(canonize(f"{self._text}/" + _text(other)))

    def __truediv__(self, other: KeyExpr | str) -> KeyExpr:
        if not isinstance(other, KeyExpr | str):
            return NotImplemented
        return self.join(other)

    def concat(self, other: KeyExpr | str) -> KeyExpr:
        """The text followed by the other text, which must give a canonical text.

        A `*` is not added to a `*`: it would turn one wildcard into another.
        """
        tail = _text(other)
        text = self._text + tail
        if self._text.endswith("*") and tail.startswith("*"):
            reason = (
                "concat does not put a '*' after a '*'; build the text and make a KeyExpr of it"
            )
            raise KeyExprError(text, len(self._text), reason)
        return KeyExpr(text)

    @property
    def is_wild(self) -> bool:
        """Whether there is a wildcard in it, so that it is not itself a key."""
        return "*" in self._text

    @property
    def chunks(self) -> tuple[str, ...]:
        """The parts between the slashes."""
        return tuple(self._text.split("/"))

    def prefix_split(self) -> tuple[str, str]:
        """The longest prefix of whole chunks without wildcard, and the rest of the text.

        The two concatenate to the text, as an alias and its suffix do on the wire:
        ``a/b/*`` gives ``("a/b", "/*")``. The prefix is empty when the first chunk is wild.
        """
        text = self._text
        star = text.find("*")
        if star < 0:
            return text, ""
        cut = max(text.rfind("/", 0, star), 0)
        return text[:cut], text[cut:]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, KeyExpr):
            return self._text == other._text
        if isinstance(other, str):
            return self._text == other
        return NotImplemented

    def __hash__(self) -> int:
        # Equal to the text, so it must hash like the text.
        return hash(self._text)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"ke`{self._text}`"

    def __reduce__(self) -> tuple[type[KeyExpr], tuple[str]]:
        return type(self), (self._text,)


def _text(key: KeyExpr | str) -> str:
    return str(key) if isinstance(key, KeyExpr) else key


def _canonical_text(key: KeyExpr | str) -> str:
    if isinstance(key, KeyExpr):
        return str(key)
    validate(key)
    return key
