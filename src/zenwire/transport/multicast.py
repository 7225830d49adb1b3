"""A group of nodes on one multicast link: no handshake, each announces itself by JOIN.

Every node sends to all, in lanes of its own. Who has not joined is not heard, and who is silent
for its lease has left. There are no queries here, and keys travel in full: that is for the layer
above to mind.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from zenwire.errors import DecodeError
from zenwire.transport import limits
from zenwire.transport.budget import ReassemblyBudget
from zenwire.transport.codec import QOS, encode, first_message
from zenwire.transport.congestion import Congestion
from zenwire.transport.events import (
    ACCEPTED,
    Dropped,
    Event,
    Full,
    Joined,
    Left,
    Peer,
    Received,
    Result,
    Writable,
)
from zenwire.transport.framing import Framing
from zenwire.transport.inbox import BatchReader, Inbox, Lanes, read_batch
from zenwire.transport.outbox import Outbox
from zenwire.transport.packed import Packed, count_of
from zenwire.transport.rsa import Random
from zenwire.transport.sequence import LANES, Counters, lane
from zenwire.transport.settings import LinkFacts, Settings
from zenwire.transport.stats import Cause, Stats
from zenwire.wire.batch import expand_batch
from zenwire.wire.network import NetworkMessage
from zenwire.wire.transport import VERSION, Close, Join, LaneSn
from zenwire.wire.values import CloseReason, CongestionControl, Priority, QoS

__all__ = ["Multicast"]

_DEFAULT_QOS = QoS()


class _Node:
    """Another node of the group."""

    __slots__ = ("heard", "inbox", "peer")

    def __init__(self, peer: Peer, inbox: Inbox, now: float) -> None:
        self.peer = peer
        self.inbox = inbox
        self.heard = now


class Multicast:
    """One group. The settings' ``batch_size`` counts if it is below that of multicast.

    ``qos`` and ``compression`` of the settings must be those of the whole group: nothing is
    negotiated. Nodes that differ in version, resolution, batch size or QoS are not heard.
    ``budget`` is as for ``Sessions``.
    """

    def __init__(
        self,
        settings: Settings,
        link: LinkFacts,
        now: float,
        random: Random,
        budget: ReassemblyBudget | None = None,
    ) -> None:
        self.stats = Stats()
        self.link = link
        self.reader: BatchReader = read_batch
        self.closed = False
        self.batch_size = min(settings.batch_size, link.mtu, limits.MULTICAST_BATCH)
        self._settings = settings
        self._framing = Framing(replace(link, stream=False), settings.max_message_size)
        self._framing.agree(self.batch_size, compression=settings.compression, lowlatency=False)
        first = int.from_bytes(random(4), "little")
        self._counters = Counters(settings.resolution, first)
        self._outbox = Outbox(
            self._counters,
            self.stats,
            room=self._framing.room,
            qos=settings.qos,
            marked=settings.patch >= 1,
            queue_batches=settings.queue_batches,
            batching=settings.batching,
        )
        self._congestion = Congestion(settings, self.stats, closes=False)
        self._budget = budget or ReassemblyBudget(settings.reassembly_limit)
        self._nodes: dict[Hashable, _Node] = {}
        self._events: list[Event] = []
        self._join_at = now
        self._last_words: bytes | None = None
        self._loop: Hashable = None

    @property
    def peers(self) -> dict[Hashable, Peer]:
        """Who is in the group, by source."""
        return {source: node.peer for source, node in self._nodes.items()}

    @property
    def deadline(self) -> float | None:
        """When ``tick``, and then ``pull``, are due."""
        if self._events:
            return float("-inf")
        if self.closed:
            return None
        leases = [node.heard + node.peer.lease for node in self._nodes.values()]
        return min([self._join_at, *leases])

    def receive(self, data: bytes, source: Hashable, now: float) -> list[Event]:
        """A datagram came. What is wrong with it ends nothing: its sender leaves."""
        self.stats.rx_bytes += len(data)
        self.stats.rx_batches += 1
        events = self._take_events()
        if self.closed:
            return events
        # The reference announces 8192 bytes and sends what a datagram holds: size is no fault.
        try:
            content = expand_batch(data) if self._settings.compression else data
        except DecodeError as e:
            self._leave(source, None, str(e), events)
            return events
        if source not in self._nodes:
            first = first_message(content)
            if isinstance(first, Join):
                self._joined(first, source, now, events)
        node = self._nodes.get(source)
        if node is None:
            if content and source != self._loop:
                self.stats.dropped[Cause.UNKNOWN_SOURCE] += 1
            return events
        self._batch(content, source, node, now, events)
        return events

    def _batch(
        self, content: bytes, source: Hashable, node: _Node, now: float, events: list[Event]
    ) -> None:
        node.heard = now
        found, fault = self.reader(content, node.inbox)
        for item in found:
            if isinstance(item, Close):
                self._leave(source, item.reason, "it has left", events)
                return
            if isinstance(item, Join):
                self._joined(item, source, now, events)
                continue
            if isinstance(item, Received):
                item.source = source
            events.append(item)
        if fault is not None:
            self._leave(source, None, fault, events)

    def _joined(self, join: Join, source: Hashable, now: float, events: list[Event]) -> None:
        settings = self._settings
        if join.zid == settings.zid:
            # Our own words come back from many networks.
            self._loop = source
            return
        same = (
            join.version == VERSION
            and join.resolution == settings.resolution
            and join.batch_size == self.batch_size
            and (join.lanes is not None) is settings.qos
        )
        known = self._nodes.get(source)
        if not same:
            self._leave(source, None, "it differs from this group", events)
            return
        peer = Peer(
            zid=join.zid,
            whatami=join.whatami,
            lease=settings.granted_lease(join.lease),
            resolution=join.resolution,
            batch_size=join.batch_size,
            qos=settings.qos,
            compression=settings.compression,
            patch=min(settings.patch, join.patch),
        )
        if known is not None and known.peer == peer:
            return
        self._leave(source, None, "another has taken its place", events)
        if len(self._nodes) >= settings.max_sessions:
            return
        mask = join.resolution.sn_modulus - 1
        first = [sn & mask for sn in _first_sns(join)]
        share = self._budget.share(settings.max_message_size, settings.reassembly_timeout)
        lanes = Lanes(join.resolution, first, settings.qos, peer.patch, share)
        self._nodes[source] = _Node(peer, Inbox(lanes, self.stats), now)
        events.append(Joined(source, peer))

    def _leave(self, source: Hashable, reason: int | None, text: str, events: list[Event]) -> None:
        node = self._nodes.pop(source, None)
        if node is not None:
            node.inbox.lanes.release(self.stats)
            events.append(Left(source, node.peer, reason, text))

    def send(
        self,
        message: NetworkMessage | bytes | Packed,
        now: float,
        *,
        reliable: bool = True,
        qos: QoS | None = None,
        retry: Full | None = None,
    ) -> Result:
        """As ``Unicast.send``. Who waits too long with Block loses the message, not the group."""
        if self.closed:
            return self._drop(Cause.NOT_OPEN, count_of(message))
        outbox = self._outbox
        if qos is None:
            qos = _DEFAULT_QOS if isinstance(message, bytes) else message.qos
        priority, congestion, express = QOS[qos.raw]
        priority = outbox.lane_priority(priority)
        if outbox.full(priority):
            stalled = now - self._settings.wait_before_drop_fragments
            if not outbox.give_up_stalled(priority, stalled) or outbox.full(priority):
                return self._congestion.refuse(
                    priority, congestion, reliable, now, retry, count=count_of(message)
                )
        droppable = congestion is CongestionControl.DROP
        if type(message) is Packed:
            if len(message.data) > self._settings.max_message_size:
                return self._drop(Cause.TOO_LARGE, message.count)
            outbox.put_packed(message, priority, reliable, express, droppable)
            return ACCEPTED
        data = message if isinstance(message, bytes) else encode(message)
        if len(data) > self._settings.max_message_size:
            return self._drop(Cause.TOO_LARGE, 1)
        outbox.put(data, priority, reliable, express, droppable)
        return ACCEPTED

    def _drop(self, cause: Cause, count: int) -> Dropped:
        self.stats.dropped[cause] += count
        return Dropped(cause)

    @property
    def packing(self) -> int:
        """How many bytes of messages fit a batch, whatever its number."""
        return self._outbox.packing

    def pull(self, now: float) -> bytes:
        """The next datagram; nothing if nothing waits. A JOIN goes before everything else."""
        if self.closed:
            data, self._last_words = self._last_words or b"", None
        elif now >= self._join_at:
            settings = self._settings
            # A JOIN is also what keeps us alive.
            alive = settings.lease / settings.keep_alive
            self._join_at = now + min(settings.join_interval, alive)
            data = self._framing.wrap(encode(self._join()))
        else:
            content = self._outbox.pull(now)
            data = self._framing.wrap(content) if content else b""
            for priority in sorted(self._congestion.waiting):
                if not self._outbox.full(priority):
                    self._congestion.relieve(priority)
                    self._events.append(Writable(priority))
        if data:
            self.stats.tx_bytes += len(data)
            self.stats.tx_batches += 1
        return data

    def _join(self) -> Join:
        settings, sns = self._settings, self._counters.next
        every = [
            LaneSn(reliable=sns[lane(p, True)], best_effort=sns[lane(p, False)]) for p in Priority
        ]
        return Join(
            version=VERSION,
            zid=settings.zid,
            whatami=settings.whatami,
            resolution=settings.resolution,
            batch_size=self.batch_size,
            lease=settings.lease_ms,
            next_sn=LaneSn(reliable=0, best_effort=0) if settings.qos else every[Priority.DATA],
            lanes=tuple(every) if settings.qos else None,
            patch=settings.patch,
        )

    def tick(self, now: float) -> list[Event]:
        """Who was silent for its lease leaves. When a JOIN is due, ``pull`` has it."""
        events = self._take_events()
        for source, node in list(self._nodes.items()):
            if now >= node.heard + node.peer.lease:
                text = f"nothing was heard for {node.peer.lease:g} s"
                self._leave(source, CloseReason.EXPIRED, text, events)
        return events

    def _take_events(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def close(self, now: float, reason: CloseReason = CloseReason.GENERIC) -> None:
        """Leave the group: what is queued is lost, one CLOSE is left to be pulled."""
        if not self.closed:
            self.closed = True
            if lost := self._outbox.clear():
                self.stats.dropped[Cause.LINK_LOST] += lost
            self._last_words = self._framing.wrap(encode(Close(reason=reason)))
            for node in self._nodes.values():
                node.inbox.lanes.release(self.stats)
            self._nodes.clear()


def _first_sns(join: Join) -> list[int]:
    """By lane. Without QoS there is one pair, in the place of DATA."""
    sns = [0] * LANES
    for priority in Priority:
        pair = join.next_sn if join.lanes is None else join.lanes[priority]
        sns[lane(priority, True)], sns[lane(priority, False)] = pair.reliable, pair.best_effort
    return sns
