"""The nodes of a tree of key expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from zenwire.keyexpr.patterns import PatternMap

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Node", "Special"]

V = TypeVar("V")


class Special(Generic[V]):
    """The children of a node that are not plain chunks. Most nodes have none."""

    __slots__ = ("double", "patterns", "star", "verbatim")

    def __init__(self) -> None:
        self.star: Node[V] | None = None
        self.double: Node[V] | None = None
        self.patterns: PatternMap[Node[V]] | None = None
        self.verbatim: dict[str, Node[V]] = {}


class Node(Generic[V]):
    """What a path of chunks leads to. It has a value exactly while it has a key."""

    __slots__ = ("key", "plain", "special", "value")

    value: V

    def __init__(self) -> None:
        self.key: str | None = None
        self.plain: dict[str, Node[V]] | None = None
        self.special: Special[V] | None = None

    def child(self, chunk: str) -> Node[V] | None:
        """The child for exactly this chunk, which may be any text."""
        if "*" not in chunk and not chunk.startswith("@"):
            return None if self.plain is None else self.plain.get(chunk)
        special = self.special
        if special is None:
            return None
        if chunk == "*":
            return special.star
        if chunk == "**":
            return special.double
        if chunk[0] == "@":
            return special.verbatim.get(chunk)
        return None if special.patterns is None else special.patterns.get(chunk)

    def grow(self, chunk: str) -> Node[V]:
        """The child for exactly this chunk, made if it is not there."""
        found = self.child(chunk)
        if found is not None:
            return found
        made: Node[V] = Node()
        if "*" not in chunk and chunk[0] != "@":
            if self.plain is None:
                self.plain = {}
            self.plain[chunk] = made
            return made
        if self.special is None:
            self.special = Special()
        if chunk == "*":
            self.special.star = made
        elif chunk == "**":
            self.special.double = made
        elif chunk[0] == "@":
            self.special.verbatim[chunk] = made
        else:
            if self.special.patterns is None:
                self.special.patterns = PatternMap()
            self.special.patterns.add(chunk, made)
        return made

    def drop(self, chunk: str) -> None:
        """Forget the child for this chunk, which must be there."""
        if self.plain is not None and chunk in self.plain:
            del self.plain[chunk]
            if not self.plain:
                self.plain = None
            return
        special = self.special
        assert special is not None
        if chunk == "*":
            special.star = None
        elif chunk == "**":
            special.double = None
        elif chunk[0] == "@":
            del special.verbatim[chunk]
        else:
            assert special.patterns is not None
            special.patterns.remove(chunk)
            if not special.patterns:
                special.patterns = None
        if not (special.star or special.double or special.patterns or special.verbatim):
            self.special = None

    def is_bare(self) -> bool:
        """Whether nothing would be lost with this node."""
        return self.key is None and self.plain is None and self.special is None

    def children(self) -> Iterator[Node[V]]:
        """All children."""
        if self.plain is not None:
            yield from self.plain.values()
        if self.special is not None:
            if self.special.star is not None:
                yield self.special.star
            if self.special.double is not None:
                yield self.special.double
            if self.special.patterns is not None:
                yield from self.special.patterns.values()
            yield from self.special.verbatim.values()
