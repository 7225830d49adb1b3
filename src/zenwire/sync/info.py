"""Who is connected, and over which links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, overload

from zenwire.api import info as aio
from zenwire.api.handlers import Called, Channelled, H, IntoHandler, Paired
from zenwire.api.values import Link, LinkEvent, Transport, TransportEvent, ZenohId
from zenwire.sync.declared import Receiving
from zenwire.sync.handler import Handler, Reading

if TYPE_CHECKING:
    from zenwire.node.stats import NodeStats
    from zenwire.sync.session import Session

__all__ = ["LinkEventsListener", "SessionInfo", "TransportEventsListener"]


class TransportEventsListener(Receiving[TransportEvent], Generic[H]):
    """Gets an event for each node that comes or goes."""

    @property
    def handler(self) -> H:
        """A Handler to read from; of a pair, its second half; None for a callback."""
        handler: H = self._handler
        return handler


class LinkEventsListener(Receiving[LinkEvent], Generic[H]):
    """Gets an event for each link that comes or goes."""

    @property
    def handler(self) -> H:
        """A Handler to read from; of a pair, its second half; None for a callback."""
        handler: H = self._handler
        return handler


class SessionInfo:
    """What a session knows of its node and its neighbours. Lists are of now."""

    __slots__ = ("_inner", "_session")

    def __init__(self, session: Session, inner: aio.SessionInfo) -> None:
        self._session = session
        self._inner = inner

    def zid(self) -> ZenohId:
        """The id of this node."""
        return self._inner.zid()

    def routers_zid(self) -> list[ZenohId]:
        """The routers that this node is connected to."""
        return self._session.loop.call(self._inner.routers_zid)

    def peers_zid(self) -> list[ZenohId]:
        """The peers that this node is connected to."""
        return self._session.loop.call(self._inner.peers_zid)

    def transports(self) -> list[Transport]:
        """The nodes that this one is connected to."""
        return self._session.loop.call(self._inner.transports)

    def links(self) -> list[Link]:
        """The links to them."""
        return self._session.loop.call(self._inner.links)

    def stats(self) -> NodeStats:
        """What the node has counted: sent, received, dropped and why."""
        return self._session.loop.call(self._inner.stats)

    @overload
    def declare_transport_events_listener(
        self, handler: Channelled[TransportEvent] = None, *, history: bool | None = None
    ) -> TransportEventsListener[Handler[TransportEvent]]: ...
    @overload
    def declare_transport_events_listener(
        self, handler: Paired[TransportEvent, H], *, history: bool | None = None
    ) -> TransportEventsListener[H]: ...
    @overload
    def declare_transport_events_listener(
        self, handler: Called[TransportEvent], *, history: bool | None = None
    ) -> TransportEventsListener[None]: ...
    def declare_transport_events_listener(
        self, handler: IntoHandler[TransportEvent] = None, *, history: bool | None = None
    ) -> TransportEventsListener[Any]:
        """Be told of nodes that come and go; with ``history``, also of those there are."""
        reading = Reading(handler)
        inner = self._session.loop.run(
            lambda: self._inner.declare_transport_events_listener(reading.into, history=history)
        )
        return TransportEventsListener(self._session, inner, reading)

    @overload
    def declare_link_events_listener(
        self, handler: Channelled[LinkEvent] = None, *, history: bool | None = None
    ) -> LinkEventsListener[Handler[LinkEvent]]: ...
    @overload
    def declare_link_events_listener(
        self, handler: Paired[LinkEvent, H], *, history: bool | None = None
    ) -> LinkEventsListener[H]: ...
    @overload
    def declare_link_events_listener(
        self, handler: Called[LinkEvent], *, history: bool | None = None
    ) -> LinkEventsListener[None]: ...
    def declare_link_events_listener(
        self, handler: IntoHandler[LinkEvent] = None, *, history: bool | None = None
    ) -> LinkEventsListener[Any]:
        """Be told of links that come and go; with ``history``, also of those there are."""
        reading = Reading(handler)
        inner = self._session.loop.run(
            lambda: self._inner.declare_link_events_listener(reading.into, history=history)
        )
        return LinkEventsListener(self._session, inner, reading)
