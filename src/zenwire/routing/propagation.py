"""What each face is told: the declarations of the others, each at most once.

The rule is one comparison: what a face should know of a key, by who declared it and by what the
face asked for, against what it has been told. The difference is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from zenwire.keyexpr import includes
from zenwire.routing.declarations import KINDS, Change, Declarations, Kind, merge
from zenwire.routing.resources import split_wild
from zenwire.routing.state import CONTROL, State
from zenwire.wire.declare import (
    DeclareFinal,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
)
from zenwire.wire.network import Declare
from zenwire.wire.values import InterestMode, Mapping, QueryableInfo, WireExpr

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from zenwire.routing.faces import Face
    from zenwire.routing.interests import Held, Interests
    from zenwire.wire.network import Declaration

__all__ = ["Propagation"]

_BEST: Final = QueryableInfo(complete=True, distance=0)
"""No other info adds anything to it."""
_NO_KEY: Final = WireExpr(0, "", Mapping.RECEIVER)
"""The reference writes U_QUERYABLE and U_TOKEN with a key that says nothing."""


class _Told(NamedTuple):
    id: int
    info: QueryableInfo


class Propagation:
    """Keeps every remote face told of what it should know."""

    __slots__ = ("_declarations", "_interests", "_state", "_told", "_unasked")

    def __init__(self, state: State, declarations: Declarations, interests: Interests) -> None:
        self._state = state
        self._declarations = declarations
        self._interests = interests
        self._told: dict[Face, dict[Change, _Told]] = {}
        self._unasked: dict[Face, None] = {}
        """Faces that are told without an interest."""

    def add(self, face: Face) -> None:
        """A neighbour came; ``starts`` tells it what there is."""
        if face.relation.pushes or face.relation.multicast:
            self._unasked[face] = None

    def starts(self, face: Face) -> Iterator[None]:
        """Tell a new face all it is told unasked: aliases first, then kind by kind.

        One at each step; what changes meanwhile is told as it changes.
        """
        if not (face.relation.pushes or face.relation.multicast) or not self._declarations:
            return
        changes = [Change(kind, key) for kind in KINDS for key in self._keys(kind, None)]
        if face.relation.pushes:
            for change in changes:
                if self._wanted(face, change, None, change) is not None:
                    self.wire_key(face, change.key)
                yield
        for change in changes:
            self._sync(face, change)
            yield

    def drop(self, face: Face) -> None:
        self._told.pop(face, None)
        self._unasked.pop(face, None)

    def sync(self, src: Face, change: Change) -> None:
        """Tell every face what a change of the declarations of one means for it."""
        gone = change.kind is Kind.TOKEN and not self._declarations.sources(change)
        asking = self._interests.faces
        for face in self._hearers():
            if not (face in self._unasked or face in asking) and (
                change not in self._told.get(face, ())
            ):
                continue
            told = self._sync(face, change)
            if gone and not told:
                self._untold_token(src, face, change)
            for aggregate in self._interests.touched_aggregates(face, change):
                self._sync(face, aggregate, change)

    def _hearers(self) -> Iterable[Face]:
        """Neighbours that may have to be told of a change, oldest first.

        Most neighbours of a router ask for nothing: a change must not cost time for each of them.
        """
        asking, told, unasked = self._interests.faces, self._told, self._unasked
        if 2 * (len(asking) + len(told) + len(unasked)) >= len(self._state.faces):
            return self._state.remotes()
        found = [face for face in {**unasked, **told, **asking} if face.alive and not face.local]
        return sorted(found, key=lambda face: face.id)

    def answers(self, held: Held) -> Iterator[None]:
        """Tell a face the current declarations that its interest asks for, one at each step."""
        for kind in KINDS:
            if kind not in held.kinds:
                continue
            if held.aggregate and held.key is not None:
                keys = [held.key]
            else:
                keys = self._keys(kind, held.key)
            for key in keys:
                self._answer(held, Change(kind, key))
                yield

    def token(self, held: Held, key: str) -> None:
        """Answer an interest in current tokens: each key once, and the id is no token's."""
        if key in held.seen:
            return
        held.seen.add(key)
        body = DeclareToken(id=0, key=self.wire_key(held.face, key))
        self._state.send(held.face, Declare(interest_id=held.id, qos=CONTROL, body=body))

    def final(self, face: Face, interest_id: int) -> None:
        """Tell a face that its interest is answered."""
        self._state.send(face, Declare(interest_id=interest_id, qos=CONTROL, body=DeclareFinal()))

    def forgets(self, face: Face) -> Iterator[None]:
        """An interest ended: what stands for others is taken back if nobody asks for it any more.

        The rest stays told until it ends, as in the reference: its clients keep what they know, and
        must not learn the same under another id. One of what was told is looked at in each step.
        """
        told = self._told.get(face)
        if told is None or face.relation.pushes:
            return
        for change in list(told):
            if (
                change in told
                and not self._declarations.sources(change)
                and self._wanted(face, change, None, change) is None
            ):
                self._send(face, _undeclaration(change.kind, told.pop(change).id))
            yield

    def gone(self, src: Face, key: str) -> None:
        """A token went that nobody had told us of: those who ask for tokens hear that."""
        change = Change(Kind.TOKEN, key)
        for face in self._state.remotes():
            self._untold_token(src, face, change)

    def wire_key(self, face: Face, key: str) -> WireExpr:
        """How to write the key of a declaration or interest; declares an alias if it is time."""
        prefix, suffix = split_wild(key)
        if not prefix or face.relation.multicast:
            return WireExpr(0, key)
        found = face.aliases.exact(prefix, suffix)
        if found is not None:
            return found
        if not (face.relation.pushes or face.routes or self._interests.wants_alias(face, prefix)):
            return WireExpr(0, key)
        scope = face.aliases.declare(prefix)
        if scope is None:
            return WireExpr(0, key)
        self._state.stale()
        self._send(face, DeclareKeyExpr(expr_id=scope, key=WireExpr(0, prefix)))
        return WireExpr(scope, suffix)

    def _sync(self, face: Face, change: Change, cause: Change | None = None) -> bool:
        """Tell a face what is new of a key; whether there was anything to tell.

        The key may be that of an aggregate: then the ``cause`` is among what that stands for.
        """
        told = self._told.get(face, {}).get(change)
        wanted = self._wanted(face, change, told, cause or change)
        if wanted is None:
            if told is not None:
                del self._told[face][change]
                if not face.relation.multicast:
                    self._send(face, _undeclaration(change.kind, told.id))
                return True
        elif told is None or told.info != wanted:
            id = told.id if told is not None else self._new_id(face)
            self._tell(face, change, _Told(id, wanted), self._interests.pending(face, change))
            return True
        return False

    def _untold_token(self, src: Face, face: Face, change: Change) -> None:
        """The end of a token from before a face asked for those to come: by key, not by id."""
        interests = self._interests
        if interests.telling and interests.knows_nothing(face, change):
            return
        if self._concerns(src, face, change.kind) and interests.wants(face, change):
            key = face.aliases.shortest(change.key)
            self._send(face, UndeclareToken(id=0, key=key))

    def _answer(self, held: Held, change: Change) -> None:
        face = held.face
        if held.aggregate:
            wanted = self._aggregated(face, change, None, change)
        else:
            wanted = self._merged(face, change)
        if wanted is None:
            return
        if held.mode is InterestMode.CURRENT:
            self.token(held, change.key)
            return
        told = self._told.get(face, {}).get(change)
        id = told.id if told is not None else self._new_id(face)
        self._tell(face, change, _Told(id, wanted), held)

    def _tell(self, face: Face, change: Change, told: _Told, held: Held | None) -> None:
        self._told.setdefault(face, {})[change] = told
        body = _declaration(change.kind, told, self.wire_key(face, change.key))
        interest_id = None if held is None else held.id
        self._state.send(face, Declare(interest_id=interest_id, qos=CONTROL, body=body))

    def _wanted(
        self, face: Face, change: Change, told: _Told | None, cause: Change
    ) -> QueryableInfo | None:
        """What the face should know of this key, or None."""
        if face.relation.multicast:
            if change.kind is not Kind.SUBSCRIBER:
                return None
        elif not face.relation.pushes and not self._interests.wants(face, change):
            if not self._interests.aggregates(face, change):
                return None
            return self._aggregated(face, change, told, cause)
        return self._merged(face, change)

    def _merged(self, face: Face, change: Change) -> QueryableInfo | None:
        """What others declared on this key, told to this face as one."""
        sources = self._declarations.sources(change).items()
        return merge([info for src, info in sources if self._concerns(src, face, change.kind)])

    def _aggregated(
        self, face: Face, change: Change, told: _Told | None, cause: Change
    ) -> QueryableInfo | None:
        """What others declared on keys that intersect this one, told to this face as one.

        There may be a million of them, so it ends as soon as it cannot become more: one
        declaration has changed, and either it alone makes more of what was told, or nothing does.
        """
        kind, key = change
        enough = _BEST
        if told is not None:
            part = self._merged(face, cause)
            whole = part is not None and part.complete and includes(cause.key, key)
            part = part and QueryableInfo(whole, part.distance)
            better = told.info if part is None else merge([told.info, part])
            if better != told.info:
                return better
            enough = told.info
        merged: QueryableInfo | None = None
        for found, _ in self._declarations.intersecting(kind, key):
            part = self._merged(face, Change(kind, found))
            if part is None:
                continue
            whole = part.complete and includes(found, key)
            part = QueryableInfo(whole, part.distance)
            merged = part if merged is None else merge([merged, part])
            if kind is not Kind.QUERYABLE or merged in {enough, _BEST}:
                break
        return merged

    def _keys(self, kind: Kind, key: str | None) -> list[str]:
        """In order, so that the same declarations always make the same messages."""
        return sorted(found for found, _ in self._declarations.intersecting(kind, key))

    @staticmethod
    def _concerns(src: Face, dst: Face, kind: Kind) -> bool:
        if src is dst:
            return kind is Kind.TOKEN and dst.relation.echoes
        return src.reaches(dst)

    @staticmethod
    def _new_id(face: Face) -> int:
        return 0 if face.relation.multicast else face.next_id()

    def _send(self, face: Face, body: Declaration) -> None:
        self._state.send(face, Declare(qos=CONTROL, body=body))


def _declaration(kind: Kind, told: _Told, key: WireExpr) -> Declaration:
    if kind is Kind.SUBSCRIBER:
        return DeclareSubscriber(id=told.id, key=key)
    if kind is Kind.QUERYABLE:
        return DeclareQueryable(id=told.id, key=key, info=told.info)
    return DeclareToken(id=told.id, key=key)


def _undeclaration(kind: Kind, id: int) -> Declaration:
    if kind is Kind.SUBSCRIBER:
        return UndeclareSubscriber(id=id)
    if kind is Kind.QUERYABLE:
        return UndeclareQueryable(id=id, key=_NO_KEY)
    return UndeclareToken(id=id, key=_NO_KEY)
