"""Declarations among routers: each has a source, and is told along the tree of that source.

A child in that tree knows all that its source has; so nothing needs to be remembered of what was
told, but who the children are. Ids are not used, a declaration is taken back by its key.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final

from zenwire.routing.declarations import Change, Declarations, Kind, merge
from zenwire.routing.faces import Region, chunks_of
from zenwire.routing.state import AT_ONCE, CONTROL, State
from zenwire.wire.declare import (
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
)
from zenwire.wire.network import Declare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zenwire.routing.faces import Face
    from zenwire.routing.propagation import Propagation
    from zenwire.routing.routers import Routers
    from zenwire.wire.network import Declaration
    from zenwire.wire.values import QueryableInfo, WireExpr

__all__ = ["Sourced"]

_TREES: Final = 8
"""Sources whose trees are looked at in one go."""
_MESSAGES: Final = 512
"""Declarations that are told in one go."""
_CHUNKS: Final = 8
"""Chunks that a key among many may have on average."""


class Sourced:
    """What this router and the others have declared among each other."""

    __slots__ = (
        "_children",
        "_chunks",
        "_count",
        "_declarations",
        "_looking",
        "_own",
        "_propagation",
        "_routers",
        "_since",
        "_state",
        "_telling",
    )

    def __init__(
        self,
        state: State,
        declarations: Declarations,
        propagation: Propagation,
        routers: Routers,
    ) -> None:
        self._state = state
        self._declarations = declarations
        self._propagation = propagation
        self._routers = routers
        self._own: dict[Change, QueryableInfo] = {}
        self._children: dict[Face | None, list[Face]] = {}
        self._looking: deque[Face | None] = deque()
        self._telling: deque[tuple[Face | None, Face, Iterator[Change]]] = deque()
        self._since = 0.0
        self._count = 0
        self._chunks = 0

    def sync(self, change: Change) -> None:
        """What faces other than routers have on a key may have changed: the routers hear of it."""
        infos = [
            info
            for face, info in self._declarations.sources(change).items()
            if face.relation.region is not Region.NORTH
        ]
        now, before = merge(infos), self._own.get(change)
        if now == before:
            return
        if now is None:
            del self._own[change]
        else:
            self._own[change] = now
        for face in self._hearing(None, now):
            self._tell(face, 0, change, now)

    def declare(self, face: Face, number: int, change: Change, info: QueryableInfo) -> list[Change]:
        """A router tells what it, or another one, has."""
        # Who declares has changed its ways; so it is time.
        self._routers.look()
        far = self._routers.far(face, number)
        if far is None:
            return []
        known = self._declarations.sources(change).get(far)
        if known is None and not self._fits(change):
            self._state.counters.limit_declarations += 1
            return []
        if known == info:
            # It is told again to those who are new, or to all by one that has come back; and
            # behind us may be some who had lost sight of it.
            if self._routers.tree(far).parent == face.zid:
                self._pass_on(face, far, change, info)
            return []
        if known is None:
            self._count += 1
            self._chunks += chunks_of(change.key)
        changes = self._declarations.hold(far, change, info)
        self._pass_on(face, far, change, info)
        return changes

    def undeclare(self, face: Face, number: int, change: Change) -> list[Change]:
        """A router tells what it, or another one, has no longer."""
        far = self._routers.far(face, number)
        if far is None:
            return []
        changes = self._declarations.withdraw(far, change)
        if changes:
            self._count -= 1
            self._chunks -= chunks_of(change.key)
            self._pass_on(face, far, change, None)
        else:
            self._state.counters.unknown_undeclare += 1
        return changes

    def gone(self, far: Face, most: int) -> list[Change]:
        """A router is out of reach, with so much of what it had."""
        self._children.pop(far, None)
        self._chunks -= far.chunks
        far.chunks = 0
        changes = self._declarations.drop(far, most)
        self._count -= len(changes)
        return changes

    def drop(self, face: Face) -> None:
        """A neighbour is gone. If it returns, it knows nothing."""
        for children in self._children.values():
            if face in children:
                children.remove(face)

    def rebuilt(self, now: float) -> None:
        """The trees are others: who is a child now, and was none, is to be told all."""
        self._looking = deque(self._children)
        self._since = now

    @property
    def deadline(self) -> float | None:
        """When `tick` is due: at once, as long as there is anything to do."""
        return self._since if self._looking or self._telling else None

    def tick(self) -> None:
        """Do some of that: there may be very much, and nobody is to wait for it."""
        for _ in range(_TREES):
            if not self._looking:
                break
            src = self._looking.popleft()
            if src not in self._children:
                continue
            before, now = self._children[src], self._routers.children(src)
            self._children[src] = now
            new = [face for face in now if face not in before]
            self._telling += [(src, face, iter(list(self._of(src)))) for face in new]
        left = _MESSAGES
        while self._telling and left:
            src, face, changes = self._telling[0]
            for change in islice(changes, left):
                left -= 1
                info = self._info(src, change)
                if info is not None and face.alive:
                    number = 0 if src is None else self._routers.number(src)
                    self._tell(face, number, change, info)
            if left:
                self._telling.popleft()
        self._state.sooner = AT_ONCE

    def _fits(self, change: Change) -> bool:
        most = self._state.limits.sourced
        return self._count < most and self._chunks + chunks_of(change.key) <= most * _CHUNKS

    def _pass_on(self, face: Face, far: Face, change: Change, info: QueryableInfo | None) -> None:
        number = self._routers.number(far)
        for child in self._hearing(far, info):
            if child is not face:
                self._tell(child, number, change, info)

    def _hearing(self, src: Face | None, info: QueryableInfo | None) -> list[Face]:
        """Who is told of a change: of an end also a child that has not been told all by us.

        Another may have told it, whose child it was before the network changed.
        """
        told = self._told(src)
        if info is not None or self._routers.calm:
            return told
        return told + [face for face in self._routers.children(src) if face not in told]

    def _told(self, src: Face | None) -> list[Face]:
        """Those who know all that a router has."""
        children = self._children.get(src)
        if children is None:
            # Of a network that has just changed they are told all at once, when it is calm.
            calm = self._routers.calm
            children = self._children[src] = self._routers.children(src) if calm else []
        return children

    def _of(self, src: Face | None) -> Iterator[Change]:
        return iter(self._own) if src is None else self._declarations.held(src)

    def _info(self, src: Face | None, change: Change) -> QueryableInfo | None:
        if src is None:
            return self._own.get(change)
        return self._declarations.sources(change).get(src)

    def _tell(self, face: Face, number: int, change: Change, info: QueryableInfo | None) -> None:
        key = self._propagation.wire_key(face, change.key)
        if info is None:
            body = _undeclaration(change.kind, key)
        else:
            body = _declaration(change.kind, key, info)
        self._state.send(face, Declare(node_id=number, qos=CONTROL, body=body))


def _declaration(kind: Kind, key: WireExpr, info: QueryableInfo) -> Declaration:
    if kind is Kind.SUBSCRIBER:
        return DeclareSubscriber(id=0, key=key)
    if kind is Kind.QUERYABLE:
        return DeclareQueryable(id=0, key=key, info=info)
    return DeclareToken(id=0, key=key)


def _undeclaration(kind: Kind, key: WireExpr) -> Declaration:
    if kind is Kind.SUBSCRIBER:
        return UndeclareSubscriber(id=0, key=key)
    if kind is Kind.QUERYABLE:
        return UndeclareQueryable(id=0, key=key)
    return UndeclareToken(id=0, key=key)
