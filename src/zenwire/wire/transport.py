"""Transport messages: what a batch consists of."""

from __future__ import annotations

from typing import Final

from zenwire.wire import auth as a
from zenwire.wire import kinds as k
from zenwire.wire.define import boolean, ext, field, flag, message, struct
from zenwire.wire.objects import Struct
from zenwire.wire.values import Priority, QoSLink, Resolution, WhatAmI, ZenohId

__all__ = [
    "VERSION",
    "Close",
    "Fragment",
    "Frame",
    "InitAck",
    "InitSyn",
    "Join",
    "KeepAlive",
    "LaneSn",
    "OpenAck",
    "OpenSyn",
    "TransportMessage",
    "TransportOam",
]

VERSION: Final = 0x09
"""The protocol version of all Zenoh 1.x."""

_ACK: Final = 0x20
"""The A flag, which makes InitSyn and InitAck two messages."""


@message("OAM", scope="transport", id=0x00)
class TransportOam:
    """Management of one link."""

    ENC = flag(5, width=2)

    id: int = field(k.z16, column="oam_id")
    priority: Priority = ext(0x1, k.priority, mandatory=True, default=Priority.DATA)
    body: int | bytes | None = field(k.OamBody(ENC), default=None, column="oam")


@message("INIT", scope="transport", id=0x01, variant=(_ACK, 0))
class InitSyn:
    """The connector's offer."""

    S = flag(6)

    version: int = field(k.u8)
    zid: ZenohId = field(k.packed_zid)
    whatami: WhatAmI = field(k.whatami_index)
    resolution: Resolution = field(k.resolution, when=S, default=Resolution())
    batch_size: int = field(k.u16, when=S, default=65_535)
    qos: bool = ext(0x1, k.unit, default=False)
    qos_link: QoSLink | None = ext(0x1, k.qos_link, default=None)
    shm: bytes | None = ext(0x2, k.rest, default=None)
    auth: a.AuthInitSyn | None = ext(0x3, a.auth_init_syn, default=None)
    multilink: a.PublicKey | None = ext(0x4, a.public_key, default=None)
    lowlatency: bool = ext(0x5, k.unit, default=False)
    compression: bool = ext(0x6, k.unit, default=False)
    patch: int = ext(0x7, k.z64, default=0)
    region_name: str | None = ext(0x8, k.region_name, default=None)


@message("INIT", scope="transport", id=0x01, variant=(_ACK, _ACK))
class InitAck:
    """The acceptor's final values, and a cookie to be echoed."""

    S = flag(6)

    version: int = field(k.u8)
    zid: ZenohId = field(k.packed_zid)
    whatami: WhatAmI = field(k.whatami_index)
    resolution: Resolution = field(k.resolution, when=S, default=Resolution())
    batch_size: int = field(k.u16, when=S, default=65_535)
    cookie: bytes = field(k.cookie)
    qos: bool = ext(0x1, k.unit, default=False)
    qos_link: QoSLink | None = ext(0x1, k.qos_link, default=None)
    shm: bytes | None = ext(0x2, k.rest, default=None)
    auth: a.AuthInitAck | None = ext(0x3, a.auth_init_ack, default=None)
    multilink: a.PublicKeyAndNonce | None = ext(0x4, a.public_key_and_nonce, default=None)
    lowlatency: bool = ext(0x5, k.unit, default=False)
    compression: bool = ext(0x6, k.unit, default=False)
    patch: int = ext(0x7, k.z64, default=0)
    region_name: str | None = ext(0x8, k.region_name, default=None)


@message("OPEN", scope="transport", id=0x02, variant=(_ACK, 0))
class OpenSyn:
    """The connector opens the link: its lease in milliseconds, its first sequence number."""

    T = flag(6)

    lease: int = field(k.Lease(T))
    initial_sn: int = field(k.z32)
    cookie: bytes = field(k.cookie)
    shm: bytes | None = ext(0x2, k.rest, default=None)
    auth: a.AuthOpenSyn | None = ext(0x3, a.auth_open_syn, default=None)
    multilink: a.EncryptedNonce | None = ext(0x4, a.encrypted_nonce, default=None)
    remote_bound: int | None = ext(0x7, k.z64, default=None)


@message("OPEN", scope="transport", id=0x02, variant=(_ACK, _ACK))
class OpenAck:
    """The acceptor opens the link; from here on both may send."""

    T = flag(6)

    lease: int = field(k.Lease(T))
    initial_sn: int = field(k.z32)
    shm: bytes | None = ext(0x2, k.rest, default=None)
    auth: a.AuthOpenAck | None = ext(0x3, a.auth_open_ack, default=None)
    multilink: bool = ext(0x4, k.unit, default=False)
    remote_bound: int | None = ext(0x7, k.z64, default=None)


@message("CLOSE", scope="transport", id=0x03)
class Close:
    """The link, or with ``session`` the whole session, ends. What follows in the batch is void."""

    S = flag(5)

    session: bool = boolean(S, default=False)
    reason: int = field(k.u8)


@message("KEEP_ALIVE", scope="transport", id=0x04)
class KeepAlive:
    """I am still here."""


@message("FRAME", scope="transport", id=0x05)
class Frame:
    """The head of a run of network messages.

    Those that follow it, up to the next transport message, have its sequence number, reliability
    and priority.
    """

    R = flag(5)

    reliable: bool = boolean(R, default=False)
    sn: int = field(k.z32)
    priority: Priority = ext(0x1, k.priority, mandatory=True, default=Priority.DATA)


@message("FRAGMENT", scope="transport", id=0x06)
class Fragment:
    """A piece of one network message that is larger than a batch.

    ``first`` starts a message; ``drop`` says that the sender gave up on it.
    """

    R = flag(5)
    M = flag(6)

    reliable: bool = boolean(R, default=False)
    more: bool = boolean(M, default=False)
    sn: int = field(k.z32)
    priority: Priority = ext(0x1, k.priority, mandatory=True, default=Priority.DATA)
    first: bool = ext(0x2, k.unit, default=False)
    drop: bool = ext(0x3, k.unit, default=False)
    payload: bytes = field(k.rest)


@struct
class LaneSn:
    """The next sequence numbers of one priority."""

    reliable: int = field(k.z32)
    best_effort: int = field(k.z32)


lane_sns = k.Repeat(Struct(LaneSn), len(Priority))


@message("JOIN", scope="transport", id=0x07)
class Join:
    """A node of a multicast group announces itself, and what its next sequence numbers are.

    With QoS every priority has its own, in ``lanes``, and ``next_sn`` means nothing.
    """

    T = flag(5)
    S = flag(6)

    version: int = field(k.u8)
    zid: ZenohId = field(k.packed_zid)
    whatami: WhatAmI = field(k.whatami_index)
    resolution: Resolution = field(k.resolution, when=S, default=Resolution())
    batch_size: int = field(k.u16, when=S, default=8_192)
    lease: int = field(k.Lease(T))
    next_sn: LaneSn = field(Struct(LaneSn))
    lanes: tuple[LaneSn, ...] | None = ext(0x1, lane_sns, mandatory=True, default=None)
    shm: bytes | None = ext(0x2, k.rest, default=None)
    patch: int = ext(0x7, k.z64, default=0)


TransportMessage = (
    TransportOam
    | InitSyn
    | InitAck
    | OpenSyn
    | OpenAck
    | Close
    | KeepAlive
    | Frame
    | Fragment
    | Join
)
