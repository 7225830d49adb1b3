"""The chunks with `$*` below one node of a tree, found by the literal text that they hold.

A pattern has a literal head and tail, either of which may be empty, and literal pieces between
its `$*`. A few patterns are compared one by one. More than that are indexed by head, then by
tail, then by the pieces in between, in order: a lookup follows the literals that the text holds,
so its cost depends on the text and on the patterns that begin to match it, not on their number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

from zenwire.keyexpr.match import chunk_includes, chunk_intersects

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

__all__ = ["PatternMap"]

T = TypeVar("T")

BUCKET: Final = 8
"""Patterns that are compared one by one instead of being indexed."""
_HEAD: Final = 0
_TAIL: Final = 1
LAST: Final = 17
"""Deepest level of an index. Patterns with the same head, tail and 15 pieces are compared there.

The limit bounds the memory of a pattern, which may have a thousand pieces. It gives little away:
whoever knows the 15 pieces of a text that lead to this level also knows 2**15 patterns that match
the text, and a match costs as much as a comparison.
"""


class PatternMap(Generic[T]):
    """Maps chunks with `$*` to values, and finds those that match a chunk."""

    __slots__ = ("_index", "_values")

    def __init__(self) -> None:
        self._values: dict[str, T] = {}
        self._index: _Level | None = None

    def __len__(self) -> int:
        return len(self._values)

    def get(self, pattern: str) -> T | None:
        """Return the value of exactly this pattern."""
        return self._values.get(pattern)

    def add(self, pattern: str, value: T) -> None:
        """Map the pattern, which must be new, to the value."""
        self._values[pattern] = value
        if self._index is not None:
            self._index.add(pattern, _steps(pattern))
        elif len(self._values) > BUCKET:
            self._index = _Level(_HEAD, self._values)

    def remove(self, pattern: str) -> None:
        """Forget the pattern, which must be there."""
        del self._values[pattern]
        if self._index is not None:
            self._index.remove(pattern, _steps(pattern))
            if self._index.size <= BUCKET // 2:
                self._index = None

    def items(self) -> Collection[tuple[str, T]]:
        """Return all patterns with their values."""
        return self._values.items()

    def values(self) -> Collection[T]:
        """Return the values of all patterns."""
        return self._values.values()

    def including(self, chunk: str) -> list[T]:
        """Return the values of the patterns that include the chunk, which is not verbatim.

        Wildcards of the chunk count as plain text, as in `chunk_includes`.
        """
        values = self._values
        if self._index is None:
            return [value for pattern, value in values.items() if chunk_includes(pattern, chunk)]
        return [values[pattern] for pattern in self._index.spanning(chunk)]

    def intersecting(self, chunk: str) -> list[T]:
        """Return the values of the patterns that intersect the chunk, neither verbatim nor `**`.

        Two patterns are related by their heads and tails alone. Of an index all heads, and all
        tails below those that agree, are compared.
        """
        if "*" not in chunk:
            return self.including(chunk)
        values = self._values
        if chunk == "*":
            return list(values.values())
        if self._index is None:
            return [value for pattern, value in values.items() if chunk_intersects(pattern, chunk)]
        return [values[pattern] for pattern in self._index.overlapping(chunk)]


def _steps(pattern: str) -> tuple[str, ...]:
    """Split a pattern into the literals of the levels; "" follows the last piece."""
    head, *pieces = pattern.split("$*")
    tail = pieces.pop()
    rest = "$*".join(pieces[LAST - 2 :])
    return (head, tail, *pieces[: LAST - 2], rest)


class _Level:
    """Patterns that agree in the literals of the levels above, by their literal of this one.

    A slot holds the patterns of one literal: a tuple of a few, or the next level. ``lengths``
    counts the slots by the length of their literal: only substrings of these lengths are looked
    up.
    """

    __slots__ = ("lengths", "size", "slots", "stage")

    def __init__(self, stage: int, patterns: Iterable[str]) -> None:
        self.stage = stage
        self.size = 0
        self.slots: dict[str, _Level | tuple[str, ...]] = {}
        self.lengths: dict[int, int] = {}
        for pattern in patterns:
            self.add(pattern, _steps(pattern))

    def add(self, pattern: str, steps: tuple[str, ...]) -> None:
        self.size += 1
        step = steps[self.stage]
        slot = self.slots.get(step)
        if slot is None:
            self.slots[step] = (pattern,)
            self.lengths[len(step)] = self.lengths.get(len(step), 0) + 1
        elif isinstance(slot, _Level):
            slot.add(pattern, steps)
        elif len(slot) < BUCKET:
            self.slots[step] = (*slot, pattern)
        else:
            self.slots[step] = _Level(self.stage + 1, (*slot, pattern))

    def remove(self, pattern: str, steps: tuple[str, ...]) -> None:
        self.size -= 1
        step = steps[self.stage]
        slot = self.slots[step]
        if isinstance(slot, _Level):
            slot.remove(pattern, steps)
            if slot.size <= BUCKET // 2:
                self.slots[step] = tuple(slot.patterns())
        elif len(slot) > 1:
            self.slots[step] = tuple([one for one in slot if one != pattern])
        else:
            del self.slots[step]
            self.lengths[len(step)] -= 1
            if not self.lengths[len(step)]:
                del self.lengths[len(step)]

    def patterns(self) -> Iterator[str]:
        """Iterate over all patterns of this level and of the levels below."""
        for slot in self.slots.values():
            yield from slot.patterns() if isinstance(slot, _Level) else slot

    def spanning(self, text: str) -> list[str]:
        """Return the patterns that match the text. For the first level of an index."""
        found: list[str] = []
        ahead: list[tuple[_Level, int, int]] = [(self, 0, len(text))]
        while ahead:
            level, at, end = ahead.pop()
            for slot, start, stop in level.enter(text, at, end):
                if isinstance(slot, _Level):
                    ahead.append((slot, start, stop))
                else:
                    found += [pattern for pattern in slot if chunk_includes(pattern, text)]
        return found

    def overlapping(self, chunk: str) -> list[str]:
        """Return the patterns that intersect a pattern. For the first level of an index."""
        head, tail = _steps(chunk)[:2]
        found: list[str] = []
        for start, slot in self.slots.items():
            if not (start.startswith(head) or head.startswith(start)):
                continue
            if not isinstance(slot, _Level):
                found += [pattern for pattern in slot if chunk_intersects(pattern, chunk)]
                continue
            for end, inner in slot.slots.items():
                if end.endswith(tail) or tail.endswith(end):
                    found += inner.patterns() if isinstance(inner, _Level) else inner
        return found

    def enter(
        self, text: str, at: int, end: int
    ) -> Iterable[tuple[_Level | tuple[str, ...], int, int]]:
        """Return the slots that the text leads to, each with the range of the text that is left.

        A piece takes the first place where it fits: a later one leaves less for the rest.
        """
        slots = self.slots
        if self.stage == _HEAD:
            heads = [(slots.get(text[:size]), size) for size in self._sizes(end)]
            return [(slot, size, end) for slot, size in heads if slot is not None]
        if self.stage == _TAIL:
            tails = [(slots.get(text[end - size :]), size) for size in self._sizes(end - at)]
            return [(slot, at, end - size) for slot, size in tails if slot is not None]
        if self.stage == LAST:
            return [(slot, at, end) for slot in slots.values()]
        sizes = self._sizes(end - at)
        if len(slots) <= (end - at) * len(sizes):
            places = [(piece, text.find(piece, at, end)) for piece in slots]
            found = {piece: place for piece, place in places if place >= 0}
        else:
            found = {}
            for size in sizes:
                for place in range(at, end - size + 1):
                    piece = text[place : place + size]
                    if piece in slots:
                        found.setdefault(piece, place)
        return [(slots[piece], place + len(piece), end) for piece, place in found.items()]

    def _sizes(self, room: int) -> Collection[int]:
        """Return the lengths of this level's literals that are at most ``room``."""
        if len(self.lengths) > room:
            return [size for size in range(room + 1) if size in self.lengths]
        return [size for size in self.lengths if size <= room]
