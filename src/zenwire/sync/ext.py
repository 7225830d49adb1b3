"""Advanced publishers and subscribers: those of `zenwire.api.ext`, for programs without a loop."""

from __future__ import annotations

from functools import partial
from typing import Any, Generic, TypeVar, overload

from zenwire.api import ext as aio
from zenwire.api.ext import CacheConfig, HistoryConfig, Miss, MissDetectionConfig, RecoveryConfig
from zenwire.api.handlers import Called, Channelled, H, IntoHandler, Paired
from zenwire.api.values import (
    CongestionControl,
    Encoding,
    IntoKeyExpr,
    IntoZBytes,
    Locality,
    Priority,
    Reliability,
    Sample,
    Timestamp,
    TimestampInstrumentation,
)
from zenwire.sync.checks import check, encoding_of, payload_of
from zenwire.sync.declared import Entity, Receiving
from zenwire.sync.handler import Handler, Reading
from zenwire.sync.matching import Matcher
from zenwire.sync.session import Session
from zenwire.sync.subscriber import Subscriber

__all__ = [
    "AdvancedPublisher",
    "AdvancedSubscriber",
    "SampleMissListener",
    "declare_advanced_publisher",
    "declare_advanced_subscriber",
]

R = TypeVar("R")


class AdvancedPublisher(Matcher):
    """A publisher whose samples can be asked for again. See `declare_advanced_publisher`."""

    _inner: aio.AdvancedPublisher

    def __init__(self, session: Session, inner: aio.AdvancedPublisher) -> None:
        super().__init__(session, inner)
        self._lane = session.access.lane(inner.priority)

    @property
    def encoding(self) -> Encoding:
        """What puts have that name none of their own."""
        return self._inner.encoding

    @property
    def congestion_control(self) -> CongestionControl:
        """CongestionControl of every put and delete of this publisher."""
        return self._inner.congestion_control

    @property
    def priority(self) -> Priority:
        """Priority of every put and delete of this publisher."""
        return self._inner.priority

    def put(
        self,
        payload: IntoZBytes,
        *,
        encoding: Encoding | str | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
    ) -> None:
        """Publish a value. Returns when it is on its way; waits if too many are."""
        raw = payload_of(payload)
        self._inner.check_alive("put")
        check(timestamp=timestamp, timestamp_instrumentation=timestamp_instrumentation)
        call = partial(
            self._inner.put,
            raw,
            encoding=encoding_of(encoding),
            attachment=None if attachment is None else payload_of(attachment, "attachment"),
            timestamp=timestamp,
            timestamp_instrumentation=timestamp_instrumentation,
        )
        self._lane.send(call, len(raw))

    def delete(
        self,
        *,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
    ) -> None:
        """Publish that the key has no value any more."""
        self._inner.check_alive("delete")
        check(timestamp=timestamp, timestamp_instrumentation=timestamp_instrumentation)
        call = partial(
            self._inner.delete,
            attachment=None if attachment is None else payload_of(attachment, "attachment"),
            timestamp=timestamp,
            timestamp_instrumentation=timestamp_instrumentation,
        )
        self._lane.send(call)


class SampleMissListener(Receiving[Miss], Generic[H]):
    """Gets a `Miss` for samples that did not come, once."""

    @property
    def handler(self) -> H:
        """A Handler; of a pair, what it had to read from; for a callback None."""
        handler: H = self._handler
        return handler


class AdvancedSubscriber(Entity, Receiving[Sample], Generic[H]):
    """A subscriber that asks for samples it has not got. See `declare_advanced_subscriber`."""

    _inner: aio.AdvancedSubscriber[Any]

    @property
    def handler(self) -> H:
        """A Handler; of a pair, what it had to read from; for a callback None."""
        handler: H = self._handler
        return handler

    @property
    def missed(self) -> int:
        """How many samples were missed so far, whether somebody listened or not."""
        return self._inner.missed

    @property
    def duplicates(self) -> int:
        """How many samples were not delivered because they were, or came too late."""
        return self._inner.duplicates

    @overload
    def sample_miss_listener(
        self, handler: Channelled[Miss] = None
    ) -> SampleMissListener[Handler[Miss]]: ...
    @overload
    def sample_miss_listener(self, handler: Paired[Miss, R]) -> SampleMissListener[R]: ...
    @overload
    def sample_miss_listener(self, handler: Called[Miss]) -> SampleMissListener[None]: ...
    def sample_miss_listener(self, handler: IntoHandler[Miss] = None) -> SampleMissListener[Any]:
        """Be told of samples that were lost, of publishers that number them."""
        reading = Reading(handler)
        inner = self._session.loop.run(lambda: self._inner.sample_miss_listener(reading.into))
        return SampleMissListener(self._session, inner, reading)

    @overload
    def detect_publishers(
        self, handler: Channelled[Sample] = None, *, history: bool | None = None
    ) -> Subscriber[Handler[Sample]]: ...
    @overload
    def detect_publishers(
        self, handler: Paired[Sample, R], *, history: bool | None = None
    ) -> Subscriber[R]: ...
    @overload
    def detect_publishers(
        self, handler: Called[Sample], *, history: bool | None = None
    ) -> Subscriber[None]: ...
    def detect_publishers(
        self, handler: IntoHandler[Sample] = None, *, history: bool | None = None
    ) -> Subscriber[Any]:
        """Be told of publishers that come (PUT) and go (DELETE), if they can be detected.

        ``history``: also of those that are there.
        """
        reading = Reading(handler)
        inner = self._session.loop.run(
            lambda: self._inner.detect_publishers(reading.into, history=history)
        )
        return Subscriber(self._session, inner, reading)


def _session_of(session: Session) -> Session:
    if isinstance(session, Session):
        return session
    raise TypeError(
        f"session is a zenwire.Session, not {type(session).__name__}: "
        "for those of asyncio there is zenwire.aio.ext"
    )


def declare_advanced_publisher(
    session: Session,
    key_expr: IntoKeyExpr,
    *,
    encoding: Encoding | str | None = None,
    congestion_control: CongestionControl | None = None,
    priority: Priority | None = None,
    express: bool | None = None,
    reliability: Reliability | None = None,
    allowed_destination: Locality | None = None,
    cache: CacheConfig | None = None,
    sample_miss_detection: MissDetectionConfig | None = None,
    publisher_detection: bool | None = None,
) -> AdvancedPublisher:
    """A publisher for advanced subscribers.

    With a ``cache`` it answers those who come late; with ``sample_miss_detection`` its samples
    have numbers, so that those who lost some notice; ``publisher_detection`` lets it be found.
    A cache without numbers needs ``timestamping/enabled``.
    """
    own = _session_of(session)
    inner = own.loop.run(
        lambda: aio.declare_advanced_publisher(
            own.access.inner,
            key_expr,
            encoding=encoding,
            congestion_control=congestion_control,
            priority=priority,
            express=express,
            reliability=reliability,
            allowed_destination=allowed_destination,
            cache=cache,
            sample_miss_detection=sample_miss_detection,
            publisher_detection=publisher_detection,
        )
    )
    return AdvancedPublisher(own, inner)


@overload
def declare_advanced_subscriber(
    session: Session,
    key_expr: IntoKeyExpr,
    handler: Channelled[Sample] = None,
    *,
    allowed_origin: Locality | None = None,
    history: HistoryConfig | None = None,
    recovery: RecoveryConfig | None = None,
    subscriber_detection: bool | None = None,
) -> AdvancedSubscriber[Handler[Sample]]: ...
@overload
def declare_advanced_subscriber(
    session: Session,
    key_expr: IntoKeyExpr,
    handler: Paired[Sample, H],
    *,
    allowed_origin: Locality | None = None,
    history: HistoryConfig | None = None,
    recovery: RecoveryConfig | None = None,
    subscriber_detection: bool | None = None,
) -> AdvancedSubscriber[H]: ...
@overload
def declare_advanced_subscriber(
    session: Session,
    key_expr: IntoKeyExpr,
    handler: Called[Sample],
    *,
    allowed_origin: Locality | None = None,
    history: HistoryConfig | None = None,
    recovery: RecoveryConfig | None = None,
    subscriber_detection: bool | None = None,
) -> AdvancedSubscriber[None]: ...
def declare_advanced_subscriber(
    session: Session,
    key_expr: IntoKeyExpr,
    handler: IntoHandler[Sample] = None,
    *,
    allowed_origin: Locality | None = None,
    history: HistoryConfig | None = None,
    recovery: RecoveryConfig | None = None,
    subscriber_detection: bool | None = None,
) -> AdvancedSubscriber[Any]:
    """A subscriber that gets the samples of advanced publishers in order.

    ``history`` asks for samples of the time before, ``recovery`` for those that were lost, from
    publishers with a cache. ``subscriber_detection`` lets it be found.
    """
    own, reading = _session_of(session), Reading(handler)
    inner = own.loop.run(
        lambda: aio.declare_advanced_subscriber(
            own.access.inner,
            key_expr,
            reading.into,
            allowed_origin=allowed_origin,
            history=history,
            recovery=recovery,
            subscriber_detection=subscriber_detection,
        )
    )
    return AdvancedSubscriber(own, inner, reading)
