"""A router towards its peers: it tells each of the others, so that they can connect.

A peer may be linked to several routers. It says so by link state, and of those routers one, with
the greatest id, passes on what goes between the peer and other routers.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zenwire.routing.outputs import NodeKnown
from zenwire.routing.state import CONTROL, State
from zenwire.wire.linkstate import OAM_LINKSTATE, LinkState, LinkStateList
from zenwire.wire.network import Oam
from zenwire.wire.objects import encode
from zenwire.wire.values import WhatAmI

if TYPE_CHECKING:
    from zenwire.routing.faces import Face
    from zenwire.routing.options import RoutingOptions
    from zenwire.wire.locator import Locator
    from zenwire.wire.values import ZenohId

__all__ = ["Gateway"]


@dataclass(slots=True)
class _Peer:
    """A peer of this router. ``psid`` is our number for it, ``sn`` its own version."""

    psid: int
    sn: int = 0
    locators: tuple[Locator, ...] | None = None
    links: frozenset[ZenohId] = frozenset()
    psids: dict[int, ZenohId] = field(default_factory=dict)
    """Its numbers for the nodes it tells of."""
    routers: set[ZenohId] = field(default_factory=set)
    """Those that it calls gateways."""


@dataclass(frozen=True, slots=True)
class _Far:
    """A node that a peer told of, to be passed on in multihop gossip. ``via`` is that peer."""

    entry: LinkState
    via: Face


class Gateway:
    """The peers of a router, and what they say of themselves."""

    __slots__ = ("_far", "_last_psid", "_locates", "_peers", "_state")

    def __init__(self, state: State, options: RoutingOptions) -> None:
        self._state = state
        self._locates = bool(options.gossip_target & WhatAmI.PEER)
        self._far: dict[ZenohId, _Far] | None = {} if options.multihop else None
        self._peers: dict[Face, _Peer] = {}
        self._last_psid = 0

    def start(self, face: Face) -> None:
        """Tell a new peer of the others."""
        others = [_entry(other, peer) for other, peer in self._peers.items()]
        others += [far.entry for zid, far in (self._far or {}).items() if zid != face.zid]
        self._last_psid += 1
        self._peers[face] = _Peer(self._last_psid)
        self._tell(face, others)

    def drop(self, face: Face) -> None:
        self._peers.pop(face, None)
        if self._far:
            self._far = {zid: far for zid, far in self._far.items() if far.via is not face}

    def receive(self, face: Face, told: LinkStateList) -> None:
        """A peer tells of itself and of those it knows."""
        peer, limits = self._peers[face], self._state.limits
        for entry in told.entries:
            if entry.zid is None:
                continue
            if entry.psid in peer.psids or len(peer.psids) < limits.nodes:
                peer.psids[entry.psid] = entry.zid
                (peer.routers.add if entry.gateway else peer.routers.discard)(entry.zid)
            else:
                self._state.counters.limit_nodes += 1
        for entry in told.entries:
            zid = peer.psids.get(entry.psid)
            if zid is None:
                self._state.counters.ignored_oam += 1
            elif zid == face.zid:
                self._hear(face, peer, entry)
            elif entry.locators and zid != self._state.zid:
                whatami = WhatAmI.ROUTER if entry.whatami is None else entry.whatami
                locators = entry.locators[: limits.locators]
                self._state.emit(NodeKnown(zid, whatami, locators, face))
                self._pass_on(face, zid, dataclasses.replace(entry, locators=locators))

    def _pass_on(self, face: Face, zid: ZenohId, entry: LinkState) -> None:
        """Tell the other peers of a node that one of them told of, if gossip is multihop."""
        if self._far is None or any(peer.zid == zid for peer in self._peers):
            return
        known = self._far.get(zid)
        if known is not None and known.entry.sn >= entry.sn:
            return
        if known is None:
            if len(self._far) >= self._state.limits.nodes:
                self._state.counters.limit_nodes += 1
                return
            self._last_psid += 1
        psid = self._last_psid if known is None else known.entry.psid
        told = dataclasses.replace(entry, psid=psid, zid=zid, links=())
        self._far[zid] = _Far(told, face)
        for other in self._peers:
            if other is not face:
                self._tell(other, [told])

    def _hear(self, face: Face, peer: _Peer, entry: LinkState) -> None:
        """What a peer says of itself, if it is newer than what is known."""
        if entry.sn <= peer.sn:
            return
        peer.sn = entry.sn
        if entry.links:
            numbers = (peer.psids.get(link.psid) for link in entry.links)
            peer.links = frozenset(zid for zid in numbers if zid is not None)
        mine = self._state.zid
        gateways = frozenset(z for z in peer.links if z == mine or z in peer.routers)
        if gateways != face.gateways:
            face.gateways = gateways
            face.primary = not gateways or max(gateways, key=lambda z: z.raw) == mine
            self._state.stale()
        if entry.locators is None or entry.locators == peer.locators:
            return
        peer.locators = entry.locators[: self._state.limits.locators]
        for other in self._peers:
            if other is not face:
                self._tell(other, [_entry(face, peer)])

    def _tell(self, face: Face, entries: list[LinkState]) -> None:
        if not self._locates:
            entries = [dataclasses.replace(entry, locators=None) for entry in entries]
        body = encode(LinkStateList(entries=tuple(entries)))
        self._state.send(face, Oam(id=OAM_LINKSTATE, qos=CONTROL, body=body))


def _entry(face: Face, peer: _Peer) -> LinkState:
    return LinkState(
        psid=peer.psid,
        sn=peer.sn,
        zid=face.zid,
        whatami=face.whatami,
        locators=peer.locators,
    )
