"""What a node offers, and what is known of a link before a byte has passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, unique

from zenwire.errors import EncodeError
from zenwire.transport import limits
from zenwire.transport.rsa import PrivateKey, PublicKey
from zenwire.wire.values import Priority, Resolution, WhatAmI, ZenohId

__all__ = ["Credentials", "LinkFacts", "Role", "Settings"]


@unique
class Role(Enum):
    """Which side of a link: who dialled, and who listened."""

    CONNECTOR = "connector"
    ACCEPTOR = "acceptor"


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """What a link is. ``stream``: bytes without boundaries, so batches need a length before them.

    ``mtu`` is the largest batch it carries, a length included. ``priorities`` and ``only`` are the
    endpoint's metadata ``prio`` and ``rel``: what this link is meant for. They are told to the
    other side (QoSLink), and links of one session are chosen by them.
    """

    stream: bool = True
    reliable: bool = True
    mtu: int = limits.BATCH_MAX
    priorities: tuple[Priority, Priority] | None = None
    only: bool | None = None


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user and a password, as bytes of UTF-8."""

    user: bytes
    password: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if max(len(self.user), len(self.password)) > limits.CREDENTIAL_MAX:
            raise EncodeError(f"a user or password is above {limits.CREDENTIAL_MAX} bytes")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What this node offers and demands. Times are in seconds.

    Whoever has ``users`` demands user and password of connectors; whoever has ``credentials``
    demands to be asked for them. ``private_key`` turns public key authentication on, for both
    sides; ``known_keys`` limits whom it accepts. ``queue_batches`` has one number per priority.
    """

    zid: ZenohId
    whatami: WhatAmI = WhatAmI.CLIENT
    lease: float = limits.LEASE
    keep_alive: int = limits.KEEP_ALIVE
    max_lease: float = limits.MAX_LEASE
    join_interval: float = limits.JOIN_INTERVAL
    batch_size: int = limits.BATCH_MAX
    resolution: Resolution = field(default_factory=Resolution)
    qos: bool = True
    lowlatency: bool = False
    compression: bool = False
    patch: int = 1
    batching: bool = True
    region_name: str | None = None

    credentials: Credentials | None = None
    users: Mapping[bytes, bytes] | None = field(default=None, repr=False)
    private_key: PrivateKey | None = field(default=None, repr=False)
    known_keys: frozenset[PublicKey] | None = None

    max_sessions: int = limits.MAX_SESSIONS
    max_links: int = limits.MAX_LINKS
    max_pending: int = limits.MAX_PENDING
    max_message_size: int = limits.MAX_MESSAGE_SIZE
    max_reassembly: int | None = None
    reassembly_timeout: float = limits.REASSEMBLY_TIMEOUT
    queue_batches: tuple[int, ...] = (limits.QUEUE_BATCHES,) * len(Priority)
    open_timeout: float = limits.OPEN_TIMEOUT
    accept_timeout: float = limits.ACCEPT_TIMEOUT
    wait_before_drop: float = limits.WAIT_BEFORE_DROP
    wait_before_drop_fragments: float = limits.WAIT_BEFORE_DROP_FRAGMENTS
    wait_before_close: float = limits.WAIT_BEFORE_CLOSE

    def __post_init__(self) -> None:
        if self.qos and self.lowlatency:
            raise EncodeError("low latency has no priorities: turn qos off to use it")
        if not limits.BATCH_MIN <= self.batch_size <= limits.BATCH_MAX:
            raise EncodeError(f"a batch has {limits.BATCH_MIN} to {limits.BATCH_MAX} bytes")
        if not 0 < self.lease < 2**32 or self.keep_alive < 1:
            raise EncodeError("a lease, and how often in it we are heard, are above zero")
        if len(self.queue_batches) != len(Priority) or min(self.queue_batches) < 1:
            raise EncodeError("queue_batches has one number, from 1 up, for each priority")

    def of_node(self, zid: ZenohId) -> Settings:
        """The same for another node. They were checked."""
        made = object.__new__(Settings)
        made.__dict__.update(self.__dict__, zid=zid)
        return made

    def granted_lease(self, asked_ms: int) -> float:
        """Seconds that a node may be silent that asked for so many milliseconds."""
        return min(asked_ms / 1000, max(self.max_lease, self.lease))

    @property
    def reassembly_limit(self) -> int:
        """Bytes that unfinished messages may hold; by default enough for the largest message."""
        if self.max_reassembly is not None:
            return self.max_reassembly
        return max(limits.MAX_REASSEMBLY, self.max_message_size)

    @property
    def lease_ms(self) -> int:
        """The lease as INIT and JOIN carry it."""
        return max(1, round(self.lease * 1000))
