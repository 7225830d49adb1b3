"""Liveliness: which keys are alive, and since when not any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, overload

from zenwire.api.awaited import Awaited
from zenwire.api.checks import check
from zenwire.api.declared import Entity
from zenwire.api.handlers import Called, Channel, Channelled, H, IntoHandler, Paired
from zenwire.api.querier import seconds
from zenwire.api.replies import AwaitedReplies, CancellationToken, await_replies
from zenwire.api.subscriber import Subscriber, open_samples
from zenwire.api.values import IntoKeyExpr, Reply, Sample, key_expr_of

if TYPE_CHECKING:
    from zenwire.api.core import Core

__all__ = ["Liveliness", "LivelinessToken"]


class LivelinessToken(Entity):
    """Its key is alive until it is undeclared, or the session ends in whatever way."""

    WHAT: ClassVar[str] = "liveliness token"


class Liveliness:
    """The liveliness of a session."""

    __slots__ = ("_core",)

    def __init__(self, core: Core) -> None:
        self._core = core

    def declare_token(self, key_expr: IntoKeyExpr) -> Awaited[LivelinessToken]:
        """Make a key alive."""
        return Awaited(self._token(key_expr))

    async def _token(self, key_expr: IntoKeyExpr) -> LivelinessToken:
        core, key = self._core, key_expr_of(key_expr)
        core.check("liveliness.declare_token")
        eid = core.face.declare_token(core.namespace.outward(str(key)))
        return await LivelinessToken(core, eid, key).ready()

    @overload
    def declare_subscriber(
        self,
        key_expr: IntoKeyExpr,
        handler: Channelled[Sample] = None,
        *,
        history: bool | None = None,
    ) -> Awaited[Subscriber[Channel[Sample]]]: ...
    @overload
    def declare_subscriber(
        self, key_expr: IntoKeyExpr, handler: Paired[Sample, H], *, history: bool | None = None
    ) -> Awaited[Subscriber[H]]: ...
    @overload
    def declare_subscriber(
        self, key_expr: IntoKeyExpr, handler: Called[Sample], *, history: bool | None = None
    ) -> Awaited[Subscriber[None]]: ...
    def declare_subscriber(
        self,
        key_expr: IntoKeyExpr,
        handler: IntoHandler[Sample] = None,
        *,
        history: bool | None = None,
    ) -> Awaited[Subscriber[Any]]:
        """Be told of keys that become alive (PUT) or are not any more (DELETE).

        ``history``: also of those that are alive now.
        """
        check(history=history)
        return Awaited(self._subscriber(key_expr, handler, history=bool(history)))

    async def _subscriber(
        self, key_expr: IntoKeyExpr, handler: IntoHandler[Sample], *, history: bool
    ) -> Subscriber[Any]:
        core, key = self._core, key_expr_of(key_expr)
        opened = open_samples(handler, key)
        core.check("liveliness.declare_subscriber")
        outward = core.namespace.outward(str(key))
        eid = core.face.declare_liveliness_subscriber(outward, core.now, history=history)
        subscriber: Subscriber[Any] = Subscriber(core, eid, key, opened)
        return await subscriber.ready()

    def get(
        self,
        key_expr: IntoKeyExpr,
        handler: IntoHandler[Reply] = None,
        *,
        timeout: float | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> AwaitedReplies:
        """Which keys are alive now: ``async for reply in session.liveliness().get(key)``."""
        core, key = self._core, key_expr_of(key_expr)
        core.check("liveliness.get")
        check(cancellation_token=cancellation_token)
        outward = core.namespace.outward(str(key))
        wait = seconds(core, timeout)
        if cancellation_token is not None:
            cancellation_token.check()
        id_ = core.face.liveliness_get(outward, core.now, timeout=wait)
        return await_replies(core, id_, handler, cancellation_token)
