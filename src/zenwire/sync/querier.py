"""Asking again and again."""

from __future__ import annotations

from typing import Any, overload

from zenwire.api import querier as aio
from zenwire.api.handlers import Called, Channelled, H, IntoHandler, Paired
from zenwire.api.values import (
    Encoding,
    IntoParameters,
    IntoZBytes,
    Reply,
    ReplyKeyExpr,
    SourceInfo,
    TimestampInstrumentation,
)
from zenwire.sync.checks import check, encoding_of
from zenwire.sync.handler import Handler
from zenwire.sync.matching import Matcher
from zenwire.sync.replies import CancellationToken, asked

__all__ = ["Querier"]


class Querier(Matcher):
    """Asks on one key, and knows whether anybody can answer."""

    _inner: aio.Querier

    @property
    def accept_replies(self) -> ReplyKeyExpr:
        """Accepted keys of replies: matching the query, or any."""
        return self._inner.accept_replies

    @overload
    def get(
        self,
        handler: Channelled[Reply] = None,
        *,
        parameters: IntoParameters | None = None,
        payload: IntoZBytes | None = None,
        encoding: Encoding | str | None = None,
        attachment: IntoZBytes | None = None,
        source_info: SourceInfo | None = None,
        cancellation_token: CancellationToken | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
    ) -> Handler[Reply]: ...
    @overload
    def get(
        self,
        handler: Paired[Reply, H],
        *,
        parameters: IntoParameters | None = None,
        payload: IntoZBytes | None = None,
        encoding: Encoding | str | None = None,
        attachment: IntoZBytes | None = None,
        source_info: SourceInfo | None = None,
        cancellation_token: CancellationToken | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
    ) -> H: ...
    @overload
    def get(
        self,
        handler: Called[Reply],
        *,
        parameters: IntoParameters | None = None,
        payload: IntoZBytes | None = None,
        encoding: Encoding | str | None = None,
        attachment: IntoZBytes | None = None,
        source_info: SourceInfo | None = None,
        cancellation_token: CancellationToken | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
    ) -> None: ...
    def get(
        self,
        handler: IntoHandler[Reply] = None,
        *,
        parameters: IntoParameters | None = None,
        payload: IntoZBytes | None = None,
        encoding: Encoding | str | None = None,
        attachment: IntoZBytes | None = None,
        source_info: SourceInfo | None = None,
        cancellation_token: CancellationToken | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
    ) -> Any:
        """Ask: ``for reply in querier.get()``."""
        check(
            source_info=source_info,
            cancellation_token=cancellation_token,
            timestamp_instrumentation=timestamp_instrumentation,
        )
        inner = self._inner
        return asked(
            self._session,
            handler,
            lambda into: inner.get(
                into,
                parameters=parameters,
                payload=payload,
                encoding=encoding_of(encoding),
                attachment=attachment,
                source_info=source_info,
                cancellation_token=cancellation_token,
                timestamp_instrumentation=timestamp_instrumentation,
            ),
            cancellation_token,
        )
