"""Who is connected, and over which links."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, TypeVar

from zenwire.api.awaited import Awaited
from zenwire.api.checks import check
from zenwire.api.declared import Declared, Receiving
from zenwire.api.handlers import IntoHandler, Opened, open_handler
from zenwire.api.values import (
    Link,
    LinkEvent,
    Reliability,
    SampleKind,
    Transport,
    TransportEvent,
    WhatAmI,
    ZenohId,
)

if TYPE_CHECKING:
    from zenwire.api.core import Core
    from zenwire.node.carrier import Carrier
    from zenwire.node.neighbour import Neighbour
    from zenwire.node.stats import NodeStats

__all__ = ["Declaration", "LinkEventsListener", "SessionInfo", "TransportEventsListener"]

E = TypeVar("E")


class Declaration(NamedTuple):
    """What another node has declared: a ``subscriber``, a ``queryable`` or a ``token``.

    ``zid`` is who told of it: of what is behind a router, that is the router. The key is the whole
    one, also if the session has a namespace.
    """

    zid: ZenohId
    whatami: WhatAmI
    kind: str
    key: str


def _transport(neighbour: Neighbour) -> Transport:
    peer = neighbour.session.peer
    zid, mode = ZenohId.from_wire(peer.zid), WhatAmI(peer.whatami)
    return Transport(zid, mode, is_qos=peer.qos, is_multicast=False)


def _link(neighbour: Neighbour, carrier: Carrier) -> Link:
    link, peer = carrier.link, neighbour.session.peer
    facts = link.facts
    user = None if peer.user is None else peer.user.decode(errors="replace")
    own = carrier.machine.peer
    priorities = None if own is None else own.priorities
    reliability = Reliability.RELIABLE if facts.reliable else Reliability.BEST_EFFORT
    return Link(
        zid=ZenohId.from_wire(peer.zid),
        src=str(link.src),
        dst=str(link.dst),
        mtu=facts.mtu,
        is_streamed=facts.streamed,
        interfaces=link.interfaces,
        auth_identifier=facts.common_name or user,
        priorities=priorities and (int(priorities[0]), int(priorities[1])),
        reliability=reliability,
    )


class _Listener(Declared, Receiving[E], Generic[E]):
    """Told by the node of each neighbour that comes or goes."""

    def __init__(self, core: Core, handler: IntoHandler[E], *, history: bool) -> None:
        self._opened: Opened[E] = open_handler(handler)
        super().__init__(core)
        core.node.on_neighbour.append(self._told)
        core.pump(self._opened)
        for neighbour in core.node.neighbours.values():
            self._told(neighbour, True, silent=not history)

    def _told(self, neighbour: Neighbour, came: bool, *, silent: bool = False) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        self._core.node.on_neighbour.remove(self._told)
        self._opened.sink.close()


class TransportEventsListener(_Listener[TransportEvent]):
    """Gets an event for each node that comes or goes."""

    WHAT: ClassVar[str] = "transport events listener"

    def _told(self, neighbour: Neighbour, came: bool, *, silent: bool = False) -> None:
        if not silent:
            kind = SampleKind.PUT if came else SampleKind.DELETE
            self._opened.sink.put(TransportEvent(kind, _transport(neighbour)))


class LinkEventsListener(_Listener[LinkEvent]):
    """Gets an event for each link that comes or goes."""

    WHAT: ClassVar[str] = "link events listener"

    def __init__(self, core: Core, handler: IntoHandler[LinkEvent], *, history: bool) -> None:
        self._links: dict[Neighbour, list[Link]] = {}
        super().__init__(core, handler, history=history)

    def _told(self, neighbour: Neighbour, came: bool, *, silent: bool = False) -> None:
        if came:
            kind = SampleKind.PUT
            links = [_link(neighbour, carrier) for carrier in neighbour.carriers]
            self._links[neighbour] = links
        else:
            # Its links are gone by now, one by one.
            kind = SampleKind.DELETE
            links = self._links.pop(neighbour, [])
        if not silent:
            for link in links:
                self._opened.sink.put(LinkEvent(kind, link))


class SessionInfo:
    """What a session knows of its node and its neighbours. Lists are of now."""

    __slots__ = ("_core",)

    def __init__(self, core: Core) -> None:
        self._core = core

    def zid(self) -> ZenohId:
        """The id of this node."""
        return self._core.zid

    def routers_zid(self) -> list[ZenohId]:
        """The routers that this node is connected to."""
        return [t.zid for t in self.transports() if t.whatami is WhatAmI.ROUTER]

    def peers_zid(self) -> list[ZenohId]:
        """The peers that this node is connected to."""
        return [t.zid for t in self.transports() if t.whatami is WhatAmI.PEER]

    def transports(self) -> list[Transport]:
        """The nodes that this one is connected to."""
        return [_transport(neighbour) for neighbour in self._core.node.neighbours.values()]

    def links(self) -> list[Link]:
        """The links to them."""
        return [
            _link(neighbour, carrier)
            for neighbour in self._core.node.neighbours.values()
            for carrier in neighbour.carriers
        ]

    def stats(self) -> NodeStats:
        """What the node has counted: sent, received, dropped and why."""
        return self._core.node.stats()

    def declared(self) -> list[Declaration]:
        """What other nodes have declared, as far as this one knows.

        Peers tell all they have; a router, or a peer of a client, only what this node has asked
        for with its own publishers, queriers and liveliness subscribers.
        """
        return [
            Declaration(ZenohId.from_wire(face.zid), WhatAmI(face.whatami), kind.value, key)
            for kind, key, face in self._core.node.tables.declared()
        ]

    def declare_transport_events_listener(
        self, handler: IntoHandler[TransportEvent] = None, *, history: bool | None = None
    ) -> Awaited[TransportEventsListener]:
        """Be told of nodes that come and go; with ``history``, also of those there are."""
        check(history=history)
        return Awaited(self._transport_listener(handler, history=bool(history)))

    async def _transport_listener(
        self, handler: IntoHandler[TransportEvent], *, history: bool
    ) -> TransportEventsListener:
        self._core.check("info.declare_transport_events_listener")
        return TransportEventsListener(self._core, handler, history=history)

    def declare_link_events_listener(
        self, handler: IntoHandler[LinkEvent] = None, *, history: bool | None = None
    ) -> Awaited[LinkEventsListener]:
        """Be told of links that come and go; with ``history``, also of those there are."""
        check(history=history)
        return Awaited(self._link_listener(handler, history=bool(history)))

    async def _link_listener(
        self, handler: IntoHandler[LinkEvent], *, history: bool
    ) -> LinkEventsListener:
        self._core.check("info.declare_link_events_listener")
        return LinkEventsListener(self._core, handler, history=history)
