"""The session: everything that a program does on the network starts here."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, overload

from zenwire.api.awaited import Awaited
from zenwire.api.checks import check
from zenwire.api.core import Core, get_ident, locality_of
from zenwire.api.declared import Declared
from zenwire.api.handlers import Called, Channel, Channelled, H, IntoHandler, Paired
from zenwire.api.info import SessionInfo
from zenwire.api.liveliness import Liveliness
from zenwire.api.publisher import Publisher, del_of, put_of, qos_of, quality_of
from zenwire.api.put_batch import put_batch
from zenwire.api.querier import Asking, Querier, ask, asking, question_of
from zenwire.api.queryable import Queryable, open_queries
from zenwire.api.repeated import Repeats
from zenwire.api.subscriber import Subscriber, open_samples
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
    SourceInfo,
    Timestamp,
    TimestampInstrumentation,
    ZenohId,
    key_expr_of,
)
from zenwire.keyexpr import KeyExpr
from zenwire.node.admin.session import session_space

if TYPE_CHECKING:
    from zenwire.api.put_batch import IntoTable, Written
    from zenwire.api.query import Query
    from zenwire.api.replies import AwaitedReplies, CancellationToken
    from zenwire.api.stamps import TimestampCallback
    from zenwire.node.config import Config
    from zenwire.node.node import Node
    from zenwire.wire.data import Del, Put
    from zenwire.wire.values import QoS

__all__ = ["Session", "core_of"]


class Session:
    """A node, as a program uses it. Made by `open`; ``async with`` closes it.

    It belongs to the event loop in which it was opened. What is declared stays declared until it
    is undeclared or the session is closed. Everything that waits can be cancelled.
    """

    def __init__(
        self, node: Node, config: Config, timestamp_callback: TimestampCallback | None = None
    ) -> None:
        self._core = Core(node, timestamp_callback)
        self._config = config
        self.repeats = Repeats(self._core)
        """What is put again and again."""

    @property
    def core(self) -> Core:
        """What it, and everything that is declared with it, works on: for extensions of the API."""
        return self._core

    @property
    def config(self) -> Config:
        """A copy of what it was opened with."""
        return self._config.copy()

    @property
    def info(self) -> SessionInfo:
        """Node ids, transports, links and statistics of this session."""
        return SessionInfo(self._core)

    @property
    def id(self) -> EntityGlobalId:
        """Id of this session: the node's ZenohId, and a number unique within the node."""
        return EntityGlobalId(self._core.zid, self._core.face.id)

    def zid(self) -> ZenohId:
        """The id of this node."""
        return self._core.zid

    def is_closed(self) -> bool:
        """Return True once the session is closed: every further call raises SessionClosed."""
        return self._core.over or self._core.node.closed

    async def close(self) -> None:
        """End everything.

        What was sent is waited for, unless others take nothing of it for some seconds. Callbacks
        have a second to take what waits for them. All callers wait for the same end, which goes
        on if one of them is cancelled. Raises WrongLoop and ForkedSession.
        """
        await self._core.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def new_timestamp(self) -> Timestamp:
        """A time of this node's clock, later than all before."""
        self._core.check("new_timestamp")
        return Timestamp.from_wire(self._core.node.clock.new_timestamp())

    async def declare_keyexpr(self, key_expr: IntoKeyExpr) -> KeyExpr:
        """The expression, checked once. The node shortens keys on the wire by itself."""
        self._core.check("declare_keyexpr")
        return key_expr_of(key_expr)

    async def undeclare(self, obj: KeyExpr | Declared) -> None:
        """Take back a declaration, of any kind."""
        self._core.check("undeclare")
        if isinstance(obj, Declared):
            await obj.undeclare()
        elif not isinstance(obj, KeyExpr):
            raise TypeError(f"obj is a declaration or a KeyExpr, not {type(obj).__name__}")

    # Publishing.

    async def put(
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
        """Publish a value. Waits for room as its congestion control says."""
        core = self._core
        if (
            attachment is None
            and timestamp is None
            and timestamp_instrumentation is None
            and allowed_destination is None
            and source_info is None
            and type(payload) is bytes
            and core.runner._thread_id == get_ident()  # noqa: SLF001 # see there
        ):
            same = self.repeats.find(
                key_expr,
                encoding,
                congestion_control,
                priority,
                express,
                reliability,
            )
            stream = None if same is None else same.stream
            if stream is not None and stream.put(payload):
                if stream.turn:
                    stream.turn = False
                    await asyncio.sleep(0)
                return
        core.check("put")
        body = put_of(
            core,
            payload,
            Encoding.of(encoding),
            attachment=attachment,
            timestamp=timestamp,
            source_info=source_info,
        )
        await self._push(
            key_expr,
            body,
            qos_of(priority, congestion_control, express),
            times=timestamp_instrumentation,
            destination=allowed_destination,
            reliability=reliability,
        )

    async def put_batch(
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
        What is said here holds for rows that do not say it. Waits for room, as the congestion
        control of a row says. Nothing is sent if any row cannot be. Needs the extra ``fast``.
        """
        core = self._core
        core.check("put_batch")
        check(
            congestion_control=congestion_control,
            priority=priority,
            allowed_destination=allowed_destination,
            reliability=reliability,
        )
        return await put_batch(
            core,
            table,
            key=None,
            qos=qos_of(priority, congestion_control, express),
            reliable=reliability is not Reliability.BEST_EFFORT,
            encoding=Encoding.of(encoding),
            destination=locality_of(allowed_destination),
        )

    async def delete(
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
        self._core.check("delete")
        await self._push(
            key_expr,
            del_of(attachment, timestamp, source_info),
            qos_of(priority, congestion_control, express),
            times=timestamp_instrumentation,
            destination=allowed_destination,
            reliability=reliability,
        )

    async def _push(
        self,
        key_expr: IntoKeyExpr,
        body: Put | Del,
        qos: QoS,
        *,
        times: TimestampInstrumentation | None,
        destination: Locality | None,
        reliability: Reliability | None,
    ) -> None:
        core = self._core
        if times is not None or reliability is not None:
            check(timestamp_instrumentation=times, reliability=reliability)
        key = str(key_expr_of(key_expr))
        reliable = reliability is not Reliability.BEST_EFFORT
        where = locality_of(destination)
        if core.overwrites is not None:
            qos, reliable, where = core.overwrites.apply(key, qos, reliable, where)
        core.face.push(
            core.namespace.outward(key),
            body,
            qos=qos,
            reliable=reliable,
            allowed_destination=where,
            timestamp_stack=core.stamps.sent(times),
        )
        waiting = core.settle()
        if waiting is not None:
            await core.room(waiting)

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
    ) -> Awaited[Publisher]:
        """For a key that is published on often. It knows whether anybody subscribes."""

        async def declare() -> Publisher:
            core, key = self._core, key_expr_of(key_expr)
            core.check("declare_publisher")
            check(
                congestion_control=congestion_control,
                priority=priority,
                express=express,
                reliability=reliability,
            )
            kind = Encoding.of(encoding)
            how = quality_of(
                core,
                str(key),
                qos_of(priority, congestion_control, express),
                reliability,
                allowed_destination,
            )
            outward = core.namespace.outward(str(key))
            eid = core.face.declare_publisher(
                outward, core.now, allowed_destination=how.destination
            )
            publisher = Publisher(core, eid, key, encoding=kind, quality=how)
            return await publisher.ready()

        return Awaited(declare())

    # Receiving.

    @overload
    def declare_subscriber(
        self,
        key_expr: IntoKeyExpr,
        handler: Channelled[Sample] = None,
        *,
        allowed_origin: Locality | None = None,
    ) -> Awaited[Subscriber[Channel[Sample]]]: ...
    @overload
    def declare_subscriber(
        self,
        key_expr: IntoKeyExpr,
        handler: Paired[Sample, H],
        *,
        allowed_origin: Locality | None = None,
    ) -> Awaited[Subscriber[H]]: ...
    @overload
    def declare_subscriber(
        self,
        key_expr: IntoKeyExpr,
        handler: Called[Sample],
        *,
        allowed_origin: Locality | None = None,
    ) -> Awaited[Subscriber[None]]: ...
    def declare_subscriber(
        self,
        key_expr: IntoKeyExpr,
        handler: IntoHandler[Sample] = None,
        *,
        allowed_origin: Locality | None = None,
    ) -> Awaited[Subscriber[Any]]:
        """Get samples: ``async with session.declare_subscriber(key) as sub: async for …``."""

        async def declare() -> Subscriber[Any]:
            core, key = self._core, key_expr_of(key_expr)
            opened = open_samples(handler, key)
            core.check("declare_subscriber")
            outward = core.namespace.outward(str(key))
            origin = locality_of(allowed_origin, "allowed_origin")
            if outward.startswith("@/"):
                session_space(core.node, core.face)
            eid = core.face.declare_subscriber(outward, allowed_origin=origin)
            subscriber: Subscriber[Any] = Subscriber(core, eid, key, opened)
            return await subscriber.ready()

        return Awaited(declare())

    @overload
    def declare_queryable(
        self,
        key_expr: IntoKeyExpr,
        handler: Channelled[Query] = None,
        *,
        complete: bool | None = None,
        allowed_origin: Locality | None = None,
    ) -> Awaited[Queryable[Channel[Query]]]: ...
    @overload
    def declare_queryable(
        self,
        key_expr: IntoKeyExpr,
        handler: Paired[Query, H],
        *,
        complete: bool | None = None,
        allowed_origin: Locality | None = None,
    ) -> Awaited[Queryable[H]]: ...
    @overload
    def declare_queryable(
        self,
        key_expr: IntoKeyExpr,
        handler: Called[Query],
        *,
        complete: bool | None = None,
        allowed_origin: Locality | None = None,
    ) -> Awaited[Queryable[None]]: ...
    def declare_queryable(
        self,
        key_expr: IntoKeyExpr,
        handler: IntoHandler[Query] = None,
        *,
        complete: bool | None = None,
        allowed_origin: Locality | None = None,
    ) -> Awaited[Queryable[Any]]:
        """Answer queries. ``complete``: it has all there is for its keys."""

        async def declare() -> Queryable[Any]:
            check(complete=complete)
            core, key, opened = self._core, key_expr_of(key_expr), open_queries(handler)
            core.check("declare_queryable")
            eid = core.face.declare_queryable(
                core.namespace.outward(str(key)),
                complete=bool(complete),
                allowed_origin=locality_of(allowed_origin, "allowed_origin"),
            )
            queryable: Queryable[Any] = Queryable(core, eid, key, opened)
            return await queryable.ready()

        return Awaited(declare())

    def liveliness(self) -> Liveliness:
        """Which keys are alive."""
        return Liveliness(self._core)

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
    ) -> AwaitedReplies:
        """Ask: ``async for reply in session.get(selector)``.

        As in the reference, of several replies on one key the latest is delivered, at the end;
        ``consolidation=ConsolidationMode.NONE`` delivers all, as they come. What was not
        answered within ``timeout`` seconds ends with an error reply. ``budget`` bounds the
        number of replies.
        """
        core = self._core
        if not core.usable():
            core.check("get")
        how = asking(
            target,
            consolidation,
            accept_replies,
            timeout,
            congestion_control,
            priority,
            express,
            allowed_destination,
            budget,
        )
        return ask(
            core,
            question_of(core, selector, how),
            handler,
            payload=payload,
            encoding=encoding,
            attachment=attachment,
            source_info=source_info,
            cancellation_token=cancellation_token,
            timestamp_instrumentation=timestamp_instrumentation,
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
    ) -> Awaited[Querier]:
        """For a key that is asked for often. It knows whether anybody can answer."""

        async def declare() -> Querier:
            core, key = self._core, key_expr_of(key_expr)
            core.check("declare_querier")
            how = Asking(
                target,
                consolidation,
                accept_replies,
                timeout,
                congestion_control,
                priority,
                express,
                allowed_destination,
            )
            eid = core.face.declare_querier(
                core.namespace.outward(str(key)),
                core.now,
                target=how.wire_target,
                allowed_destination=locality_of(allowed_destination),
            )
            return await Querier(core, eid, key, how).ready()

        return Awaited(declare())

    def __repr__(self) -> str:
        state = ", closed" if self.is_closed() else ""
        return f"Session({self.zid()}{state})"


def core_of(session: Session) -> Core:
    """What extensions of the API work on. Raises TypeError for what is no session of asyncio."""
    if isinstance(session, Session):
        return session.core
    raise TypeError(
        f"session is a zenwire.aio.Session, not {type(session).__module__}.{type(session).__name__}"
    )
