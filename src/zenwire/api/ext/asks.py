"""The queries of an advanced subscriber: so many at a time, the others one after the other."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

from zenwire.api.ext.limits import ASKS_MAX, QUEUED_MAX
from zenwire.keyexpr import KeyExpr

__all__ = ["Ask", "Asks"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """A query to make. Its end is told with its ``id``."""

    id: int
    key_expr: KeyExpr
    parameters: str


class Asks(Generic[T]):
    """Queries, and what each is for."""

    def __init__(self) -> None:
        self.refused = 0
        """Queries that were not made, for there were too many."""
        self._for: dict[int, T] = {}
        self._queued: deque[Ask] = deque()
        self._count = 0

    def add(self, what: T, key_expr: KeyExpr, parameters: str) -> bool:
        """Whether there is room for one more."""
        if len(self._for) >= ASKS_MAX + QUEUED_MAX:
            self.refused += 1
            return False
        self._count += 1
        self._for[self._count] = what
        self._queued.append(Ask(self._count, key_expr, parameters))
        return True

    def due(self) -> list[Ask]:
        """What is to be asked now."""
        room = ASKS_MAX - (len(self._for) - len(self._queued))
        return [self._queued.popleft() for _ in range(min(room, len(self._queued)))]

    def __contains__(self, id: int) -> bool:
        return id in self._for

    def finish(self, id: int) -> T:
        """One is over. Gives what it was for."""
        return self._for.pop(id)
