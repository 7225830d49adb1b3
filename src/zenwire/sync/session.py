"""The session: everything that a program does on the network starts here."""

from __future__ import annotations

from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from zenwire.api import session as aio
from zenwire.api.core import GRACE
from zenwire.api.handlers import IntoHandler
from zenwire.api.values import (
    CongestionControl,
    ConsolidationMode,
    Encoding,
    EntityGlobalId,
    IntoKeyExpr,
    IntoSelector,
    IntoZBytes,
    Locality,
    Priority,
    QueryConsolidation,
    QueryTarget,
    Reliability,
    Reply,
    ReplyKeyExpr,
    Sample,
    Selector,
    SourceInfo,
    Timestamp,
    TimestampInstrumentation,
    ZenohId,
    key_expr_of,
)
from zenwire.keyexpr import KeyExpr
from zenwire.sync.access import Access
from zenwire.sync.checks import check, encoding_of, payload_of
from zenwire.sync.declared import Declared
from zenwire.sync.handler import Reading
from zenwire.sync.info import SessionInfo
from zenwire.sync.liveliness import Liveliness
from zenwire.sync.publisher import Publisher
from zenwire.sync.querier import Querier
from zenwire.sync.query import Query, Queryable
from zenwire.sync.replies import CancellationToken, asked
from zenwire.sync.subscriber import Subscriber

if TYPE_CHECKING:
    from zenwire.node.config import Config
    from zenwire.sync.thread import Loop

__all__ = ["Session"]


class Session:
    """A node, as a program uses it. Made by `open`; ``with`` closes it.

    Any thread may use it, callbacks too. It is closed when nobody holds it, or anything that was
    declared with it, any more, and when the program ends. A forked child has to open its own.
    """

    def __init__(self, loop: Loop, inner: aio.Session) -> None:
        self.loop = loop
        self.access = Access(loop, inner)
        self._inner = inner
        self._closed = False
        loop.closers[id(inner)] = inner.close

    @property
    def config(self) -> Config:
        """A copy of what it was opened with."""
        return self._inner.config

    @property
    def info(self) -> SessionInfo:
        return SessionInfo(self, self._inner.info)

    @property
    def id(self) -> EntityGlobalId:
        return self._inner.id

    def zid(self) -> ZenohId:
        """The id of this node."""
        return self._inner.zid()

    def is_closed(self) -> bool:
        return self._inner.is_closed()

    def close(self) -> None:
        """End everything. Callbacks have a second to take what waits for them.

        In the thread of the network, where nothing can wait, it only begins to.
        """
        self.loop.check("close")
        if self.loop.here:
            self.loop.later(partial(_close, self.loop, self._inner))
            return
        strands, grace = list(self.access.strands), GRACE
        for strand in strands:
            strand.close(0)
        for strand in strands:
            strand.close(grace)
            if not strand.done.is_set():
                # The second is for all of them.
                grace = 0.0
        self.loop.run(self._inner.close(), task=True)
        self._closed = True
        self.loop.closers.pop(id(self._inner), None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        inner = getattr(self, "_inner", None)
        if inner is not None and not self._closed:
            self.loop.later(partial(_close, self.loop, inner))

    def new_timestamp(self) -> Timestamp:
        """A time of this node's clock, later than all before."""
        return self.loop.call(self._inner.new_timestamp)

    def declare_keyexpr(self, key_expr: IntoKeyExpr) -> KeyExpr:
        """The expression, checked once. The node shortens keys on the wire by itself."""
        self.access.check("declare_keyexpr")
        return key_expr_of(key_expr)

    def undeclare(self, obj: KeyExpr | Declared) -> None:
        """Take back a declaration, of any kind."""
        self.access.check("undeclare")
        if isinstance(obj, Declared):
            obj.undeclare()

    # Publishing.

    def put(
        self,
        key_expr: IntoKeyExpr,
        payload: IntoZBytes,
        *,
        encoding: Encoding | str | None = None,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        allowed_destination: Locality | None = None,
        source_info: SourceInfo | None = None,
        reliability: Reliability | None = None,
    ) -> None:
        """Publish a value. Returns when it is on its way; waits if too many are."""
        self.access.check("put")
        raw = payload_of(payload)
        check(
            congestion_control=congestion_control,
            priority=priority,
            timestamp=timestamp,
            timestamp_instrumentation=timestamp_instrumentation,
            allowed_destination=allowed_destination,
            source_info=source_info,
            reliability=reliability,
        )
        call = self._inner.put(
            key_expr_of(key_expr),
            raw,
            encoding=encoding_of(encoding),
            congestion_control=congestion_control,
            priority=priority,
            express=express,
            attachment=None if attachment is None else payload_of(attachment),
            timestamp=timestamp,
            timestamp_instrumentation=timestamp_instrumentation,
            allowed_destination=allowed_destination,
            source_info=source_info,
            reliability=reliability,
        )
        self.access.lane(priority or Priority.DEFAULT).send(call, len(raw))

    def delete(
        self,
        key_expr: IntoKeyExpr,
        *,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        allowed_destination: Locality | None = None,
        source_info: SourceInfo | None = None,
        reliability: Reliability | None = None,
    ) -> None:
        """Publish that keys have no value any more."""
        self.access.check("delete")
        check(
            congestion_control=congestion_control,
            priority=priority,
            timestamp=timestamp,
            timestamp_instrumentation=timestamp_instrumentation,
            allowed_destination=allowed_destination,
            source_info=source_info,
            reliability=reliability,
        )
        call = self._inner.delete(
            key_expr_of(key_expr),
            congestion_control=congestion_control,
            priority=priority,
            express=express,
            attachment=None if attachment is None else payload_of(attachment),
            timestamp=timestamp,
            timestamp_instrumentation=timestamp_instrumentation,
            allowed_destination=allowed_destination,
            source_info=source_info,
            reliability=reliability,
        )
        self.access.lane(priority or Priority.DEFAULT).send(call)

    def declare_publisher(
        self,
        key_expr: IntoKeyExpr,
        *,
        encoding: Encoding | str | None = None,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        reliability: Reliability | None = None,
        allowed_destination: Locality | None = None,
    ) -> Publisher:
        """For a key that is published on often. It knows whether anybody subscribes."""
        check(
            congestion_control=congestion_control,
            priority=priority,
            reliability=reliability,
            allowed_destination=allowed_destination,
        )
        call = self._inner.declare_publisher(
            key_expr,
            encoding=encoding_of(encoding),
            congestion_control=congestion_control,
            priority=priority,
            express=express,
            reliability=reliability,
            allowed_destination=allowed_destination,
        )
        return Publisher(self, self.loop.run(call))

    # Receiving.

    def declare_subscriber(
        self,
        key_expr: IntoKeyExpr,
        handler: IntoHandler[Sample] = None,
        *,
        allowed_origin: Locality | None = None,
    ) -> Subscriber[Any]:
        """Get samples: ``with session.declare_subscriber(key) as sub: for sample in sub: …``.

        A callback has a thread of its own, and stays when the subscriber is let go.
        """
        check(allowed_origin=allowed_origin)
        reading = Reading(handler)
        call = self._inner.declare_subscriber(key_expr, reading.into, allowed_origin=allowed_origin)
        return Subscriber(self, self.loop.run(call), reading)

    def declare_queryable(
        self,
        key_expr: IntoKeyExpr,
        handler: IntoHandler[Query] = None,
        *,
        complete: bool | None = None,
        allowed_origin: Locality | None = None,
    ) -> Queryable[Any]:
        """Answer queries. ``complete``: it has all there is for its keys."""
        check(allowed_origin=allowed_origin)
        reading = Reading(handler, partial(Query, self.access), Query.fail)
        call = self._inner.declare_queryable(
            key_expr, reading.into, complete=complete, allowed_origin=allowed_origin
        )
        return Queryable(self, self.loop.run(call), reading)

    def liveliness(self) -> Liveliness:
        """Which keys are alive."""
        return Liveliness(self, self._inner.liveliness())

    # Asking.

    def get(
        self,
        selector: IntoSelector,
        handler: IntoHandler[Reply] = None,
        *,
        target: QueryTarget | None = None,
        consolidation: QueryConsolidation | ConsolidationMode | None = None,
        accept_replies: ReplyKeyExpr | None = None,
        timeout: float | None = None,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        payload: IntoZBytes | None = None,
        encoding: Encoding | str | None = None,
        attachment: IntoZBytes | None = None,
        allowed_destination: Locality | None = None,
        source_info: SourceInfo | None = None,
        cancellation_token: CancellationToken | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        budget: int | None = None,
    ) -> Any:
        """Ask: ``for reply in session.get(selector)``.

        As in the reference, of several replies on one key the latest is delivered, at the end;
        ``consolidation=ConsolidationMode.NONE`` delivers all, as they come. What was not
        answered within ``timeout`` seconds ends with an error reply. ``budget`` bounds the
        number of replies.
        """
        check(
            target=target,
            accept_replies=accept_replies,
            congestion_control=congestion_control,
            priority=priority,
            allowed_destination=allowed_destination,
            source_info=source_info,
            cancellation_token=cancellation_token,
            timestamp_instrumentation=timestamp_instrumentation,
        )
        what, inner = Selector.of(selector), self._inner
        return asked(
            self,
            handler,
            lambda into: inner.get(
                what,
                into,
                target=target,
                consolidation=consolidation,
                accept_replies=accept_replies,
                timeout=timeout,
                congestion_control=congestion_control,
                priority=priority,
                express=express,
                payload=payload,
                encoding=encoding_of(encoding),
                attachment=attachment,
                allowed_destination=allowed_destination,
                source_info=source_info,
                cancellation_token=cancellation_token,
                timestamp_instrumentation=timestamp_instrumentation,
                budget=budget,
            ),
            cancellation_token,
        )

    def declare_querier(
        self,
        key_expr: IntoKeyExpr,
        *,
        target: QueryTarget | None = None,
        consolidation: QueryConsolidation | ConsolidationMode | None = None,
        accept_replies: ReplyKeyExpr | None = None,
        timeout: float | None = None,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        allowed_destination: Locality | None = None,
    ) -> Querier:
        """For a key that is asked for often. It knows whether anybody can answer."""
        check(
            target=target,
            accept_replies=accept_replies,
            congestion_control=congestion_control,
            priority=priority,
            allowed_destination=allowed_destination,
        )
        call = self._inner.declare_querier(
            key_expr,
            target=target,
            consolidation=consolidation,
            accept_replies=accept_replies,
            timeout=timeout,
            congestion_control=congestion_control,
            priority=priority,
            express=express,
            allowed_destination=allowed_destination,
        )
        return Querier(self, self.loop.run(call))

    def __repr__(self) -> str:
        return repr(self._inner)


async def _close(loop: Loop, inner: aio.Session) -> None:
    """Nobody holds it any more."""
    try:
        await inner.close()
    finally:
        loop.closers.pop(id(inner), None)
