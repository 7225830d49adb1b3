"""Network messages: what a FRAME, a FRAGMENT's whole or a low-latency batch carries."""

from __future__ import annotations

from zenwire.wire import kinds as k
from zenwire.wire import structs as s
from zenwire.wire.data import Del, Err, Put, Query, Reply
from zenwire.wire.declare import (
    DeclareFinal,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    UndeclareKeyExpr,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
)
from zenwire.wire.define import bits, boolean, ext, field, flag, message, word
from zenwire.wire.objects import OneOf
from zenwire.wire.structs import ResponderId, Timestamp, TimestampStack
from zenwire.wire.values import InterestMode, QoS, QueryTarget, WireExpr

__all__ = [
    "Declaration",
    "Declare",
    "Interest",
    "NetworkMessage",
    "Oam",
    "Push",
    "Request",
    "Response",
    "ResponseFinal",
]

Declaration = (
    DeclareKeyExpr
    | UndeclareKeyExpr
    | DeclareSubscriber
    | UndeclareSubscriber
    | DeclareQueryable
    | UndeclareQueryable
    | DeclareToken
    | UndeclareToken
    | DeclareFinal
)


@message("INTEREST", scope="network", id=0x19)
class Interest:
    """Tell me the declarations of these kinds, those there are, those to come, or both.

    Without a ``key`` all keys are meant. FINAL ends the interest, and has no options.
    """

    MOD = flag(5, width=2)

    mode: InterestMode = bits(MOD, InterestMode, default=InterestMode.CURRENT_FUTURE)
    id: int = field(k.z32, column="interest_id")

    OPTIONS = word(when=MOD)
    R = OPTIONS.flag(4)
    N = OPTIONS.flag(5)
    M = OPTIONS.flag(6)

    keyexprs: bool = boolean(OPTIONS.flag(0), default=False)
    subscribers: bool = boolean(OPTIONS.flag(1), default=False)
    queryables: bool = boolean(OPTIONS.flag(2), default=False)
    tokens: bool = boolean(OPTIONS.flag(3), default=False)
    aggregate: bool = boolean(OPTIONS.flag(7), default=False)
    key: WireExpr | None = field(k.WireExprKind(N, M), when=R, default=None)
    qos: QoS = ext(0x1, k.qos, default=QoS())
    timestamp: Timestamp | None = ext(0x2, s.timestamp, default=None, column="ext_timestamp")
    node_id: int = ext(0x3, k.z16, mandatory=True, default=0)


@message("RESPONSE_FINAL", scope="network", id=0x1A)
class ResponseFinal:
    """No more replies to this request come over this link."""

    request_id: int = field(k.z32)
    qos: QoS = ext(0x1, k.qos, default=QoS())
    timestamp: Timestamp | None = ext(0x2, s.timestamp, default=None, column="ext_timestamp")


@message("RESPONSE", scope="network", id=0x1B)
class Response:
    """One reply, or one error, to a request."""

    N = flag(5)
    M = flag(6)

    request_id: int = field(k.z32)
    key: WireExpr = field(k.WireExprKind(N, M))
    qos: QoS = ext(0x1, k.qos, default=QoS())
    timestamp: Timestamp | None = ext(0x2, s.timestamp, default=None, column="ext_timestamp")
    responder: ResponderId | None = ext(0x3, s.responder_id, default=None)
    timestamp_stack: TimestampStack | None = ext(0x7, s.timestamp_stack, default=None)
    body: Reply | Err = field(OneOf[Reply | Err](Reply, Err))


@message("REQUEST", scope="network", id=0x1C)
class Request:
    """A query on its way. ``timeout`` is in milliseconds; a ``budget`` bounds the replies."""

    N = flag(5)
    M = flag(6)

    request_id: int = field(k.z32)
    key: WireExpr = field(k.WireExprKind(N, M))
    qos: QoS = ext(0x1, k.qos, default=QoS())
    timestamp: Timestamp | None = ext(0x2, s.timestamp, default=None, column="ext_timestamp")
    target: QueryTarget = ext(
        0x4, k.query_target, mandatory=True, default=QueryTarget.BEST_MATCHING
    )
    budget: int | None = ext(0x5, k.z32_or_none, default=None)
    timeout: int | None = ext(0x6, k.z64, default=None)
    node_id: int = ext(0x3, k.z16, mandatory=True, default=0)
    timestamp_stack: TimestampStack | None = ext(0x7, s.timestamp_stack, default=None)
    body: Query = field(OneOf[Query](Query))


@message("PUSH", scope="network", id=0x1D)
class Push:
    """A publication or a deletion on its way.

    The timestamp of a sample is its body's; the one here is an extension that the reference
    does not look at. ``node_id`` names the router where it entered the network of routers.
    """

    N = flag(5)
    M = flag(6)

    key: WireExpr = field(k.WireExprKind(N, M))
    qos: QoS = ext(0x1, k.qos, default=QoS())
    timestamp: Timestamp | None = ext(0x2, s.timestamp, default=None, column="ext_timestamp")
    node_id: int = ext(0x3, k.z16, mandatory=True, default=0)
    timestamp_stack: TimestampStack | None = ext(0x7, s.timestamp_stack, default=None)
    body: Put | Del = field(OneOf[Put | Del](Put, Del))


@message("DECLARE", scope="network", id=0x1E)
class Declare:
    """One declaration; with an ``interest_id`` if it answers an INTEREST."""

    I = flag(5)  # noqa: E741 # the specification's name

    interest_id: int | None = field(k.z32, when=I, default=None)
    qos: QoS = ext(0x1, k.qos, default=QoS())
    timestamp: Timestamp | None = ext(0x2, s.timestamp, default=None, column="ext_timestamp")
    node_id: int = ext(0x3, k.z16, mandatory=True, default=0)
    body: Declaration = field(
        OneOf[Declaration](
            DeclareKeyExpr,
            UndeclareKeyExpr,
            DeclareSubscriber,
            UndeclareSubscriber,
            DeclareQueryable,
            UndeclareQueryable,
            DeclareToken,
            UndeclareToken,
            DeclareFinal,
        )
    )


@message("OAM", scope="network", id=0x1F)
class Oam:
    """Management of the network. Id 1 carries link state (``zenwire.wire.linkstate``)."""

    ENC = flag(5, width=2)

    id: int = field(k.z16, column="oam_id")
    qos: QoS = ext(0x1, k.qos, default=QoS())
    timestamp: Timestamp | None = ext(0x2, s.timestamp, default=None, column="ext_timestamp")
    body: int | bytes | None = field(k.OamBody(ENC), default=None, column="oam")


NetworkMessage = Interest | ResponseFinal | Response | Request | Push | Declare | Oam
