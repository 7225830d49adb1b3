"""What the machines say: events of a link, and the three answers to ``send``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique
from typing import TYPE_CHECKING, Final

from zenwire.transport.bursts import ReceivedRun
from zenwire.transport.stats import Cause
from zenwire.wire.network import NetworkMessage
from zenwire.wire.transport import TransportOam
from zenwire.wire.values import Priority, Resolution, WhatAmI, ZenohId

if TYPE_CHECKING:
    from collections.abc import Hashable

    from zenwire.transport.sessions import Session

__all__ = [
    "ACCEPTED",
    "Accepted",
    "Closed",
    "Dropped",
    "Event",
    "Full",
    "Joined",
    "Left",
    "Opened",
    "Peer",
    "Received",
    "ReceivedRun",
    "Result",
    "Then",
    "TransportOam",
    "Writable",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """The other side, and what was agreed with it.

    ``lease`` is its own, in seconds, or what was granted if it ``asked`` for more than that.

    ``user`` is whom an acceptor has authenticated. ``priorities`` and ``only`` are what the other
    side says this link is for.
    """

    zid: ZenohId
    whatami: WhatAmI
    lease: float
    resolution: Resolution
    batch_size: int
    qos: bool = False
    lowlatency: bool = False
    compression: bool = False
    patch: int = 0
    multilink: bool = False
    region_name: str | None = None
    remote_bound: int | None = None
    user: bytes | None = None
    priorities: tuple[Priority, Priority] | None = None
    only: bool | None = None
    asked: float | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """The handshake is over: messages may be sent. The session has other links already, or not."""

    peer: Peer
    session: Session


@dataclass(slots=True)
class Received:
    """The network messages of one FRAME, or the one of a row of FRAGMENTs, in order.

    In low latency, and without QoS, the priority is DATA. ``source`` is set on multicast only.
    """

    messages: list[NetworkMessage]
    priority: Priority
    reliable: bool
    source: Hashable = None


@dataclass(frozen=True, slots=True)
class Writable:
    """A queue that refused a message has room again."""

    priority: Priority


@dataclass(frozen=True, slots=True)
class Closed:
    """The link is over. Pull what is left, then close it.

    ``reason`` is that of the CLOSE, sent or received; None if the link ended without one.
    ``session_over`` says that no other link of the session is left.
    """

    reason: int | None
    by_peer: bool
    text: str
    session_over: bool = True


@dataclass(frozen=True, slots=True)
class Joined:
    """A node of a multicast group is known from here on."""

    source: Hashable
    peer: Peer


@dataclass(frozen=True, slots=True)
class Left:
    """A node of a multicast group is gone."""

    source: Hashable
    peer: Peer
    reason: int | None
    text: str


Event = Opened | Received | ReceivedRun | Writable | Closed | Joined | Left | TransportOam
"""TransportOam comes as it is: management that nobody has defined so far."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The message is queued, and goes out by ``pull``."""


ACCEPTED: Final = Accepted()


@unique
class Then(Enum):
    """What happens to a message that waits for room longer than it may."""

    DROP = "drop"
    CLOSE = "close"


@dataclass(frozen=True, slots=True, eq=False)
class Full:
    """No room. Keep the message; send it again, with this as ``retry``, when Writable comes.

    After ``until`` that drops it, or (Block) the link closes by itself.
    """

    priority: Priority
    until: float
    then: Then


@dataclass(frozen=True, slots=True)
class Dropped:
    """The message is gone; ``stats.dropped`` has counted it."""

    cause: Cause


Result = Accepted | Full | Dropped
