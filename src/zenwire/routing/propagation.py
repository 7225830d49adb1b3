"""What each face is told: the declarations of the others, each at most once.

The rule is one comparison: what a face should know of a key, by who declared it and by what the
face asked for, against what it has been told. The difference is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from zenwire.keyexpr import includes
from zenwire.routing.declarations import Change, Declarations, Kind, merge
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
    from zenwire.routing.faces import Face
    from zenwire.routing.interests import Held, Interests
    from zenwire.wire.network import Declaration

__all__ = ["Propagation"]

_NO_KEY: Final = WireExpr(0, "", Mapping.RECEIVER)
"""The reference writes U_QUERYABLE and U_TOKEN with a key that says nothing."""


class _Told(NamedTuple):
    id: int
    info: QueryableInfo


class Propagation:
    """Keeps every remote face told of what it should know."""

    __slots__ = ("_declarations", "_interests", "_state", "_told")

    def __init__(self, state: State, declarations: Declarations, interests: Interests) -> None:
        self._state = state
        self._declarations = declarations
        self._interests = interests
        self._told: dict[Face, dict[Change, _Told]] = {}

    def start(self, face: Face) -> None:
        """Tell a new face all it is told unasked: aliases first, then kind by kind."""
        if not (face.relation.pushes or face.relation.multicast):
            return
        changes = [Change(kind, key) for kind in Kind for key in self._keys(kind, None)]
        if face.relation.pushes:
            for change in changes:
                if self._wanted(face, change) is not None:
                    self.wire_key(face, change.key)
        for change in changes:
            self._sync(face, change)

    def drop(self, face: Face) -> None:
        self._told.pop(face, None)

    def sync(self, change: Change) -> None:
        """Tell every face what a change of declarations means for it."""
        for face in self._state.remotes():
            self._sync(face, change)
            for aggregate in self._interests.touched_aggregates(face, change):
                self._sync(face, aggregate)

    def answer(self, held: Held) -> None:
        """Tell a face the current declarations that its interest asks for."""
        for kind in Kind:
            if kind not in held.kinds:
                continue
            if held.aggregate and held.key is not None:
                keys = [held.key]
            else:
                keys = self._keys(kind, held.key)
            for key in keys:
                self._answer(held, Change(kind, key))

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

    def forget(self, held: Held) -> None:
        """An interest ended: what nobody asks for any more is silently no longer told."""
        told = self._told.get(held.face)
        if told is None or held.face.relation.pushes:
            return
        for change in list(told):
            if change.kind in held.kinds and self._wanted(held.face, change) is None:
                del told[change]

    def gone(self, key: str) -> None:
        """A token went that nobody had told us of: those who ask for tokens hear that."""
        change = Change(Kind.TOKEN, key)
        for face in self._state.remotes():
            self._untold_token(face, change)

    def wire_key(self, face: Face, key: str) -> WireExpr:
        """How to write the key of a declaration or interest; declares an alias if it is time."""
        prefix, suffix = split_wild(key)
        if not prefix or face.relation.multicast:
            return WireExpr(0, key)
        found = face.aliases.exact(prefix, suffix)
        if found is not None:
            return found
        if not (face.relation.pushes or self._interests.wants_alias(face, prefix)):
            return WireExpr(0, key)
        scope = face.aliases.declare(prefix)
        if scope is None:
            return WireExpr(0, key)
        self._state.stale()
        self._send(face, DeclareKeyExpr(expr_id=scope, key=WireExpr(0, prefix)))
        return WireExpr(scope, suffix)

    def _sync(self, face: Face, change: Change) -> None:
        wanted = self._wanted(face, change)
        told = self._told.get(face, {}).get(change)
        if wanted is None:
            if told is not None:
                del self._told[face][change]
                if not face.relation.multicast:
                    self._send(face, _undeclaration(change.kind, told.id))
            elif change.kind is Kind.TOKEN and not self._declarations.sources(change):
                self._untold_token(face, change)
        elif told is None or told.info != wanted:
            id = told.id if told is not None else self._new_id(face)
            self._tell(face, change, _Told(id, wanted), self._interests.pending(face, change))

    def _answer(self, held: Held, change: Change) -> None:
        face = held.face
        wanted = self._merged(face, change, aggregate=held.aggregate)
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

    def _untold_token(self, face: Face, change: Change) -> None:
        """The end of a token from before a face asked for those to come: by key, not by id."""
        if self._interests.wants(face, change):
            key = face.aliases.shortest(change.key)
            self._send(face, UndeclareToken(id=0, key=key))

    def _wanted(self, face: Face, change: Change) -> QueryableInfo | None:
        """What the face should know of this key, or None."""
        if face.relation.multicast:
            if change.kind is not Kind.SUBSCRIBER:
                return None
        elif not face.relation.pushes and not self._interests.wants(face, change):
            if not self._interests.aggregates(face, change):
                return None
            return self._merged(face, change, aggregate=True)
        return self._merged(face, change, aggregate=False)

    def _merged(self, face: Face, change: Change, *, aggregate: bool) -> QueryableInfo | None:
        """What others declared, told to this face as one."""
        kind, key = change
        if not aggregate:
            sources = self._declarations.sources(change)
            return merge([info for src, info in sources.items() if self._concerns(src, face, kind)])
        infos: list[QueryableInfo] = []
        for found, sources in self._declarations.intersecting(kind, key):
            whole = includes(found, key)
            infos += [
                QueryableInfo(info.complete and whole, info.distance)
                for src, info in sources.items()
                if self._concerns(src, face, kind)
            ]
        return merge(infos)

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
