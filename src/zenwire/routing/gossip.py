"""Gossip: peers tell each other of the nodes they know, so that all of them can connect.

Link state, as far as a node that relays nothing between its equals needs it: each tells itself
with its locators, and its direct neighbours with theirs. A router also gets our links, by which
it knows whom it need not relay for.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from zenwire.routing.outputs import NodeKnown
from zenwire.routing.state import CONTROL, State
from zenwire.wire.linkstate import OAM_LINKSTATE, Link, LinkState, LinkStateList
from zenwire.wire.network import Oam
from zenwire.wire.objects import encode
from zenwire.wire.values import WhatAmI, ZenohId

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zenwire.routing.faces import Face
    from zenwire.wire.locator import Locator
    from zenwire.wire.values import WhatAmIMatcher

__all__ = ["Gossip"]

_SELF: Final = 0


@dataclass(slots=True)
class _Neighbour:
    """A node with a link of ours. ``psid`` is our number for it, ``sn`` its own version."""

    psid: int
    zid: ZenohId
    whatami: WhatAmI
    sn: int = 0
    locators: tuple[Locator, ...] | None = None
    psids: dict[int, ZenohId] = field(default_factory=dict)
    """Its numbers for the nodes it tells of."""


class Gossip:
    """What this node tells and hears of other nodes."""

    __slots__ = ("_last_psid", "_locators", "_neighbours", "_sn", "_state", "_target", "_whatami")

    def __init__(
        self,
        state: State,
        whatami: WhatAmI,
        locators: Iterable[Locator],
        target: WhatAmIMatcher,
    ) -> None:
        self._state = state
        self._target = target
        self._whatami = whatami
        self._locators = tuple(locators)
        self._neighbours: dict[Face, _Neighbour] = {}
        self._last_psid = _SELF
        self._sn = 1

    def start(self, face: Face) -> None:
        """Tell a new neighbour of all, and the routers of the new neighbour."""
        if not face.relation.gossips:
            return
        self._last_psid += 1
        new = _Neighbour(self._last_psid, face.zid, face.whatami)
        self._neighbours[face] = new
        self._sn += 1
        for other in self._neighbours:
            if other is not face and other.whatami is WhatAmI.ROUTER:
                self._tell(other, [_entry(new, locators=False), self._self(links=True)])
        router = face.whatami is WhatAmI.ROUTER
        entries = [_entry(neighbour) for neighbour in self._neighbours.values()]
        self._tell(face, [self._self(links=router, introduce=True), *entries])

    def drop(self, face: Face) -> None:
        """A neighbour went; the routers hear that a link is gone."""
        if self._neighbours.pop(face, None) is None:
            return
        self._sn += 1
        for other in self._neighbours:
            if other.whatami is WhatAmI.ROUTER:
                self._tell(other, [self._self(links=True)])

    def set_locators(self, locators: Iterable[Locator]) -> None:
        """Where this node can be reached has changed."""
        told = tuple(locators)
        if told == self._locators:
            return
        self._locators = told
        self._sn += 1
        for face in self._neighbours:
            self._tell(face, [self._self(links=face.whatami is WhatAmI.ROUTER, introduce=True)])

    def receive(self, face: Face, told: LinkStateList) -> None:
        """A neighbour tells of nodes."""
        neighbour = self._neighbours[face]
        for entry in told.entries:
            self._hear(face, neighbour, entry)

    def _hear(self, face: Face, neighbour: _Neighbour, entry: LinkState) -> None:
        zid = entry.zid
        if zid is None:
            zid = neighbour.psids.get(entry.psid)
            if zid is None:
                self._state.counters.ignored_oam += 1
                return
        elif entry.psid in neighbour.psids or len(neighbour.psids) < self._state.limits.nodes:
            neighbour.psids[entry.psid] = zid
        else:
            self._state.counters.limit_nodes += 1
            return
        locators = entry.locators
        if locators is None:
            return
        locators = locators[: self._state.limits.locators]
        if zid == neighbour.zid:
            self._update(face, neighbour, entry.sn, locators)
        elif locators and zid != self._state.zid and not self._is_linked(zid):
            # The reference takes a node whose kind is not told for a router.
            whatami = WhatAmI.ROUTER if entry.whatami is None else entry.whatami
            self._state.emit(NodeKnown(zid, whatami, locators, face))

    def _update(
        self, face: Face, neighbour: _Neighbour, sn: int, locators: tuple[Locator, ...]
    ) -> None:
        """A neighbour told where it is reached: pass it on, if it is newer than what we know."""
        if sn <= neighbour.sn:
            return
        neighbour.sn = sn
        if locators == neighbour.locators:
            return
        neighbour.locators = locators
        for other in self._neighbours:
            if other is not face:
                self._tell(other, [_entry(neighbour)])

    def _is_linked(self, zid: ZenohId) -> bool:
        return any(neighbour.zid == zid for neighbour in self._neighbours.values())

    def _self(self, *, links: bool, introduce: bool = False) -> LinkState:
        neighbours = self._neighbours.values() if links else ()
        return LinkState(
            psid=_SELF,
            sn=self._sn,
            zid=self._state.zid if introduce else None,
            whatami=self._whatami,
            locators=self._locators,
            links=tuple(Link(neighbour.psid) for neighbour in neighbours),
        )

    def _tell(self, face: Face, entries: list[LinkState]) -> None:
        if not self._target & face.whatami:
            entries = [dataclasses.replace(entry, locators=None) for entry in entries]
        body = encode(LinkStateList(entries=tuple(entries)))
        self._state.send(face, Oam(id=OAM_LINKSTATE, qos=CONTROL, body=body))


def _entry(neighbour: _Neighbour, *, locators: bool = True) -> LinkState:
    return LinkState(
        psid=neighbour.psid,
        sn=neighbour.sn,
        zid=neighbour.zid,
        whatami=neighbour.whatami,
        locators=neighbour.locators if locators else None,
        gateway=neighbour.whatami is WhatAmI.ROUTER,
    )
