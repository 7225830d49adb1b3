"""The concerns of routing put together: what one of them changes, the others hear of here."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final

from zenwire.errors import DecodeError
from zenwire.routing.declarations import Change, Declarations, Kind
from zenwire.routing.gateway import Gateway
from zenwire.routing.gossip import Gossip
from zenwire.routing.interests import Held, Interests
from zenwire.routing.limits import Counters
from zenwire.routing.liveliness import Liveliness
from zenwire.routing.matching import Matching
from zenwire.routing.multihop import MultihopGossip
from zenwire.routing.propagation import Propagation
from zenwire.routing.pubsub import PubSub
from zenwire.routing.queries import Queries
from zenwire.routing.routers import FAR, Routers
from zenwire.routing.sourced import Sourced
from zenwire.routing.state import AT_ONCE, State
from zenwire.routing.targets import Targets
from zenwire.routing.upstream import Upstream, Waiter, Want
from zenwire.wire.linkstate import OAM_LINKSTATE, decode_linkstate
from zenwire.wire.values import WhatAmI

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from zenwire.routing.faces import Face, Role
    from zenwire.routing.limits import Limits
    from zenwire.routing.options import RoutingOptions
    from zenwire.wire.locator import Locator
    from zenwire.wire.network import Oam
    from zenwire.wire.values import ZenohId

__all__ = ["PORTION", "Core"]

PORTION: Final = 256
"""Declarations that are told, or taken back, in one go."""
_INTRODUCE: Final = "introduce"
_FORGET: Final = "forget"


class Core:
    """Everything that `Tables` (towards the network) and `Session` (towards the API) work on."""

    def __init__(
        self,
        zid: ZenohId,
        role: Role,
        limits: Limits,
        locators: Iterable[Locator],
        *,
        life: int,
        options: RoutingOptions,
    ) -> None:
        self.role = role
        self.aggregates = options.aggregates
        self.state = State(zid, limits, Counters())
        self.declarations = Declarations()
        self.interests = Interests()
        self.propagation = Propagation(self.state, self.declarations, self.interests)
        self.upstream = Upstream(self.state, self.propagation, options)
        self.routers = Routers(self.state, locators, life, options)
        self.pubsub = PubSub(self.state, self.declarations, self.upstream, self.routers)
        self.targets = Targets(self.state, self.declarations, self.upstream, self.routers)
        self.queries = Queries(self.state, self.targets, self.routers)
        self.liveliness = Liveliness(self.state, self.declarations, self.upstream)
        self.matching = Matching(
            self.state, self.declarations, self.pubsub.subscribers, self.targets.queryables
        )
        gossip = MultihopGossip if options.multihop else Gossip
        self.gossip = gossip(self.state, role.whatami, locators, options.gossip_target)
        self.gateway = Gateway(self.state, options)
        self.sourced: Sourced | None = None
        if role.whatami is WhatAmI.ROUTER:
            self.sourced = Sourced(self.state, self.declarations, self.propagation, self.routers)
        self._served: dict[Held, Want] = {}
        self._leaving: deque[Face] = deque()
        """Faces that are gone, and of which there are declarations."""
        self._work: dict[Face, dict[Held | str, Iterator[None]]] = {}
        """What is being done for faces, in order: none has to wait for what another one asked."""
        self._telling: dict[Held, Want | None] = {}
        """Interests of which the face has not been told all there is here."""

    def apply(self, src: Face, changes: Iterable[Change]) -> None:
        """Declarations of a face changed: routes, neighbours and sessions hear of it."""
        for change in changes:
            if change.kind is not Kind.TOKEN:
                self.state.stale()
            self.propagation.sync(src, change)
            if self.sourced is not None:
                self.sourced.sync(change)
            self.matching.changed(change)
            if change.kind is Kind.TOKEN:
                self.liveliness.changed(change)

    def release(self, want: Want) -> None:
        """A want has a holder less; what nobody asks for any more is not kept."""
        for face in self.upstream.release(want):
            for kind in want.kinds:
                unasked = [
                    Change(kind, key)
                    for key, sources in self.declarations.intersecting(kind, want.key)
                    if face in sources and not self.upstream.covers(Change(kind, key))
                ]
                for change in unasked:
                    self.apply(face, self.declarations.withdraw(face, change))

    def introduce(self, face: Face, id: int) -> None:
        """Tell a new face all it is told unasked; then, if that is usual, that this was all."""
        self.propagation.add(face)
        self._begin(face, _INTRODUCE, self._introduction(face, id))

    def _introduction(self, face: Face, id: int) -> Iterator[None]:
        yield from self.propagation.starts(face)
        if face.relation.introduces:
            self.propagation.final(face, id)

    def serve(self, held: Held, now: float) -> None:
        """Answer an interest, as far as others must be asked when they have answered."""
        if held.future:
            self.interests.add(held)
        told = not held.current or self._begin(held.face, held, self.propagation.answers(held))
        want: Want | None = None
        # Equals of this node tell each other everything without it.
        if held.kinds and held.face.relation.relays:
            want = self.upstream.hold(held.kinds, held.key, held.mode, now)
            if held.future:
                self._served[held] = want
        if not held.current:
            return
        if told:
            self._conclude(held, want)
        else:
            self.interests.wait(held)
            self.interests.telling.add(held)
            self._telling[held] = want

    def _stop_telling(self, held: Held) -> None:
        self._telling.pop(held, None)
        self.interests.telling.discard(held)

    def _conclude(self, held: Held, want: Want | None) -> None:
        """What there is here was told; others may have to answer, too."""
        if want is None or want.answered:
            self.interests.answered(held)
            self.propagation.final(held.face, held.id)
        else:
            self.interests.wait(held)
            want.waiters.append(held)

    def end_interest(self, held: Held) -> None:
        """A face does not want to be told any more."""
        self.interests.remove(held)
        self._work.get(held.face, {}).pop(held, None)
        self._stop_telling(held)
        self._begin(held.face, _FORGET, self.propagation.forgets(held.face))
        self.unserve(held)

    # What may take long, because there may be a million declarations.

    @property
    def busy(self) -> bool:
        """Whether `work` has anything to do."""
        return bool(self._leaving or self._work)

    def work(self) -> None:
        """Do some of it: for one of the faces that wait for it, and for those that are gone."""
        if self._leaving:
            left = sum(map(self.declarations.left, self._leaving))
            # The more there is, the more at once: they must not become ever more.
            self._forget(self._leaving.popleft(), max(PORTION, left >> 8))
        if not self._work:
            return
        face, queue = next(iter(self._work.items()))
        del self._work[face]
        if queue:
            name, steps = next(iter(queue.items()))
            if _ended(steps):
                del queue[name]
                if isinstance(name, Held) and name in self._telling:
                    want = self._telling[name]
                    self._stop_telling(name)
                    self._conclude(name, want)
        if queue:
            self._work[face] = queue

    def _begin(self, face: Face, name: Held | str, steps: Iterator[None]) -> bool:
        """Do something for a face; whether all of it was done at once."""
        queue = self._work.get(face)
        if not queue and _ended(steps):
            return True
        self._work.setdefault(face, {})[name] = steps
        self.state.sooner = AT_ONCE
        return False

    def unserve(self, held: Held) -> None:
        """What was asked for this interest alone is not asked any more."""
        want = self._served.pop(held, None)
        if want is not None:
            self.upstream.cancel(want, held)
            self.release(want)

    def answered(self, waiters: Iterable[Waiter]) -> None:
        """Others have answered what these waited for."""
        for waiter in waiters:
            if isinstance(waiter, int):
                self.liveliness.finish(waiter)
            elif self.interests.answered(waiter):
                self.propagation.final(waiter.face, waiter.id)

    def oam(self, face: Face, message: Oam, now: float) -> None:
        """OAM came from a face. Only link state from one who has any means anything."""
        relation, body = face.relation, message.body
        listens = relation.gossips or relation.gateway or relation.routes
        if not listens or message.id != OAM_LINKSTATE or not isinstance(body, bytes):
            self.state.counters.ignored_oam += 1
            return
        try:
            told = decode_linkstate(body)
        except DecodeError as error:
            self.state.violation(face, f"link state: {error.fault.name}")
            return
        if relation.routes:
            self.lost(self.routers.receive(face, told, now))
        elif relation.gateway:
            self.gateway.receive(face, told)
        else:
            self.gossip.receive(face, told)

    def lost(self, gone: Iterable[Face]) -> None:
        """Routers are out of reach, with all that they had."""
        for far in gone:
            self._forget(far, PORTION)

    def _forget(self, face: Face, most: int) -> None:
        """Take back so much of what a face had that is gone."""
        if face.relation is FAR and self.sourced is not None:
            changes = self.sourced.gone(face, most)
        else:
            changes = self.declarations.drop(face, most)
        self.apply(face, changes)
        if self.declarations.left(face):
            self._leaving.append(face)
            self.state.sooner = AT_ONCE

    def remove(self, face: Face) -> None:
        """A neighbour or session is gone: nothing of it stays.

        What it declared is taken back in portions: each has to be told to others.
        """
        if self.state.faces.pop(face.id, None) is None:
            return
        face.alive = False
        self.state.stale()
        self.propagation.drop(face)
        self.pubsub.drop(face)
        self.queries.drop(face)
        waiters = self.upstream.drop(face)
        for name in self._work.pop(face, {}):
            if isinstance(name, Held):
                self._stop_telling(name)
        for held in self.interests.drop(face):
            self.unserve(held)
        self._forget(face, PORTION)
        self.gossip.drop(face)
        self.gateway.drop(face)
        if self.sourced is not None and face.routes:
            self.sourced.drop(face)
            self.lost(self.routers.drop(face))
        self.answered(waiters)


def _ended(steps: Iterator[None]) -> bool:
    """Make some steps; whether there are no more."""
    return len(list(islice(steps, PORTION))) < PORTION
