"""Asking, once or again and again."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from zenwire import routing
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
    IntoSelector,
    IntoZBytes,
    Locality,
    Parameters,
    Priority,
    QueryConsolidation,
    QueryTarget,
    Reply,
    ReplyKeyExpr,
    Selector,
    SourceInfo,
    TimestampInstrumentation,
)
from zenwire.wire import values as wire
from zenwire.wire.structs import QueryBody

if TYPE_CHECKING:
    from zenwire.api.core import Core
    from zenwire.keyexpr import KeyExpr

__all__ = ["Asking", "Querier", "ask", "asking", "parts_of", "seconds"]


def seconds(core: Core, timeout: float | None) -> float:
    """How long a query may take: what was said, or the configuration's."""
    if timeout is None:
        return core.node.config.queries_default_timeout / 1000
    if not timeout > 0:
        raise ValueError(f"a timeout is above zero, not {timeout}")
    return timeout


@dataclass(slots=True)
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

    # The same as routing has it.
    wire_target: wire.QueryTarget = field(init=False)
    wire_mode: wire.ConsolidationMode = field(init=False)
    qos: wire.QoS = field(init=False)
    destination: routing.Locality = field(init=False)

    def __post_init__(self) -> None:
        self.wire_target = wire.QueryTarget(int(self.target or QueryTarget.DEFAULT))
        mode = QueryConsolidation.of(self.consolidation).mode()
        self.wire_mode = wire.ConsolidationMode(int(mode))
        block = CongestionControl.BLOCK
        self.qos = qos_of(self.priority, self.congestion_control, self.express, block)
        self.destination = locality_of(self.allowed_destination)


# The same again and again, mostly.
asking = lru_cache(maxsize=256)(Asking)


@lru_cache(maxsize=1024)
def _parts(selector: str) -> tuple[str, str]:
    made = Selector(selector)
    return str(made.key_expr), str(made.parameters)


def parts_of(selector: IntoSelector) -> tuple[str, str]:
    """Key expression and parameters of what a program asks for. Raises KeyExprError."""
    if type(selector) is str:
        return _parts(selector)
    made = Selector.of(selector)
    return str(made.key_expr), str(made.parameters)


def ask(
    core: Core,
    key: str,
    parameters: str,
    handler: IntoHandler[Reply],
    how: Asking,
    *,
    payload: IntoZBytes | None,
    encoding: Encoding | str | None,
    attachment: IntoZBytes | None,
    source_info: SourceInfo | None,
    cancellation_token: CancellationToken | None,
    timestamp_instrumentation: TimestampInstrumentation | None,
) -> AwaitedReplies:
    """Send a query. The key is canonical."""
    if how.accept_replies is ReplyKeyExpr.ANY:
        more = Parameters(parameters)
        if "_anyke" not in more:
            more.insert("_anyke", "")
        parameters = str(more)
    value = None
    if payload is not None or encoding is not None:
        raw = b"" if payload is None else bytes_of(payload)
        value = QueryBody(encoding=Encoding.of(encoding).wire, payload=raw)
    timeout = seconds(core, how.timeout)
    return AwaitedReplies(
        core,
        handler,
        lambda: core.face.query(
            core.namespace.outward(key),
            core.now,
            parameters=parameters,
            target=how.wire_target,
            consolidation=how.wire_mode,
            timeout=timeout,
            budget=how.budget,
            qos=how.qos,
            allowed_destination=how.destination,
            value=value,
            attachment=None if attachment is None else bytes_of(attachment),
            source_info=None if source_info is None else source_info.wire,
            timestamp_stack=core.stamps.sent(timestamp_instrumentation),
        ),
        cancellation_token,
    )


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
            str(self._key_expr),
            "" if parameters is None else str(Parameters(parameters)),
            handler,
            self._how,
            payload=payload,
            encoding=encoding,
            attachment=attachment,
            source_info=source_info,
            cancellation_token=cancellation_token,
            timestamp_instrumentation=timestamp_instrumentation,
        )
