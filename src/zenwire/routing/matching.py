"""Matching status: whether a publisher or querier has anybody on the other side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zenwire.keyexpr import includes
from zenwire.routing.declarations import Change, Declarations, Kind
from zenwire.routing.local import Entities, Matcher
from zenwire.routing.outputs import MatchingChanged
from zenwire.wire.values import QueryTarget

if TYPE_CHECKING:
    from zenwire.routing.local import LocalQueryable, LocalSubscriber
    from zenwire.routing.state import State

__all__ = ["Matching"]


class Matching:
    """Publishers and queriers of the sessions, each with its status."""

    __slots__ = ("_declarations", "_publishers", "_queriers", "_queryables", "_state", "_subs")

    def __init__(
        self,
        state: State,
        declarations: Declarations,
        subscribers: Entities[LocalSubscriber],
        queryables: Entities[LocalQueryable],
    ) -> None:
        self._state = state
        self._declarations = declarations
        self._subs = subscribers
        self._queryables = queryables
        self._publishers: Entities[Matcher] = Entities()
        self._queriers: Entities[Matcher] = Entities()

    def add(self, matcher: Matcher) -> None:
        """Its first status is found, not told."""
        (self._queriers if matcher.queries else self._publishers).add(matcher)
        matcher.matching = self._matches(matcher)

    def remove(self, matcher: Matcher) -> None:
        (self._queriers if matcher.queries else self._publishers).remove(matcher)

    def matchers(self) -> list[Matcher]:
        """All publishers and queriers."""
        return [one for those in (self._publishers, self._queriers) for one in those.all()]

    def changed(self, change: Change) -> None:
        """Tell those whose status is another one now."""
        if change.kind is Kind.TOKEN:
            return
        matchers = self._queriers if change.kind is Kind.QUERYABLE else self._publishers
        if not matchers:
            return
        for matcher in list(matchers.intersecting(change.key)):
            matching = self._matches(matcher)
            if matching != matcher.matching:
                matcher.matching = matching
                self._state.emit(MatchingChanged(matcher.id, matching))

    def _matches(self, matcher: Matcher) -> bool:
        complete = matcher.queries and matcher.target is QueryTarget.ALL_COMPLETE
        if matcher.destination.reaches(local=True) and self._matches_own(matcher, complete):
            return True
        return matcher.destination.reaches(local=False) and self._matches_others(matcher, complete)

    def _matches_own(self, matcher: Matcher, complete: bool) -> bool:
        session, key = matcher.session, matcher.key
        if not matcher.queries:
            found = self._subs.intersecting(key)
            return any(s.session is session and s.origin.reaches(local=True) for s in found)
        return any(
            q.session is session
            and q.origin.reaches(local=True)
            and (not complete or (q.complete and includes(q.key, key)))
            for q in self._queryables.intersecting(key)
        )

    def _matches_others(self, matcher: Matcher, complete: bool) -> bool:
        kind = Kind.QUERYABLE if matcher.queries else Kind.SUBSCRIBER
        for key, sources in self._declarations.intersecting(kind, matcher.key):
            if complete and not includes(key, matcher.key):
                continue
            for face, info in sources.items():
                if face.reaches(matcher.session) and (info.complete or not complete):
                    return True
        return False
