"""What sessions of this node declared for themselves, found by key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from zenwire.keyexpr import KeyExprTree
from zenwire.routing.faces import Face, Locality
from zenwire.wire.values import QueryTarget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zenwire.routing.upstream import Want

__all__ = [
    "Entities",
    "Entity",
    "LivelinessSubscriber",
    "LocalQueryable",
    "LocalSubscriber",
    "LocalToken",
    "Matcher",
]


@dataclass(slots=True, eq=False)
class Entity:
    """Anything a session declared. ``id`` is unique in the node."""

    id: int
    session: Face
    key: str


@dataclass(slots=True, eq=False)
class LocalSubscriber(Entity):
    """A subscriber of a session."""

    origin: Locality = Locality.ANY


@dataclass(slots=True, eq=False)
class LocalQueryable(Entity):
    """A queryable of a session."""

    complete: bool = False
    origin: Locality = Locality.ANY


@dataclass(slots=True, eq=False)
class LocalToken(Entity):
    """A liveliness token of a session."""


@dataclass(slots=True, eq=False)
class LivelinessSubscriber(Entity):
    """A session that wants to know which tokens come and go."""

    want: Want


@dataclass(slots=True, eq=False)
class Matcher(Entity):
    """A publisher or querier: wants to know whether there is anybody for it."""

    queries: bool
    target: QueryTarget
    destination: Locality
    want: Want | None
    matching: bool = False


E = TypeVar("E", bound=Entity)


class Entities(Generic[E]):
    """Entities of one kind by key."""

    __slots__ = ("_tree",)

    def __init__(self) -> None:
        self._tree: KeyExprTree[list[E]] = KeyExprTree()

    def __bool__(self) -> bool:
        return len(self._tree) > 0

    def add(self, entity: E) -> None:
        found = self._tree.get(entity.key)
        if found is None:
            self._tree.insert(entity.key, [entity])
        else:
            found.append(entity)

    def remove(self, entity: E) -> None:
        found = self._tree.get(entity.key, [])
        found.remove(entity)
        if not found:
            self._tree.remove(entity.key)

    def all(self) -> Iterator[E]:
        for _, entities in self._tree.items():  # noqa: PERF102 # it is no dict
            yield from entities

    def intersecting(self, key: str) -> Iterator[E]:
        for _, entities in self._tree.intersecting(key):
            yield from entities
