"""Faces: the neighbours of a node, as routing sees them. Each is one remote node or one session.

What this node does for a neighbour is a `Relation`, and a role is a table of them: what a client
is to a peer, what a router is to a client. Everything else asks the relation, never the role.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import TYPE_CHECKING, Final

from zenwire.routing.resources import Aliases
from zenwire.wire.values import WhatAmI, ZenohId

if TYPE_CHECKING:
    from zenwire.routing.pending import Branch, Pending

__all__ = ["LOCAL", "MULTICAST", "Face", "Locality", "Region", "Relation", "Role", "chunks_of"]


def chunks_of(key: str | None) -> int:
    """How many chunks a key has. None is every key, and needs no place."""
    return 0 if key is None else key.count("/") + 1


@unique
class Region(Enum):
    """The parts of its surroundings that a node tells apart: messages go from one to another."""

    LOCAL = "local"
    """The sessions of this node: they declare and ask as a remote would, but without bytes."""
    CLIENTS = "clients"
    """Clients of this node, which hear each other through it."""
    PEERS = "peers"
    """Peers of this router, which hear each other without it."""
    NORTH = "north"
    """The nodes beside or above this one. Peers hear each other without it; of routers, those that
    lie in the right direction of a tree get what comes from the others."""


@unique
class Locality(Enum):
    """Which side a publisher sends to, or a subscriber takes from."""

    ANY = "any"
    SESSION_LOCAL = "session_local"
    REMOTE = "remote"

    def reaches(self, *, local: bool) -> bool:
        """Whether the session's own side (or, not local, the other one) is meant."""
        return self is Locality.ANY or (self is Locality.SESSION_LOCAL) == local


@dataclass(frozen=True, slots=True)
class Relation:
    """What this node does for a neighbour."""

    region: Region
    relays: bool = False
    """Messages between two neighbours of the same region go through this node."""
    pushes: bool = False
    """It is told all declarations, unasked; otherwise those it has an interest in."""
    asks: bool = False
    """Our interests go there; until one is answered, data and queries go there unfiltered."""
    introduces: bool = False
    """Both tell all they have, then D_FINAL 0; until theirs comes, they get everything."""
    serves: bool = False
    """Its interests are answered."""
    echoes: bool = False
    """It is told its own tokens too: its session counts on that."""
    gossips: bool = False
    """Link state is told and heard, for peers to know of each other."""
    gateway: bool = False
    """It is a peer of this router: told of other peers, and asked which routers it has."""
    routes: bool = False
    """Both are routers: link state is told and heard, and declarations have a source."""
    multicast: bool = False
    """A group instead of a node: all data with whole keys, subscribers, and nothing else."""


LOCAL: Final = Relation(Region.LOCAL, relays=True, serves=True, echoes=True)
MULTICAST: Final = Relation(Region.NORTH, multicast=True)


@dataclass(frozen=True, slots=True)
class Role:
    """What a node is, and what it does for each kind of neighbour. A kind not named is refused."""

    whatami: WhatAmI
    relations: Mapping[WhatAmI, Relation]


@dataclass(slots=True, eq=False)
class Face:
    """One neighbour for as long as its session lasts. A neighbour that returns is a new face."""

    id: int
    zid: ZenohId
    whatami: WhatAmI
    relation: Relation
    alive: bool = True
    introduced: bool = False
    """The other side has said all it had at the start."""
    aliases: Aliases = field(default_factory=Aliases)
    chunks: int = 0
    """Of all keys that it has declared or asked for, as long as that holds."""
    asking: int = 0
    """Memory that its requests take, as estimated, as long as they have not had their final."""
    asked: dict[int, Pending] = field(default_factory=dict)
    """Its queries that have not had their final, by their ids."""
    branches: dict[int, Branch] = field(default_factory=dict)
    """The queries that it has not answered, by the ids that they have over there."""
    _last_id: int = 0
    local: bool = field(init=False)
    """It is a session of this node."""
    routes: bool = field(init=False)
    """It is a router, and so is this node. One that is no neighbour is a face that is never sent
    anything: it stands for what it declared."""
    gateways: frozenset[ZenohId] = frozenset()
    """The routers that a peer has, this one among them; none if it did not say."""
    primary: bool = True
    """Of the routers that a peer has, this one passes on between it and other routers."""
    _last_request_id: int = 0

    def __post_init__(self) -> None:
        self.local = self.relation.region is Region.LOCAL
        self.routes = self.relation.routes

    def next_id(self) -> int:
        """For a declaration or an interest: one counter for all, never used again."""
        self._last_id += 1
        return self._last_id

    def next_request_id(self) -> int:
        """For a request over this face; 32 bits."""
        self._last_request_id = self._last_request_id + 1 & 0xFFFF_FFFF
        return self._last_request_id

    def reaches(self, other: Face) -> bool:
        """Whether what this face says is for the other one."""
        relation = self.relation
        if self is other:
            return False
        return relation.region is not other.relation.region or relation.relays

    def carries(self, other: Face) -> bool:
        """Whether data and queries of this face are for the other one, and for us to bring."""
        # Of one that is gone some declarations may not be forgotten yet.
        if not other.alive or not self.reaches(other):
            return False
        # A router that a peer has hears it, and tells it, without us.
        if self.routes:
            return other.primary and self.zid not in other.gateways
        return not other.routes or (self.primary and other.zid not in self.gateways)

    def __repr__(self) -> str:
        return f"<Face {self.id} {self.whatami.name} {self.zid} {self.relation.region.value}>"
