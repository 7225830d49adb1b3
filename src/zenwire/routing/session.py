"""Routing towards the API: what a session of this node declares, publishes, asks and answers.

Keys are canonical texts (KeyExprError otherwise), already with the session's namespace. Ids are
unique in the node. What comes of a call is among `Tables.outputs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zenwire.errors import ZError
from zenwire.keyexpr import validate
from zenwire.routing.declarations import Change, Kind
from zenwire.routing.faces import Face, Locality
from zenwire.routing.local import (
    Entity,
    LivelinessSubscriber,
    LocalQueryable,
    LocalSubscriber,
    LocalToken,
    Matcher,
)
from zenwire.routing.prepared import QUERY_TIMEOUT
from zenwire.wire.values import (
    InterestMode,
    QoS,
    QueryableInfo,
    QueryTarget,
)

if TYPE_CHECKING:
    from zenwire.routing.core import Core
    from zenwire.routing.prepared import Question
    from zenwire.routing.pubsub import Route
    from zenwire.wire.data import Del, Err, Put
    from zenwire.wire.structs import QueryBody, SourceInfo, TimestampStack

__all__ = ["Session"]

_NO_INFO = QueryableInfo()


class Session:
    """One session of a node: a face without bytes. Made by `Tables.session`."""

    def __init__(self, core: Core, face: Face) -> None:
        self._core = core
        self.face = face
        self.id = core.state.next_entity_id()
        """Among those of what it declares."""
        self._entities: dict[int, Entity] = {}

    def declare_subscriber(self, key: str, *, allowed_origin: Locality = Locality.ANY) -> int:
        """Samples on keys that intersect come as `SampleReceived`."""
        core = self._core
        subscriber = LocalSubscriber(self._id(key), self.face, key, allowed_origin)
        core.pubsub.subscribers.add(subscriber)
        self._declare(subscriber, Kind.SUBSCRIBER, _NO_INFO, allowed_origin)
        return subscriber.id

    def declare_queryable(
        self, key: str, *, complete: bool = False, allowed_origin: Locality = Locality.ANY
    ) -> int:
        """Queries on keys that intersect come as `QueryReceived`."""
        core = self._core
        queryable = LocalQueryable(self._id(key), self.face, key, complete, allowed_origin)
        core.targets.queryables.add(queryable)
        self._declare(queryable, Kind.QUERYABLE, QueryableInfo(complete), allowed_origin)
        return queryable.id

    def declare_token(self, key: str) -> int:
        """The key is alive until the token is undeclared, or this node is gone."""
        token = LocalToken(self._id(key), self.face, key)
        self._declare(token, Kind.TOKEN, _NO_INFO, Locality.ANY)
        return token.id

    def declare_publisher(
        self, key: str, now: float, *, allowed_destination: Locality = Locality.ANY
    ) -> int:
        """Ask for the subscribers of a key: changes come as `MatchingChanged`."""
        return self._declare_matcher(
            key, now, Kind.SUBSCRIBER, QueryTarget.BEST_MATCHING, allowed_destination
        )

    def declare_querier(
        self,
        key: str,
        now: float,
        *,
        target: QueryTarget = QueryTarget.BEST_MATCHING,
        allowed_destination: Locality = Locality.ANY,
    ) -> int:
        """Ask for the queryables of a key: changes come as `MatchingChanged`."""
        return self._declare_matcher(key, now, Kind.QUERYABLE, target, allowed_destination)

    def declare_liveliness_subscriber(self, key: str, now: float, *, history: bool = False) -> int:
        """Tokens that come and go, and with history those there are, as `LivelinessChanged`."""
        core = self._core
        id = self._id(key)
        mode = InterestMode.CURRENT_FUTURE if history else InterestMode.FUTURE
        want = core.upstream.hold({Kind.TOKEN}, key, mode, now)
        subscriber = LivelinessSubscriber(id, self.face, key, want)
        self._entities[id] = subscriber
        core.liveliness.subscribers.add(subscriber)
        if history:
            core.liveliness.history(subscriber)
        return id

    def undeclare(self, id: int) -> None:
        """Take back whatever was declared under this id."""
        entity = self._entities.pop(id, None)
        if entity is None:
            raise ZError(f"this session has nothing declared under the id {id}")
        core = self._core
        if isinstance(entity, Matcher):
            core.matching.remove(entity)
            if entity.want is not None:
                core.release(entity.want)
        elif isinstance(entity, LivelinessSubscriber):
            core.liveliness.subscribers.remove(entity)
            core.release(entity.want)
        elif isinstance(entity, LocalSubscriber):
            core.pubsub.subscribers.remove(entity)
            self._undeclare(entity, Kind.SUBSCRIBER)
        elif isinstance(entity, LocalQueryable):
            core.targets.queryables.remove(entity)
            self._undeclare(entity, Kind.QUERYABLE)
        else:
            self._undeclare(entity, Kind.TOKEN)

    def matching(self, id: int) -> bool:
        """Whether a publisher or querier has anybody on the other side now."""
        entity = self._entities.get(id)
        if not isinstance(entity, Matcher):
            raise ZError(f"this session has no publisher or querier with the id {id}")
        return entity.matching

    def route(self, key: str) -> Route:
        """Where samples of this session on a key go, until `State.generation` changes."""
        validate(key)
        self._open()
        return self._core.pubsub.route(self.face, key)

    def push(
        self,
        key: str,
        body: Put | Del,
        *,
        qos: QoS = QoS(),  # noqa: B008 # frozen
        allowed_destination: Locality = Locality.ANY,
        timestamp_stack: TimestampStack | None = None,
        reliable: bool = True,
    ) -> None:
        """Put or delete: once to each neighbour and session that wants it."""
        if not self.face.alive:
            self._open()
        self._core.pubsub.publish(
            self.face,
            key,
            body,
            qos=qos,
            destination=allowed_destination,
            timestamp_stack=timestamp_stack,
            reliable=reliable,
        )

    def query(
        self,
        asked: Question,
        now: float,
        *,
        value: QueryBody | None = None,
        attachment: bytes | None = None,
        source_info: SourceInfo | None = None,
        timestamp_stack: TimestampStack | None = None,
    ) -> int:
        """Ask. Replies come as `ReplyReceived`, then `QueryFinished`, once."""
        if not self.face.alive:
            self._open()
        return self._core.queries.ask(
            self.face,
            asked,
            now,
            value=value,
            attachment=attachment,
            source_info=source_info,
            timestamp_stack=timestamp_stack,
        )

    def liveliness_get(self, key: str, now: float, *, timeout: float = QUERY_TIMEOUT) -> int:
        """Which keys are alive: `ReplyReceived` with empty PUTs, then `QueryFinished`, once."""
        validate(key)
        self._open()
        return self._core.liveliness.get(self.face, key, timeout, now)

    def cancel(self, query: int) -> None:
        """No replies and no end of this query are wanted. One that is over is no matter."""
        if not self._core.queries.cancel(self.face, query):
            self._core.liveliness.cancel(self.face, query)

    def reply(
        self,
        query: int,
        queryable: int,
        key: str,
        body: Put | Del | Err,
        *,
        timestamp_stack: TimestampStack | None = None,
    ) -> bool:
        """Answer a `QueryReceived`. False if nobody waits for it any more.

        Raises ZError for a key that does not intersect the query's, unless it says `_anyke`.
        The key of an Err is the query's.
        """
        return self._core.queries.reply(
            self.face, query, queryable, key, body, timestamp_stack=timestamp_stack
        )

    def asker(self, query: int) -> Face | None:
        """The neighbour or session from which a `QueryReceived` came; None if it is over."""
        return self._core.queries.asker(self.face, query)

    def finish(self, query: int, queryable: int) -> None:
        """The queryable has said all it has to say. Every `QueryReceived` needs this."""
        self._core.queries.finish(self.face, query, queryable)

    def close(self) -> None:
        """Undeclare everything, end queries in both directions. No events come any more."""
        if not self.face.alive:
            return
        core = self._core
        core.liveliness.drop(self.face)
        # Those who watch go first, or they would be told of the end of the others.
        watching = (Matcher, LivelinessSubscriber)
        entities = sorted(self._entities.values(), key=lambda e: not isinstance(e, watching))
        for entity in entities:
            self.undeclare(entity.id)
        core.remove(self.face)

    def _open(self) -> None:
        if not self.face.alive:
            raise ZError("the session is closed")

    def _id(self, key: str) -> int:
        validate(key)
        self._open()
        return self._core.state.next_entity_id()

    def _declare(self, entity: Entity, kind: Kind, info: QueryableInfo, origin: Locality) -> None:
        core = self._core
        self._entities[entity.id] = entity
        core.state.stale()
        if origin.reaches(local=False):
            key = entity.key
            if kind is Kind.SUBSCRIBER:
                key = core.aggregates.of_subscriber(key)
            changes = core.declarations.declare(self.face, kind, entity.id, key, info)
            core.apply(self.face, changes)
        # A session matches itself, which no declaration says.
        core.matching.changed(Change(kind, entity.key))

    def _undeclare(self, entity: Entity, kind: Kind) -> None:
        core = self._core
        core.state.stale()
        core.apply(self.face, core.declarations.undeclare(self.face, kind, entity.id))
        core.matching.changed(Change(kind, entity.key))

    def _declare_matcher(
        self, key: str, now: float, kind: Kind, target: QueryTarget, destination: Locality
    ) -> int:
        core = self._core
        id = self._id(key)
        want = None
        if destination.reaches(local=False):
            asked = core.aggregates.of_publisher(key) if kind is Kind.SUBSCRIBER else key
            want = core.upstream.hold({kind}, asked, InterestMode.CURRENT_FUTURE, now)
        queries = kind is Kind.QUERYABLE
        matcher = Matcher(id, self.face, key, queries, target, destination, want)
        self._entities[id] = matcher
        core.matching.add(matcher)
        return id
