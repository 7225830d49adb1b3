"""Walks over a tree of key expressions: which nodes a lookup leads to.

No walk recurses, so the depth of an expression is limited by memory only.
"""

from __future__ import annotations

from enum import Enum, unique
from typing import TYPE_CHECKING, TypeVar

from zenwire.keyexpr.match import chunk_includes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from zenwire.keyexpr.nodes import Node, Special
    from zenwire.keyexpr.patterns import PatternMap

__all__ = ["Relation", "including", "related"]

V = TypeVar("V")


@unique
class Relation(Enum):
    """What the path of a node must be to the expression that is looked up."""

    INTERSECTING = 1
    INCLUDING = 2
    INCLUDED = 3


def including(root: Node[V], chunks: list[str]) -> Iterable[Node[V]]:
    """The nodes whose paths include the chunks.

    All paths are followed at once, one chunk at a time. A node other than a `**` has one
    parent and takes one chunk, so it cannot be reached twice at the same chunk. But below
    a `**` it can be reached once at each chunk, so this is for short expressions.
    """
    level = [root]
    # The `**` nodes reached so far: they take any number of chunks, up to a verbatim one.
    doubles: dict[Node[V], None] = {}
    if root.special is not None and root.special.double is not None:
        doubles[root.special.double] = None
    for chunk in chunks:
        reached: list[Node[V]] = []
        for node in (*level, *doubles) if doubles else level:
            if node.plain is not None:
                child = node.plain.get(chunk)
                if child is not None:
                    reached.append(child)
            if node.special is not None:
                _follow_special(node.special, chunk, reached)
        if chunk[0] == "@":
            doubles.clear()
        for node in reached:
            if node.special is not None and node.special.double is not None:
                doubles[node.special.double] = None
        level = reached
        if not level and not doubles:
            break
    return (*level, *doubles)


def _follow_special(special: Special[V], chunk: str, reached: list[Node[V]]) -> None:
    """Add the special children, other than `**`, that include the chunk."""
    if chunk[0] == "@":
        child = special.verbatim.get(chunk)
        if child is not None:
            reached.append(child)
        return
    if special.star is not None and chunk != "**":
        reached.append(special.star)
    if special.patterns is not None:
        reached += special.patterns.including(chunk)


def related(root: Node[V], chunks: list[str], relation: Relation) -> Iterator[Node[V]]:
    """The nodes whose paths have the relation to the chunks.

    The chunks run over the tree as an automaton. Each node is visited at most once, with the
    set of all states that some way through the chunks allows there.
    """
    query = _Automaton(chunks, literal=relation is Relation.INCLUDING)
    enter_special = (
        query.enter_included if relation is Relation.INCLUDED else query.enter_overlapping
    )
    final = 1 << len(chunks)
    ahead = [(root, query.closed(1))]
    while ahead:
        node, states = ahead.pop()
        if states & final:
            yield node
        if node.plain is not None:
            query.enter_plain(node.plain, states, ahead)
        if node.special is not None:
            enter_special(node.special, states, ahead)


class _Automaton:
    """A key expression as an automaton that takes the chunks of a path.

    A state is an index into the expression: the chunks before it are used up. A set of
    states is an integer with their bits, so a step is a few operations for all of them.
    The `enter` methods add to `ahead` the children that the states lead to, each with its
    states. With `literal`, the wildcards of the expression are plain text.
    """

    __slots__ = (
        "_chunks",
        "_doubles",
        "_literal",
        "_ordinary",
        "_patterns",
        "_single",
        "_stars",
        "_where",
    )

    def __init__(self, chunks: list[str], *, literal: bool) -> None:
        self._chunks = chunks
        self._literal = literal
        # The indices of each chunk, of those that are not verbatim, and of those with `$*`.
        self._where: dict[str, int] = {}
        self._ordinary = self._patterns = 0
        for index, chunk in enumerate(chunks):
            bit = 1 << index
            self._where[chunk] = self._where.get(chunk, 0) | bit
            if chunk[0] != "@":
                self._ordinary |= bit
                if "$" in chunk and not literal:
                    self._patterns |= bit
        doubles = self._where.get("**", 0)
        self._single = self._ordinary ^ doubles
        self._doubles = 0 if literal else doubles
        self._stars = 0 if literal else self._where.get("*", 0)

    def closed(self, states: int) -> int:
        """The states, and those that a `**` which takes nothing leads to."""
        return states | (states & self._doubles) << 1

    def enter_plain(
        self, children: dict[str, Node[V]], states: int, ahead: list[tuple[Node[V], int]]
    ) -> None:
        """Enter plain children. They are searched only where a wildcard is expected."""
        onward = self._after_any(states)
        patterns = states & self._patterns
        if not onward and not patterns:
            self._enter_named(children, states & self._single, ahead)
            return
        for chunk, child in children.items():
            taking = states & self._where.get(chunk, 0)
            for pattern, places in self._expected(patterns):
                if chunk_includes(pattern, chunk):
                    taking |= places
            after = onward | self.closed(taking << 1)
            if after:
                ahead.append((child, after))

    def enter_overlapping(
        self, special: Special[V], states: int, ahead: list[tuple[Node[V], int]]
    ) -> None:
        """Enter special children whose chunk matches what is expected."""
        onward = self._after_any(states)
        single = states & self._single
        if special.star is not None and (onward or single):
            ahead.append((special.star, onward | self.closed(single << 1)))
        if special.double is not None:
            # It takes any run of chunks that are not verbatim: the addition carries each
            # state to the end of the run that it is in.
            ordinary = self._ordinary
            flooded = ((states & ordinary) + ordinary) ^ ordinary
            ahead.append((special.double, states | flooded))
        if special.patterns is not None:
            self._enter_patterns(special.patterns, onward, single & ~self._stars, ahead)
        self._enter_verbatim(special, states, ahead)

    def _enter_patterns(
        self,
        patterns: PatternMap[Node[V]],
        onward: int,
        single: int,
        ahead: list[tuple[Node[V], int]],
    ) -> None:
        """Enter the patterns that match what is expected; all of them if any chunk will do."""
        find = patterns.including if self._literal else patterns.intersecting
        taking: dict[Node[V], int] = dict.fromkeys(patterns.values(), 0) if onward else {}
        for chunk, places in self._expected(single):
            for child in find(chunk):
                taking[child] = taking.get(child, 0) | places
        for child, places in taking.items():
            ahead.append((child, onward | self.closed(places << 1)))

    def enter_included(
        self, special: Special[V], states: int, ahead: list[tuple[Node[V], int]]
    ) -> None:
        """Enter special children whose chunk is included in what is expected."""
        onward = self._after_any(states)
        staying = states & self._doubles
        if special.star is not None and onward:
            ahead.append((special.star, onward))
        if special.double is not None and staying:
            ahead.append((special.double, self.closed(staying)))
        for pattern, child in () if special.patterns is None else special.patterns.items():
            taking = 0
            for chunk, places in self._expected(states & self._patterns):
                if chunk_includes(chunk, pattern):
                    taking |= places
            after = onward | self.closed(taking << 1)
            if after:
                ahead.append((child, after))
        self._enter_verbatim(special, states, ahead)

    def _enter_verbatim(
        self, special: Special[V], states: int, ahead: list[tuple[Node[V], int]]
    ) -> None:
        # The last state has no chunk; it is not verbatim either.
        inside = states & ((1 << len(self._chunks)) - 1)
        self._enter_named(special.verbatim, inside & ~self._ordinary, ahead)

    def _enter_named(
        self, children: dict[str, Node[V]], states: int, ahead: list[tuple[Node[V], int]]
    ) -> None:
        """Enter the children whose chunk is expected as it is."""
        for chunk, places in self._expected(states):
            child = children.get(chunk)
            if child is not None:
                ahead.append((child, self.closed(places << 1)))

    def _after_any(self, states: int) -> int:
        """The states after any chunk that is neither verbatim nor `**`: by `*` and `**`."""
        return self.closed((states & self._doubles) | (states & self._stars) << 1)

    def _expected(self, states: int) -> Iterator[tuple[str, int]]:
        """The chunks at these indices, each once, with all of the indices where it is."""
        while states:
            chunk = self._chunks[(states & -states).bit_length() - 1]
            places = states & self._where[chunk]
            yield chunk, places
            states ^= places
