"""A snapshot of what a node has counted: per neighbour, per group, and for all of it."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from zenwire.transport import Cause, Stats

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zenwire.links import Counters as ListenerCounters
    from zenwire.node.carrier import Carrier
    from zenwire.node.filters import Filtered
    from zenwire.node.group import Group
    from zenwire.node.neighbour import Neighbour
    from zenwire.node.node import Node
    from zenwire.routing import Counters
    from zenwire.transport import Peer
    from zenwire.wire.locator import Locator
    from zenwire.wire.values import WhatAmI, ZenohId

__all__ = [
    "GroupStats",
    "LinkStats",
    "ListenerStats",
    "NeighbourStats",
    "NodeStats",
    "Past",
    "ReassemblyStats",
    "neighbour_stats",
    "stats_of",
    "total",
]


@dataclass(frozen=True, slots=True)
class LinkStats:
    """One link. Its ``dropped`` are datagrams that nobody had read in time."""

    src: Locator
    dst: Locator
    interfaces: tuple[str, ...]
    writable: bool
    dropped: int
    transport: Stats


@dataclass(frozen=True, slots=True)
class NeighbourStats:
    """One session. ``transport`` adds up its links, those that are gone too.

    ``peer`` is the other side and what was agreed with it when the session was opened.
    ``dropped`` is everything lost, by cause; ``waiting`` are messages without room so far;
    ``filtered`` are those that the configuration did not let pass, from it or to it.
    """

    zid: ZenohId
    whatami: WhatAmI
    peer: Peer
    links: tuple[LinkStats, ...]
    transport: Stats
    dropped: Counter[Cause]
    waiting: int
    filtered: Counter[Filtered]


@dataclass(slots=True)
class Past:
    """What is over: ``endings`` and ``failures`` count, by a word, how sessions and handshakes ended.

    The others add up what those sessions had counted.
    """

    endings: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    transport: Stats = field(default_factory=Stats)
    dropped: Counter[Cause] = field(default_factory=Counter)
    filtered: Counter[Filtered] = field(default_factory=Counter)

    def add(self, session: NeighbourStats) -> None:
        """One more is over."""
        self.transport = total([self.transport, session.transport])
        self.dropped += session.dropped
        self.filtered += session.filtered


@dataclass(frozen=True, slots=True)
class GroupStats:
    """A multicast group, and who is in it."""

    group: Locator
    members: tuple[ZenohId, ...]
    transport: Stats
    dropped: Counter[Cause]
    waiting: int


@dataclass(frozen=True, slots=True)
class ListenerStats:
    """One listener."""

    endpoint: Locator
    counters: ListenerCounters


@dataclass(frozen=True, slots=True)
class ReassemblyStats:
    """Unfinished messages of the process: bytes held, bytes that may be, and number of messages.

    Those that were dropped are in ``dropped``: ``FRAGMENT_EVICTED`` and ``FRAGMENT_EXPIRED``.
    """

    held: int
    limit: int
    messages: int


@dataclass(frozen=True, slots=True)
class NodeStats:
    """All of a node. ``ended`` adds up the sessions that are over.

    ``endings`` says how sessions have ended, ``failures`` how handshakes failed, ``evicted`` how
    many of them gave way; ``late`` counts samples of the future. Of scouting there are datagrams
    that were none, SCOUTs beyond what is answered, and finds beyond what is dialled.
    """

    neighbours: tuple[NeighbourStats, ...]
    groups: tuple[GroupStats, ...]
    listeners: tuple[ListenerStats, ...]
    ended: Stats
    ended_dropped: Counter[Cause]
    ended_filtered: Counter[Filtered]
    routing: Counters
    endings: Counter[str]
    failures: Counter[str]
    evicted: int
    reassembly: ReassemblyStats
    late: int
    scouting_malformed: int
    unanswered: int
    not_dialled: int

    @property
    def dropped(self) -> Counter[Cause]:
        """Everything that was lost, by cause, with all neighbours and groups so far."""
        there = [one.dropped for one in self.neighbours] + [one.dropped for one in self.groups]
        return sum(there, Counter(self.ended_dropped))

    @property
    def handshakes_evicted(self) -> int:
        """Handshakes that gave way, those of TLS and WebSocket too."""
        return self.evicted + sum(one.counters.evicted for one in self.listeners)

    @property
    def filtered(self) -> Counter[Filtered]:
        """Everything that the configuration did not let pass, with all neighbours so far."""
        return sum((one.filtered for one in self.neighbours), Counter(self.ended_filtered))


def stats_of(node: Node) -> NodeStats:
    """What was counted so far. Nothing in it changes later."""
    past, budget = node.adjacency.past, node.adjacency.sessions.budget
    return NodeStats(
        neighbours=tuple(map(neighbour_stats, node.neighbours.values())),
        groups=tuple(map(_group, node.groups.values())),
        listeners=tuple(
            ListenerStats(one.endpoint.locator, copy.copy(one.counters)) for one in node.listeners
        ),
        ended=total([past.transport]),
        ended_dropped=Counter(past.dropped),
        ended_filtered=Counter(past.filtered),
        routing=copy.deepcopy(node.tables.counters),
        endings=Counter(past.endings),
        failures=Counter(past.failures),
        evicted=node.adjacency.sessions.evicted,
        reassembly=ReassemblyStats(budget.held, budget.limit, budget.unfinished),
        late=node.late,
        scouting_malformed=0 if node.scouting is None else node.scouting.malformed,
        unanswered=0 if node.scouting is None else node.scouting.unanswered,
        not_dialled=0 if node.autoconnect is None else node.autoconnect.ignored,
    )


def neighbour_stats(neighbour: Neighbour) -> NeighbourStats:
    """One session so far."""
    sums = total([*neighbour.past, *(one.machine.stats for one in neighbour.carriers)])
    return NeighbourStats(
        zid=neighbour.face.zid,
        whatami=neighbour.face.whatami,
        peer=neighbour.session.peer,
        links=tuple(map(_link, neighbour.carriers)),
        transport=sums,
        dropped=sums.dropped + neighbour.dropped,
        waiting=neighbour.waiting,
        filtered=Counter(neighbour.filtered),
    )


def _link(carrier: Carrier) -> LinkStats:
    link = carrier.link
    stats = total([carrier.machine.stats])
    return LinkStats(link.src, link.dst, link.interfaces, link.writable, link.dropped, stats)


def _group(group: Group) -> GroupStats:
    sums = total([group.machine.stats])
    members = tuple(peer.zid for peer in group.machine.peers.values())
    dropped = sums.dropped + group.dropped
    return GroupStats(group.endpoint.locator, members, sums, dropped, group.waiting)


def total(parts: Iterable[Stats]) -> Stats:
    """The sum, as an object of its own."""
    sums = Stats()
    for part in parts:
        for one in fields(Stats):
            # Numbers and Counters both add.
            setattr(sums, one.name, getattr(sums, one.name) + getattr(part, one.name))
    return sums
