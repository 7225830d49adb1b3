from __future__ import annotations

import itertools
import tomllib
from typing import Any

import pytest

from tests.unit.transport.pair import DATAGRAM, KEY, Pair, only, put, sessions
from tests.vectors import ROOT
from zenwire.transport import Closed, Credentials, LinkFacts, Opened, Sessions, Settings
from zenwire.transport.cookie import Cookie
from zenwire.transport.rsa import generate
from zenwire.wire import decode, encode
from zenwire.wire.transport import InitAck, InitSyn, OpenAck, OpenSyn
from zenwire.wire.values import CloseReason, Priority, Resolution, WhatAmI, ZenohId

HANDSHAKES = tomllib.loads((ROOT / "transport_handshakes.toml").read_text())["handshake"]
COOKIE = "21 20" + bytes(range(32)).hex()


def made(given: dict[str, Any]) -> tuple[Sessions, LinkFacts]:
    """A side of a vector."""
    rest = dict(given)
    zid = ZenohId.parse(rest.pop("zid"))
    link = LinkFacts(mtu=rest.pop("mtu", 65_535))
    nonce = rest.pop("nonce", 0)
    if "user" in rest:
        rest["credentials"] = Credentials(rest.pop("user").encode(), rest.pop("password").encode())
    if "users" in rest:
        rest["users"] = {u.encode(): p.encode() for u, p in rest["users"].items()}
    if "frame_sn" in rest:
        rest["resolution"] = Resolution.of(rest.pop("frame_sn"))
    settings = Settings(zid=zid, whatami=WhatAmI[rest.pop("whatami")], **rest)
    return Sessions(settings, KEY, lambda n: nonce.to_bytes(n, "little")), link


def raw(text: str, cookie: bytes = b"") -> bytes:
    return bytes.fromhex(text.replace("COOKIE", COOKIE if not cookie else cookie.hex()))


def framed(batch: bytes) -> bytes:
    return len(batch).to_bytes(2, "little") + batch


def check_peer(peer: object, wanted: dict[str, Any]) -> None:
    for name, value in wanted.items():
        expected = value.encode() if name == "user" else value
        assert getattr(peer, name) == expected, name


@pytest.mark.parametrize("case", HANDSHAKES, ids=lambda case: case["name"])
def test_connector_writes_what_the_reference_writes(case: dict[str, Any]) -> None:
    ours, link = made(case["connector"])
    machine = ours.connect(link, 0.0)
    assert machine.pull(0.0) == framed(raw(case["init_syn"]))
    assert machine.receive(framed(raw(case["init_ack"])), 0.0) == []
    assert machine.pull(0.0) == framed(raw(case["open_syn"]))
    opened = only(Opened, machine.receive(framed(raw(case["open_ack"])), 0.0))
    assert machine.pull(0.0) == b""
    check_peer(opened.peer, {k: v for k, v in case["peer"].items() if k != "user"})
    assert str(opened.peer.zid) == case["acceptor"]["zid"]


@pytest.mark.parametrize("case", HANDSHAKES, ids=lambda case: case["name"])
def test_acceptor_writes_what_the_reference_writes(case: dict[str, Any]) -> None:
    ours, link = made(case["acceptor"])
    machine = ours.accept(link, 0.0)
    assert machine is not None
    assert machine.receive(framed(raw(case["init_syn"])), 0.0) == []
    answer = machine.pull(0.0)[2:]
    ack = decode(answer, "transport")
    assert isinstance(ack, InitAck)
    cookie = bytes([len(ack.cookie) & 0x7F | 0x80, len(ack.cookie) >> 7]) + ack.cookie
    if len(ack.cookie) < 128:
        cookie = bytes([len(ack.cookie)]) + ack.cookie
    assert answer == raw(case["init_ack"], cookie)
    opened = only(Opened, machine.receive(framed(raw(case["open_syn"], cookie)), 0.0))
    assert machine.pull(0.0) == framed(raw(case["open_ack"]))
    check_peer(opened.peer, case["peer"])
    assert str(opened.peer.zid) == case["connector"]["zid"]


def test_shared_memory_is_skipped_and_never_offered() -> None:
    ours, _ = made({"zid": "cc01", "whatami": "CLIENT"})
    machine = ours.connect(LinkFacts(mtu=65_480), 0.0)
    syn = decode(machine.pull(0.0)[2:], "transport")
    assert isinstance(syn, InitSyn)
    assert syn.shm is None
    shm = "e1 09 10 01aa 0a00c0 COOKIE 81 c2 0e 8cfabc9db59fe0d364c18282a403 2701"
    machine.receive(framed(raw(shm)), 0.0)
    opened = decode(machine.pull(0.0)[2:], "transport")
    assert isinstance(opened, OpenSyn)
    assert opened.shm is None
    events = machine.receive(framed(raw("e2 0a f2aed304 42 09 010001020304050607")), 0.0)
    assert len(events) == 1


FEATURES = [
    dict(zip(("qos", "compression", "lowlatency", "patch"), chosen, strict=True))
    for chosen in itertools.product((False, True), (False, True), (False, True), (0, 1))
    if not (chosen[0] and chosen[2])
]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "datagram"])
@pytest.mark.parametrize("theirs", FEATURES, ids=str)
@pytest.mark.parametrize("ours", FEATURES, ids=str)
def test_all_combinations(ours: dict[str, Any], theirs: dict[str, Any], stream: bool) -> None:
    client = sessions("cc01", WhatAmI.CLIENT, batch_size=200, **ours)
    link = LinkFacts() if stream else DATAGRAM
    both = Pair(client, sessions("aa01", **theirs), link).open()
    for side in (both.a.machine, both.b.machine):
        peer = side.peer
        assert peer is not None
        low = ours["lowlatency"] and theirs["lowlatency"]
        assert peer.lowlatency == low
        assert peer.qos == (ours["qos"] and theirs["qos"])
        assert peer.compression == (ours["compression"] and theirs["compression"] and not low)
        assert peer.patch == min(ours["patch"], theirs["patch"])
    sizes = (0, 1, 50, 150) if both.a.machine.peer.lowlatency else (0, 1, 50, 150, 170, 1000)  # type: ignore[union-attr] # it is open
    sent = [bytes([n]) * size for n, size in enumerate(sizes)]
    for message in sent:
        both.send(put(message))
    both.run()
    assert both.b.payloads == sent
    both.a.machine.close(both.now)
    both.run()
    assert both.b.closed == Closed(0, True, "closed by the peer, reason GENERIC")
    assert both.a.machine.done


@pytest.mark.parametrize("own", [8, 16, 32, 64])
@pytest.mark.parametrize("other", [8, 16, 32, 64])
def test_the_lower_resolution_holds(own: int, other: int) -> None:
    client = sessions("cc01", WhatAmI.CLIENT, resolution=Resolution.of(own, other))
    both = Pair(client, sessions("aa01", resolution=Resolution.of(other, own))).open()
    lower = Resolution.of(min(own, other), min(own, other))
    for side in (both.a, both.b):
        assert side.machine.peer is not None
        assert side.machine.peer.resolution == lower


# What a connector does not take.


def connector(**settings: Any) -> Any:
    machine = sessions("cc01", WhatAmI.CLIENT, **settings).connect(LinkFacts(), 0.0)
    machine.pull(0.0)
    return machine


def init_ack(**fields: Any) -> InitAck:
    given: dict[str, Any] = {
        "version": 9,
        "zid": ZenohId.parse("aa01"),
        "whatami": WhatAmI.ROUTER,
        "cookie": b"c",
    }
    return InitAck(**(given | fields))


@pytest.mark.parametrize(
    ("fields", "settings", "reason"),
    [
        ({"version": 8}, {}, CloseReason.INVALID),
        ({"resolution": Resolution.of(64, 32)}, {}, CloseReason.INVALID),
        ({"resolution": Resolution.of(16, 32)}, {"resolution": Resolution.of(8, 32)}, 2),
        ({"batch_size": 4}, {}, CloseReason.INVALID),
        ({"cookie": bytes(2000)}, {}, CloseReason.INVALID),
        ({"patch": 2}, {}, CloseReason.GENERIC),
        ({"zid": ZenohId.parse("cc01")}, {}, CloseReason.CONNECTION_TO_SELF),
        ({"whatami": WhatAmI.CLIENT}, {}, CloseReason.GENERIC),
        ({}, {"credentials": Credentials(b"u", b"p")}, CloseReason.GENERIC),
    ],
)
def test_an_answer_that_is_refused(
    fields: dict[str, Any], settings: dict[str, Any], reason: int
) -> None:
    machine = connector(**settings)
    (closed,) = machine.receive(framed(encode(init_ack(**fields))), 0.0)
    assert (closed.reason, closed.by_peer) == (reason, False)
    assert machine.pull(0.0) == framed(bytes([3, reason]))
    assert machine.done


def test_the_announced_id_is_demanded() -> None:
    ours = sessions("cc01", WhatAmI.CLIENT)
    machine = ours.connect(LinkFacts(), 0.0, expect=ZenohId.parse("aa02"))
    closed = only(Closed, machine.receive(framed(encode(init_ack())), 0.0))
    assert closed.reason == CloseReason.INVALID


def test_what_was_not_offered_is_ignored() -> None:
    machine = connector(qos=False)
    machine.receive(framed(encode(init_ack(qos=True, compression=True, lowlatency=True))), 0.0)
    (opened,) = machine.receive(framed(encode(OpenAck(lease=1000, initial_sn=0))), 0.0)
    peer = opened.peer
    assert (peer.qos, peer.compression, peer.lowlatency) == (False, False, False)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"initial_sn": 2**28}, CloseReason.INVALID),
        ({"remote_bound": 2}, CloseReason.GENERIC),
        ({"remote_bound": 0}, CloseReason.GENERIC),
    ],
)
def test_an_end_that_is_refused(fields: dict[str, Any], reason: int) -> None:
    machine = connector()
    machine.receive(framed(encode(init_ack())), 0.0)
    ack = OpenAck(**({"lease": 1000, "initial_sn": 0} | fields))
    (closed,) = machine.receive(framed(encode(ack)), 0.0)
    assert (closed.reason, closed.by_peer) == (reason, False)


def test_a_frame_right_after_open_ack() -> None:
    machine = connector()
    machine.receive(framed(encode(init_ack(qos=True))), 0.0)
    frame = bytes.fromhex("25 07 7d 00 01 61 01 01 78")
    data = framed(encode(OpenAck(lease=1000, initial_sn=7))) + framed(frame)
    _, received = machine.receive(data, 0.0)
    assert len(received.messages) == 1


# The cookie.


def test_a_cookie_is_valid_on_its_connection_only() -> None:
    """Another machine of the same node does not end what the first began."""
    node = sessions("aa01", users={b"u": b"p"}, max_links=2)
    client = sessions("cc01", WhatAmI.CLIENT, credentials=Credentials(b"u", b"p"), max_links=2)
    connecting = client.connect(LinkFacts(), 0.0)
    first, second = node.accept(LinkFacts(), 0.0), node.accept(LinkFacts(), 0.0)
    assert first is not None
    assert second is not None
    syn = connecting.pull(0.0)
    first.receive(syn, 0.0)
    second.receive(syn, 0.0)
    connecting.receive(first.pull(0.0), 0.0)
    proof = connecting.pull(0.0)
    closed = only(Closed, second.receive(proof, 0.0))
    assert closed.reason == CloseReason.INVALID
    opened = only(Opened, first.receive(proof, 0.0))
    assert (opened.peer.user, opened.peer.multilink) == (b"u", True)


def test_a_cookie_of_another_key_or_time_or_with_a_changed_bit_is_refused() -> None:
    for spoil in ("key", "time", "bit", "empty"):
        node = sessions("aa01")
        machine = node.accept(LinkFacts(), 100.0)
        assert machine is not None
        syn = sessions("cc01", WhatAmI.CLIENT).connect(LinkFacts(), 100.0).pull(100.0)
        machine.receive(syn, 100.0)
        ack = decode(machine.pull(100.0)[2:], "transport")
        assert isinstance(ack, InitAck)
        cookie, now = ack.cookie, 100.0
        if spoil == "key":
            cookie = Cookie.decode(cookie, KEY).encode(b"another key of some length")
        elif spoil == "time":
            now = 111.0
        elif spoil == "bit":
            cookie = cookie[:-1] + bytes([cookie[-1] ^ 1])
        else:
            cookie = b""
        syn = encode(OpenSyn(lease=1, initial_sn=0, cookie=cookie))
        closed = only(Closed, machine.receive(framed(syn), now))
        assert (closed.reason, spoil) == (CloseReason.INVALID, spoil)


# The lease.


@pytest.mark.parametrize(
    ("asked", "settings", "granted"),
    [
        (10.0, {}, 10.0),
        (60.0, {}, 60.0),
        (60.5, {}, 60.0),
        (2.0**31, {}, 60.0),
        (2.0**31, {"max_lease": 5.0, "lease": 2.0}, 5.0),
        (90.0, {"max_lease": 5.0, "lease": 20.0}, 20.0),
    ],
)
def test_a_lease_is_granted_up_to_a_limit(
    asked: float, settings: dict[str, Any], granted: float
) -> None:
    both = Pair(sessions("cc01", WhatAmI.CLIENT, lease=asked), sessions("aa01", **settings))
    both.open()
    peer = both.b.machine.peer
    assert peer is not None
    assert (peer.lease, peer.asked) == (granted, None if asked == granted else asked)


# Authentication.


USER = Credentials(b"u1", b"p1")


@pytest.mark.parametrize(
    ("credentials", "users", "good"),
    [
        (USER, {b"u1": b"p1"}, True),
        (Credentials(b"u1", b""), {b"u1": b""}, True),
        (USER, {b"u1": b"p2"}, False),
        (USER, {b"u2": b"p1"}, False),
        (USER, {}, False),
        (Credentials(b"none", b""), {b"u1": b"p1"}, False),
        (None, {b"u1": b"p1"}, False),
        (USER, None, False),
    ],
)
def test_user_and_password(
    credentials: Credentials | None, users: dict[bytes, bytes] | None, good: bool
) -> None:
    client = sessions("cc01", WhatAmI.CLIENT, credentials=credentials)
    both = Pair(client, sessions("aa01", users=users))
    both.run()
    assert both.a.opened is both.b.opened is good
    for side in (both.a, both.b):
        assert good or (side.closed is not None and side.closed.reason == CloseReason.GENERIC)


def test_public_keys() -> None:
    from random import Random

    one, two, three = (generate(bits, Random(bits).randbytes) for bits in (512, 768, 1024))
    for own, known, other, theirs, good in (
        (one, None, two, None, True),
        (one, {two.public}, two, {one.public}, True),
        (one, {three.public}, two, None, False),
        (one, None, two, {three.public}, False),
        (one, None, None, None, False),
        (None, None, two, None, False),
    ):
        client = sessions(
            "cc01", WhatAmI.CLIENT, private_key=own, known_keys=known and frozenset(known)
        )
        router = sessions("aa01", private_key=other, known_keys=theirs and frozenset(theirs))
        both = Pair(client, router)
        both.run()
        assert both.a.opened is both.b.opened is good


# Links for some priorities.


@pytest.mark.parametrize(
    ("own", "other", "agreed"),
    [
        (((1, 7), None), (None, None), ((1, 7), None)),
        ((None, None), ((1, 4), True), ((1, 4), True)),
        (((2, 3), True), ((1, 4), None), ((2, 3), True)),
        (((2, 3), True), ((2, 3), False), None),
        (((1, 7), None), ((2, 3), None), None),
    ],
)
def test_links_for_some_priorities(own: Any, other: Any, agreed: Any) -> None:
    def link(said: Any) -> LinkFacts:
        priorities = said[0] and (Priority(said[0][0]), Priority(said[0][1]))
        return LinkFacts(priorities=priorities, only=said[1])

    both = Pair(sessions("cc01", WhatAmI.CLIENT), sessions("aa01"), link(own), link(other))
    both.run()
    if agreed is None:
        assert both.a.closed is not None
        assert both.a.closed.reason == CloseReason.GENERIC
        return
    for side in (both.a, both.b):
        peer = side.machine.peer
        assert peer is not None
        assert (peer.qos, peer.priorities, peer.only) == (True, *agreed)
