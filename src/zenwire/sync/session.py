"""The session: everything that a program does on the network starts here."""

from __future__ import annotations

from functools import partial
from itertools import groupby
from operator import itemgetter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, overload

from zenwire.api import session as aio
from zenwire.api.core import GRACE
from zenwire.api.handlers import Called, Channelled, H, IntoHandler, Paired
from zenwire.api.values import (
    CongestionControl,
    Encoding,
    EntityGlobalId,
    IntoKeyExpr,
    IntoZBytes,
    Locality,
    Priority,
    Reliability,
    Sample,
    SourceInfo,
    Timestamp,
    TimestampInstrumentation,
    ZenohId,
    key_expr_of,
)
from zenwire.keyexpr import KeyExpr
from zenwire.sync.access import Access
from zenwire.sync.asking import Asking
from zenwire.sync.checks import check, encoding_of, payload_of
from zenwire.sync.declared import Declared
from zenwire.sync.handler import Handler, Reading
from zenwire.sync.info import SessionInfo
from zenwire.sync.lanes import BURST, SMALL, Burst
from zenwire.sync.liveliness import Liveliness
from zenwire.sync.publisher import Publisher
from zenwire.sync.query import Query, Queryable
from zenwire.sync.subscriber import Subscriber
from zenwire.sync.workers import finish

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zenwire.api.put_batch import IntoTable, Written
    from zenwire.api.repeated import Repeated
    from zenwire.node.config import Config
    from zenwire.node.neighbour import Waiting
    from zenwire.sync.thread import Loop

__all__ = ["Session"]


class Session(Asking):
    """A node, as a program uses it. Made by `open`; ``with`` closes it.

    Any thread may use it, callbacks too. It is closed when nobody holds it, or anything that was
    declared with it, any more, and when the program ends. A forked child has to open its own.
    """

    def __init__(self, loop: Loop, inner: aio.Session) -> None:
        self.loop = loop
        self.access = Access(loop, inner)
        self._inner = inner
        self._closed = False
        self._bursts: dict[Priority | None, Burst] = {}
        loop.closers[id(inner)] = inner.close

    @property
    def config(self) -> Config:
        """A copy of what it was opened with."""
        return self._inner.config

    @property
    def info(self) -> SessionInfo:
        """Node ids, transports, links and statistics of this session."""
        return SessionInfo(self, self._inner.info)

    @property
    def id(self) -> EntityGlobalId:
        """Id of this session: the node's ZenohId, and a number unique within the node."""
        return self._inner.id

    def zid(self) -> ZenohId:
        """The id of this node."""
        return self._inner.zid()

    def is_closed(self) -> bool:
        """Return True once the session is closed: every further call raises SessionClosed."""
        return self._inner.is_closed()

    def close(self) -> None:
        """End everything.

        What was sent is waited for, unless others take nothing of it for some seconds. Callbacks
        have a second to take what waits for them.
        In the thread of the network, where nothing can wait, it only begins to.
        """
        self.loop.check("close")
        if self.loop.here:
            self.loop.later(partial(_close, self.loop, self._inner))
            return
        finish(self.access.strands, GRACE)
        self.loop.run(self._inner.close, task=True)
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
        elif not isinstance(obj, KeyExpr):
            raise TypeError(f"obj is a declaration or a KeyExpr, not {type(obj).__name__}")

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
        if (
            attachment is None
            and timestamp is None
            and timestamp_instrumentation is None
            and allowed_destination is None
            and source_info is None
            and type(payload) is bytes
            and len(payload) <= SMALL
        ):
            same = self._inner.repeats.find(
                key_expr,
                encoding,
                congestion_control,
                priority,
                express,
                reliability,
            )
            if same is not None:
                burst = self._bursts.get(same.priority)
                if burst is None or burst is not self.loop.newest:
                    burst = self._begin(same.priority, burst)
                items = burst.items
                # In one step: other threads put as well.
                items += (same, payload)
                if not burst.queued or len(items) >= 2 * BURST:
                    burst.lane.go(burst)
                return
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
            express=express,
        )
        call = partial(
            self._inner.put,
            key_expr_of(key_expr),
            raw,
            encoding=encoding_of(encoding),
            congestion_control=congestion_control,
            priority=priority,
            express=express,
            attachment=None if attachment is None else payload_of(attachment, "attachment"),
            timestamp=timestamp,
            timestamp_instrumentation=timestamp_instrumentation,
            allowed_destination=allowed_destination,
            source_info=source_info,
            reliability=reliability,
        )
        self.access.lane(priority or Priority.DEFAULT).send(call, len(raw))

    def put_batch(
        self,
        table: IntoTable,
        *,
        encoding: Encoding | str | None = None,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        allowed_destination: Locality | None = None,
        reliability: Reliability | None = None,
    ) -> Written:
        """Publish all rows of a table: the same as a loop of ``put``.

        The columns are those of `zenwire.columns.samples`; ``key`` and ``payload`` are needed.
        What is said here holds for rows that do not say it. Returns when there was room for all,
        or they were dropped, as their congestion control says. Nothing is sent if any row cannot
        be. Needs the extra ``fast``.
        """
        self.access.check("put_batch")
        return self.loop.run(
            lambda: self._inner.put_batch(
                table,
                encoding=encoding_of(encoding),
                congestion_control=congestion_control,
                priority=priority,
                express=express,
                allowed_destination=allowed_destination,
                reliability=reliability,
            )
        )

    def _begin(self, priority: Priority | None, burst: Burst | None) -> Burst:
        """The burst that values of a priority go to now."""
        # Perhaps it was closed since.
        self.access.check("put")
        lane = self.access.lane(priority or Priority.DEFAULT)
        burst = self._bursts[priority] = lane.begin(burst or Burst(lane, _Mixed()))
        return burst

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
            express=express,
        )
        call = partial(
            self._inner.delete,
            key_expr_of(key_expr),
            congestion_control=congestion_control,
            priority=priority,
            express=express,
            attachment=None if attachment is None else payload_of(attachment, "attachment"),
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
        inner = self.loop.run(
            lambda: self._inner.declare_publisher(
                key_expr,
                encoding=encoding_of(encoding),
                congestion_control=congestion_control,
                priority=priority,
                express=express,
                reliability=reliability,
                allowed_destination=allowed_destination,
            )
        )
        return Publisher(self, inner)

    # Receiving.

    @overload
    def declare_subscriber(
        self,
        key_expr: IntoKeyExpr,
        handler: Channelled[Sample] = None,
        *,
        allowed_origin: Locality | None = None,
    ) -> Subscriber[Handler[Sample]]: ...
    @overload
    def declare_subscriber(
        self,
        key_expr: IntoKeyExpr,
        handler: Paired[Sample, H],
        *,
        allowed_origin: Locality | None = None,
    ) -> Subscriber[H]: ...
    @overload
    def declare_subscriber(
        self,
        key_expr: IntoKeyExpr,
        handler: Called[Sample],
        *,
        allowed_origin: Locality | None = None,
    ) -> Subscriber[None]: ...
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
        inner = self.loop.run(
            lambda: self._inner.declare_subscriber(
                key_expr, reading.into, allowed_origin=allowed_origin
            )
        )
        return Subscriber(self, inner, reading)

    @overload
    def declare_queryable(
        self,
        key_expr: IntoKeyExpr,
        handler: Channelled[Query] = None,
        *,
        complete: bool | None = None,
        allowed_origin: Locality | None = None,
    ) -> Queryable[Handler[Query]]: ...
    @overload
    def declare_queryable(
        self,
        key_expr: IntoKeyExpr,
        handler: Paired[Query, H],
        *,
        complete: bool | None = None,
        allowed_origin: Locality | None = None,
    ) -> Queryable[H]: ...
    @overload
    def declare_queryable(
        self,
        key_expr: IntoKeyExpr,
        handler: Called[Query],
        *,
        complete: bool | None = None,
        allowed_origin: Locality | None = None,
    ) -> Queryable[None]: ...
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
        inner = self.loop.run(
            lambda: self._inner.declare_queryable(
                key_expr, reading.into, complete=complete, allowed_origin=allowed_origin
            )
        )
        return Queryable(self, inner, reading)

    def liveliness(self) -> Liveliness:
        """Which keys are alive."""
        return Liveliness(self, self._inner.liveliness())

    def __repr__(self) -> str:
        return repr(self._inner)


class _Mixed:
    """Values, each after what is put so again and again."""

    def put_all(self, items: Sequence[Any]) -> list[Waiting]:
        sames: Sequence[Repeated] = items[::2]
        payloads: Sequence[bytes] = items[1::2]
        if sames.count(sames[0]) == len(sames):
            return sames[0].put_all(payloads)
        waiting: list[Waiting] = []
        for same, group in groupby(zip(sames, payloads, strict=True), itemgetter(0)):
            waiting += same.put_all([payload for _, payload in group])
        return waiting


async def _close(loop: Loop, inner: aio.Session) -> None:
    """Nobody holds it any more."""
    try:
        await inner.close()
    finally:
        loop.closers.pop(id(inner), None)
