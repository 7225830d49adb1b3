"""Which faces and which subscribers a sample is for.

A route is found once for each source and key, and remembered until anything changes that could
change it. A sample whose key is an alias is found by the alias, without its text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from zenwire.keyexpr import validate
from zenwire.routing.declarations import Change, Declarations, Kind
from zenwire.routing.faces import Locality
from zenwire.routing.local import Entities, LocalSubscriber
from zenwire.routing.outputs import sample_of, send_of
from zenwire.wire.data import Put
from zenwire.wire.network import Push
from zenwire.wire.repeat import with_body

if TYPE_CHECKING:
    from zenwire.routing.faces import Face
    from zenwire.routing.routers import Routers
    from zenwire.routing.state import State
    from zenwire.routing.upstream import Upstream
    from zenwire.wire.data import Del
    from zenwire.wire.structs import TimestampStack
    from zenwire.wire.values import Mapping, QoS, WireExpr

__all__ = ["PubSub", "Route", "unfiltered"]

_REMOTE: Final = Locality.REMOTE
_LOCAL: Final = Locality.SESSION_LOCAL


class Route(NamedTuple):
    """Where samples of one source on one key go."""

    key: str
    remote: tuple[tuple[WireExpr, tuple[Face, ...]], ...]
    """Faces that take the key written in the same way share a message."""
    own: tuple[int, ...]
    """Subscribers of the session that published."""
    others: tuple[int, ...]
    """Subscribers of the other sessions of this node."""
    prepared: dict[int, tuple[tuple[Push, tuple[Face, ...]], ...]]
    """By QoS, messages for `remote` that lack their bodies."""
    node_id: int = 0
    """Where they came in, as other routers are told. Such are not among others in `remote`."""


_Written = tuple[int, str, "Mapping"]
_NO_BODY: Final = Put(payload=b"")
_SOURCES: Final = 1024
"""Faces, and ways from other routers, of which routes are kept at a time."""


class PubSub:
    """Routes of samples."""

    __slots__ = (
        "_by_expr",
        "_by_key",
        "_declarations",
        "_generation",
        "_routers",
        "_state",
        "_unasked",
        "_upstream",
        "subscribers",
    )

    def __init__(
        self, state: State, declarations: Declarations, upstream: Upstream, routers: Routers
    ) -> None:
        self._state = state
        self._unasked: list[Face] = []
        """Faces that may get what they did not declare."""
        self._routers = routers
        self._declarations = declarations
        self._upstream = upstream
        self.subscribers: Entities[LocalSubscriber] = Entities()
        self._generation = 0
        self._by_key: dict[Face, dict[str, Route]] = {}
        self._by_expr: dict[Face | tuple[Face, Face], dict[_Written, Route]] = {}

    def publish(
        self,
        session: Face,
        key: str,
        body: Put | Del,
        *,
        qos: QoS,
        destination: Locality,
        timestamp_stack: TimestampStack | None,
        reliable: bool = True,
    ) -> None:
        """A session puts or deletes. KeyExprError for a key that is not canonical."""
        if self._generation != self._state.generation:
            self._refresh()
        routes = self._by_key.get(session)
        route = None if routes is None else routes.get(key)
        if route is None:
            validate(key)
            route = self.route(session, key)
        subscribers: tuple[int, ...] = ()
        if destination is not _REMOTE:
            subscribers = route.own
        if destination is not _LOCAL:
            subscribers += route.others
            if route.remote:
                self._forward(route, body, qos, timestamp_stack, reliable)
        if subscribers:
            event = sample_of(subscribers, key, body, qos, timestamp_stack, reliable)
            self._state.events.append(event)

    def receive(self, face: Face, push: Push, reliable: bool = True) -> None:
        """A sample came from a face."""
        body = push.body
        if type(body) is Put and body.shm:
            self._state.counters.shared_memory += 1
            return
        if face.routes:
            route = self._incoming_routed(face, push)
        else:
            route = self._incoming(face, face, push.key)
        if route is None:
            return
        stack = push.timestamp_stack
        if route.remote:
            self._forward(route, body, push.qos, stack, reliable)
        if route.others:
            event = sample_of(route.others, route.key, body, push.qos, stack, reliable)
            self._state.events.append(event)

    def route(self, src: Face, key: str) -> Route:
        """The route of a source and a key that is canonical."""
        self._refresh()
        routes = self._by_key.setdefault(src, {})
        route = routes.get(key)
        if route is None:
            if len(routes) >= self._state.limits.routes:
                routes.clear()
            route = routes[key] = self._find(src, key)
        return route

    def drop(self, face: Face) -> None:
        self._by_key.pop(face, None)
        self._by_expr.pop(face, None)

    def _incoming_routed(self, face: Face, push: Push) -> Route | None:
        """Of a router: where it goes depends on where it came in."""
        src = self._routers.source(face, push.node_id)
        return None if src is None else self._incoming(face, src, push.key)

    def _incoming(self, face: Face, src: Face, expr: WireExpr) -> Route | None:
        if self._generation != self._state.generation:
            self._refresh()
        via = face if src is face else (face, src)
        routes = self._by_expr.get(via)
        if routes is None:
            if src is not face and len(self._by_expr) >= _SOURCES:
                self._by_expr.clear()
                self._by_key.clear()
            routes = self._by_expr[via] = {}
        written = expr.scope, expr.suffix, expr.mapping
        route = routes.get(written)
        if route is None:
            key = self._state.key_of(face, expr)
            if key is None:
                return None
            if len(routes) >= self._state.limits.routes:
                routes.clear()
            route = routes[written] = self.route(src, key)
        return route

    def _refresh(self) -> None:
        if self._generation != self._state.generation:
            self._generation = self._state.generation
            self._by_key.clear()
            self._by_expr.clear()
            self._unasked = [face for face in self._state.remotes() if _may_be_unfiltered(face)]

    def _find(self, src: Face, key: str) -> Route:
        faces: dict[Face, None] = {}
        for _, sources in self._declarations.intersecting(Kind.SUBSCRIBER, key):
            for face in sources:
                if face.routes:
                    hop = self._routers.hop(src, face) if src.routes or src.carries(face) else None
                    if hop is not None:
                        faces[hop] = None
                elif not face.local and src.carries(face):
                    faces[face] = None
        change = Change(Kind.SUBSCRIBER, key)
        for face in self._unasked:
            if face not in faces and src.reaches(face):
                multicast = face.relation.multicast
                if multicast or unfiltered(self._upstream, face, change):
                    faces[face] = None
        written: dict[tuple[WireExpr, bool], list[Face]] = {}
        for face in sorted(faces, key=lambda face: face.id):
            written.setdefault((face.aliases.shortest(key), face.routes), []).append(face)
        own: list[int] = []
        others: list[int] = []
        for subscriber in self.subscribers.intersecting(key) if self.subscribers else ():
            local = subscriber.session is src
            if subscriber.origin.reaches(local=local):
                (own if local else others).append(subscriber.id)
        remote = tuple((expr, tuple(faces)) for (expr, _), faces in written.items())
        node_id = self._routers.number(src)
        return Route(key, remote, tuple(sorted(own)), tuple(sorted(others)), {}, node_id)

    def _forward(
        self,
        route: Route,
        body: Put | Del,
        qos: QoS,
        timestamp_stack: TimestampStack | None,
        reliable: bool,
    ) -> None:
        add = self._state.outputs.append
        if timestamp_stack is not None:
            for expr, faces in route.remote:
                node_id = route.node_id if faces[0].routes else 0
                push = Push(
                    key=expr, qos=qos, node_id=node_id, timestamp_stack=timestamp_stack, body=body
                )
                for face in faces:
                    add(send_of(face, push, reliable))
            return
        prepared = route.prepared.get(qos.raw)
        if prepared is None:
            prepared = route.prepared[qos.raw] = tuple(
                (
                    Push(
                        key=expr,
                        qos=qos,
                        node_id=route.node_id if faces[0].routes else 0,
                        body=_NO_BODY,
                    ),
                    faces,
                )
                for expr, faces in route.remote
            )
        for like, faces in prepared:
            push = with_body(like, body)
            for face in faces:
                add(send_of(face, push, reliable))


def _may_be_unfiltered(face: Face) -> bool:
    """Whether it can be that a face gets what it did not declare."""
    relation = face.relation
    return relation.multicast or relation.asks or relation.introduces


def unfiltered(upstream: Upstream, face: Face, change: Change) -> bool:
    """Whether a face gets data or queries on a key although it declared nothing for it.

    The one that is asked must have answered for this very key, a peer must have told all it has.
    """
    relation = face.relation
    if relation.asks:
        return not upstream.settled(face, change)
    return relation.introduces and not face.introduced
