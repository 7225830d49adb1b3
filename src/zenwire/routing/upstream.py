"""Our own interests: what this node asks of the faces that tell nothing unasked.

A want is held by publishers, queriers, liveliness subscribers or served faces, and sent once to
each face that is asked. It is answered when all of them sent D_FINAL, went away, or were silent
for too long.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zenwire.routing.declarations import KINDS, Change, Kind
from zenwire.routing.interests import Held, KeySet
from zenwire.routing.state import AT_ONCE, CONTROL, State
from zenwire.wire.network import Interest
from zenwire.wire.values import InterestMode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zenwire.routing.faces import Face
    from zenwire.routing.options import RoutingOptions
    from zenwire.routing.propagation import Propagation

__all__ = ["Upstream", "Waiter", "Want"]

Waiter = Held | int
"""Who is told that a want is answered: a served interest, or a liveliness query by its id."""

_Name = tuple[InterestMode, frozenset[Kind], str | None]


@dataclass(slots=True, eq=False)
class Want:
    """Something to ask for, as long as it has holders."""

    mode: InterestMode
    kinds: frozenset[Kind]
    key: str | None
    holders: int = 0
    asked: dict[Face, Asked] = field(default_factory=dict)
    waiters: list[Waiter] = field(default_factory=list)

    @property
    def answered(self) -> bool:
        return all(asked.final for asked in self.asked.values())


@dataclass(slots=True, eq=False)
class Asked:
    """A want as it was sent to one face."""

    want: Want
    id: int
    final: bool


class Upstream:
    """All wants, the faces that were asked, and those who wait for the answers."""

    __slots__ = (
        "_aggregates",
        "_covered",
        "_deadlines",
        "_exact",
        "_faces",
        "_propagation",
        "_state",
        "_timeout",
        "_wants",
    )

    def __init__(self, state: State, propagation: Propagation, options: RoutingOptions) -> None:
        self._state = state
        self._aggregates = options.aggregates
        self._timeout = options.interest_timeout
        self._propagation = propagation
        self._wants: dict[_Name, Want] = {}
        self._exact: dict[Change, list[Want]] = {}
        self._covered: dict[Kind, KeySet] = {kind: KeySet() for kind in KINDS}
        self._faces: dict[Face, dict[int, Asked]] = {}
        self._deadlines: deque[tuple[float, Face, Asked]] = deque()

    @property
    def deadline(self) -> float | None:
        while self._deadlines and self._deadlines[0][2].final:
            self._deadlines.popleft()
        return self._deadlines[0][0] if self._deadlines else None

    def hold(self, kinds: Iterable[Kind], key: str | None, mode: InterestMode, now: float) -> Want:
        """Ask for it, unless that has been done. To be released as often as it is held."""
        name = mode, frozenset(kinds), key
        want = self._wants.get(name)
        if want is None:
            want = Want(*name)
            if mode is not InterestMode.CURRENT:
                self._wants[name] = want
                self._index(want)
            for face in self._state.remotes():
                if _is_asked(face, mode):
                    self._ask(face, want, mode, now)
        want.holders += 1
        return want

    def release(self, want: Want) -> list[Face]:
        """One holder less; the faces that are asked no longer, if it was the last."""
        want.holders -= 1
        if want.holders or want.mode is InterestMode.CURRENT:
            return []
        del self._wants[want.mode, want.kinds, want.key]
        for kind in want.kinds:
            self._covered[kind].remove(want.key)
            if want.key is not None and want.mode is InterestMode.CURRENT_FUTURE:
                wants = self._exact[Change(kind, want.key)]
                wants.remove(want)
                if not wants:
                    del self._exact[Change(kind, want.key)]
        for face, asked in want.asked.items():
            asked.final = True
            del self._faces[face][asked.id]
            message = Interest(mode=InterestMode.FINAL, id=asked.id, qos=CONTROL)
            self._state.send(face, message)
        self._state.stale()
        return list(want.asked)

    def start(self, face: Face, now: float) -> None:
        """A new face is asked everything, also for what there is already: we know none of it."""
        if face.relation.asks:
            for want in list(self._wants.values()):
                self._ask(face, want, InterestMode.CURRENT_FUTURE, now)

    def drop(self, face: Face) -> list[Waiter]:
        """A face went, and answers nothing any more; who has waited for it alone."""
        done: list[Waiter] = []
        for asked in self._faces.pop(face, {}).values():
            asked.final = True
            del asked.want.asked[face]
            done += self._done(asked.want)
        return done

    def final(self, face: Face, interest_id: int) -> list[Waiter]:
        """D_FINAL came; who has waited for it."""
        asked = self._faces.get(face, {}).get(interest_id)
        if asked is None:
            self._state.counters.unknown_final += 1
            return []
        return self._finish(face, asked)

    def tick(self, now: float) -> list[Waiter]:
        """Faces that were silent for too long count as having answered."""
        done: list[Waiter] = []
        while (deadline := self.deadline) is not None and deadline <= now:
            _, face, asked = self._deadlines.popleft()
            done += self._finish(face, asked)
        return done

    def waiting(self, face: Face, interest_id: int | None) -> list[Waiter] | None:
        """Who a token is for that answers an interest in current ones; None if it is no such."""
        asked = None if interest_id is None else self._faces.get(face, {}).get(interest_id)
        if asked is None or asked.want.mode is not InterestMode.CURRENT:
            return None
        return asked.want.waiters

    def covers(self, change: Change) -> bool:
        """Whether a declaration is among those that were asked for."""
        return self._covered[change.kind].touches(change.key)

    def settled(self, face: Face, change: Change) -> bool:
        """Whether the face has told all it has on just this key, or on the aggregate over it."""
        wants = self._exact.get(change, ())
        if self._aggregates.publishers and change.kind is Kind.SUBSCRIBER:
            over = Change(change.kind, self._aggregates.of_publisher(change.key))
            wants = [*wants, *self._exact.get(over, ())]
        for want in wants:
            asked = want.asked.get(face)
            if asked is not None and asked.final:
                return True
        return False

    def cancel(self, want: Want, waiter: Waiter) -> None:
        """Somebody waits no longer."""
        if waiter in want.waiters:
            want.waiters.remove(waiter)

    def _index(self, want: Want) -> None:
        for kind in want.kinds:
            self._covered[kind].add(want.key)
            if want.key is not None and want.mode is InterestMode.CURRENT_FUTURE:
                self._exact.setdefault(Change(kind, want.key), []).append(want)

    def _ask(self, face: Face, want: Want, mode: InterestMode, now: float) -> None:
        key = None if want.key is None else self._propagation.wire_key(face, want.key)
        asked = Asked(want, face.next_id(), final=mode is InterestMode.FUTURE)
        want.asked[face] = asked
        self._faces.setdefault(face, {})[asked.id] = asked
        if not asked.final:
            self._deadlines.append((now + self._timeout, face, asked))
            self._state.sooner = AT_ONCE
        message = Interest(
            mode=mode,
            id=asked.id,
            keyexprs=True,
            subscribers=Kind.SUBSCRIBER in want.kinds,
            queryables=Kind.QUERYABLE in want.kinds,
            tokens=Kind.TOKEN in want.kinds,
            key=key,
            qos=CONTROL,
        )
        self._state.send(face, message)

    def _finish(self, face: Face, asked: Asked) -> list[Waiter]:
        if asked.final:
            return []
        asked.final = True
        self._state.stale()
        done = self._done(asked.want)
        if asked.want.mode is InterestMode.CURRENT:
            del self._faces[face][asked.id]
            del asked.want.asked[face]
        return done

    @staticmethod
    def _done(want: Want) -> list[Waiter]:
        if not want.answered:
            return []
        done, want.waiters = want.waiters, []
        return done


def _is_asked(face: Face, mode: InterestMode) -> bool:
    if face.relation.asks:
        return True
    # A peer that has not told all it has may have tokens that we do not know.
    return mode is InterestMode.CURRENT and face.relation.introduces and not face.introduced
