"""Settings of transports and links."""

from __future__ import annotations

import os
from enum import Enum, unique
from typing import Final

from zenwire.node.config.interceptors import DataMessage
from zenwire.node.config.kinds import (
    BOOL,
    I64,
    SECRET,
    TEXT,
    U16,
    U32,
    U64,
    Choice,
    Integer,
    ListOf,
    Nullable,
    computed,
    option,
    own,
    section,
    settings,
)
from zenwire.node.config.terms import PROTOCOL

__all__ = [
    "Allocation",
    "AllocationMode",
    "Auth",
    "Batching",
    "Block",
    "Compression",
    "CongestionControl",
    "Drop",
    "Link",
    "MulticastQos",
    "MulticastTransport",
    "PubKey",
    "Queue",
    "QueueSize",
    "Rx",
    "SequenceNumberResolution",
    "SharedMemory",
    "ShmMode",
    "Tcp",
    "Tls",
    "Transport",
    "TransportOptimization",
    "Tx",
    "Unicast",
    "UnicastQos",
    "UnixPipe",
    "UsrPwd",
]

_OPTIONAL_TEXT: Final = Nullable(TEXT)
_OPTIONAL_SECRET: Final = Nullable(SECRET)
_OPTIONAL_U32: Final = Nullable(U32)


@unique
class SequenceNumberResolution(Enum):
    """Bits of sequence numbers. Those of 64 bits exist in the protocol, but nodes refuse them."""

    BITS_8 = "8bit"
    BITS_16 = "16bit"
    BITS_32 = "32bit"

    @property
    def bits(self) -> int:
        return _BITS[self]


_BITS: Final = {each: int(each.value.removesuffix("bit")) for each in SequenceNumberResolution}


@unique
class AllocationMode(Enum):
    """When batches of a queue are allocated. Without meaning here."""

    INIT = "init"
    LAZY = "lazy"


@unique
class ShmMode(Enum):
    """When shared memory is set up: with the session, or when it is first needed."""

    INIT = "init"
    LAZY = "lazy"


@settings
class UnicastQos:
    """Priorities and reliability of messages."""

    enabled: bool = option(BOOL, default=True)


@settings
class MulticastQos:
    """Priorities and reliability of messages."""

    enabled: bool = option(BOOL, default=False)


@settings
class Compression:
    """LZ4 of batches."""

    enabled: bool = option(BOOL, default=False)


@settings
class Unicast:
    """Transports between two nodes. Timeouts are in milliseconds.

    ``max_lease`` is not zenoh's: milliseconds that another node may ask to be waited for while it is
    silent. The own lease counts if it is longer.
    """

    open_timeout: int = option(U64, default=10_000)
    accept_timeout: int = option(U64, default=10_000)
    accept_pending: int = option(U64, default=100)
    max_sessions: int = option(U64, default=1_000)
    max_links: int = option(U64, default=1)
    max_lease: int = own(Integer(1, 2**64 - 1), default=60_000)
    lowlatency: bool = option(BOOL, default=False)
    qos: UnicastQos = section(factory=UnicastQos)
    compression: Compression = section(factory=Compression)


@settings
class MulticastTransport:
    """Transports among many nodes. ``join_interval`` is in milliseconds."""

    join_interval: int | None = option(Nullable(U64), default=2_500)
    max_sessions: int | None = option(Nullable(U64), default=1_000)
    qos: MulticastQos = section(factory=MulticastQos)
    compression: Compression = section(factory=Compression)


_LANE: Final = Integer(1, 16)


@settings
class QueueSize:
    """Batches that wait, for each priority."""

    control: int = option(_LANE, default=2)
    real_time: int = option(_LANE, default=2)
    interactive_high: int = option(_LANE, default=2)
    interactive_low: int = option(_LANE, default=2)
    data_high: int = option(_LANE, default=2)
    data: int = option(_LANE, default=2)
    data_low: int = option(_LANE, default=2)
    background: int = option(_LANE, default=2)


@settings
class Drop:
    """How long a message that may be dropped waits for room, in microseconds."""

    wait_before_drop: int = option(I64, default=1_000)
    max_wait_before_drop_fragments: int = option(I64, default=50_000)


@settings
class Block:
    """How long one that must not waits before the transport is closed, in microseconds."""

    wait_before_close: int = option(I64, default=5_000_000)


@settings
class CongestionControl:
    """What happens when a queue is full."""

    drop: Drop = section(factory=Drop)
    block: Block = section(factory=Block)


@settings
class Batching:
    """Messages share batches; one waits at most ``time_limit`` milliseconds for others."""

    enabled: bool = option(BOOL, default=True)
    time_limit: int = option(U64, default=1)


@settings
class Allocation:
    """When batches are allocated."""

    mode: AllocationMode = option(Choice(AllocationMode), default=AllocationMode.LAZY)


@settings
class Queue:
    """What waits to be sent."""

    size: QueueSize = section(factory=QueueSize)
    congestion_control: CongestionControl = section(factory=CongestionControl)
    batching: Batching = section(factory=Batching)
    allocation: Allocation = section(factory=Allocation)


def _threads() -> int:
    """As many as the reference would start; here the number has no effect."""
    if hasattr(os, "sched_getaffinity"):
        return 1 + (len(os.sched_getaffinity(0)) - 1) // 4
    return 1 + ((os.cpu_count() or 1) - 1) // 4


@settings
class Tx:
    """Sending. ``lease`` is in milliseconds, ``keep_alive`` the number of signs of life in it."""

    sequence_number_resolution: SequenceNumberResolution = option(
        Choice(SequenceNumberResolution), default=SequenceNumberResolution.BITS_32
    )
    lease: int = option(U64, default=10_000)
    keep_alive: int = option(U64, default=4)
    batch_size: int = option(U16, default=65_535)
    queue: Queue = section(factory=Queue)
    threads: int = computed(U64, factory=_threads)


@settings
class Rx:
    """Receiving, in bytes.

    ``max_reassembly`` and ``reassembly_timeout`` are not zenoh's. The first is what the unfinished
    messages of all sessions of the process may hold together; None is 256 MiB, or
    ``max_message_size`` if that is more. The second, in milliseconds, is for how long a message may
    make no progress before it is dropped.
    """

    buffer_size: int = option(U64, default=65_535)
    max_message_size: int = option(U64, default=2**30)
    max_reassembly: int | None = own(Nullable(Integer(1, 2**64 - 1)), default=None)
    reassembly_timeout: int = own(Integer(1, 2**64 - 1), default=30_000)


@settings
class Tls:
    """Keys and certificates: files, or their content in Base64, which is never shown."""

    root_ca_certificate: str | None = option(_OPTIONAL_TEXT, default=None)
    listen_private_key: str | None = option(_OPTIONAL_TEXT, default=None)
    listen_certificate: str | None = option(_OPTIONAL_TEXT, default=None)
    enable_mtls: bool | None = option(Nullable(BOOL), default=None)
    connect_private_key: str | None = option(_OPTIONAL_TEXT, default=None)
    connect_certificate: str | None = option(_OPTIONAL_TEXT, default=None)
    verify_name_on_connect: bool | None = option(Nullable(BOOL), default=None)
    close_link_on_expiration: bool | None = option(Nullable(BOOL), default=None)
    so_sndbuf: int | None = option(_OPTIONAL_U32, default=None)
    so_rcvbuf: int | None = option(_OPTIONAL_U32, default=None)
    root_ca_certificate_base64: str | None = option(_OPTIONAL_SECRET, default=None, shown=False)
    listen_private_key_base64: str | None = option(_OPTIONAL_SECRET, default=None, shown=False)
    listen_certificate_base64: str | None = option(_OPTIONAL_SECRET, default=None, shown=False)
    connect_private_key_base64: str | None = option(_OPTIONAL_SECRET, default=None, shown=False)
    connect_certificate_base64: str | None = option(_OPTIONAL_SECRET, default=None, shown=False)


@settings
class Tcp:
    """Buffers of the operating system, in bytes."""

    so_sndbuf: int | None = option(_OPTIONAL_U32, default=None)
    so_rcvbuf: int | None = option(_OPTIONAL_U32, default=None)


@settings
class UnixPipe:
    """Pipes, which this node does not have."""

    file_access_mask: int | None = option(_OPTIONAL_U32, default=None)


@settings
class Link:
    """Links. ``protocols``: those that may be used; None allows all."""

    protocols: tuple[str, ...] | None = option(Nullable(ListOf(PROTOCOL)), default=None)
    tx: Tx = section(factory=Tx)
    rx: Rx = section(factory=Rx)
    tls: Tls = section(factory=Tls)
    tcp: Tcp = section(factory=Tcp)
    unixpipe: UnixPipe = section(factory=UnixPipe)


@settings
class TransportOptimization:
    """Large messages through shared memory."""

    enabled: bool = option(BOOL, default=True)
    pool_size: int = option(Integer(1, 2**64 - 1), default=16 << 20)
    message_size_threshold: int = option(U64, default=3_072)
    messages: tuple[DataMessage, ...] = option(
        ListOf(Choice(DataMessage)), default=(DataMessage.PUT, DataMessage.QUERY, DataMessage.REPLY)
    )


@settings
class SharedMemory:
    """Shared memory, which this node does not have: it is neither offered nor accepted."""

    enabled: bool = option(BOOL, default=True)
    mode: ShmMode = option(Choice(ShmMode), default=ShmMode.LAZY)
    transport_optimization: TransportOptimization = section(factory=TransportOptimization)


@settings
class UsrPwd:
    """User and password: one's own, and a file ``user:password`` of those to let in."""

    user: str | None = option(_OPTIONAL_TEXT, default=None)
    password: str | None = option(_OPTIONAL_SECRET, default=None)
    dictionary_file: str | None = option(_OPTIONAL_TEXT, default=None)

    def check(self) -> str:
        if (self.user is None) is (self.password is None):
            return ""
        return "user and password come together"


@settings
class PubKey:
    """RSA keys of nodes."""

    public_key_pem: str | None = option(_OPTIONAL_TEXT, default=None)
    private_key_pem: str | None = option(_OPTIONAL_SECRET, default=None)
    public_key_file: str | None = option(_OPTIONAL_TEXT, default=None)
    private_key_file: str | None = option(_OPTIONAL_TEXT, default=None)
    key_size: int | None = option(Nullable(U64), default=None)
    known_keys_file: str | None = option(_OPTIONAL_TEXT, default=None)


@settings
class Auth:
    """How nodes prove who they are."""

    usrpwd: UsrPwd = section(factory=UsrPwd)
    pubkey: PubKey = section(factory=PubKey)


@settings
class Transport:
    """Transports and their links."""

    unicast: Unicast = section(factory=Unicast)
    multicast: MulticastTransport = section(factory=MulticastTransport)
    link: Link = section(factory=Link)
    shared_memory: SharedMemory = section(factory=SharedMemory)
    auth: Auth = section(factory=Auth)
