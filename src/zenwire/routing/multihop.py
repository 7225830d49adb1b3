"""Multihop gossip: link state of a peer that tells of all nodes it knows, not of neighbours alone.

With ``scouting/gossip/multihop`` every node hears of every other one that a chain of links leads
to, with its links and locators. Nodes without it tell of their neighbours, and understand this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zenwire.routing.graph import Graph, Router
from zenwire.routing.outputs import NodeKnown
from zenwire.routing.state import CONTROL, State
from zenwire.wire.linkstate import OAM_LINKSTATE, Link, LinkState, LinkStateList
from zenwire.wire.network import Oam
from zenwire.wire.objects import encode
from zenwire.wire.values import WhatAmI

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zenwire.routing.faces import Face
    from zenwire.wire.locator import Locator
    from zenwire.wire.values import WhatAmIMatcher, ZenohId

__all__ = ["MultihopGossip"]


class MultihopGossip:
    """Nodes and links as this node knows them. The methods are those of `Gossip`."""

    __slots__ = ("_faces", "_graph", "_numbers", "_state", "_target")

    def __init__(
        self,
        state: State,
        whatami: WhatAmI,
        locators: Iterable[Locator],
        target: WhatAmIMatcher,
    ) -> None:
        self._state = state
        self._target = target
        self._graph = Graph(state.zid)
        self._graph.me.whatami = whatami
        self._graph.me.locators = tuple(locators)
        self._faces: dict[ZenohId, Face] = {}
        self._numbers: dict[Face, dict[int, ZenohId]] = {}

    def start(self, face: Face) -> None:
        """Tell a new neighbour of all nodes, and the others of the new neighbour."""
        if not face.relation.gossips:
            return
        me, nodes = self._graph.me, self._graph.routers
        self._numbers[face] = {}
        me.links[face.zid] = 0
        me.sn += 1
        new = [] if face.zid in nodes else [self._graph.add(face.zid, face.whatami)]
        nodes[face.zid].whatami = face.whatami
        for other in self._faces.values():
            self._tell(other, introduced=new, changed=[me])
        self._faces[face.zid] = face
        self._tell(face, introduced=nodes.values())

    def drop(self, face: Face) -> None:
        """A neighbour went; forget whom no chain of links leads to, and tell the others."""
        if self._numbers.pop(face, None) is None or self._faces.get(face.zid) is not face:
            return
        del self._faces[face.zid]
        me = self._graph.me
        del me.links[face.zid]
        me.sn += 1
        self._graph.remove_detached()
        for other in self._faces.values():
            self._tell(other, changed=[me])

    def set_locators(self, locators: Iterable[Locator]) -> None:
        """Tell all neighbours where this node can be reached, if that has changed."""
        me, told = self._graph.me, tuple(locators)
        if told != me.locators:
            me.locators = told
            me.sn += 1
            for face in self._faces.values():
                self._tell(face, introduced=[me])

    def receive(self, face: Face, told: LinkStateList) -> None:
        """A neighbour tells of nodes: what is newer is remembered and passed on."""
        numbers, state = self._numbers[face], self._state
        for entry in told.entries:
            # All numbers first: entries may refer to those that come after them.
            if entry.zid is None:
                continue
            if entry.psid in numbers or len(numbers) < state.limits.nodes:
                numbers[entry.psid] = entry.zid
            else:
                state.counters.limit_nodes += 1
        new: dict[ZenohId, Router] = {}
        changed: dict[ZenohId, Router] = {}
        for entry in told.entries:
            zid = numbers.get(entry.psid)
            if zid is None or (entry.zid is not None and entry.zid != zid):
                state.counters.ignored_oam += 1
            elif zid == state.zid:
                self._correct(entry)
            else:
                self._hear(face, zid, entry, new, changed)
        self._graph.remove_detached()
        nodes = self._graph.routers
        introduced = [node for zid, node in new.items() if zid in nodes]
        updated = [node for zid, node in changed.items() if zid in nodes and zid not in new]
        for other in self._faces.values():
            mine = [node for node in updated if other is not face and node.zid != other.zid]
            self._tell(other, introduced=introduced, changed=mine)

    def _hear(
        self,
        face: Face,
        zid: ZenohId,
        entry: LinkState,
        new: dict[ZenohId, Router],
        changed: dict[ZenohId, Router],
    ) -> None:
        node = self._graph.routers.get(zid)
        if node is not None and entry.sn <= node.sn:
            return
        if node is None:
            node = self._add(zid)
            if node is None:
                return
        (changed if node.sn else new)[zid] = node
        node.sn = entry.sn
        # The reference takes a node whose kind is not told for a router.
        node.whatami = WhatAmI.ROUTER if entry.whatami is None else entry.whatami
        if entry.locators is not None:
            node.locators = entry.locators[: self._state.limits.locators]
            if node.locators and zid not in self._faces:
                self._state.emit(NodeKnown(zid, node.whatami, node.locators, face))
        self._graph.link(node, self._links(face, node, entry, new))

    def _links(
        self, face: Face, node: Router, entry: LinkState, new: dict[ZenohId, Router]
    ) -> dict[ZenohId, int]:
        state, numbers = self._state, self._numbers[face]
        room = max(state.limits.all_links - self._graph.links + len(node.links), 0)
        told = entry.links[: min(state.limits.links, room)]
        state.counters.limit_links += len(entry.links) - len(told)
        links: dict[ZenohId, int] = {}
        for link in told:
            other = numbers.get(link.psid)
            if other is None:
                state.counters.ignored_oam += 1
                continue
            if other not in self._graph.routers:
                added = self._add(other)
                if added is None:
                    continue
                new[other] = added
            links[other] = link.weight
        return links

    def _add(self, zid: ZenohId) -> Router | None:
        """Add a node; None, and counted, if there are too many."""
        if len(self._graph.routers) >= self._state.limits.nodes:
            self._state.counters.limit_nodes += 1
            return None
        return self._graph.add(zid)

    def _correct(self, entry: LinkState) -> None:
        """What was said of this node in an earlier life must not be believed longer."""
        me = self._graph.me
        if entry.sn > me.sn:
            me.sn = entry.sn + 1
            for face in self._faces.values():
                self._tell(face, changed=[me])

    def _entry(self, node: Router, face: Face, *, introduce: bool) -> LinkState:
        nodes = self._graph.routers
        return LinkState(
            psid=node.psid,
            sn=node.sn,
            zid=node.zid if introduce else None,
            whatami=node.whatami,
            locators=node.locators if self._target & face.whatami else None,
            links=tuple(
                Link(nodes[zid].psid, way) for zid, way in node.links.items() if zid in nodes
            ),
            gateway=node.whatami is WhatAmI.ROUTER,
        )

    def _tell(
        self, face: Face, introduced: Iterable[Router] = (), changed: Iterable[Router] = ()
    ) -> None:
        entries = [self._entry(node, face, introduce=True) for node in introduced]
        entries += [self._entry(node, face, introduce=False) for node in changed]
        if entries:
            body = encode(LinkStateList(entries=tuple(entries)))
            self._state.send(face, Oam(id=OAM_LINKSTATE, qos=CONTROL, body=body))
