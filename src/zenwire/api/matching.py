"""Matching: whether a publisher or a querier has anybody on the other side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, overload

from zenwire.api.awaited import Awaited
from zenwire.api.declared import Declared, Entity, Receiving
from zenwire.api.handlers import (
    Called,
    Channel,
    Channelled,
    H,
    IntoHandler,
    Opened,
    Paired,
    open_handler,
)
from zenwire.api.values import MatchingStatus
from zenwire.routing import MatchingChanged

if TYPE_CHECKING:
    from zenwire.api.core import Core
    from zenwire.keyexpr import KeyExpr
    from zenwire.routing import Output

__all__ = ["Matcher", "MatchingListener"]


class Matcher(Entity):
    """A publisher or querier."""

    def __init__(self, core: Core, eid: int, key_expr: KeyExpr) -> None:
        super().__init__(core, eid, key_expr)
        self._listeners: list[MatchingListener[Any]] = []
        core.node.receivers[eid] = self._deliver

    @property
    def matching_status(self) -> MatchingStatus:
        """Whether there is anybody now."""
        self.check("matching_status")
        return MatchingStatus(self._core.face.matching(self._eid))

    @overload
    def declare_matching_listener(
        self, handler: Channelled[MatchingStatus] = None
    ) -> Awaited[MatchingListener[Channel[MatchingStatus]]]: ...
    @overload
    def declare_matching_listener(
        self, handler: Paired[MatchingStatus, H]
    ) -> Awaited[MatchingListener[H]]: ...
    @overload
    def declare_matching_listener(
        self, handler: Called[MatchingStatus]
    ) -> Awaited[MatchingListener[None]]: ...
    def declare_matching_listener(
        self, handler: IntoHandler[MatchingStatus] = None
    ) -> Awaited[MatchingListener[Any]]:
        """Be told of changes; and at once, if there is somebody."""
        return Awaited(self._declare_listener(handler))

    async def _declare_listener(
        self, handler: IntoHandler[MatchingStatus]
    ) -> MatchingListener[Any]:
        status = self.matching_status
        listener: MatchingListener[Any] = MatchingListener(self._core, self._listeners, handler)
        if status.matching:
            listener.tell(status)
        return listener

    def _deliver(self, output: Output) -> None:
        if isinstance(output, MatchingChanged):
            status = MatchingStatus(output.matching)
            for listener in list(self._listeners):
                listener.tell(status)

    def _end(self) -> None:
        for listener in list(self._listeners):
            self._core.release(listener)
            listener.over()


class MatchingListener(Declared, Receiving[MatchingStatus], Generic[H]):
    """Gets a status whenever it changes."""

    WHAT: ClassVar[str] = "matching listener"

    def __init__(
        self,
        core: Core,
        listeners: list[MatchingListener[Any]],
        handler: IntoHandler[MatchingStatus],
    ) -> None:
        self._opened: Opened[MatchingStatus] = open_handler(handler)
        super().__init__(core)
        self._listeners = listeners
        listeners.append(self)
        core.pump(self._opened)

    @property
    def handler(self) -> H:
        """A Channel; of a pair, what it had to read from; for a callback None."""
        handler: H = self._opened.receiver
        return handler

    def tell(self, status: MatchingStatus) -> None:
        """Deliver a status to the handler. Called by the publisher or querier."""
        self._opened.sink.put(status)

    def _end(self) -> None:
        if self in self._listeners:
            self._listeners.remove(self)
        self._opened.sink.close()
