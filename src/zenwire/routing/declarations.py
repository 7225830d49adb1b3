"""Who declared what: subscribers, queryables and tokens of all faces, found by key."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, unique
from typing import TYPE_CHECKING, NamedTuple

from zenwire.keyexpr import KeyExprTree
from zenwire.routing.faces import chunks_of
from zenwire.wire.values import QueryableInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from zenwire.routing.faces import Face

__all__ = ["Change", "Declarations", "Kind", "merge"]

Sources = dict["Face", QueryableInfo]


@unique
class Kind(Enum):
    """What is declared under a key. The order is that of a start."""

    SUBSCRIBER = "subscriber"
    QUERYABLE = "queryable"
    TOKEN = "token"  # noqa: S105 # a liveliness token is no secret


class Change(NamedTuple):
    """The faces that declared this key, or what they say of it, are not what they were."""

    kind: Kind
    key: str


def merge(infos: Iterable[QueryableInfo]) -> QueryableInfo | None:
    """What several say of one key, told as one: complete if any is, as near as the nearest."""
    merged: QueryableInfo | None = None
    for info in infos:
        if merged is None or info == merged:
            merged = info
        else:
            merged = QueryableInfo(
                merged.complete or info.complete, min(merged.distance, info.distance)
            )
    return merged


@dataclass(slots=True)
class _OfFace:
    """The declarations of one face, by the ids it gave them."""

    keys: dict[tuple[Kind, int], str] = field(default_factory=dict)
    infos: dict[Change, dict[int, QueryableInfo]] = field(default_factory=dict)


class Declarations:
    """All that faces declared, and sessions too as far as other faces may know it."""

    __slots__ = ("_faces", "_trees")

    def __init__(self) -> None:
        self._faces: dict[Face, _OfFace] = {}
        self._trees: dict[Kind, KeyExprTree[Sources]] = {kind: KeyExprTree() for kind in Kind}

    def count(self, face: Face) -> int:
        """How many declarations of the face are alive."""
        mine = self._faces.get(face)
        return 0 if mine is None else len(mine.keys)

    def key(self, face: Face, kind: Kind, id: int) -> str | None:
        """The key that the face declared under this id."""
        mine = self._faces.get(face)
        return None if mine is None else mine.keys.get((kind, id))

    def declare(
        self, face: Face, kind: Kind, id: int, key: str, info: QueryableInfo
    ) -> list[Change]:
        """Add a declaration, or say it again. An id that moves to another key leaves the old."""
        mine = self._faces.setdefault(face, _OfFace())
        changes: list[Change] = []
        old = mine.keys.get((kind, id))
        if old is not None and old != key:
            changes += self.undeclare(face, kind, id)
        if old != key:
            face.chunks += chunks_of(key)
        change = Change(kind, key)
        mine.keys[kind, id] = key
        mine.infos.setdefault(change, {})[id] = info
        if self._refresh(face, change):
            changes.append(change)
        return changes

    def undeclare(self, face: Face, kind: Kind, id: int) -> list[Change]:
        """Take a declaration back. The same key may still be declared under another id."""
        mine = self._faces.get(face)
        key = None if mine is None else mine.keys.pop((kind, id), None)
        if mine is None or key is None:
            return []
        face.chunks -= chunks_of(key)
        change = Change(kind, key)
        infos = mine.infos[change]
        del infos[id]
        if not infos:
            del mine.infos[change]
        return [change] if self._refresh(face, change) else []

    def withdraw(self, face: Face, change: Change) -> list[Change]:
        """Forget a key of one face, whatever its ids."""
        mine = self._faces.get(face)
        if mine is None or change not in mine.infos:
            return []
        for id in mine.infos.pop(change):
            del mine.keys[change.kind, id]
            face.chunks -= chunks_of(change.key)
        self._refresh(face, change)
        return [change]

    def drop(self, face: Face) -> list[Change]:
        """The face is gone, and all it declared."""
        mine = self._faces.pop(face, None)
        if mine is None:
            return []
        changes = list(mine.infos)
        mine.infos.clear()
        for change in changes:
            self._refresh(face, change)
        return changes

    def sources(self, change: Change) -> Mapping[Face, QueryableInfo]:
        """The faces that declared exactly this key, with what they say of it."""
        return self._trees[change.kind].get(change.key) or {}

    def intersecting(self, kind: Kind, key: str | None) -> Iterator[tuple[str, Sources]]:
        """The declared keys that intersect this one (all, for None), with their faces."""
        tree = self._trees[kind]
        return tree.items() if key is None else tree.intersecting(key)

    def _refresh(self, face: Face, change: Change) -> bool:
        """Bring the tree up to date for one face and key; whether that changed it."""
        tree = self._trees[change.kind]
        mine = self._faces.get(face)
        info = None if mine is None else merge(mine.infos.get(change, {}).values())
        sources = tree.get(change.key)
        if info is None:
            if sources is None or sources.pop(face, None) is None:
                return False
            if not sources:
                tree.remove(change.key)
            return True
        if sources is None:
            tree.insert(change.key, {face: info})
            return True
        if sources.get(face) == info:
            return False
        sources[face] = info
        return True
