"""Settings of what is done to messages on their way: downsampling, QoS, sizes, access."""

from __future__ import annotations

from enum import Enum, unique
from typing import Final

from zenwire.keyexpr import KeyExpr
from zenwire.node.config.kinds import (
    BOOL,
    FLOAT,
    TEXT,
    U64,
    Choice,
    ListOf,
    Nullable,
    Section,
    option,
    required,
    settings,
)
from zenwire.node.config.terms import (
    KEY_EXPR,
    PAYLOAD_RANGE,
    PRIORITY_UPDATE,
    ZENOH_ID,
    PayloadRange,
    Priority,
)
from zenwire.wire.values import ZenohId

__all__ = [
    "AccessControl",
    "AclMessage",
    "AclPolicy",
    "AclRule",
    "AclSubject",
    "CongestionControl",
    "DataMessage",
    "Downsampling",
    "DownsamplingRule",
    "Flow",
    "LinkProtocol",
    "Locality",
    "LowPassFilter",
    "Permission",
    "PublicationQos",
    "PublisherQos",
    "Qos",
    "QosFilter",
    "QosMessage",
    "QosOverwrite",
    "QosOverwrites",
    "Reliability",
    "Stats",
    "StatsFilter",
]


@unique
class Flow(Enum):
    """Whether a message leaves this node or enters it."""

    EGRESS = "egress"
    INGRESS = "ingress"


@unique
class DataMessage(Enum):
    """Messages with data in them."""

    PUT = "put"
    DELETE = "delete"
    QUERY = "query"
    REPLY = "reply"


@unique
class QosMessage(Enum):
    """Messages whose QoS can be overwritten."""

    PUT = "put"
    DELETE = "delete"
    QUERY = "query"


@unique
class AclMessage(Enum):
    """Messages that access rules speak of."""

    PUT = "put"
    DELETE = "delete"
    DECLARE_SUBSCRIBER = "declare_subscriber"
    QUERY = "query"
    DECLARE_QUERYABLE = "declare_queryable"
    REPLY = "reply"
    LIVELINESS_TOKEN = "liveliness_token"  # noqa: S105 # no password
    DECLARE_LIVELINESS_SUBSCRIBER = "declare_liveliness_subscriber"
    LIVELINESS_QUERY = "liveliness_query"

    # There is one of each, and it is looked up for each message: that of Enum takes ten times as long.
    __hash__ = object.__hash__


@unique
class Permission(Enum):
    """Whether a message may pass."""

    ALLOW = "allow"
    DENY = "deny"


@unique
class LinkProtocol(Enum):
    """Protocols of links, whether this node has them or not."""

    TCP = "tcp"
    UDP = "udp"
    TLS = "tls"
    QUIC = "quic"
    SERIAL = "serial"
    UNIXPIPE = "unixpipe"
    UNIXSOCK_STREAM = "unixsock-stream"
    VSOCK = "vsock"
    WS = "ws"


@unique
class CongestionControl(Enum):
    """What a sender does when the network is full."""

    DROP = "drop"
    BLOCK = "block"
    BLOCK_FIRST = "block_first"


@unique
class Reliability(Enum):
    """Whether messages are sent again."""

    BEST_EFFORT = "best_effort"
    RELIABLE = "reliable"


@unique
class Locality(Enum):
    """Where a publication goes."""

    SESSION_LOCAL = "session_local"
    REMOTE = "remote"
    ANY = "any"


_TEXTS: Final = Nullable(ListOf(TEXT, not_empty=True))
_LINKS: Final = Nullable(ListOf(Choice(LinkProtocol), not_empty=True))
_FLOWS: Final = Nullable(ListOf(Choice(Flow), not_empty=True))
_ZIDS: Final = Nullable(ListOf(ZENOH_ID, not_empty=True))
_KEYS: Final = ListOf(KEY_EXPR, not_empty=True)


@settings
class DownsamplingRule:
    """At most ``freq`` messages each second on keys of an expression."""

    key_expr: KeyExpr = required(KEY_EXPR)
    freq: float = required(FLOAT)


@settings
class Downsampling:
    """Rules of frequency, and what they apply to."""

    id: str | None = option(Nullable(TEXT), default=None)
    interfaces: tuple[str, ...] | None = option(_TEXTS, default=None)
    link_protocols: tuple[LinkProtocol, ...] | None = option(_LINKS, default=None)
    messages: tuple[DataMessage, ...] = required(ListOf(Choice(DataMessage), not_empty=True))
    rules: tuple[DownsamplingRule, ...] = required(
        ListOf(Section(DownsamplingRule), not_empty=True)
    )
    flows: tuple[Flow, ...] | None = option(_FLOWS, default=None)


@settings
class LowPassFilter:
    """Messages above ``size_limit`` bytes do not pass."""

    id: str | None = option(Nullable(TEXT), default=None)
    interfaces: tuple[str, ...] | None = option(_TEXTS, default=None)
    link_protocols: tuple[LinkProtocol, ...] | None = option(_LINKS, default=None)
    flows: tuple[Flow, ...] | None = option(_FLOWS, default=None)
    messages: tuple[DataMessage, ...] = required(ListOf(Choice(DataMessage), not_empty=True))
    key_exprs: tuple[KeyExpr, ...] = required(_KEYS)
    size_limit: int = required(U64)


@settings
class PublisherQos:
    """What publishers use instead of what they ask for."""

    congestion_control: CongestionControl | None = option(
        Nullable(Choice(CongestionControl)), default=None
    )
    priority: Priority | None = option(Nullable(Choice(Priority)), default=None)
    express: bool | None = option(Nullable(BOOL), default=None)
    reliability: Reliability | None = option(Nullable(Choice(Reliability)), default=None)
    allowed_destination: Locality | None = option(Nullable(Choice(Locality)), default=None)


@settings
class PublicationQos:
    """The QoS of publishers by their keys."""

    key_exprs: tuple[KeyExpr, ...] = required(ListOf(KEY_EXPR))
    config: PublisherQos = required(Section(PublisherQos))


@settings
class QosFilter:
    """Messages with this QoS."""

    congestion_control: CongestionControl | None = option(
        Nullable(Choice(CongestionControl)), default=None
    )
    priority: Priority | None = option(Nullable(Choice(Priority)), default=None)
    express: bool | None = option(Nullable(BOOL), default=None)
    reliability: Reliability | None = option(Nullable(Choice(Reliability)), default=None)


@settings
class QosOverwrites:
    """QoS to put in. A number as ``priority`` is added to what is there."""

    congestion_control: CongestionControl | None = option(
        Nullable(Choice(CongestionControl)), default=None
    )
    priority: Priority | int | None = option(Nullable(PRIORITY_UPDATE), default=None)
    express: bool | None = option(Nullable(BOOL), default=None)


@settings
class QosOverwrite:
    """What QoS becomes on the way, and for which messages."""

    id: str | None = option(Nullable(TEXT), default=None)
    zids: tuple[ZenohId, ...] | None = option(_ZIDS, default=None)
    interfaces: tuple[str, ...] | None = option(_TEXTS, default=None)
    link_protocols: tuple[LinkProtocol, ...] | None = option(_LINKS, default=None)
    messages: tuple[QosMessage, ...] = required(ListOf(Choice(QosMessage), not_empty=True))
    key_exprs: tuple[KeyExpr, ...] | None = option(Nullable(_KEYS), default=None)
    overwrite: QosOverwrites = required(Section(QosOverwrites))
    flows: tuple[Flow, ...] | None = option(_FLOWS, default=None)
    qos: QosFilter | None = option(Nullable(Section(QosFilter)), default=None)
    payload_size: PayloadRange | None = option(Nullable(PAYLOAD_RANGE), default=None)


@settings
class Qos:
    """QoS at the publisher, and on the way."""

    publication: tuple[PublicationQos, ...] = option(ListOf(Section(PublicationQos)), default=())
    network: tuple[QosOverwrite, ...] = option(ListOf(Section(QosOverwrite)), default=())


@settings
class AclRule:
    """Messages on keys, and whether they may pass."""

    id: str = required(TEXT)
    key_exprs: tuple[KeyExpr, ...] = required(_KEYS)
    messages: tuple[AclMessage, ...] = required(ListOf(Choice(AclMessage), not_empty=True))
    flows: tuple[Flow, ...] | None = option(_FLOWS, default=None)
    permission: Permission = required(Choice(Permission))


@settings
class AclSubject:
    """Whose messages: all that is given must fit."""

    id: str = required(TEXT)
    interfaces: tuple[str, ...] | None = option(_TEXTS, default=None)
    cert_common_names: tuple[str, ...] | None = option(_TEXTS, default=None)
    usernames: tuple[str, ...] | None = option(_TEXTS, default=None)
    link_protocols: tuple[LinkProtocol, ...] | None = option(_LINKS, default=None)
    zids: tuple[ZenohId, ...] | None = option(_ZIDS, default=None)


@settings
class AclPolicy:
    """Which rules hold for which subjects, by their ids."""

    id: str | None = option(Nullable(TEXT), default=None)
    rules: tuple[str, ...] = required(ListOf(TEXT))
    subjects: tuple[str, ...] = required(ListOf(TEXT))


@settings
class AccessControl:
    """Who may send what on which keys."""

    enabled: bool = option(BOOL, default=False)
    default_permission: Permission = option(Choice(Permission), default=Permission.DENY)
    rules: tuple[AclRule, ...] | None = option(Nullable(ListOf(Section(AclRule))), default=None)
    subjects: tuple[AclSubject, ...] | None = option(
        Nullable(ListOf(Section(AclSubject))), default=None
    )
    policies: tuple[AclPolicy, ...] | None = option(
        Nullable(ListOf(Section(AclPolicy))), default=None
    )


@settings
class StatsFilter:
    """Keys to count apart."""

    key: KeyExpr = required(KEY_EXPR)


@settings
class Stats:
    """What to count apart."""

    filters: tuple[StatsFilter, ...] = option(ListOf(Section(StatsFilter)), default=())
