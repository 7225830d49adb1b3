"""Link state among routers: who is linked to whom, told to all, and the trees that follow from it.

A router numbers the others as it likes, tells its numbers on each link, and names the source of
a message by its own number; what comes is translated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zenwire.routing.faces import Face, Region, Relation
from zenwire.routing.graph import Graph, Router, Tree, Ways
from zenwire.routing.outputs import NodeKnown
from zenwire.routing.state import AT_ONCE, CONTROL, State
from zenwire.wire.linkstate import OAM_LINKSTATE, Link, LinkState, LinkStateList
from zenwire.wire.network import Oam
from zenwire.wire.objects import encode
from zenwire.wire.values import WhatAmI

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zenwire.routing.options import RoutingOptions
    from zenwire.wire.locator import Locator
    from zenwire.wire.values import ZenohId

__all__ = ["CALM", "FAR", "Routers"]

PAUSE: Final = 0.1
"""Seconds between two looks at the network for its trees: that of the reference, so that all
routers change their ways at about the same time."""
CALM: Final = 0.15
"""Seconds from the last change of the network until new children in a tree are told what its source has:
link state comes in bursts, and the reference needs a tenth of a second to find its own trees."""
RESTLESS: Final = 1.0
"""Seconds after which they are told although the network goes on changing."""
FAR: Final = Relation(Region.NORTH, routes=True)
"""What a router is to this one that is no neighbour, or as far as it is none."""


class Routers:
    """The network of routers as this one knows it.

    Each other router has a face (``far``), which stands for what it declared; neighbours have
    another one, by which they are reached.
    """

    __slots__ = (
        "_due",
        "_faces",
        "_far",
        "_graph",
        "_latest",
        "_locates",
        "_multihop",
        "_numbers",
        "_restless",
        "_stale_until",
        "_state",
        "_still_until",
        "_ways",
        "_weights",
    )

    def __init__(
        self, state: State, locators: Iterable[Locator], life: int, options: RoutingOptions
    ) -> None:
        self._state = state
        self._locates = bool(options.gossip_target & WhatAmI.ROUTER)
        self._multihop = options.multihop
        self._graph = Graph(state.zid, life)
        self._graph.me.locators = tuple(locators)
        self._weights: Mapping[ZenohId, int] = {}
        self._faces: dict[ZenohId, Face] = {}
        self._far: dict[ZenohId, Face] = {}
        self._numbers: dict[Face, dict[int, ZenohId]] = {}
        self._ways = Ways(state.zid, {})
        self._stale_until: float | None = None
        self._still_until = float("-inf")
        self._due: float | None = None
        self._latest = 0.0
        self._restless = 0.0

    @property
    def graph(self) -> Graph:
        """What is known, for those who want to see it."""
        return self._graph

    # What is asked of it.

    def far(self, face: Face, number: int) -> Face | None:
        """The router that a neighbour means by a number; None, and counted, if it is none."""
        zid = self._numbers[face].get(number, face.zid if not number else None)
        far = None if zid is None else self._far.get(zid)
        if far is None:
            self._state.counters.unknown_node += 1
        return far

    def source(self, face: Face, number: int) -> Face | None:
        """The router where data or a query came in. None, and counted, if they are to be left.

        What did not come by the way that leads here from its source comes by that one too, or
        has been here.
        """
        far = self.far(face, number)
        if far is not None:
            parent = self.tree(far).parent
            if parent is not None and parent != face.zid:
                self._state.counters.off_tree += 1
                return None
        return far

    def number(self, src: Face) -> int:
        """How this node names where a message came in, towards other routers."""
        router = self._graph.routers.get(src.zid) if src.routes else None
        return 0 if router is None else router.psid

    def hop(self, src: Face, far: Face) -> Face | None:
        """The neighbour by which messages of a source reach a router, if that is for us to do."""
        child = self.tree(src if src.routes else None).hops.get(far.zid)
        return None if child is None else self._faces.get(child)

    def children(self, src: Face | None) -> list[Face]:
        """The neighbours to whom everything of a router goes from here; None is this node."""
        if src is not None and len(self._faces) < 2:
            # What came from the only neighbour goes to no other.
            return []
        children = self.tree(src).children
        return [self._faces[zid] for zid in children if zid in self._faces]

    def distance(self, far: Face) -> int:
        """How far it is to a router."""
        return int(min(self._ways.distance(far.zid), 0xFFFF))

    def tree(self, src: Face | None) -> Tree:
        """The tree of a router; None is this node."""
        return self._ways.tree(self._state.zid if src is None else src.zid)

    def way(self, zid: ZenohId) -> Tree:
        """The tree of a router by its id."""
        return self._ways.tree(zid)

    # What changes it.

    @property
    def deadline(self) -> float | None:
        """When `tick` is due."""
        return self._due if self._stale_until is None else self._stale_until

    @property
    def calm(self) -> bool:
        """Whether all who are children in trees have been told what the sources have."""
        return self._due is None

    def tick(self, now: float) -> bool:
        """Change the ways if it is time; whether those who are children now are to be told."""
        self._latest = now
        if self._stale_until is not None and self._stale_until <= now:
            self.look()
        if self._due is None or self._due > now:
            return False
        self._due = None
        self.look()
        return True

    def look(self) -> None:
        """Change the ways to what the network is now."""
        if self._stale_until is not None:
            self._stale_until = None
            self._still_until = self._latest + PAUSE
            self._ways = self._graph.ways()
            self._state.stale()

    def start(self, face: Face, now: float) -> None:
        """A router is linked to this one: it is told all, the others that it is there."""
        self._latest = now
        me, known = self._graph.me, self._graph.routers.get(face.zid)
        self._numbers[face] = {}
        me.links[face.zid] = self._weights.get(face.zid, 0)
        me.sn += 1
        entries = []
        if known is None:
            entries.append(self._entry(self._add(face.zid, face.whatami), introduce=True))
        entries.append(self._entry(me))
        for other in self._faces.values():
            self._tell(other, entries)
        self._faces[face.zid] = face
        everybody = self._graph.routers.values()
        self._tell(face, [self._entry(router, introduce=True) for router in everybody])
        self._change()

    def drop(self, face: Face) -> list[Face]:
        """A link is gone; the routers that are gone with it."""
        if self._numbers.pop(face, None) is None:
            return []
        if self._faces.get(face.zid) is face:
            del self._faces[face.zid]
            me = self._graph.me
            del me.links[face.zid]
            me.sn += 1
            gone = self._forget_detached()
            for other in self._faces.values():
                self._tell(other, [self._entry(me)])
            self._change()
            # What was on this way has to find another one.
            self.look()
            return gone
        return []

    def receive(self, face: Face, told: LinkStateList, now: float) -> list[Face]:
        """A neighbour tells of routers; those that are gone."""
        self._latest = now
        numbers, limits = self._numbers[face], self._state.limits
        for entry in told.entries:
            # All numbers first: entries may refer to those that come after them.
            if entry.zid is None:
                continue
            if entry.psid in numbers or len(numbers) < limits.nodes:
                numbers[entry.psid] = entry.zid
            else:
                self._state.counters.limit_nodes += 1
        new: dict[ZenohId, Router] = {}
        changed: dict[ZenohId, Router] = {}
        for entry in told.entries:
            zid = numbers.get(entry.psid)
            if zid is None or (entry.zid is not None and entry.zid != zid):
                self._state.counters.ignored_oam += 1
            elif zid == self._state.zid:
                self._correct(entry)
            else:
                self._hear(face, zid, entry, new, changed)
        if not new and not changed:
            return []
        gone = self._forget_detached()
        self._spread(face, new, changed)
        self._change()
        return gone

    def set_locators(self, locators: Iterable[Locator]) -> None:
        """Where this node is reached has changed."""
        me, told = self._graph.me, tuple(locators)
        if told != me.locators:
            me.locators = told
            self._tell_me()

    def set_weights(self, weights: Mapping[ZenohId, int]) -> None:
        """How long the links to routers are said to be."""
        me = self._graph.me
        self._weights = weights
        links = {zid: weights.get(zid, 0) for zid in me.links}
        if links != me.links:
            me.links = links
            self._tell_me()
            self._change()

    def _hear(
        self,
        face: Face,
        zid: ZenohId,
        entry: LinkState,
        new: dict[ZenohId, Router],
        changed: dict[ZenohId, Router],
    ) -> None:
        """One entry about another router, if it is newer than what is known."""
        limits, routers = self._state.limits, self._graph.routers
        router = routers.get(zid)
        if router is not None and entry.sn <= router.sn:
            return
        if router is None:
            if len(routers) >= limits.nodes:
                self._state.counters.limit_nodes += 1
                return
            router = self._add(zid, None)
        (changed if router.sn else new)[zid] = router
        router.sn = entry.sn
        router.whatami = WhatAmI.ROUTER if entry.whatami is None else entry.whatami
        if entry.locators is not None:
            router.locators = entry.locators[: limits.locators]
            if router.locators and zid not in self._faces:
                known = NodeKnown(zid, router.whatami, router.locators, face)
                self._state.emit(known)
        numbers = self._numbers[face]
        links: dict[ZenohId, int] = {}
        room = max(limits.all_links - self._graph.links + len(router.links), 0)
        told = entry.links[: min(limits.links, room)]
        self._state.counters.limit_links += len(entry.links) - len(told)
        for link in told:
            other = numbers.get(link.psid)
            if other is None:
                self._state.counters.ignored_oam += 1
                continue
            if other not in routers:
                if len(routers) >= limits.nodes:
                    self._state.counters.limit_nodes += 1
                    continue
                new[other] = self._add(other, None)
            links[other] = link.weight
        self._graph.link(router, links)

    def _correct(self, entry: LinkState) -> None:
        """What was said of this node in an earlier life must not be believed longer."""
        me = self._graph.me
        if entry.sn > me.sn:
            me.sn = entry.sn
            self._tell_me()

    def _spread(
        self, face: Face, new: dict[ZenohId, Router], changed: dict[ZenohId, Router]
    ) -> None:
        """Tell the neighbours: all of those that are new, for they must know their numbers."""
        routers = self._graph.routers
        introduced = [
            self._entry(router, introduce=True) for zid, router in new.items() if zid in routers
        ]
        for other in self._faces.values():
            entries = list(introduced)
            if other is not face:
                entries += [
                    self._entry(router)
                    for zid, router in changed.items()
                    if zid in routers and zid not in new and zid != other.zid
                ]
            if entries:
                self._tell(other, entries)

    def _add(self, zid: ZenohId, whatami: WhatAmI | None) -> Router:
        self._far[zid] = Face(self._state.next_face_id(), zid, WhatAmI.ROUTER, FAR)
        return self._graph.add(zid, whatami)

    def _forget_detached(self) -> list[Face]:
        gone = [self._far.pop(router.zid) for router in self._graph.remove_detached()]
        for far in gone:
            far.alive = False
        return gone

    def _change(self) -> None:
        if self._stale_until is None:
            self._stale_until = max(self._latest, self._still_until)
            if self._stale_until == self._latest:
                self.look()
        if self._due is None:
            self._restless = self._latest + RESTLESS
        self._due = min(self._latest + CALM, self._restless)
        self._state.sooner = AT_ONCE

    def _tell_me(self) -> None:
        me = self._graph.me
        me.sn += 1
        for face in self._faces.values():
            self._tell(face, [self._entry(me)])

    def _entry(self, router: Router, *, introduce: bool = False) -> LinkState:
        routers, me = self._graph.routers, self._graph.me
        # Locators are told of oneself and of neighbours: others hear of them from theirs.
        near = router is me or router.zid in self._faces or self._multihop
        links = router.links.items()
        return LinkState(
            psid=router.psid,
            sn=router.sn,
            zid=router.zid if introduce else None,
            whatami=router.whatami,
            locators=router.locators if near and self._locates else None,
            links=tuple(Link(routers[zid].psid, way) for zid, way in links if zid in routers),
        )

    def _tell(self, face: Face, entries: list[LinkState]) -> None:
        body = encode(LinkStateList(entries=tuple(entries)))
        self._state.send(face, Oam(id=OAM_LINKSTATE, qos=CONTROL, body=body))
