"""Liveliness: which keys are alive, and since when not any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from zenwire.api import liveliness as aio
from zenwire.api.handlers import Called, Channelled, H, IntoHandler, Paired
from zenwire.api.values import IntoKeyExpr, Reply, Sample, key_expr_of
from zenwire.sync.declared import Entity
from zenwire.sync.handler import Handler, Reading
from zenwire.sync.replies import CancellationToken, asked
from zenwire.sync.subscriber import Subscriber

if TYPE_CHECKING:
    from zenwire.sync.session import Session

__all__ = ["Liveliness", "LivelinessToken"]


class LivelinessToken(Entity):
    """Its key is alive until it is undeclared or let go, or the session ends in whatever way."""


class Liveliness:
    """The liveliness of a session."""

    __slots__ = ("_inner", "_session")

    def __init__(self, session: Session, inner: aio.Liveliness) -> None:
        self._session = session
        self._inner = inner

    def declare_token(self, key_expr: IntoKeyExpr) -> LivelinessToken:
        """Make a key alive."""
        token = self._session.loop.run(lambda: self._inner.declare_token(key_expr))
        return LivelinessToken(self._session, token)

    @overload
    def declare_subscriber(
        self,
        key_expr: IntoKeyExpr,
        handler: Channelled[Sample] = None,
        *,
        history: bool | None = None,
    ) -> Subscriber[Handler[Sample]]: ...
    @overload
    def declare_subscriber(
        self, key_expr: IntoKeyExpr, handler: Paired[Sample, H], *, history: bool | None = None
    ) -> Subscriber[H]: ...
    @overload
    def declare_subscriber(
        self, key_expr: IntoKeyExpr, handler: Called[Sample], *, history: bool | None = None
    ) -> Subscriber[None]: ...
    def declare_subscriber(
        self,
        key_expr: IntoKeyExpr,
        handler: IntoHandler[Sample] = None,
        *,
        history: bool | None = None,
    ) -> Subscriber[Any]:
        """Be told of keys that become alive (PUT) or are not any more (DELETE).

        ``history``: also of those that are alive now.
        """
        reading = Reading(handler)
        inner = self._session.loop.run(
            lambda: self._inner.declare_subscriber(key_expr, reading.into, history=history)
        )
        return Subscriber(self._session, inner, reading)

    @overload
    def get(
        self,
        key_expr: IntoKeyExpr,
        handler: Channelled[Reply] = None,
        *,
        timeout: float | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> Handler[Reply]: ...
    @overload
    def get(
        self,
        key_expr: IntoKeyExpr,
        handler: Paired[Reply, H],
        *,
        timeout: float | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> H: ...
    @overload
    def get(
        self,
        key_expr: IntoKeyExpr,
        handler: Called[Reply],
        *,
        timeout: float | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> None: ...
    def get(
        self,
        key_expr: IntoKeyExpr,
        handler: IntoHandler[Reply] = None,
        *,
        timeout: float | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> Any:
        """Which keys are alive now: ``for reply in session.liveliness().get(key)``."""
        key, inner = key_expr_of(key_expr), self._inner
        return asked(
            self._session,
            handler,
            lambda into: inner.get(
                key, into, timeout=timeout, cancellation_token=cancellation_token
            ),
            cancellation_token,
        )
