"""Which faces and which queryables a query is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from zenwire.keyexpr import includes
from zenwire.routing.declarations import Change, Declarations, Kind
from zenwire.routing.faces import Locality
from zenwire.routing.local import Entities, LocalQueryable
from zenwire.routing.pubsub import unfiltered
from zenwire.wire.values import QueryTarget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zenwire.routing.faces import Face, Region
    from zenwire.routing.routers import Routers
    from zenwire.routing.state import State
    from zenwire.routing.upstream import Upstream

__all__ = ["Plan", "Targets"]

# Enumerations are slow to look up, and to hash.
_REMOTE: Final = Locality.REMOTE
_LOCAL: Final = Locality.SESSION_LOCAL


@dataclass(slots=True)
class _Candidate:
    """A face that may answer. ``unknown``: it has not told all its queryables for the key."""

    face: Face
    complete: bool = False
    unknown: bool = False
    distance: int = 0xFFFF


class Plan(NamedTuple):
    """Where a query goes."""

    serve: tuple[tuple[Face, tuple[int, ...]], ...]
    """The sessions that have queryables for it, and which."""
    forward: tuple[Face, ...]


class Targets:
    """Finds who may answer. What was found is remembered until it may have changed."""

    __slots__ = (
        "_chosen",
        "_declarations",
        "_found",
        "_generation",
        "_own",
        "_plans",
        "_routers",
        "_state",
        "_upstream",
        "queryables",
    )

    def __init__(
        self, state: State, declarations: Declarations, upstream: Upstream, routers: Routers
    ) -> None:
        self._state = state
        self._routers = routers
        self._declarations = declarations
        self._upstream = upstream
        self.queryables: Entities[LocalQueryable] = Entities()
        self._generation = 0
        self._found: dict[tuple[Face, str], list[list[_Candidate]]] = {}
        self._chosen: dict[tuple[Face, str, QueryTarget], tuple[Face, ...]] = {}
        self._own: dict[tuple[Face, bool, str, QueryTarget], tuple[int, ...]] = {}
        self._plans: dict[tuple[Face, str, int, bool, bool], Plan] = {}

    def plan(self, origin: Face, key: str, target: QueryTarget, destination: Locality) -> Plan:
        """Where a query of this face goes. The key is canonical."""
        if self._generation != self._state.generation:
            self._refresh()
        own = destination is not _REMOTE
        others = destination is not _LOCAL
        name = origin, key, int(target), own, others
        plan = self._plans.get(name)
        if plan is None:
            faces = self.choose(origin, key, target) if others else ()
            sessions = [origin] if own else []
            sessions += [face for face in faces if face.local]
            serve = [(one, self.queryables_of(one, origin, key, target)) for one in sessions]
            plan = self._plans[name] = Plan(
                tuple((session, ids) for session, ids in serve if ids),
                tuple(face for face in faces if not face.local),
            )
        return plan

    def choose(self, src: Face, key: str, target: QueryTarget) -> tuple[Face, ...]:
        """The faces to ask, in order of age. The best match is chosen within each region."""
        self._refresh()
        known = self._chosen.get((src, key, target))
        if known is not None:
            return known
        chosen: list[Face] = []
        for region in self._candidates(src, key):
            chosen += _choose(region, target)
        made = tuple(sorted(chosen, key=lambda face: face.id))
        self._chosen[src, key, target] = made
        return made

    def queryables_of(
        self, session: Face, origin: Face, key: str, target: QueryTarget
    ) -> tuple[int, ...]:
        """The queryables of a session that are to answer: all of them, once the session is."""
        local = session is origin
        self._refresh()
        known = self._own.get((session, local, key, target))
        if known is not None:
            return known
        found = [
            queryable.id
            for queryable in self.queryables.intersecting(key)
            if queryable.session is session
            and queryable.origin.reaches(local=local)
            and (queryable.complete or target is not QueryTarget.ALL_COMPLETE)
        ]
        made = self._own[session, local, key, target] = tuple(sorted(found))
        return made

    def _refresh(self) -> None:
        """Forget what may have changed, and what is too much to remember."""
        most = self._state.limits.routes
        if (
            self._generation != self._state.generation
            or len(self._chosen) >= most
            or len(self._own) >= most
            or len(self._plans) >= most
        ):
            self._generation = self._state.generation
            self._found.clear()
            self._chosen.clear()
            self._own.clear()
            self._plans.clear()

    def _candidates(self, src: Face, key: str) -> list[list[_Candidate]]:
        self._refresh()
        found = self._found.get((src, key))
        if found is None:
            if len(self._found) >= self._state.limits.routes:
                self._found.clear()
            found = self._found[src, key] = self._find(src, key)
        return found

    def _find(self, src: Face, key: str) -> list[list[_Candidate]]:
        found: dict[Face, _Candidate] = {}
        for declared, sources in self._declarations.intersecting(Kind.QUERYABLE, key):
            whole = includes(declared, key)
            for face, info in sources.items():
                # A session is nearer than any neighbour.
                distance = info.distance + (not face.local)
                hop: Face | None = face
                if face.routes:
                    hop = self._routers.hop(src, face) if src.routes or src.carries(face) else None
                    distance = self._routers.distance(face)
                elif not src.carries(face) or face.relation.multicast:
                    continue
                if hop is None:
                    continue
                candidate = found.setdefault(hop, _Candidate(hop))
                if info.complete and whole:
                    candidate.complete = True
                    candidate.distance = min(candidate.distance, distance)
        change = Change(Kind.QUERYABLE, key)
        for face in self._state.remotes():
            if src.reaches(face) and unfiltered(self._upstream, face, change):
                found.setdefault(face, _Candidate(face)).unknown = True
        regions: dict[Region, list[_Candidate]] = {}
        for candidate in found.values():
            regions.setdefault(candidate.face.relation.region, []).append(candidate)
        return list(regions.values())


def _choose(candidates: Sequence[_Candidate], target: QueryTarget) -> list[Face]:
    if target is QueryTarget.BEST_MATCHING:
        complete = [candidate for candidate in candidates if candidate.complete]
        if complete:
            return [min(complete, key=lambda c: (c.distance, c.face.id)).face]
    elif target is QueryTarget.ALL_COMPLETE:
        return [c.face for c in candidates if c.complete or c.unknown]
    return [candidate.face for candidate in candidates]
