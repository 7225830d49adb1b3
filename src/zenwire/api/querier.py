"""Asking, once or again and again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from zenwire.api.core import locality_of
from zenwire.api.handlers import IntoHandler
from zenwire.api.matching import Matcher
from zenwire.api.publisher import bytes_of, qos_of
from zenwire.api.replies import AwaitedReplies, CancellationToken
from zenwire.api.values import (
    CongestionControl,
    ConsolidationMode,
    Encoding,
    IntoParameters,
    IntoZBytes,
    Locality,
    Parameters,
    Priority,
    QueryConsolidation,
    QueryTarget,
    Reply,
    ReplyKeyExpr,
    SourceInfo,
    TimestampInstrumentation,
)
from zenwire.wire import values as wire
from zenwire.wire.structs import QueryBody

if TYPE_CHECKING:
    from zenwire.api.core import Core
    from zenwire.keyexpr import KeyExpr

__all__ = ["Asking", "Querier", "ask", "seconds"]


def seconds(core: Core, timeout: float | None) -> float:
    """How long a query may take: what was said, or the configuration's."""
    if timeout is None:
        return core.node.config.queries_default_timeout / 1000
    if not timeout > 0:
        raise ValueError(f"a timeout is above zero, not {timeout}")
    return timeout


@dataclass(frozen=True, slots=True)
class Asking:
    """How to ask. ``timeout`` is in seconds; ``budget`` bounds the number of replies."""

    target: QueryTarget | None = None
    consolidation: QueryConsolidation | ConsolidationMode | None = None
    accept_replies: ReplyKeyExpr | None = None
    timeout: float | None = None
    congestion_control: CongestionControl | None = None
    priority: Priority | None = None
    express: bool | None = None
    allowed_destination: Locality | None = None
    budget: int | None = None

    @property
    def wire_target(self) -> wire.QueryTarget:
        return wire.QueryTarget(int(self.target or QueryTarget.DEFAULT))


def ask(
    core: Core,
    key_expr: KeyExpr,
    handler: IntoHandler[Reply],
    how: Asking,
    *,
    parameters: Parameters,
    payload: IntoZBytes | None,
    encoding: Encoding | str | None,
    attachment: IntoZBytes | None,
    source_info: SourceInfo | None,
    cancellation_token: CancellationToken | None,
    timestamp_instrumentation: TimestampInstrumentation | None,
) -> AwaitedReplies:
    """Send a query."""
    if how.accept_replies is ReplyKeyExpr.ANY and "_anyke" not in parameters:
        parameters.insert("_anyke", "")
    value = None
    if payload is not None or encoding is not None:
        raw = b"" if payload is None else bytes_of(payload)
        value = QueryBody(encoding=Encoding.of(encoding).wire, payload=raw)
    mode = QueryConsolidation.of(how.consolidation).mode()
    send = partial(
        core.face.query,
        core.namespace.outward(str(key_expr)),
        core.now,
        parameters=str(parameters),
        target=how.wire_target,
        consolidation=wire.ConsolidationMode(int(mode)),
        timeout=seconds(core, how.timeout),
        budget=how.budget,
        qos=qos_of(how.priority, how.congestion_control, how.express, CongestionControl.BLOCK),
        allowed_destination=locality_of(how.allowed_destination),
        value=value,
        attachment=None if attachment is None else bytes_of(attachment),
        source_info=None if source_info is None else source_info.wire,
        timestamp_stack=core.stamps.sent(timestamp_instrumentation),
    )
    return AwaitedReplies(core, handler, send, cancellation_token)


class Querier(Matcher):
    """Asks on one key, and knows whether anybody can answer."""

    WHAT: ClassVar[str] = "querier"

    def __init__(self, core: Core, eid: int, key_expr: KeyExpr, how: Asking) -> None:
        super().__init__(core, eid, key_expr)
        self._how = how

    @property
    def accept_replies(self) -> ReplyKeyExpr:
        return self._how.accept_replies or ReplyKeyExpr.DEFAULT

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
    ) -> AwaitedReplies:
        """Ask: ``async for reply in querier.get()``."""
        self.check("get")
        return ask(
            self._core,
            self._key_expr,
            handler,
            self._how,
            parameters=Parameters(parameters),
            payload=payload,
            encoding=encoding,
            attachment=attachment,
            source_info=source_info,
            cancellation_token=cancellation_token,
            timestamp_instrumentation=timestamp_instrumentation,
        )
