"""The network of routers as a graph, and for each source the tree that its messages follow.

All routers must find the same trees, or messages would go round or stop. So every fact of the
calculation is the reference's: a link counts if both ends tell it, its weight is the greater of
what they say, and a hash of both ids makes ties all but impossible.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from zenwire.wire.values import WhatAmI, ZenohId

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from zenwire.wire.locator import Locator

__all__ = ["DEFAULT_WEIGHT", "Graph", "Router", "Tree", "Ways", "spread"]

DEFAULT_WEIGHT: Final = 100
"""Of a link for which nobody set one."""
_SPREAD: Final = 0.01
"""How much longer than its weight a link may be made, to break ties."""
_MASK: Final = 2**64 - 1


@dataclass(slots=True, eq=False)
class Router:
    """What is known of one. ``sn`` is the version of that; 0 if it has not told anything yet."""

    zid: ZenohId
    psid: int
    """This node's number for it."""
    whatami: WhatAmI | None = None
    sn: int = 0
    links: dict[ZenohId, int] = field(default_factory=dict)
    """Whom it says it is linked to, with the weights it gives; 0 is none."""
    locators: tuple[Locator, ...] | None = None


class Tree(NamedTuple):
    """Where messages of one source go, as far as this node has a part in it."""

    parent: ZenohId | None
    """Where they come from; None for the own ones, and for a source without a way here."""
    children: tuple[ZenohId, ...]
    hops: Mapping[ZenohId, ZenohId]
    """For all that lie behind a child: which child that is."""


class Ways:
    """A network at one moment: its links, and the trees of those who were asked for."""

    __slots__ = ("_distances", "_links", "_me", "_trees")

    def __init__(
        self, me: ZenohId, links: Mapping[ZenohId, Sequence[tuple[ZenohId, float]]]
    ) -> None:
        self._me = me
        self._links = links
        self._trees: dict[ZenohId, Tree] = {}
        self._distances: dict[ZenohId, float] | None = None

    def tree(self, source: ZenohId) -> Tree:
        """The shortest ways from a source to all others, seen from here."""
        tree = self._trees.get(source)
        if tree is None:
            tree = self._trees[source] = self._tree(source)
        return tree

    def distance(self, zid: ZenohId) -> float:
        """How far a router is from here; infinite for one without a way."""
        if self._distances is None:
            self._distances = self._shortest(self._me)[1]
        return self._distances.get(zid, float("inf"))

    def _tree(self, source: ZenohId) -> Tree:
        before, _ = self._shortest(source)
        below: dict[ZenohId, list[ZenohId]] = {}
        for zid, previous in before.items():
            below.setdefault(previous, []).append(zid)
        children = tuple(below.get(self._me, ()))
        hops: dict[ZenohId, ZenohId] = {}
        for child in children:
            todo = [child]
            while todo:
                zid = todo.pop()
                hops[zid] = child
                todo += below.get(zid, ())
        return Tree(before.get(self._me), children, hops)

    def _shortest(self, source: ZenohId) -> tuple[dict[ZenohId, ZenohId], dict[ZenohId, float]]:
        """For each router that a source reaches, the one before it on the way, and how far it is."""
        before: dict[ZenohId, ZenohId] = {}
        lengths = {source: 0.0}
        done: set[ZenohId] = set()
        heap = [(0.0, source.raw, source)]
        while heap:
            length, _, zid = heapq.heappop(heap)
            if zid in done:
                continue
            done.add(zid)
            for other, way in self._links.get(zid, ()):
                longer = length + way
                if other not in done and longer < lengths.get(other, float("inf")):
                    lengths[other] = longer
                    before[other] = zid
                    heapq.heappush(heap, (longer, other.raw, other))
        return before, lengths


class Graph:
    """Routers by id. ``me`` is this node, whose number is 0."""

    __slots__ = ("_free", "_last_psid", "links", "me", "routers")

    def __init__(self, zid: ZenohId, life: int = 1) -> None:
        self.me = Router(zid, 0, WhatAmI.ROUTER, sn=life)
        self.routers: dict[ZenohId, Router] = {zid: self.me}
        self.links = 0
        """Of all others together."""
        self._last_psid = 0
        self._free: list[int] = []

    def link(self, router: Router, links: dict[ZenohId, int]) -> None:
        """What another router says of its links, in place of what it said before."""
        self.links += len(links) - len(router.links)
        router.links = links

    def add(self, zid: ZenohId, whatami: WhatAmI | None = None) -> Router:
        """A router of which nothing else is known yet."""
        router = self.routers[zid] = Router(zid, self._next_psid(), whatami)
        return router

    def remove_detached(self) -> list[Router]:
        """Forget those to whom no chain of links leads, and tell who they were."""
        seen = {self.me.zid}
        todo = [self.me]
        while todo:
            for zid in todo.pop().links:
                if zid not in seen and zid in self.routers:
                    seen.add(zid)
                    todo.append(self.routers[zid])
        gone = [router for router in self.routers.values() if router.zid not in seen]
        for router in gone:
            del self.routers[router.zid]
            self.links -= len(router.links)
            self._free.append(router.psid)
        return gone

    def ways(self) -> Ways:
        """The network as it is now."""
        return Ways(
            self.me.zid,
            {zid: tuple(self.neighbours(router)) for zid, router in self.routers.items()},
        )

    def weight(self, a: Router, b: Router) -> int:
        """Of the link between two routers: the greater of what both say, if anybody does."""
        return max(a.links.get(b.zid, 0), b.links.get(a.zid, 0)) or DEFAULT_WEIGHT

    def neighbours(self, router: Router) -> Iterator[tuple[ZenohId, float]]:
        """Those with a link that both ends tell, and how long it is."""
        for zid in router.links:
            other = self.routers.get(zid)
            if other is not None and router.zid in other.links:
                yield zid, self.weight(router, other) * spread(router.zid, zid)

    def _next_psid(self) -> int:
        # A number stands for another router only when there are no others: what is on its way
        # may still have it.
        if self._last_psid < 0xFFFF:
            self._last_psid += 1
            return self._last_psid
        return self._free.pop(0)


@lru_cache(maxsize=4096)
def spread(a: ZenohId, b: ZenohId) -> float:
    """By how much the link between two nodes is made longer; the same from both ends."""
    low, high = sorted((a.raw, b.raw))
    hashed = _siphash13(low.ljust(16, b"\0") + high.ljust(16, b"\0"))
    return 1.0 + _SPREAD * ((hashed & 0xFFFF_FFFF) / 0xFFFF_FFFF)


def _siphash13(data: bytes) -> int:
    """SipHash-1-3 with a key of zeros, of whole words of 64 bits."""
    v = [0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573]
    words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]
    for word in [*words, (len(data) & 0xFF) << 56]:
        v[3] ^= word
        _round(v)
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(3):
        _round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _round(v: list[int]) -> None:
    a, b, c, d = v
    a = a + b & _MASK
    b = _turned(b, 13) ^ a
    a = _turned(a, 32)
    c = c + d & _MASK
    d = _turned(d, 16) ^ c
    a = a + d & _MASK
    d = _turned(d, 21) ^ a
    c = c + b & _MASK
    b = _turned(b, 17) ^ c
    c = _turned(c, 32)
    v[:] = a, b, c, d


def _turned(word: int, bits: int) -> int:
    return (word << bits | word >> 64 - bits) & _MASK
