"""Who declared what: subscribers, queryables and tokens of all faces, found by key."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, unique
from typing import TYPE_CHECKING, Final, NamedTuple

from zenwire.keyexpr import KeyExprTree
from zenwire.routing.faces import chunks_of
from zenwire.wire.values import QueryableInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from zenwire.routing.faces import Face

__all__ = ["KINDS", "Change", "Declarations", "Kind", "merge"]

Sources = dict["Face", QueryableInfo]


@unique
class Kind(Enum):
    """What is declared under a key. The order is that of a start."""

    SUBSCRIBER = "subscriber"
    QUERYABLE = "queryable"
    TOKEN = "token"  # noqa: S105 # a liveliness token is no secret

    # They are looked up for every declaration, and that of Enum hashes the name.
    __hash__ = object.__hash__


KINDS: Final = tuple(Kind)


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


_Ids = tuple[int, QueryableInfo] | dict[int, QueryableInfo]
"""What a face says of a key, by id: mostly there is one, and a pair takes less than a dict."""


@dataclass(slots=True)
class _OfFace:
    """The declarations of one face, by the ids it gave them."""

    keys: dict[Kind, dict[int, str]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    infos: dict[Change, _Ids] = field(default_factory=dict)
    alone: dict[QueryableInfo, Sources] = field(default_factory=dict)
    """What stands in the trees for keys that this face alone declared: the same for all."""


class Declarations:
    """All that faces declared, and sessions too as far as other faces may know it.

    There may be a million: what stands for each is small, and shared where it can be.
    """

    __slots__ = ("_faces", "_latest", "_trees")

    def __init__(self) -> None:
        self._faces: dict[Face, _OfFace] = {}
        self._latest: tuple[Change | None, Sources] = None, {}
        """What was changed last, and its sources: whoever hears of a change looks at those."""
        self._trees: dict[Kind, KeyExprTree[Sources]] = {kind: KeyExprTree() for kind in KINDS}

    def __bool__(self) -> bool:
        """Whether there are any."""
        return any(self._trees.values())

    def count(self, face: Face) -> int:
        """How many declarations of the face are alive."""
        mine = self._faces.get(face)
        if mine is None:
            return 0
        return max(sum(map(len, mine.keys.values())), len(mine.infos))

    def key(self, face: Face, kind: Kind, id: int) -> str | None:
        """The key that the face declared under this id."""
        mine = self._faces.get(face)
        return None if mine is None else mine.keys[kind].get(id)

    def declare(
        self, face: Face, kind: Kind, id: int, key: str, info: QueryableInfo
    ) -> list[Change]:
        """Add a declaration, or say it again. An id that moves to another key leaves the old."""
        mine = self._of(face)
        changes: list[Change] = []
        keys = mine.keys[kind]
        old = keys.get(id)
        if old is not None and old != key:
            changes += self.undeclare(face, kind, id)
        if old != key:
            face.chunks += chunks_of(key)
        change = Change(kind, key)
        keys[id] = key
        mine.infos[change] = _with(mine.infos.get(change), id, info)
        if self._refresh(face, change):
            changes.append(change)
        return changes

    def hold(self, face: Face, change: Change, info: QueryableInfo) -> list[Change]:
        """Add a declaration that has no id, as routers make them, or say it again."""
        mine = self._of(face)
        if change not in mine.infos:
            face.chunks += chunks_of(change.key)
        mine.infos[change] = (0, info)
        return [change] if self._refresh(face, change) else []

    def faces(self) -> list[Face]:
        """Those who have declared anything, or have done so."""
        return list(self._faces)

    def count_of(self, face: Face, kind: Kind) -> int:
        """How many declarations of a kind a face has, those without an id not counted."""
        mine = self._faces.get(face)
        return 0 if mine is None else len(mine.keys[kind])

    def held(self, face: Face) -> Iterator[Change]:
        """What a face has declared."""
        mine = self._faces.get(face)
        return iter(()) if mine is None else iter(mine.infos)

    def undeclare(self, face: Face, kind: Kind, id: int) -> list[Change]:
        """Take a declaration back. The same key may still be declared under another id."""
        mine = self._faces.get(face)
        key = None if mine is None else mine.keys[kind].pop(id, None)
        if mine is None or key is None:
            return []
        face.chunks -= chunks_of(key)
        change = Change(kind, key)
        left = mine.infos[change]
        if isinstance(left, dict):
            del left[id]
        if not isinstance(left, dict) or not left:
            del mine.infos[change]
        return [change] if self._refresh(face, change) else []

    def withdraw(self, face: Face, change: Change) -> list[Change]:
        """Forget a key of one face, whatever its ids."""
        mine = self._faces.get(face)
        if mine is None or change not in mine.infos:
            return []
        ids = mine.infos.pop(change)
        for id in ids if isinstance(ids, dict) else ids[:1]:
            mine.keys[change.kind].pop(id, None)
            face.chunks -= chunks_of(change.key)
        self._refresh(face, change)
        return [change]

    def drop(self, face: Face, most: int) -> list[Change]:
        """The face is gone, and so much of what it declared. To be called until `left` is 0."""
        mine = self._faces.get(face)
        if mine is None:
            return []
        for keys in mine.keys.values():
            keys.clear()
        if len(mine.infos) <= most:
            del self._faces[face]
            changes = list(mine.infos)
            mine.infos.clear()
        else:
            changes = [mine.infos.popitem()[0] for _ in range(most)]
        for change in changes:
            self._refresh(face, change)
        return changes

    def left(self, face: Face) -> int:
        """How many keys of a face there are."""
        mine = self._faces.get(face)
        return 0 if mine is None else len(mine.infos)

    def sources(self, change: Change) -> Mapping[Face, QueryableInfo]:
        """The faces that declared exactly this key, with what they say of it."""
        latest, sources = self._latest
        return sources if change is latest else self._trees[change.kind].get(change.key) or {}

    def intersecting(self, kind: Kind, key: str | None) -> Iterator[tuple[str, Sources]]:
        """The declared keys that intersect this one (all, for None), with their faces."""
        tree = self._trees[kind]
        return tree.items() if key is None else tree.intersecting(key)

    def _of(self, face: Face) -> _OfFace:
        mine = self._faces.get(face)
        if mine is None:
            mine = self._faces[face] = _OfFace()
        return mine

    def _refresh(self, face: Face, change: Change) -> bool:
        """Bring the tree up to date for one face and key; whether that changed it."""
        tree = self._trees[change.kind]
        mine = self._faces.get(face)
        ids = None if mine is None else mine.infos.get(change)
        sources = tree.get(change.key) or {}
        before = sources.get(face)
        if ids is None:
            if before is None:
                return False
            if len(sources) == 1:
                tree.remove(change.key)
                sources = {}
            elif len(sources) > 2:
                del sources[face]
            else:
                [(other, info)] = [entry for entry in sources.items() if entry[0] is not face]
                sources = self._alone(other, info)
                tree.insert(change.key, sources)
        else:
            merged = ids[1] if isinstance(ids, tuple) else merge(ids.values())
            assert merged is not None
            if before is not None and before == merged:
                return False
            if len(sources) == (before is not None):
                sources = self._alone(face, merged)
                tree.insert(change.key, sources)
            elif len(sources) == 1:
                sources = {**sources, face: merged}
                tree.insert(change.key, sources)
            else:
                sources[face] = merged
        self._latest = change, sources
        return True

    def _alone(self, face: Face, info: QueryableInfo) -> Sources:
        """One face as the sources of a key. Nobody changes it: it stands for many keys."""
        mine = self._of(face)
        sources = mine.alone.get(info)
        if sources is None:
            sources = mine.alone[info] = {face: info}
        return sources


def _with(ids: _Ids | None, id: int, info: QueryableInfo) -> _Ids:
    if ids is None or (isinstance(ids, tuple) and ids[0] == id):
        return id, info
    if isinstance(ids, tuple):
        return {ids[0]: ids[1], id: info}
    ids[id] = info
    return ids
