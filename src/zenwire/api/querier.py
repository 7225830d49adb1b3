"""Asking, once or again and again."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from zenwire import routing
from zenwire.api.checks import check
from zenwire.api.core import locality_of
from zenwire.api.handlers import IntoHandler
from zenwire.api.matching import Matcher
from zenwire.api.publisher import bytes_of, qos_of
from zenwire.api.replies import AwaitedReplies, CancellationToken, await_replies
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
from zenwire.node.admin.session import session_space
from zenwire.wire import values as wire
from zenwire.wire.structs import QueryBody

if TYPE_CHECKING:
    from zenwire.api.core import Core
    from zenwire.keyexpr import KeyExpr
    from zenwire.routing import Question

__all__ = ["Asking", "Querier", "ask", "asking", "question_of", "seconds"]

QUESTIONS_MAX: Final = 1024
"""How many questions a session remembers; whoever asks more makes them anew."""


def seconds(core: Core, timeout: float | None) -> float:
    """How long a query may take: what was said, or the configuration's."""
    if timeout is None:
        return core.node.config.queries_default_timeout / 1000
    check_timeout(timeout)
    return timeout


def check_timeout(timeout: float) -> None:
    """Raise TypeError unless it is a number, ValueError unless it is above zero."""
    if not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout is a number of seconds, not {type(timeout).__name__}")
    if not timeout > 0:
        raise ValueError(f"timeout is above zero, not {timeout}")


@dataclass(slots=True, eq=False)
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
        check(target=self.target, accept_replies=self.accept_replies, budget=self.budget)
        if self.timeout is not None:
            check_timeout(self.timeout)
        self.wire_target = wire.QueryTarget(int(self.target or QueryTarget.DEFAULT))
        mode = QueryConsolidation.of(self.consolidation).mode()
        self.wire_mode = wire.ConsolidationMode(int(mode))
        block = CongestionControl.BLOCK
        self.qos = qos_of(self.priority, self.congestion_control, self.express, block)
        self.destination = locality_of(self.allowed_destination)


# The same again and again, mostly.
_asking = lru_cache(maxsize=256)(Asking)


def asking(*how: Any) -> Asking:
    """Look up, or create, what was asked so before: the arguments of `Asking`, in its order."""
    try:
        return _asking(*how)
    except TypeError:
        # A value that cannot be hashed: of no kind that is meant, which is said there.
        return Asking(*how)


def question_of(core: Core, selector: IntoSelector, how: Asking) -> Question:
    """What a program asks for, as routing has it. Raises KeyExprError."""
    known = core.questions.get((selector, how)) if type(selector) is str else None
    if known is None:
        made = Selector.of(selector)
        known = question(core, str(made.key_expr), str(made.parameters), how)
        if type(selector) is str:
            if len(core.questions) >= QUESTIONS_MAX:
                core.questions.clear()
            core.questions[selector, how] = known
    return known


def question(core: Core, key: str, parameters: str, how: Asking) -> Question:
    """The same of its parts. The key is canonical."""
    if key.startswith("@/"):
        session_space(core.node, core.face)
    if how.accept_replies is ReplyKeyExpr.ANY:
        more = Parameters(parameters)
        if "_anyke" not in more:
            more.insert("_anyke", "")
        parameters = str(more)
    return routing.question(
        core.namespace.outward(key),
        parameters,
        how.wire_target,
        how.wire_mode,
        timeout=seconds(core, how.timeout),
        budget=how.budget,
        qos=how.qos,
        allowed_destination=how.destination,
    )


def ask(
    core: Core,
    asked: Question,
    handler: IntoHandler[Reply],
    *,
    payload: IntoZBytes | None,
    encoding: Encoding | str | None,
    attachment: IntoZBytes | None,
    source_info: SourceInfo | None,
    cancellation_token: CancellationToken | None,
    timestamp_instrumentation: TimestampInstrumentation | None,
) -> AwaitedReplies:
    """Send a query."""
    value = None
    if payload is not None or encoding is not None:
        raw = b"" if payload is None else bytes_of(payload)
        value = QueryBody(encoding=Encoding.of(encoding).wire, payload=raw)
    if timestamp_instrumentation is not None:
        check(timestamp_instrumentation=timestamp_instrumentation)
    if source_info is not None or cancellation_token is not None:
        check(source_info=source_info, cancellation_token=cancellation_token)
        if cancellation_token is not None:
            cancellation_token.check()
    id_ = core.face.query(
        asked,
        core.node.time(),
        value=value,
        attachment=None if attachment is None else bytes_of(attachment, "attachment"),
        source_info=None if source_info is None else source_info.wire,
        timestamp_stack=core.stamps.sent(timestamp_instrumentation),
    )
    return await_replies(core, id_, handler, cancellation_token)


class Querier(Matcher):
    """Asks on one key, and knows whether anybody can answer."""

    WHAT: ClassVar[str] = "querier"

    def __init__(self, core: Core, eid: int, key_expr: KeyExpr, how: Asking) -> None:
        super().__init__(core, eid, key_expr)
        self._how = how
        self._question = question(core, str(key_expr), "", how)

    @property
    def accept_replies(self) -> ReplyKeyExpr:
        """Accepted keys of replies: matching the query, or any."""
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
        asked, core = self._question, self._core
        if parameters is not None:
            asked = question(core, str(self._key_expr), str(Parameters(parameters)), self._how)
        return ask(
            core,
            asked,
            handler,
            payload=payload,
            encoding=encoding,
            attachment=attachment,
            source_info=source_info,
            cancellation_token=cancellation_token,
            timestamp_instrumentation=timestamp_instrumentation,
        )
