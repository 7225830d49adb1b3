"""Asking: the queries of a session, and what asks again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast, overload

from zenwire.api import session as aio
from zenwire.api.handlers import Called, Channelled, H, IntoHandler, Paired
from zenwire.api.values import (
    CongestionControl,
    ConsolidationMode,
    Encoding,
    IntoKeyExpr,
    IntoSelector,
    IntoZBytes,
    Locality,
    Priority,
    QueryConsolidation,
    QueryTarget,
    Reply,
    ReplyKeyExpr,
    Selector,
    SourceInfo,
    TimestampInstrumentation,
)
from zenwire.sync.checks import check, encoding_of
from zenwire.sync.handler import Handler
from zenwire.sync.querier import Querier
from zenwire.sync.replies import CancellationToken, asked

if TYPE_CHECKING:
    from zenwire.sync.session import Session
    from zenwire.sync.thread import Loop

__all__ = ["Asking"]


class Asking:
    """The part of a `Session` that asks. Nothing else has it."""

    loop: Loop
    _inner: aio.Session

    @overload
    def get(
        self,
        selector: IntoSelector,
        handler: Channelled[Reply] = None,
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
    ) -> Handler[Reply]: ...
    @overload
    def get(
        self,
        selector: IntoSelector,
        handler: Paired[Reply, H],
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
    ) -> H: ...
    @overload
    def get(
        self,
        selector: IntoSelector,
        handler: Called[Reply],
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
    ) -> None: ...
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
            cast("Session", self),
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
        inner = self.loop.run(
            lambda: self._inner.declare_querier(
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
        )
        return Querier(cast("Session", self), inner)
