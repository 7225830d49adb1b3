"""INIT and OPEN, from both sides: what is sent, what is demanded, what is agreed.

``Connector`` and ``Acceptor`` hold no state of the link (``states`` does); between InitAck and
OpenSyn an Acceptor keeps the nonce of its cookie and nothing else.
"""

from __future__ import annotations

import hmac
from typing import Any

from zenwire.transport import limits
from zenwire.transport.cookie import Cookie, seal
from zenwire.transport.events import Peer
from zenwire.transport.extensions import (
    ACCEPTING,
    ADMITTING,
    CONCLUDING,
    CONFIRMING,
    OFFERING,
    Agreed,
    Fields,
    Negotiation,
)
from zenwire.transport.refused import RefusedError
from zenwire.transport.rsa import PrivateKey, PublicKey, Random
from zenwire.transport.sequence import initial_sn
from zenwire.transport.settings import LinkFacts, Settings
from zenwire.wire.auth import AuthInitAck, AuthInitSyn, AuthOpenAck, AuthOpenSyn
from zenwire.wire.transport import VERSION, InitAck, InitSyn, OpenAck, OpenSyn
from zenwire.wire.values import CloseReason, Resolution, WhatAmI, ZenohId

__all__ = ["Acceptor", "Connector", "Outcome"]


class Outcome:
    """What a handshake has come to: the peer, where its numbers and ours start, its MultiLink key."""

    __slots__ = ("first_sn", "multilink", "own_first_sn", "peer")

    def __init__(
        self, peer: Peer, first_sn: int, own_first_sn: int, multilink: PublicKey | None
    ) -> None:
        self.peer = peer
        self.first_sn = first_sn
        self.own_first_sn = own_first_sn
        self.multilink = multilink


class Connector:
    """The side that dialled. ``expect`` is the id that was announced for that address, if any."""

    def __init__(
        self,
        settings: Settings,
        link: LinkFacts,
        random: Random,
        multilink_key: PrivateKey | None = None,
        expect: ZenohId | None = None,
    ) -> None:
        self._settings = settings
        self._n = Negotiation(settings, link, random, multilink_key)
        self._expect = expect
        self._ack: InitAck | None = None
        self._first_sn = 0
        self._batch_size = min(settings.batch_size, link.mtu)

    def init_syn(self) -> InitSyn:
        return InitSyn(
            version=VERSION,
            zid=self._settings.zid,
            whatami=self._settings.whatami,
            resolution=self._settings.resolution,
            batch_size=self._batch_size,
            **_fields(AuthInitSyn, [e.offer(self._n) for e in OFFERING]),
        )

    def open_syn(self, ack: InitAck) -> OpenSyn:
        """The answer to InitAck. Raises RefusedError."""
        settings = self._settings
        _check_version(ack.version)
        if self._expect not in (None, ack.zid):
            raise RefusedError(CloseReason.INVALID, f"this is {ack.zid}, not {self._expect}")
        if _lower(ack.resolution, settings.resolution) != ack.resolution:
            raise RefusedError(CloseReason.INVALID, "a resolution above what was offered")
        if len(ack.cookie) > limits.COOKIE_MAX:
            raise RefusedError(CloseReason.INVALID, f"a cookie above {limits.COOKIE_MAX} bytes")
        self._batch_size = _check_batch(min(self._batch_size, ack.batch_size))
        self._ack = ack
        self._first_sn = initial_sn(settings.zid, ack.zid, ack.resolution)
        return OpenSyn(
            lease=settings.lease_ms,
            initial_sn=self._first_sn,
            cookie=ack.cookie,
            **_fields(AuthOpenSyn, [e.confirm(self._n, ack) for e in CONFIRMING]),
        )

    def outcome(self, ack: OpenAck) -> Outcome:
        """What OpenAck ends with. Raises RefusedError."""
        init = self._ack
        assert init is not None
        for extension in CONCLUDING:
            extension.conclude(self._n, ack)
        peer = _peer(
            self._n,
            zid=init.zid,
            whatami=init.whatami,
            lease=ack.lease,
            resolution=init.resolution,
            batch_size=self._batch_size,
        )
        return _outcome(peer, ack.initial_sn, self._first_sn, self._n.agreed)


class Acceptor:
    """The side that listened. There is one for each connection."""

    def __init__(
        self,
        settings: Settings,
        link: LinkFacts,
        random: Random,
        key: bytes,
        multilink_key: PrivateKey | None = None,
    ) -> None:
        self._settings = settings
        self._link = link
        self._random = random
        self._key = key
        self._multilink_key = multilink_key
        self._nonce = b""

    def _negotiation(self) -> Negotiation:
        def sealed(data: bytes) -> bytes:
            return seal(self._key, b"nonce" + data)

        return Negotiation(self._settings, self._link, self._random, self._multilink_key, sealed)

    def init_ack(self, syn: InitSyn, now: float) -> InitAck:
        """The answer to InitSyn. Raises RefusedError."""
        settings, n = self._settings, self._negotiation()
        _check_version(syn.version)
        batch_size = _check_batch(min(settings.batch_size, self._link.mtu, syn.batch_size))
        resolution = _lower(syn.resolution, settings.resolution)
        fields = _fields(AuthInitAck, [e.accept(n, syn) for e in ACCEPTING])
        issued = max(0, int(now * 1000))
        # The seal proves that this process issued the cookie, not that it was for this connection:
        # without the nonce a recorded login could be sent again on another one.
        self._nonce = self._random(limits.COOKIE_NONCE)
        cookie = Cookie(self._nonce, issued, syn.zid, syn.whatami, resolution, batch_size, n.notes)
        return InitAck(
            version=VERSION,
            zid=settings.zid,
            whatami=settings.whatami,
            resolution=resolution,
            batch_size=batch_size,
            cookie=cookie.encode(self._key),
            **fields,
        )

    def open_ack(self, syn: OpenSyn, now: float) -> tuple[OpenAck, Outcome]:
        """The answer to OpenSyn, and what was agreed. Raises RefusedError."""
        settings, n = self._settings, self._negotiation()
        cookie = Cookie.decode(syn.cookie, self._key)
        if not (self._nonce and hmac.compare_digest(cookie.nonce, self._nonce)):
            raise RefusedError(CloseReason.INVALID, "the cookie was issued on another connection")
        if now * 1000 - cookie.issued > settings.accept_timeout * 1000:
            raise RefusedError(CloseReason.INVALID, "the cookie is too old")
        n.notes = cookie.notes
        fields = _fields(AuthOpenAck, [e.admit(n, syn) for e in ADMITTING])
        peer = _peer(
            n,
            zid=cookie.zid,
            whatami=cookie.whatami,
            lease=syn.lease,
            resolution=cookie.resolution,
            batch_size=cookie.batch_size,
        )
        first_sn = initial_sn(settings.zid, peer.zid, peer.resolution)
        outcome = _outcome(peer, syn.initial_sn, first_sn, n.agreed)
        ack = OpenAck(lease=settings.lease_ms, initial_sn=outcome.own_first_sn, **fields)
        return ack, outcome


def _fields(auth: type[Any], said: list[Fields]) -> Fields:
    """The fields of all extensions; the two kinds of authentication share one."""
    fields: Fields = {}
    inner: Fields = {}
    for made in said:
        if made:
            inner |= made.get("auth", {})
            fields |= made
    if inner:
        fields["auth"] = auth(**inner)
    return fields


def _peer(
    n: Negotiation,
    *,
    zid: ZenohId,
    whatami: WhatAmI,
    lease: int,
    resolution: Resolution,
    batch_size: int,
) -> Peer:
    agreed, granted = n.agreed, n.settings.granted_lease(lease)
    return Peer(
        zid=zid,
        whatami=whatami,
        lease=granted,
        asked=lease / 1000 if lease / 1000 > granted else None,
        resolution=resolution,
        batch_size=batch_size,
        qos=agreed.qos,
        lowlatency=agreed.lowlatency,
        # A low-latency link has no batches to compress, whatever was said.
        compression=agreed.compression and not agreed.lowlatency,
        patch=agreed.patch,
        multilink=agreed.multilink is not None,
        region_name=agreed.region_name,
        remote_bound=agreed.remote_bound,
        user=agreed.user,
        priorities=agreed.priorities,
        only=agreed.only,
    )


def _outcome(peer: Peer, first_sn: int, own_first_sn: int, agreed: Agreed) -> Outcome:
    if first_sn >= peer.resolution.sn_modulus:
        raise RefusedError(
            CloseReason.INVALID, f"the first sequence number, {first_sn}, is too large"
        )
    return Outcome(peer, first_sn, own_first_sn, agreed.multilink)


def _check_version(version: int) -> None:
    if version != VERSION:
        raise RefusedError(CloseReason.INVALID, f"version {version}: we speak {VERSION} only")


def _check_batch(size: int) -> int:
    if size < limits.BATCH_MIN:
        raise RefusedError(CloseReason.INVALID, f"a batch of {size} bytes holds nothing")
    return size


def _lower(one: Resolution, other: Resolution) -> Resolution:
    """The lower of both, for each of the two fields."""
    if one == other:
        return one
    frame_sn = min(one.frame_sn, other.frame_sn)
    return Resolution.of(frame_sn, min(one.request_id, other.request_id))
