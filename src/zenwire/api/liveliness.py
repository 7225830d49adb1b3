"""Liveliness: which keys are alive, and since when not any more."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from zenwire.api.awaited import Awaited
from zenwire.api.declared import Entity
from zenwire.api.handlers import IntoHandler
from zenwire.api.querier import seconds
from zenwire.api.replies import AwaitedReplies, CancellationToken
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

    def declare_subscriber(
        self,
        key_expr: IntoKeyExpr,
        handler: IntoHandler[Sample] = None,
        *,
        history: bool | None = None,
    ) -> Awaited[Subscriber]:
        """Be told of keys that become alive (PUT) or are not any more (DELETE).

        ``history``: also of those that are alive now.
        """
        return Awaited(self._subscriber(key_expr, handler, history=bool(history)))

    async def _subscriber(
        self, key_expr: IntoKeyExpr, handler: IntoHandler[Sample], *, history: bool
    ) -> Subscriber:
        core, key = self._core, key_expr_of(key_expr)
        opened = open_samples(handler, key)
        core.check("liveliness.declare_subscriber")
        outward = core.namespace.outward(str(key))
        eid = core.face.declare_liveliness_subscriber(outward, core.now, history=history)
        return await Subscriber(core, eid, key, opened).ready()

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
        outward = core.namespace.outward(str(key))
        send = partial(core.face.liveliness_get, outward, core.now, timeout=seconds(core, timeout))
        return AwaitedReplies(core, handler, send, cancellation_token)
