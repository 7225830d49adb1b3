"""The neighbours of a node, and the links by which they come and go."""

from __future__ import annotations

import asyncio
import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from zenwire.links import LinkError, check_protocol, shown
from zenwire.node.carrier import Carrier
from zenwire.node.config.transport import Batching, Rx
from zenwire.node.eviction import GRACE, most_silent, oldest_handshake
from zenwire.node.filters.guarded import meet
from zenwire.node.offers import allowed, facts_of, with_defaults
from zenwire.node.seats import Connection, NotOpened, Seats
from zenwire.node.stats import Past, neighbour_stats
from zenwire.transport import Closed, Event, Opened, Received, ReceivedRun, Unicast, Writable
from zenwire.wire.values import CloseReason

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from zenwire.links import Link, Listener
    from zenwire.node.neighbour import Neighbour, Waiting
    from zenwire.node.node import Node
    from zenwire.routing import Face
    from zenwire.transport import Session
    from zenwire.wire.locator import EndPoint, Locator
    from zenwire.wire.network import NetworkMessage
    from zenwire.wire.values import ZenohId

__all__ = ["CROSSING", "Adjacency"]

_log = logging.getLogger("zenwire.node")

CROSSING: Final = 2.0
"""Seconds for the other one of two links that were dialled at once to be open."""
_GOODBYE: Final = 10.0
"""Seconds at the end for what is queued, and then for what is on its way, if it moves."""


_READ_SIZE: Final = Rx().buffer_size
"""The default of the reference: links choose the size of their reads themselves."""
_TIME_LIMIT: Final = Batching().time_limit
"""The default of the reference, in milliseconds: a round of the loop takes no longer."""


class Adjacency:
    """Makes links and sessions, and hands what they bring to the node."""

    def __init__(self, node: Node) -> None:
        self.sessions = Seats(node.settings, node.random(32), node.random, self._evict_silent)
        self.listeners: list[Listener] = []
        self.neighbours: dict[Face, Neighbour] = {}
        self.on_neighbour: list[Callable[[Neighbour, bool], None]] = []
        self._node = node
        self._over = False
        self._allowed = allowed(node.config)
        self._carriers: dict[Carrier, None] = {}
        self._of_session: dict[Session | None, Neighbour] = {}
        self._opening: dict[Unicast, asyncio.Future[Neighbour]] = {}
        self._introducing: dict[Face, asyncio.Event] = {}

    @cached_property
    def past(self) -> Past:
        """What there was before. Most nodes have lost nobody yet."""
        return Past()

    # What a node asks.

    def check(self, endpoint: Locator) -> None:
        """Whether an endpoint may be used. Raises LinkError."""
        if self._over or self._node.closed:
            raise LinkError(shown(endpoint), "this node is closed")
        if endpoint.protocol not in self._allowed:
            check_protocol(endpoint.protocol, shown(endpoint))
            names = ", ".join(sorted(self._allowed))
            reason = f"the configuration allows {names or 'no protocol'} only"
            raise LinkError(shown(endpoint), reason, "see transport/link/protocols")

    async def listen(self, endpoint: EndPoint) -> Listener:
        """Let others connect. Raises LinkError."""
        self.check(endpoint)
        wanted = with_defaults(endpoint, self._node.config)
        listener = await self._node.reach.listen(wanted, self._accept)
        listener.relieve = self._relieve
        self.listeners.append(listener)
        return listener

    async def connect(self, endpoint: Locator, expect: ZenohId | None) -> Connection:
        """See `Node.connect`."""
        self.check(endpoint)
        node = self._node
        made: list[Carrier] = []

        def attach(link: Link) -> Carrier:
            # To get there may have taken longer than this node had.
            self.check(endpoint)
            machine = self.sessions.connect(facts_of(link.facts, link.endpoint), node.now, expect)
            self._opening[machine] = asyncio.get_running_loop().create_future()
            carrier = self._carry(link, machine)
            carrier.flush_soon()
            made.append(carrier)
            # While the other side reads InitSyn there is time for what its OpenAck needs.
            _ = node.tables
            return carrier

        wanted = with_defaults(endpoint, node.config)
        try:
            await node.reach.connect(wanted, attach, node.settings.open_timeout)
        except BaseException:
            for carrier in made:
                self._opening.pop(carrier.machine, None)
                carrier.abandon()
            raise
        carrier = made[0]
        machine = carrier.machine
        try:
            return Connection(await self._opening[machine], carrier)
        except asyncio.CancelledError:
            carrier.abandon()
            raise
        except NotOpened as e:
            neighbour = await self._instead(self.sessions.met.get(machine), e, expect)
            if neighbour is None:
                raise
            return Connection(neighbour, None)
        finally:
            self._opening.pop(machine, None)
            self.sessions.met.pop(machine, None)

    async def _instead(
        self, zid: ZenohId | None, error: NotOpened, expect: ZenohId | None
    ) -> Neighbour | None:
        """The session that was there already, or that the other side has dialled meanwhile."""
        if zid is None or error.close_reason != CloseReason.MAX_LINKS:
            return None
        if expect is not None and expect != zid:
            return None
        try:
            async with asyncio.timeout(CROSSING):
                return await self.neighbour(zid)
        except TimeoutError:
            return None

    def find(self, zid: ZenohId) -> Neighbour | None:
        """The neighbour with this id, if there is one."""
        session = self.sessions.get(zid)
        return None if session is None else self._of_session.get(session)

    async def neighbour(self, zid: ZenohId) -> Neighbour:
        """The neighbour with this id, as soon as it is one."""
        there = self.find(zid)
        if there is not None:
            return there
        found: asyncio.Future[Neighbour] = asyncio.get_running_loop().create_future()

        def tell(neighbour: Neighbour, came: bool) -> None:
            if came and neighbour.face.zid == zid and not found.done():
                found.set_result(neighbour)

        self.on_neighbour.append(tell)
        try:
            return await found
        finally:
            self.on_neighbour.remove(tell)

    async def introduced(self, neighbour: Neighbour) -> None:
        """Wait until a neighbour has said all it had at the start, or is gone."""
        face = neighbour.face
        if face.relation.introduces and not face.introduced and face.alive:
            await self._introducing.setdefault(face, asyncio.Event()).wait()

    def expel(self, face: Face, reason: CloseReason, why: str, ending: str | None = None) -> None:
        """End a session for what the other side did. Counted as ``ending``, or by its reason."""
        neighbour = self.neighbours.get(face)
        if neighbour is not None:
            _log.warning("closing the session with %s: %s", face.zid, why)
            self.past.endings[ending or reason.name.lower()] += 1
            neighbour.session.close(self._node.now, reason)
            neighbour.flush_soon()
            self._gone(neighbour)

    def _evict_silent(self, *, for_file: bool = False) -> bool:
        """Close the session that was silent for longest. False if all have talked lately."""
        now = self._node.now
        among: Collection[Neighbour] = self.neighbours.values()
        if for_file:
            among = [one for one in among if any(each.link.has_file for each in one.carriers)]
        chosen = most_silent(among, self._node.settings.lease, now)
        if chosen is None:
            return False
        why = f"silent for {now - chosen.session.heard:.1f} s, and others want its place"
        self.expel(chosen.face, CloseReason.EXPIRED, why, "evicted")
        return True

    def _relieve(self) -> bool:
        """Free a file for a link that waits. False if there is none to free at the moment."""
        oldest = oldest_handshake(self._carriers)
        if oldest is None:
            return self._evict_silent(for_file=True)
        machine, now = oldest.machine, self._node.now
        if now - machine.started < GRACE:
            return False
        self.sessions.evict(machine, now)
        oldest.abandon()
        return True

    # Links come.

    def _accept(self, link: Link) -> Carrier:
        facts, now = facts_of(link.facts, link.endpoint), self._node.now
        machine = self.sessions.accept(facts, now)
        if machine is None:
            # Who takes long gives way: an honest handshake is over in two round trips.
            for carrier in self._carriers:
                if self.sessions.evict(carrier.machine, now):
                    carrier.abandon()
                    break
            machine = self.sessions.accept(facts, now)
            assert machine is not None
        carrier = self._carry(link, machine)
        if self._node.closed:
            carrier.abandon()
        return carrier

    def _carry(self, link: Link, machine: Unicast) -> Carrier:
        tap = self._node.tap
        carry = Carrier if tap is None else tap.carrier
        carrier = carry(
            link,
            machine,
            self._events,
            self._node.turns,
            on_few=self._few,
            on_end=self._end,
            on_read=self._node.go_on,
        )
        carrier.plane = self._node.plane
        settings = self._node.config.settings.transport.link
        if settings.rx.buffer_size != _READ_SIZE:
            link.set_read_size(settings.rx.buffer_size)
        if settings.tx.queue.batching.time_limit > _TIME_LIMIT:
            carrier.retention = settings.tx.queue.batching.time_limit / 1000
        self._carriers[carrier] = None
        return carrier

    # What they say.

    def _events(self, carrier: Carrier, events: list[Event]) -> None:
        if self._over:
            # Postponed by a link that is gone, as is its node.
            return
        ends = self._node.turns.until(self._node.now)
        for at, event in enumerate(events):
            neighbour = self._neighbour(carrier)
            if type(event) is Received:
                if neighbour is not None and not self._node.take(neighbour.face, event, ends):
                    carrier.postpone(events[at:])
                    break
            elif type(event) is ReceivedRun:
                if neighbour is not None:
                    self._node.plane.take(neighbour.face, event.run)
            elif isinstance(event, Opened):
                self._opened(carrier, event)
            elif isinstance(event, Closed):
                self._closed(carrier, event)
            elif isinstance(event, Writable) and neighbour is not None:
                neighbour.retry()
        holds = carrier.link.facts.reliable
        pressure = self._node.settle(go_on=not carrier.reading, holds=holds)
        if pressure or self._node.full:
            self._hold(carrier, pressure)
        if self._introducing:
            self._introduce()

    def _few(
        self, carrier: Carrier, messages: list[NetworkMessage], reliable: bool, now: float
    ) -> None:
        """Few messages, of the kinds that come again and again: the same as ``_events``, sooner."""
        neighbour = self._of_session.get(carrier.machine.session)
        if neighbour is not None:
            node = self._node
            node.hear(neighbour.face, messages, reliable, now)
            pressure = node.settle(go_on=False, holds=carrier.link.facts.reliable)
            if pressure or node.full:
                self._hold(carrier, pressure)

    def _hold(self, carrier: Carrier, pressure: list[Waiting]) -> None:
        # What goes back to the one it came from must not stop us from reading there: both
        # sides would wait for each other.
        own = self._neighbour(carrier)
        carrier.hold(waiting for waiting in pressure if waiting.queue is not own)
        full = self._node.full
        if full:
            self._node.full = []
            carrier.hold(full)

    def _introduce(self) -> None:
        for face, event in list(self._introducing.items()):
            if face.introduced or not face.alive:
                del self._introducing[face]
                event.set()

    def _neighbour(self, carrier: Carrier) -> Neighbour | None:
        return self._of_session.get(carrier.machine.session)

    def _opened(self, carrier: Carrier, event: Opened) -> None:
        node, peer, session = self._node, event.peer, event.session
        carrier.link.established()
        neighbour = self._of_session.get(session)
        if neighbour is None:
            face = node.tables.add_face(peer.zid, peer.whatami, node.now)
            neighbour = meet(node, session, face, carrier.link)
            self._of_session[session] = neighbour
            self.neighbours[face] = neighbour
            neighbour.carriers.append(carrier)
            for tell in list(self.on_neighbour):
                tell(neighbour, True)
        else:
            neighbour.carriers.append(carrier)
            # What was sent over the one link has to choose now.
            node.tables.state.stale()
        opening = self._opening.get(carrier.machine)
        if opening is not None and not opening.done():
            opening.set_result(neighbour)

    def _closed(self, carrier: Carrier, event: Closed) -> None:
        opening = self._opening.get(carrier.machine)
        if opening is not None and not opening.done():
            opening.set_exception(NotOpened(str(carrier.link.dst), event.text, event.reason))
            # Whoever waited may have gone.
            opening.exception()
        neighbour = self._neighbour(carrier)
        if neighbour is None:
            # Whoever was expelled has been counted.
            if carrier.machine.session is None:
                wordless = "timeout" if carrier.machine.late else "malformed"
                self.past.failures[_how(event, wordless)] += 1
            return
        self.past.endings[_how(event, "malformed")] += 1
        _log.info("a link with %s is over: %s", neighbour.face.zid, event.text)
        for other in neighbour.carriers:
            if other is not carrier:
                # One CLOSE may have ended them all.
                other.flush_soon()
        if event.session_over:
            neighbour.farewell = event.by_peer and event.reason == CloseReason.GENERIC
            self._gone(neighbour)

    # They go.

    def _gone(self, neighbour: Neighbour) -> None:
        if self.neighbours.pop(neighbour.face, None) is None:
            return
        del self._of_session[neighbour.session]
        neighbour.give_up()
        self.past.add(neighbour_stats(neighbour))
        self._node.ingress.pop(neighbour.face, None)
        self._node.tables.remove_face(neighbour.face)
        introducing = self._introducing.pop(neighbour.face, None)
        if introducing is not None:
            introducing.set()
        neighbour.over.set()
        for tell in list(self.on_neighbour):
            tell(neighbour, False)

    def _end(self, carrier: Carrier) -> None:
        self._carriers.pop(carrier, None)
        neighbour = self._neighbour(carrier)
        if neighbour is not None and carrier in neighbour.carriers:
            neighbour.carriers.remove(carrier)
            self._node.tables.state.stale()
            neighbour.past.append(carrier.machine.stats)

    async def close(self, grace: float) -> None:
        """Say good-bye. What is queued goes out, unless nothing of it moves in ``grace`` seconds.

        Called again after a cancellation, it ends what is left.
        """
        if self._over:
            return
        waits = [wait for one in self.neighbours.values() for wait in one.waits()]
        if not await self._moving(waits, grace):
            # Somebody is stuck, and has had its time; the others hear of the end soon.
            grace /= 3
        for carrier in list(self._carriers):
            carrier.part()
        overs = [asyncio.ensure_future(carrier.over.wait()) for carrier in self._carriers]
        await self._moving(overs, grace)
        for carrier in list(self._carriers):
            if grace and carrier.machine.session is not None:
                lost = carrier.link.on_its_way
                what = f"taken the last {lost} bytes" if lost else "confirmed that it heard all"
                _log.warning("%s has not %s in time", carrier.link.dst, what)
            carrier.abandon()
        if overs:
            await asyncio.wait(overs)
        # Those of UDP take their links with them, so they come last.
        for listener in self.listeners:
            await listener.close()
        for neighbour in list(self.neighbours.values()):
            self._gone(neighbour)
        self.sessions.leave()
        if not self.listeners and not self._carriers:
            # Nothing comes any more. What has no way back to its node is freed as soon as nobody
            # has that; the garbage collector would have much to look at, and later.
            self._over = True
            self._node.plane.let_go()
            del self._node

    async def _moving(self, waited: Collection[asyncio.Future[Any]], grace: float) -> bool:
        """Whether all are done, before nothing moves in ``grace`` seconds, or it takes too long."""
        ends, links = self._node.now + _GOODBYE, [carrier.link for carrier in self._carriers]
        before: list[tuple[int, int]] = []
        while waited and self._node.now < ends:
            now = [(link.bytes_out, link.on_its_way) for link in links]
            if now == before:
                break
            before = now
            _, waited = await asyncio.wait(waited, timeout=grace)
        return not waited


def _how(event: Closed, wordless: str) -> str:
    """How a link ended, in one word."""
    if event.by_peer:
        return "lost" if event.reason is None else "closed_by_peer"
    if event.reason is None:
        return wordless
    return CloseReason(event.reason).name.lower()
