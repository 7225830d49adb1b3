"""Interests of faces: which declarations each of them asked to be told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zenwire.keyexpr import KeyExprTree, intersects
from zenwire.routing.declarations import Change, Kind
from zenwire.routing.faces import chunks_of
from zenwire.wire.values import InterestMode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from zenwire.routing.faces import Face

__all__ = ["Held", "Interests", "KeySet"]


class KeySet:
    """Keys, each counted, and whether one of them intersects a given one. None is every key."""

    __slots__ = ("_all", "_tree")

    def __init__(self) -> None:
        self._all = 0
        self._tree: KeyExprTree[int] = KeyExprTree()

    def add(self, key: str | None) -> None:
        if key is None:
            self._all += 1
        else:
            self._tree.insert(key, self._tree.get(key, 0) + 1)

    def remove(self, key: str | None) -> None:
        if key is None:
            self._all -= 1
            return
        count = self._tree.get(key, 0)
        if count > 1:
            self._tree.insert(key, count - 1)
        else:
            self._tree.remove(key)

    def touches(self, key: str) -> bool:
        """Whether any of the keys intersects this one."""
        if self._all or not len(self._tree):
            return self._all > 0
        return next(self._tree.intersecting(key), None) is not None

    def touching(self, key: str) -> Iterator[str]:
        """Those that intersect this one, without the unrestricted."""
        return (found for found, _ in self._tree.intersecting(key))

    def __contains__(self, key: str) -> bool:
        return key in self._tree


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """An interest of a face. ``key`` None means all keys."""

    face: Face
    id: int
    mode: InterestMode
    kinds: frozenset[Kind]
    key: str | None
    keyexprs: bool = False
    aggregate: bool = False
    seen: set[str] = field(default_factory=set)
    """Tokens told in answer to an interest in current ones."""

    @property
    def current(self) -> bool:
        return self.mode in {InterestMode.CURRENT, InterestMode.CURRENT_FUTURE}

    @property
    def future(self) -> bool:
        return self.mode in {InterestMode.FUTURE, InterestMode.CURRENT_FUTURE}

    def touches(self, change: Change) -> bool:
        """Whether it asks for declarations of this kind on this key, one by one."""
        if change.kind not in self.kinds or self.aggregate:
            return False
        return self.key is None or intersects(self.key, change.key)


@dataclass(slots=True)
class _OfFace:
    by_id: dict[int, Held] = field(default_factory=dict)
    single: dict[Kind, KeySet] = field(default_factory=lambda: {kind: KeySet() for kind in Kind})
    aggregate: dict[Kind, KeySet] = field(default_factory=lambda: {kind: KeySet() for kind in Kind})
    keyexprs: KeySet = field(default_factory=KeySet)
    pending: dict[int, Held] = field(default_factory=dict)
    passing: int = 0
    """Those among the pending that are in what there is now alone."""


class Interests:
    """What faces asked to be told from now on, and who still waits for a D_FINAL."""

    __slots__ = ("_faces", "telling")

    def __init__(self) -> None:
        self._faces: dict[Face, _OfFace] = {}
        self.telling: set[Held] = set()
        """Those of which the face has not been told yet all there is here."""

    @property
    def faces(self) -> Mapping[Face, object]:
        """Those who ask for anything, or have done so."""
        return self._faces

    def count(self, face: Face) -> int:
        mine = self._faces.get(face)
        return 0 if mine is None else len(mine.by_id) + mine.passing

    def get(self, face: Face, id: int) -> Held | None:
        mine = self._faces.get(face)
        return None if mine is None else mine.by_id.get(id)

    def held(self, face: Face) -> list[Held]:
        """What a face asks to be told from now on."""
        mine = self._faces.get(face)
        return [] if mine is None else list(mine.by_id.values())

    def add(self, held: Held) -> None:
        """Remember an interest in what is to come."""
        mine = self._faces.setdefault(held.face, _OfFace())
        mine.by_id[held.id] = held
        for keys in self._keys(mine, held):
            keys.add(held.key)
            held.face.chunks += chunks_of(held.key)

    def remove(self, held: Held) -> None:
        mine = self._faces[held.face]
        del mine.by_id[held.id]
        waited = mine.pending.pop(held.id, None)
        mine.passing -= waited is not None and not waited.future
        for keys in self._keys(mine, held):
            keys.remove(held.key)
            held.face.chunks -= chunks_of(held.key)

    def drop(self, face: Face) -> list[Held]:
        """The face is gone; what it asked for."""
        mine = self._faces.pop(face, None)
        return [] if mine is None else list(mine.by_id.values())

    def wait(self, held: Held) -> None:
        """Its D_FINAL waits for the answers of others."""
        mine = self._faces.setdefault(held.face, _OfFace())
        old = mine.pending.get(held.id)
        mine.passing += (not held.future) - (old is not None and not old.future)
        mine.pending[held.id] = held

    def waits(self, face: Face, id: int) -> bool:
        """Whether the D_FINAL of an interest with this id is still to come."""
        mine = self._faces.get(face)
        return mine is not None and id in mine.pending

    def answered(self, held: Held) -> bool:
        """It gets its D_FINAL. False if nobody waits for it any more."""
        mine = self._faces.get(held.face)
        if mine is None or mine.pending.get(held.id) is not held:
            return False
        del mine.pending[held.id]
        mine.passing -= not held.future
        return True

    def wants(self, face: Face, change: Change) -> bool:
        """Whether the face is to be told of this very declaration."""
        mine = self._faces.get(face)
        return mine is not None and mine.single[change.kind].touches(change.key)

    def knows_nothing(self, face: Face, change: Change) -> bool:
        """Whether all who ask for a declaration, that was not told, are to be told later."""
        if not any(held.face is face and held.touches(change) for held in self.telling):
            return False
        there = self._faces[face].by_id.values()
        return not any(held.touches(change) and held not in self.telling for held in there)

    def wants_alias(self, face: Face, prefix: str) -> bool:
        """Whether the face asked for aliases of keys such as this one."""
        mine = self._faces.get(face)
        return mine is not None and mine.keyexprs.touches(prefix)

    def aggregates(self, face: Face, change: Change) -> bool:
        """Whether the face asked whether there is anything on just this key."""
        mine = self._faces.get(face)
        return mine is not None and change.key in mine.aggregate[change.kind]

    def touched_aggregates(self, face: Face, change: Change) -> list[Change]:
        """The aggregates of the face that a change of this declaration may change."""
        mine = self._faces.get(face)
        if mine is None:
            return []
        keys = mine.aggregate[change.kind].touching(change.key)
        return [Change(change.kind, key) for key in keys if key != change.key]

    def pending(self, face: Face, change: Change) -> Held | None:
        """An interest without its D_FINAL yet, which this declaration therefore answers."""
        mine = self._faces.get(face)
        if mine is None:
            return None
        for held in mine.pending.values():
            if held.future and held.touches(change):
                return held
        return None

    @staticmethod
    def _keys(mine: _OfFace, held: Held) -> Iterator[KeySet]:
        keys = mine.aggregate if held.aggregate else mine.single
        for kind in held.kinds:
            yield keys[kind]
        if held.keyexprs:
            yield mine.keyexprs
