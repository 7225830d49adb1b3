"""Routing towards the network: faces come, say things, and go; out come messages and events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zenwire.keyexpr import is_canonical
from zenwire.routing.core import Core
from zenwire.routing.declarations import Change, Kind
from zenwire.routing.faces import LOCAL, MULTICAST, Face, Relation, Role, chunks_of
from zenwire.routing.interests import Held
from zenwire.routing.limits import Counters, Limits
from zenwire.routing.options import RoutingOptions
from zenwire.routing.outputs import CloseFace, Output
from zenwire.routing.overview import Overview
from zenwire.routing.session import Session
from zenwire.routing.state import NEVER
from zenwire.wire.declare import (
    DeclareFinal,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    UndeclareKeyExpr,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
)
from zenwire.wire.network import (
    Declare,
    Interest,
    NetworkMessage,
    Push,
    Request,
    Response,
    ResponseFinal,
)
from zenwire.wire.values import CloseReason, InterestMode, QueryableInfo, WhatAmI, ZenohId

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from zenwire.routing.pubsub import Route
    from zenwire.routing.state import State
    from zenwire.wire.locator import Locator
    from zenwire.wire.values import WireExpr

__all__ = ["Tables"]

_START = 0
"""The interest id of the D_FINAL that ends what peers tell each other at the start."""

_DECLARED = {
    DeclareSubscriber: Kind.SUBSCRIBER,
    DeclareQueryable: Kind.QUERYABLE,
    DeclareToken: Kind.TOKEN,
}
_UNDECLARED = {
    UndeclareSubscriber: Kind.SUBSCRIBER,
    UndeclareQueryable: Kind.QUERYABLE,
    UndeclareToken: Kind.TOKEN,
}
_NO_INFO = QueryableInfo()


class Tables:
    """The routing of one node.

    Whatever is called, `outputs` gives what is to be done about it, in order. Times are seconds
    of any clock that does not go back. Nothing that a neighbour sends raises an exception.
    ``life`` must be greater each time that a router with the same id starts: others believe what
    it says of itself by a number that begins there.
    """

    def __init__(
        self,
        zid: ZenohId,
        role: Role,
        *,
        limits: Limits | None = None,
        locators: Iterable[Locator] = (),
        life: int = 1,
        options: RoutingOptions = RoutingOptions(),  # noqa: B008 # frozen
    ) -> None:
        self._core = Core(zid, role, limits or Limits(), locators, life=life, options=options)

    @property
    def role(self) -> Role:
        return self._core.role

    @property
    def counters(self) -> Counters:
        """What neighbours sent that was refused or meant nothing."""
        return self._core.state.counters

    @property
    def faces(self) -> Mapping[int, Face]:
        """All neighbours and sessions, by id, oldest first."""
        return self._core.state.faces

    @property
    def deadline(self) -> float | None:
        """When `tick` is due, or None."""
        core = self._core
        core.state.sooner = NEVER
        times = (
            core.queries.deadline,
            core.upstream.deadline,
            core.liveliness.deadline,
            core.routers.deadline,
            None if core.sourced is None else core.sourced.deadline,
            0.0 if core.busy else None,
        )
        return min((time for time in times if time is not None), default=None)

    @property
    def sooner(self) -> bool:
        """Whether the deadline may be an earlier one than when it was last asked for."""
        return self._core.state.sooner < NEVER

    @property
    def pending(self) -> bool:
        """Whether there are outputs."""
        return bool(self._core.state.outputs or self._core.state.events)

    @property
    def state(self) -> State:
        """What it works on: whoever asks often whether there are outputs looks there."""
        return self._core.state

    def declared(self) -> Iterator[tuple[Kind, str, Face]]:
        """What neighbours have declared: its kind, its key, and who did."""
        for kind in Kind:
            for key, sources in self._core.declarations.intersecting(kind, None):
                yield from ((kind, key, face) for face in sources if not face.local)

    @property
    def overview(self) -> Overview:
        """What it knows, for those who want to see it."""
        return Overview(self._core)

    def outputs(self) -> list[Output]:
        """What is to be done since the last call. The caller does it in this order.

        Messages come before events, so that what programs do when they are told of these has an
        outcome of its own.
        """
        return self._core.state.take()

    def session(self) -> Session:
        """A new session of this node, with entities of its own."""
        core = self._core
        face = Face(core.state.next_face_id(), core.state.zid, core.role.whatami, LOCAL)
        core.state.faces[face.id] = face
        core.state.stale()
        return Session(core, face)

    def add_face(
        self,
        zid: ZenohId,
        whatami: WhatAmI,
        now: float,
        *,
        multicast: bool = False,
        relation: Relation | None = None,
    ) -> Face:
        """A neighbour, after OPEN. ``relation`` is the role's unless a gateway is configured.

        A neighbour that the role does not serve, such as a client of a client, is to be closed.
        """
        core = self._core
        if relation is None:
            relation = MULTICAST if multicast else core.role.relations.get(whatami)
        if relation is None:
            face = Face(
                core.state.next_face_id(), zid, whatami, Relation(LOCAL.region), alive=False
            )
            why = f"a {core.role.whatami.name.lower()} has no {whatami.name.lower()}s"
            core.state.outputs.append(CloseFace(face, CloseReason.GENERIC, why))
            return face
        face = Face(core.state.next_face_id(), zid, whatami, relation)
        core.state.faces[face.id] = face
        core.state.stale()
        core.gossip.start(face)
        if relation.gateway:
            core.gateway.start(face)
        if relation.routes:
            core.routers.start(face, now)
        core.upstream.start(face, now)
        core.introduce(face, _START)
        return face

    def remove_face(self, face: Face) -> None:
        """The neighbour is gone. All its state is void; if it returns, it is a new face."""
        if face.alive and not face.local:
            self._core.remove(face)

    def route(self, face: Face, expr: WireExpr) -> Route | None:
        """Where samples go that a face sends with this key, until `State.generation` changes.

        None if `receive` would refuse the key, which counts it.
        """
        core = self._core
        if face.routes:
            # It depends on where it came in, too.
            return None
        key = face.aliases.resolve(expr)
        if key is None or len(key) > core.state.limits.key_length or not is_canonical(key):
            return None
        return core.pubsub.route(face, key)

    def receive(
        self, face: Face, message: NetworkMessage, now: float, *, reliable: bool = True
    ) -> None:
        """A message of a neighbour. One that is gone is not heard any more."""
        if not face.alive:
            return
        core = self._core
        kind = type(message)
        if kind is Push:
            core.pubsub.receive(face, message, reliable)  # type: ignore[arg-type] # just looked up
        elif kind is Declare:
            self._declare(face, message)  # type: ignore[arg-type]
        elif face.relation.multicast:
            core.state.counters.ignored_declaration += 1
        elif kind is Response:
            core.queries.response(face, message)  # type: ignore[arg-type]
        elif kind is ResponseFinal:
            core.queries.response_final(face, message)  # type: ignore[arg-type]
        elif kind is Request:
            core.queries.request(face, message, now)  # type: ignore[arg-type]
        elif isinstance(message, Interest):
            self._interest(face, message, now)
        else:
            core.oam(face, message, now)  # type: ignore[arg-type] # Oam is what is left

    def tick(self, now: float) -> None:
        """Time has passed: end what is out of time."""
        core = self._core
        core.queries.tick(now)
        core.liveliness.tick(now)
        core.answered(core.upstream.tick(now))
        core.work()
        calm = core.routers.tick(now)
        if core.sourced is not None:
            if calm:
                core.sourced.rebuilt(now)
            if core.sourced.deadline is not None:
                core.sourced.tick()

    def set_locators(self, locators: Iterable[Locator]) -> None:
        """Where this node is reached, to be told by gossip; without loopback addresses."""
        told = tuple(locators)
        self._core.gossip.set_locators(told)
        self._core.routers.set_locators(told)

    def set_weights(self, weights: Mapping[ZenohId, int]) -> None:
        """How long the links of a router to others are: 1 to 65535, 100 if it is not said."""
        self._core.routers.set_weights(weights)

    def _declare(self, face: Face, message: Declare) -> None:
        body = message.body
        if face.relation.multicast:
            # It gets all data anyway, and its ids are all 0.
            self.counters.ignored_declaration += 1
        elif isinstance(body, DeclareSubscriber | DeclareQueryable | DeclareToken):
            if face.routes:
                self._declare_sourced(face, message.node_id, body)
            else:
                self._declare_entity(face, message.interest_id, body)
        elif isinstance(body, UndeclareSubscriber | UndeclareQueryable | UndeclareToken):
            if face.routes:
                self._undeclare_sourced(face, message.node_id, body)
            else:
                self._undeclare_entity(face, body)
        elif isinstance(body, DeclareKeyExpr):
            self._declare_alias(face, body)
        elif isinstance(body, UndeclareKeyExpr):
            if face.aliases.forget(body.expr_id):
                self._core.state.stale()
            else:
                self.counters.unknown_undeclare += 1
        else:
            assert isinstance(body, DeclareFinal)
            self._final(face, message.interest_id)

    def _declare_sourced(
        self, face: Face, number: int, body: DeclareSubscriber | DeclareQueryable | DeclareToken
    ) -> None:
        core = self._core
        key = core.state.key_of(face, body.key)
        if key is not None and core.sourced is not None:
            info = body.info if isinstance(body, DeclareQueryable) else _NO_INFO
            change = Change(_DECLARED[type(body)], key)
            core.apply(face, core.sourced.declare(face, number, change, info))

    def _undeclare_sourced(
        self,
        face: Face,
        number: int,
        body: UndeclareSubscriber | UndeclareQueryable | UndeclareToken,
    ) -> None:
        core = self._core
        if body.key is None:
            self.counters.unknown_undeclare += 1
            return
        key = core.state.key_of(face, body.key)
        if key is not None and core.sourced is not None:
            change = Change(_UNDECLARED[type(body)], key)
            core.apply(face, core.sourced.undeclare(face, number, change))

    def _declare_alias(self, face: Face, body: DeclareKeyExpr) -> None:
        core, counters = self._core, self.counters
        aliases = face.aliases
        if body.expr_id not in aliases.theirs and len(aliases.theirs) >= core.state.limits.aliases:
            counters.limit_aliases += 1
            return
        prefix = aliases.resolve(body.key)
        if prefix is None:
            counters.unknown_scope += 1
        elif not prefix or len(prefix) > core.state.limits.key_length:
            counters.bad_key += 1
        elif aliases.learn(body.expr_id, prefix):
            core.state.stale()
        else:
            counters.alias_conflict += 1

    def _declare_entity(
        self,
        face: Face,
        interest_id: int | None,
        body: DeclareSubscriber | DeclareQueryable | DeclareToken,
    ) -> None:
        core, counters = self._core, self.counters
        key = core.state.key_of(face, body.key)
        if key is None:
            return
        kind = _DECLARED[type(body)]
        change = Change(kind, key)
        if kind is Kind.TOKEN:
            waiters = core.upstream.waiting(face, interest_id)
            if waiters is not None:
                for waiter in list(waiters):
                    if isinstance(waiter, int):
                        core.liveliness.found(waiter, key)
                    else:
                        core.propagation.token(waiter, key)
                return
        if face.relation.asks and not core.upstream.covers(change):
            counters.ignored_declaration += 1
            return
        limits = core.state.limits
        old = core.declarations.key(face, kind, body.id)
        if (old is None and core.declarations.count(face) >= limits.declarations) or (
            old != key and face.chunks + chunks_of(key) > limits.chunks
        ):
            counters.limit_declarations += 1
            return
        info = body.info if isinstance(body, DeclareQueryable) else _NO_INFO
        core.apply(face, core.declarations.declare(face, kind, body.id, key, info))

    def _undeclare_entity(
        self, face: Face, body: UndeclareSubscriber | UndeclareQueryable | UndeclareToken
    ) -> None:
        core = self._core
        kind = _UNDECLARED[type(body)]
        if core.declarations.key(face, kind, body.id) is not None:
            core.apply(face, core.declarations.undeclare(face, kind, body.id))
            return
        key = body.key
        if kind is Kind.TOKEN and key is not None and (key.scope or key.suffix):
            self._undeclare_token(face, core.state.key_of(face, key))
        else:
            self.counters.unknown_undeclare += 1

    def _undeclare_token(self, face: Face, key: str | None) -> None:
        """The end of a token that the face had not told: it was there before we asked."""
        if key is None:
            return
        core = self._core
        change = Change(Kind.TOKEN, key)
        sources = core.declarations.sources(change)
        if face in sources:
            core.apply(face, core.declarations.withdraw(face, change))
        elif not sources:
            core.liveliness.gone(key)
            core.propagation.gone(face, key)

    def _final(self, face: Face, interest_id: int | None) -> None:
        core = self._core
        if interest_id == _START and face.relation.introduces:
            if not face.introduced:
                face.introduced = True
                core.state.stale()
        elif interest_id is None:
            self.counters.unknown_final += 1
        else:
            core.answered(core.upstream.final(face, interest_id))

    def _interest(self, face: Face, message: Interest, now: float) -> None:
        core, counters = self._core, self.counters
        old = core.interests.get(face, message.id)
        if message.mode is InterestMode.FINAL:
            if old is not None:
                core.end_interest(old)
            return
        wanted = (
            (Kind.SUBSCRIBER, message.subscribers),
            (Kind.QUERYABLE, message.queryables),
            (Kind.TOKEN, message.tokens),
        )
        kinds = frozenset(kind for kind, is_wanted in wanted if is_wanted)
        current = message.mode is InterestMode.CURRENT
        repeated = current and core.interests.waits(face, message.id)
        if not face.relation.serves or (current and kinds != {Kind.TOKEN}) or repeated:
            # What there is now is told of tokens only, as the reference does. To ask again before
            # the answer is there would only cost those who are asked in turn.
            counters.ignored_interest += 1
            return
        key = None if message.key is None else core.state.key_of(face, message.key)
        refused = message.key is not None and key is None
        if not refused and old is None:
            limits = core.state.limits
            refused = core.interests.count(face) >= limits.interests
            refused |= face.chunks + chunks_of(key) > limits.chunks
            counters.limit_interests += refused
        if refused:
            if message.mode is not InterestMode.FUTURE:
                core.propagation.final(face, message.id)
            return
        if old is not None:
            core.end_interest(old)
        aggregate = message.aggregate and not message.tokens and key is not None
        if face.whatami is WhatAmI.PEER:
            aggregate = False
        core.serve(
            Held(face, message.id, message.mode, kinds, key, message.keyexprs, aggregate), now
        )
