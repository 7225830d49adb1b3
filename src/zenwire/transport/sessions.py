"""All unicast sessions of a node: who may connect, and the links that share a session."""

from __future__ import annotations

from collections.abc import Iterator

from zenwire.errors import EncodeError
from zenwire.transport import limits
from zenwire.transport.budget import ReassemblyBudget
from zenwire.transport.events import Dropped, Full, Peer, Result
from zenwire.transport.handshake import Acceptor, Connector, Outcome
from zenwire.transport.inbox import Lanes
from zenwire.transport.packed import Packed
from zenwire.transport.refused import RefusedError
from zenwire.transport.rsa import PrivateKey, PublicKey, Random, generate
from zenwire.transport.sequence import LANES, Counters
from zenwire.transport.settings import LinkFacts, Role, Settings
from zenwire.transport.states import State
from zenwire.transport.stats import Cause
from zenwire.transport.unicast import Unicast
from zenwire.wire.network import NetworkMessage
from zenwire.wire.values import CloseReason, Priority, QoS, WhatAmI, ZenohId

__all__ = ["Session", "Sessions"]


class Session:
    """The links to one peer. They share the lanes, and each has a queue of its own."""

    def __init__(self, settings: Settings, outcome: Outcome, budget: ReassemblyBudget) -> None:
        peer = outcome.peer
        self.peer = peer
        self.multilink = outcome.multilink
        self.links: list[Unicast] = []
        self.counters = Counters(peer.resolution, outcome.own_first_sn)
        self.share = budget.share(settings.max_message_size, settings.reassembly_timeout)
        self.lanes = Lanes(
            peer.resolution, [outcome.first_sn] * LANES, peer.qos, peer.patch, self.share
        )

    def link_for(self, priority: Priority, reliable: bool) -> Unicast | None:
        """The link that is meant for such messages; any other if there is none."""
        return max(
            (link for link in self.links if link.state is State.OPEN),
            key=lambda link: _fitness(link, priority, reliable),
            default=None,
        )

    def send(
        self,
        message: NetworkMessage | bytes | Packed,
        now: float,
        *,
        reliable: bool = True,
        qos: QoS | None = None,
        retry: Full | None = None,
    ) -> Result:
        """As ``Unicast.send``, over the link that fits."""
        if len(self.links) == 1:
            link: Unicast | None = self.links[0]
        else:
            how = qos or (QoS() if isinstance(message, bytes) else message.qos)
            link = self.link_for(how.priority, reliable)
        if link is None:
            return Dropped(Cause.NOT_OPEN)
        return link.send(message, now, reliable=reliable, qos=qos, retry=retry)

    @property
    def packing(self) -> int:
        """How many bytes of messages fit a batch of any link; 0 if there is none."""
        return min((link.packing for link in self.links), default=0)

    @property
    def heard(self) -> float:
        """When something came last, over any link; infinite if no link is left."""
        return max((link.heard for link in self.links), default=float("inf"))

    @property
    def talked(self) -> bool:
        """Whether a network message has come over any link that is left."""
        return any(link.stats.rx_messages for link in self.links)

    def close(self, now: float, reason: CloseReason = CloseReason.GENERIC) -> None:
        """End all links."""
        for link in list(self.links):
            link.close(now, reason)

    def end(self, text: str, reason: int) -> None:
        """The peer has ended the whole session."""
        for link in list(self.links):
            link.end_with_session(text, reason)


def _fitness(link: Unicast, priority: Priority, reliable: bool) -> tuple[int, int]:
    """How well a link fits: one that says what it is for before one that takes all."""
    peer = link.peer
    assert peer is not None
    kind = 0 if peer.only is None else 1 if peer.only is reliable else -2
    if peer.priorities is None:
        return kind, 0
    low, high = peer.priorities
    if low <= priority <= high:
        return kind + 1, low - high
    return kind - 2, 0


class Sessions:
    """Makes the machines of links, and lets in whom it may.

    ``key`` is secret, and lives as long as cookies are to be valid. ``refused`` counts the
    handshakes for which there was no place. ``budget`` may be shared with other nodes of the
    process; without one, these sessions have their own.
    """

    def __init__(
        self,
        settings: Settings,
        key: bytes,
        random: Random,
        budget: ReassemblyBudget | None = None,
    ) -> None:
        if len(key) < limits.COOKIE_KEY_MIN:
            raise EncodeError(f"a cookie key has at least {limits.COOKIE_KEY_MIN} bytes")
        self.settings = settings
        self.budget = budget or ReassemblyBudget(settings.reassembly_limit)
        self.refused = 0
        self._key = key
        self._random = random
        self._multilink_key: PrivateKey | None = None
        self._sessions: dict[ZenohId, Session] = {}
        self._accepting: set[Unicast] = set()
        self._dialling: dict[Unicast, ZenohId] = {}

    def connect(self, link: LinkFacts, now: float, expect: ZenohId | None = None) -> Unicast:
        """The machine of a link that this node has dialled."""
        steps = Connector(self.settings, link, self._random, self._own_key(), expect)
        return Unicast(self, self.settings, link, steps, now)

    def accept(self, link: LinkFacts, now: float) -> Unicast | None:
        """The machine of a link that came in; None if too many handshakes are under way."""
        if len(self._accepting) >= self.settings.max_pending:
            self.refused += 1
            return None
        steps = Acceptor(self.settings, link, self._random, self._key, self._own_key())
        made = Unicast(self, self.settings, link, steps, now)
        self._accepting.add(made)
        return made

    def _own_key(self) -> PrivateKey | None:
        """The key that shows that links come from one process; made when it is first needed."""
        if self.settings.max_links > 1 and self._multilink_key is None:
            self._multilink_key = generate(limits.MULTILINK_KEY_BITS, self._random)
        return self._multilink_key

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._sessions.values()))

    def get(self, zid: ZenohId) -> Session | None:
        return self._sessions.get(zid)

    # What links ask.

    def check(self, link: Unicast, zid: ZenohId, whatami: WhatAmI) -> None:
        """A connector has learnt whom it talks to. Raises RefusedError if that can lead nowhere."""
        settings = self.settings
        if zid == settings.zid:
            raise RefusedError(CloseReason.CONNECTION_TO_SELF, "this is ourselves")
        if settings.whatami is whatami is WhatAmI.CLIENT:
            raise RefusedError(CloseReason.GENERIC, "a client does not talk to a client")
        if zid in self._sessions and settings.max_links == 1:
            raise RefusedError(CloseReason.MAX_LINKS, f"there is a session with {zid}")
        self._dialling[link] = zid

    def admit(self, link: Unicast, outcome: Outcome) -> Session:
        """A handshake is over: its session. Raises RefusedError if there can be none."""
        settings, peer = self.settings, outcome.peer
        if peer.zid == settings.zid:
            raise RefusedError(CloseReason.CONNECTION_TO_SELF, "this is ourselves")
        if settings.whatami is peer.whatami is WhatAmI.CLIENT:
            raise RefusedError(CloseReason.GENERIC, "a client does not talk to a client")
        self._check_crossing(link, peer)
        session = self._sessions.get(peer.zid)
        if session is None:
            if len(self._sessions) >= settings.max_sessions and not self.make_room():
                raise RefusedError(
                    CloseReason.INVALID, f"there are {settings.max_sessions} sessions"
                )
            session = self._sessions[peer.zid] = Session(settings, outcome, self.budget)
        else:
            self._check_second(session, peer, outcome.multilink)
        session.links.append(link)
        self._accepting.discard(link)
        self._dialling.pop(link, None)
        return session

    def make_room(self) -> bool:
        """Close a session in favour of a new one, if the owner has a reason to. Whether it did."""
        return False

    def _check_crossing(self, link: Unicast, peer: Peer) -> None:
        """Two nodes that dial each other at once: the link that the greater one dialled stays."""
        if link.role is Role.ACCEPTOR and self.settings.max_links == 1:
            crossing = peer.zid in self._dialling.values()
            if crossing and int(self.settings.zid) > int(peer.zid):
                raise RefusedError(CloseReason.MAX_LINKS, f"{peer.zid} is being dialled from here")

    def _check_second(self, session: Session, peer: Peer, multilink: PublicKey | None) -> None:
        """Whether another link may join a session."""
        if _terms(session.peer) != _terms(peer):
            raise RefusedError(CloseReason.INVALID, f"{peer.zid} has a session on other terms")
        if multilink is None or len(session.links) >= self.settings.max_links:
            raise RefusedError(CloseReason.MAX_LINKS, f"{peer.zid} has its links")
        if multilink != session.multilink:
            raise RefusedError(CloseReason.INVALID, f"{peer.zid} has shown another key")

    def forget(self, link: Unicast) -> bool:
        """A link is over. Whether its session is too, or there was none."""
        self._accepting.discard(link)
        self._dialling.pop(link, None)
        link.release()
        session = link.session
        if session is None or link not in session.links:
            return True
        session.links.remove(link)
        if session.links:
            return False
        # The half of a message that has come is lost, and counted where the other half should be.
        session.lanes.release(link.stats)
        if self._sessions.get(session.peer.zid) is session:
            del self._sessions[session.peer.zid]
        return True


def _terms(peer: Peer) -> tuple[object, ...]:
    """What all links of a session must agree on."""
    return (peer.whatami, peer.resolution, peer.qos, peer.lowlatency, peer.patch, peer.multilink)
