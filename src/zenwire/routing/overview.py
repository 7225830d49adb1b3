"""Routing as others may see it: who declared what, who asks for what, and the network around.

Nothing here changes anything. There may be a million declarations, so what walks over all of them
gives something for each, or None, and whoever asks may stop between any two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from zenwire.keyexpr import intersects
from zenwire.routing.declarations import Change, Kind
from zenwire.routing.faces import Region
from zenwire.wire.values import WhatAmI

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from zenwire.routing.core import Core
    from zenwire.routing.faces import Face
    from zenwire.wire.values import ZenohId

__all__ = ["REGIONS", "Overview", "Sources", "Weight"]

REGIONS: Final[Mapping[Region, str]] = {
    Region.NORTH: "north",
    Region.PEERS: "south:0:peer",
    Region.CLIENTS: "south:0:client",
}
"""The reference's names of the regions. The sessions of this node are clients of its own."""


class Sources(NamedTuple):
    """Who has declared a key, or asks for it, by what they are to this node."""

    routers: list[ZenohId]
    peers: list[ZenohId]
    clients: list[ZenohId]

    @classmethod
    def none(cls) -> Sources:
        return cls([], [], [])

    def of(self, whatami: WhatAmI) -> list[ZenohId]:
        """The list for those of a kind."""
        if whatami is WhatAmI.ROUTER:
            return self.routers
        return self.peers if whatami is WhatAmI.PEER else self.clients


class Weight(NamedTuple):
    """What is said of the link to a router: here, there, and what holds."""

    src: int | None
    dst: int | None
    actual: int


class Overview:
    """A view of one node's routing, of now."""

    __slots__ = ("_core",)

    def __init__(self, core: Core) -> None:
        self._core = core

    @property
    def whatami(self) -> WhatAmI:
        return self._core.role.whatami

    def count(self, kind: Kind, *, local: bool) -> int:
        """How many declarations sessions of this node have, or else all others."""
        declarations = self._core.declarations
        faces = (face for face in declarations.faces() if face.local is local)
        return sum(declarations.count_of(face, kind) for face in faces)

    def declared(
        self, kind: Kind, within: str | None = None
    ) -> Iterator[tuple[str, Sources] | None]:
        """Every declared key (or those that intersect one), with those who declared it."""
        declarations = self._core.declarations
        if within is not None and "*" not in within and "$" not in within:
            # Whatever else intersects it is wild, and mostly there is little of that.
            keys = [key for key, _ in declarations.intersecting(kind, within)]
            for key in keys:
                yield self._told(Change(kind, key))
            return
        for face in declarations.faces():
            for change in list(declarations.held(face)):
                if change.kind is not kind or not _first(declarations.sources(change), face):
                    yield None
                elif within is None or intersects(within, change.key):
                    yield self._told(change)
                else:
                    yield None

    def asking(self, kind: Kind) -> Iterator[tuple[str, Sources]]:
        """Every key for whose declarations somebody asks: publishers ask for subscribers."""
        found: dict[str, Sources] = {}
        core, own = self._core, self._core.state.zid
        for face in list(core.state.faces.values()):
            if face.relation.region is Region.NORTH and self.whatami is not WhatAmI.PEER:
                continue
            for held in core.interests.held(face):
                if held.key is not None and kind in held.kinds:
                    sources = found.setdefault(held.key, Sources.none())
                    peer = face.relation.region in {Region.NORTH, Region.PEERS}
                    (sources.peers if peer else sources.clients).append(face.zid)
        for matcher in core.matching.matchers():
            if matcher.queries is (kind is Kind.QUERYABLE) and matcher.want is not None:
                found.setdefault(matcher.key, Sources.none()).clients.append(own)
        yield from found.items()

    def region(self, face: Face) -> str:
        """Where a neighbour is, in the reference's words."""
        return REGIONS.get(face.relation.region, "unknown")

    def weight(self, zid: ZenohId) -> Weight | None:
        """Of the link to a router next to this one, if this one is a router too."""
        graph = self._core.routers.graph
        other = graph.routers.get(zid)
        if other is None or zid not in graph.me.links:
            return None
        ours, theirs = graph.me.links[zid], other.links.get(graph.me.zid, 0)
        return Weight(ours or None, theirs or None, graph.weight(graph.me, other))

    def graphs(self) -> Iterator[tuple[str, str]]:
        """The network of each region that has one, as text in the language of Graphviz."""
        own, whatami = self._core.state.zid, self.whatami
        if whatami is WhatAmI.ROUTER:
            yield REGIONS[Region.NORTH], self._routers()
            peers = [f.zid for f in self._core.state.remotes() if f.relation.region is Region.PEERS]
            yield REGIONS[Region.PEERS], _dot([own, *peers], [])
        elif whatami is WhatAmI.PEER:
            others = [f.zid for f in self._core.state.remotes() if f.relation.gossips]
            yield REGIONS[Region.NORTH], _dot([own, *others], [])

    def successors(self) -> Iterator[tuple[ZenohId, ZenohId, ZenohId]]:
        """Along the tree of which router, to which one, by which next one."""
        routers, own = self._core.routers, self._core.state.zid
        known = list(routers.graph.routers)
        for source in known:
            tree = routers.way(source)
            for destination in known:
                # Who is not behind a child is on the other side of the parent.
                hop = tree.hops.get(destination, tree.parent)
                if destination != own and hop is not None:
                    yield source, destination, hop

    def _routers(self) -> str:
        graph = self._core.routers.graph
        places = {zid: at for at, zid in enumerate(graph.routers)}
        links = [
            (place, places[other], length)
            for zid, place in places.items()
            for other, length in graph.neighbours(graph.routers[zid])
            if places[other] < place
        ]
        return _dot(list(places), links)

    def _told(self, change: Change) -> tuple[str, Sources] | None:
        """None if all who declared it are gone."""
        sources = self._sources(change)
        return (change.key, sources) if any(sources) else None

    def _sources(self, change: Change) -> Sources:
        core, whatami = self._core, self.whatami
        found = Sources.none()
        south: set[Region] = set()
        for face in core.declarations.sources(change):
            if not face.alive:
                continue
            region = face.relation.region
            if region is Region.NORTH:
                # A peer calls all of them peers, a router knows routers only.
                kind = face.whatami if whatami is WhatAmI.CLIENT else whatami
            else:
                kind = WhatAmI.PEER if region is Region.PEERS else WhatAmI.CLIENT
                south.add(Region.CLIENTS if region is Region.LOCAL else region)
            found.of(kind).append(face.zid)
        # What comes from below is this node's own for those above.
        found.of(whatami).extend([core.state.zid] * len(south))
        return found


def _first(sources: Mapping[Face, object], face: Face) -> bool:
    """Whether a face is the one of several for which a key is told."""
    return next(iter(sources), None) is face


def _dot(nodes: list[ZenohId], links: list[tuple[int, int, float]]) -> str:
    lines = [f'    {at} [ label = "{zid}" ]' for at, zid in enumerate(nodes)]
    lines += [f'    {a} -- {b} [ label = "{length!r}" ]' for a, b, length in links]
    return "\n".join(["graph {", *lines, "}", ""])
