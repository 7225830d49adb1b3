"""Our transport against the reference: the machine, a blocking socket, an eclipse-zenoh node."""

from __future__ import annotations

import base64
import json
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import gcd
from pathlib import Path
from typing import Any, Self

import pytest
import zenoh

from tests.ports import free_port
from zenwire.transport import (
    Accepted,
    Cause,
    Closed,
    Credentials,
    Dropped,
    Event,
    Joined,
    LinkFacts,
    Multicast,
    Opened,
    PrivateKey,
    Received,
    Sessions,
    Settings,
    Unicast,
    read_private_key,
    read_public_keys,
)
from zenwire.transport.rsa import generate
from zenwire.wire.data import Put
from zenwire.wire.declare import DeclareFinal, DeclareSubscriber
from zenwire.wire.network import Declare, Interest, NetworkMessage, Push
from zenwire.wire.values import (
    CloseReason,
    CongestionControl,
    InterestMode,
    Priority,
    QoS,
    Resolution,
    WhatAmI,
    WireExpr,
    ZenohId,
)

pytestmark = pytest.mark.interop

TIMEOUT = 20.0
"""Long enough for a busy machine; nothing here waits for it to pass."""

BLOCK = QoS.of(congestion_control=CongestionControl.BLOCK)


def now() -> float:
    return time.monotonic()


def config(mode: str, auth: dict[str, Any] | None = None, **unicast: Any) -> dict[str, Any]:
    compression = unicast.pop("compression", False)
    link = unicast.pop("link", {})
    return {
        "mode": mode,
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
        "transport": {
            "shared_memory": {"enabled": False},
            "unicast": unicast | {"compression": {"enabled": compression}},
            "auth": auth or {},
            "link": link,
        },
    }


def opened(made: dict[str, Any]) -> zenoh.Session:
    return zenoh.open(zenoh.Config.from_json5(json.dumps(made)))


@contextmanager
def reference(
    mode: str = "router", auth: dict[str, Any] | None = None, **unicast: Any
) -> Iterator[tuple[zenoh.Session, int]]:
    """An eclipse-zenoh node that listens."""
    port = free_port()
    made = config(mode, auth, **unicast) | {"listen": {"endpoints": [f"tcp/127.0.0.1:{port}"]}}
    session = opened(made)
    try:
        yield session, port
    finally:
        session.close()  # type: ignore[no-untyped-call] # its package has no annotation there


def sessions(zid: str, whatami: WhatAmI = WhatAmI.CLIENT, **settings: Any) -> Sessions:
    made = Settings(zid=ZenohId.parse(zid), whatami=whatami, **settings)
    return Sessions(made, os.urandom(32), os.urandom)


class Wire:
    """A machine on a socket. What comes is kept until somebody asks for it."""

    def __init__(self, machine: Unicast, link: socket.socket) -> None:
        self.machine = machine
        self.link = link
        self.events: list[Event] = []
        self.messages: list[NetworkMessage] = []
        self.closed: Closed | None = None
        self.opened: Opened | None = None
        link.settimeout(TIMEOUT)

    @classmethod
    def dial(cls, ours: Sessions, port: int, link: LinkFacts | None = None) -> Self:
        machine = ours.connect(link or LinkFacts(), now())
        return cls(machine, socket.create_connection(("127.0.0.1", port), TIMEOUT))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.link.close()

    def flush(self) -> None:
        while data := self.machine.pull(now()):
            self.link.sendall(data)
        self._note(self.machine.tick(now()))

    def _note(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Received):
                self.messages += event.messages
            elif isinstance(event, Closed):
                self.closed = event
            elif isinstance(event, Opened):
                self.opened = event

    def step(self) -> None:
        self.flush()
        data = self.link.recv(2**18)
        self._note(self.machine.receive(data, now()) if data else self.machine.lost(now()))
        if self.closed is None:
            self.flush()

    def until(self, ready: Callable[[], bool]) -> None:
        while not ready():
            assert self.closed is None, self.closed
            self.step()

    def open(self) -> Self:
        self.until(lambda: self.opened is not None)
        return self

    def send(self, *messages: NetworkMessage, **how: Any) -> None:
        for message in messages:
            while not isinstance(self.machine.send(message, now(), **how), Accepted):
                self.flush()
        self.flush()

    def refusal(self) -> Closed:
        """How the link ends."""
        while self.closed is None:
            self.step()
        return self.closed

    def synchronise(self) -> None:
        """Everything sent before is known to the reference when this returns."""
        token = Interest(
            mode=InterestMode.CURRENT, id=99, tokens=True, key=WireExpr(0, "sync/none"), qos=BLOCK
        )
        self.send(token)

        def final(m: NetworkMessage) -> bool:
            return isinstance(m, Declare) and m.interest_id == 99 and m.body == DeclareFinal()

        self.until(lambda: any(final(m) for m in self.messages))
        self.messages = [m for m in self.messages if not final(m)]

    def payloads(self) -> list[bytes]:
        bodies = [m.body for m in self.messages if isinstance(m, Push)]
        return [body.payload for body in bodies if isinstance(body, Put)]


@contextmanager
def beside(what: Callable[[], None]) -> Iterator[None]:
    """The reference blocks until we have read what it sends."""
    thread = threading.Thread(target=what)
    thread.start()
    try:
        yield
    finally:
        thread.join(TIMEOUT)


def put(key: str, payload: bytes, qos: QoS = BLOCK) -> Push:
    return Push(key=WireExpr(0, key), qos=qos, body=Put(payload=payload))


def subscribe(key: str) -> Declare:
    return Declare(body=DeclareSubscriber(id=1, key=WireExpr(0, key)))


MEGABYTES = bytes(range(256)) * 20_000
"""Five of them."""
MANY = 300
"""More than an 8-bit sequence number counts twice."""

OFFERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "default": ({}, {}),
    "8 bit": ({"resolution": Resolution.of(8, 32)}, {}),
    "16 bit": ({"resolution": Resolution.of(16, 16)}, {}),
    "no qos": ({"qos": False}, {}),
    "small batch": ({"batch_size": 96}, {}),
    "no patch": ({"patch": 0, "batch_size": 1000}, {}),
    "no batching": ({"batching": False}, {}),
    "compression": ({"compression": True}, {"compression": True}),
    "compression, not there": ({"compression": True}, {}),
    "compression, small": (
        {"compression": True, "batch_size": 200, "qos": False},
        {"compression": True},
    ),
    "low latency": (
        {"lowlatency": True, "qos": False},
        {"lowlatency": True, "qos": {"enabled": False}},
    ),
    "low latency, not there": ({"lowlatency": True, "qos": False}, {}),
    "low latency, compression": (
        {"lowlatency": True, "qos": False, "compression": True},
        {"lowlatency": True, "qos": {"enabled": False}, "compression": True},
    ),
    "their 8 bit": ({}, {"link": {"tx": {"sequence_number_resolution": "8bit"}}}),
    "their small batch": ({}, {"link": {"tx": {"batch_size": 128}}}),
}


def agreed(peer_settings: dict[str, Any], theirs: dict[str, Any]) -> tuple[bool, bool, bool]:
    """QoS, low latency, compression."""
    qos = peer_settings.get("qos", True) and theirs.get("qos", {}).get("enabled", True)
    low = peer_settings.get("lowlatency", False) and theirs.get("lowlatency", False)
    both = peer_settings.get("compression", False) and theirs.get("compression", False)
    return qos, low, both and not low


AS_PEER = ("default", "compression", "low latency")
"""The transport does not depend on the mode: a few are enough."""


@pytest.mark.parametrize(
    ("offer", "mode"), [(o, "router") for o in OFFERS] + [(o, "peer") for o in AS_PEER]
)
def test_both_ways(offer: str, mode: str) -> None:
    ours, theirs = OFFERS[offer]
    size = 5_000 if "small" in offer or "8 bit" in offer else len(MEGABYTES)
    if "compression" in offer and "not" not in offer:
        size = min(size, 300_000)
    big = MEGABYTES[:size]
    got: queue.Queue[zenoh.Sample] = queue.Queue()
    with (
        reference(mode, **theirs) as (session, port),
        session.declare_subscriber("up/**", got.put),
        Wire.dial(sessions("cc01", **ours), port) as wire,
    ):
        peer = wire.open().machine.peer
        assert peer is not None
        assert str(peer.zid) == str(session.info.zid())
        assert (peer.qos, peer.lowlatency, peer.compression) == agreed(ours, theirs)
        wire.send(subscribe("down/**"))
        wire.synchronise()

        wire.send(*(put("up/a", b"%d" % i) for i in range(MANY)))
        assert [int(got.get(timeout=TIMEOUT).payload.to_bytes()) for _ in range(MANY)] == list(
            range(MANY)
        )
        if peer.lowlatency and len(big) > peer.batch_size:
            # It sends such, but does not read them.
            result = wire.machine.send(put("up/big", big), now())
            assert result == Dropped(Cause.TOO_LARGE)
            up = big[: peer.batch_size - 15]
        else:
            up = big
        wire.send(put("up/big", up))
        assert got.get(timeout=TIMEOUT).payload.to_bytes() == up

        def publish() -> None:
            for i in range(MANY):
                session.put("down/a", b"%d" % i, congestion_control=zenoh.CongestionControl.BLOCK)
            session.put("down/big", big, congestion_control=zenoh.CongestionControl.BLOCK)

        with beside(publish):
            wire.until(lambda: len(wire.payloads()) == MANY + 1)
        assert wire.payloads() == [b"%d" % i for i in range(MANY)] + [big]
        assert wire.machine.stats.dropped.keys() <= {Cause.TOO_LARGE}
        assert wire.machine.stats.rx_missing == 0

        wire.machine.close(now())
        wire.flush()
        assert wire.machine.done
        # At most its own CLOSE comes, in low latency with the prefix of other links.
        assert wire.link.recv(100) in (b"", b"\x02\x00\x03\x00", b"\x03\x00\x00\x03\x00")


def test_every_priority_and_reliability() -> None:
    got: queue.Queue[zenoh.Sample] = queue.Queue()
    with (
        reference() as (session, port),
        session.declare_subscriber("up/**", got.put),
        Wire.dial(sessions("cc02", batch_size=5_000), port) as wire,
    ):
        wire.open().send(subscribe("down/**"))
        wire.synchronise()
        for priority in list(Priority)[1:]:
            for reliable in (True, False):
                qos = QoS.of(priority, CongestionControl.BLOCK)
                wire.send(put("up/a", MEGABYTES[:100_000], qos), reliable=reliable)
                sample = got.get(timeout=TIMEOUT)
                assert len(sample.payload.to_bytes()) == 100_000
            session.put(
                "down/a",
                MEGABYTES[:100_000],
                priority=getattr(zenoh.Priority, priority.name),
                congestion_control=zenoh.CongestionControl.BLOCK,
            )
        wire.until(lambda: len(wire.payloads()) == len(Priority) - 1)
        assert not wire.machine.stats.dropped


def test_datagrams() -> None:
    port = free_port()
    made = config("router") | {"listen": {"endpoints": [f"udp/127.0.0.1:{port}"]}}
    got: queue.Queue[zenoh.Sample] = queue.Queue()
    link = LinkFacts(stream=False, reliable=False, mtu=65_487)
    machine = sessions("cc11").connect(link, now())
    with (
        opened(made) as session,
        session.declare_subscriber("up/**", got.put),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock,
    ):
        sock.connect(("127.0.0.1", port))
        wire = Wire(machine, sock).open()
        wire.send(subscribe("down/**"))
        wire.synchronise()
        # One at a time: nothing else keeps datagrams from being lost.
        for payload in (b"x", MEGABYTES[:100_000]):
            wire.send(put("up/a", payload))
            assert got.get(timeout=TIMEOUT).payload.to_bytes() == payload
            session.put("down/a", payload, congestion_control=zenoh.CongestionControl.BLOCK)
            wire.until(lambda want=payload: wire.payloads()[-1:] == [want])  # type: ignore[misc] # bound now, on purpose
        wire.machine.close(now())
        wire.flush()


# Authentication.


def accounts(tmp_path: Path) -> dict[str, Any]:
    file = tmp_path / "accounts.txt"
    file.write_text("u1:p1\n")
    return {"usrpwd": {"dictionary_file": str(file)}}


def test_user_and_password(tmp_path: Path) -> None:
    with reference(auth=accounts(tmp_path)) as (_, port):
        good = sessions("cc03", credentials=Credentials(b"u1", b"p1"))
        with Wire.dial(good, port) as wire:
            wire.open().synchronise()
        for credentials in (None, Credentials(b"u1", b"no"), Credentials(b"u2", b"p1")):
            with Wire.dial(sessions("cc04", credentials=credentials), port) as wire:
                closed = wire.refusal()
                assert (closed.reason, closed.by_peer) == (CloseReason.GENERIC, True)


def test_whoever_has_a_password_wants_to_be_asked_for_it() -> None:
    with reference() as (_, port):
        ours = sessions("cc03", credentials=Credentials(b"u1", b"p1"))
        with Wire.dial(ours, port) as wire:
            closed = wire.refusal()
            assert (closed.reason, closed.by_peer) == (CloseReason.GENERIC, False)


def der(tag: int, content: bytes) -> bytes:
    size = len(content)
    wide = (size.bit_length() + 7) // 8
    length = bytes([size]) if size < 128 else bytes([0x80 | wide]) + size.to_bytes(wide, "big")
    return bytes([tag]) + length + content


def number(value: int) -> bytes:
    return der(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def pem(label: str, content: bytes) -> str:
    text = base64.b64encode(content).decode()
    lines = "\n".join(text[i : i + 64] for i in range(0, len(text), 64))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"


def factors(key: PrivateKey) -> tuple[int, int]:
    """The primes of a key, from its two exponents."""
    n, odd = key.public.n, key.d * key.public.e - 1
    while not odd & 1:
        odd >>= 1
    for base in range(2, 1000):
        x = pow(base, odd, n)
        while x not in (1, n - 1):
            before, x = x, x * x % n
            if x == 1:
                p = gcd(before - 1, n)
                return p, n // p
    raise AssertionError("no factors")


def private_pem(key: PrivateKey) -> str:
    n, e, d = key.public.n, key.public.e, key.d
    p, q = factors(key)
    parts = (0, n, e, d, p, q, d % (p - 1), d % (q - 1), pow(q, -1, p))
    return pem("RSA PRIVATE KEY", der(0x30, b"".join(map(number, parts))))


def public_pem(key: PrivateKey) -> str:
    return pem("RSA PUBLIC KEY", der(0x30, number(key.public.n) + number(key.public.e)))


# Several links.


def test_two_links_are_one_session() -> None:
    got: queue.Queue[zenoh.Sample] = queue.Queue()
    ours = sessions("cc08", max_links=2)
    high = LinkFacts(priorities=(Priority.REAL_TIME, Priority.DATA_HIGH))
    low = LinkFacts(priorities=(Priority.DATA, Priority.BACKGROUND))
    with (
        reference(max_links=2) as (session, port),
        session.declare_subscriber("up/**", got.put),
        Wire.dial(ours, port, high) as one,
        Wire.dial(ours, port, low) as two,
    ):
        one.open()
        two.open()
        assert one.machine.session is two.machine.session
        both = one.machine.session
        assert both is not None
        assert len(session.info.transports()) == 1
        for priority in (Priority.REAL_TIME, Priority.BACKGROUND):
            qos = QoS.of(priority, CongestionControl.BLOCK)
            both.send(put("up/a", MEGABYTES[:100_000], qos), now())
            one.flush()
            two.flush()
            assert len(got.get(timeout=TIMEOUT).payload.to_bytes()) == 100_000
        assert (one.machine.stats.tx_messages, two.machine.stats.tx_messages) == (1, 1)
        one.link.close()
        one.machine.lost(now())
        both.send(put("up/a", b"x", QoS.of(Priority.REAL_TIME)), now())
        two.flush()
        assert got.get(timeout=TIMEOUT).payload.to_bytes() == b"x"


# Conflicts.


def test_conflicts_with_an_open_session() -> None:
    with reference() as (session, port), Wire.dial(sessions("cc09"), port) as wire:
        wire.open()
        with Wire.dial(sessions("cc09"), port) as second:
            closed = second.refusal()
            assert (closed.reason, closed.by_peer) == (CloseReason.MAX_LINKS, True)
        with Wire.dial(sessions("cc09", WhatAmI.PEER), port) as second:
            closed = second.refusal()
            assert (closed.reason, closed.by_peer) == (CloseReason.INVALID, True)
        with Wire.dial(sessions(str(session.info.zid())), port) as second:
            closed = second.refusal()
            assert (closed.reason, closed.by_peer) == (CloseReason.CONNECTION_TO_SELF, False)
        wire.synchronise()


# Our acceptor.


@contextmanager
def accepted(ours: Sessions, link: LinkFacts | None = None) -> Iterator[tuple[int, list[Wire]]]:
    """A listener that takes one link, in a thread that drives it until it ends."""
    wires: list[Wire] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(TIMEOUT)

        def serve() -> None:
            sock, _ = listener.accept()
            machine = ours.accept(link or LinkFacts(), now())
            assert machine is not None
            with Wire(machine, sock) as wire:
                wires.append(wire)
                while wire.closed is None:
                    wire.step()
                if not machine.done:
                    wire.flush()

        with beside(serve):
            yield listener.getsockname()[1], wires


CLIENTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    name: OFFERS[name]
    for name in (
        "default",
        "8 bit",
        "no qos",
        "small batch",
        "compression",
        "compression, not there",
        "low latency",
        "their small batch",
        "their 8 bit",
    )
}


@pytest.mark.parametrize("offer", CLIENTS)
def test_its_client_on_our_acceptor(offer: str) -> None:
    ours, theirs = CLIENTS[offer]
    size = 5_000 if "small" in offer or "8 bit" in offer else 300_000
    router = sessions("aa01", WhatAmI.ROUTER, **ours)
    block = zenoh.CongestionControl.BLOCK
    with accepted(router) as (port, wires):
        made = config("client", **theirs) | {"connect": {"endpoints": [f"tcp/127.0.0.1:{port}"]}}
        session = opened(made)
        for i in range(MANY):
            session.put("up/a", b"%d" % i, congestion_control=block)
        session.put("up/big", MEGABYTES[:size], congestion_control=block)
        session.close()  # type: ignore[no-untyped-call] # its package has no annotation there
    (wire,) = wires
    peer = wire.machine.peer
    assert peer is not None
    assert peer.whatami is WhatAmI.CLIENT
    assert (peer.qos, peer.lowlatency, peer.compression) == agreed(ours, theirs)
    assert wire.payloads() == [b"%d" % i for i in range(MANY)] + [MEGABYTES[:size]]
    assert wire.closed == Closed(0, True, "closed by the peer, reason GENERIC")
    assert not wire.machine.stats.dropped


def test_its_client_with_a_password_on_our_acceptor() -> None:
    for password, good in (("p1", True), ("no", False)):
        router = sessions("aa01", WhatAmI.ROUTER, users={b"u1": b"p1"})
        with accepted(router) as (port, wires):
            auth = {"usrpwd": {"user": "u1", "password": password}}
            made = config("client", auth) | {
                "connect": {"endpoints": [f"tcp/127.0.0.1:{port}"], "timeout_ms": 0}
            }
            if good:
                opened(made).close()  # type: ignore[no-untyped-call] # as above
            else:
                with pytest.raises(zenoh.ZError):
                    opened(made)
        (wire,) = wires
        assert wire.closed is not None
        assert wire.closed.by_peer is good
        assert wire.closed.reason == CloseReason.GENERIC
        assert (wire.machine.peer.user if wire.machine.peer else None) == (b"u1" if good else None)


def pubkey(key: PrivateKey) -> dict[str, Any]:
    return {"pubkey": {"public_key_pem": public_pem(key), "private_key_pem": private_pem(key)}}


def test_its_client_with_a_key_on_our_acceptor() -> None:
    own, other, stranger = (generate(1024, os.urandom) for _ in range(3))
    assert read_private_key(private_pem(other)) == other
    known = read_public_keys(public_pem(own) + public_pem(other))
    for key, good in ((other, True), (stranger, False)):
        router = sessions("aa01", WhatAmI.ROUTER, private_key=own, known_keys=known)
        with accepted(router) as (port, wires):
            made = config("client", pubkey(key)) | {
                "connect": {"endpoints": [f"tcp/127.0.0.1:{port}"], "timeout_ms": 0}
            }
            if good:
                opened(made).close()  # type: ignore[no-untyped-call] # as above
            else:
                with pytest.raises(zenoh.ZError):
                    opened(made)
        (wire,) = wires
        assert wire.closed is not None
        assert (wire.closed.reason, wire.closed.by_peer) == (CloseReason.GENERIC, good)


def test_its_acceptor_with_a_key_knows_nobody() -> None:
    """It does not read the keys it is told to know; what we do there is shown by MultiLink."""
    own, other = (generate(1024, os.urandom) for _ in range(2))
    with (
        reference(auth=pubkey(other)) as (_, port),
        Wire.dial(sessions("cc05", private_key=own), port) as wire,
    ):
        closed = wire.refusal()
        assert (closed.reason, closed.by_peer) == (CloseReason.GENERIC, True)


# Multicast.


def group_sockets(port: int) -> tuple[socket.socket, socket.socket]:
    """One that hears the group, one that talks to it."""
    hear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    hear.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**20)
    hear.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    hear.bind((GROUP, port))
    member = socket.inet_aton(GROUP) + socket.inet_aton("127.0.0.1")
    hear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    talk = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    talk.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
    talk.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
    talk.bind(("127.0.0.1", 0))
    hear.settimeout(TIMEOUT)
    return hear, talk


GROUP = "224.0.0.225"


@pytest.mark.parametrize("qos", [False, True])
def test_multicast(qos: bool) -> None:
    port = free_port()
    made = config("peer") | {"listen": {"endpoints": [f"udp/{GROUP}:{port}#iface=lo"]}}
    made["transport"]["multicast"] = {"qos": {"enabled": qos}}
    got: queue.Queue[zenoh.Sample] = queue.Queue()
    settings = Settings(zid=ZenohId.parse("cc10"), whatami=WhatAmI.PEER, qos=qos)
    hear, talk = group_sockets(port)
    machine = Multicast(settings, LinkFacts(stream=False, reliable=False), now(), os.urandom)
    payloads: list[bytes] = []
    joined: list[Joined] = []

    def flush() -> None:
        while data := machine.pull(now()):
            talk.sendto(data, (GROUP, port))

    def until(ready: Callable[[], bool]) -> None:
        for _ in range(100):
            if ready():
                return
            flush()
            data, source = hear.recvfrom(2**16)
            if source == talk.getsockname():
                continue
            for event in machine.receive(data, source, now()):
                if isinstance(event, Joined):
                    joined.append(event)
                if isinstance(event, Received):
                    bodies = [m.body for m in event.messages if isinstance(m, Push)]
                    payloads.extend(b.payload for b in bodies if isinstance(b, Put))
        raise AssertionError("a hundred datagrams, and nothing of what was expected")

    with hear, talk, opened(made) as session, session.declare_subscriber("up/**", got.put):
        until(lambda: bool(joined))
        assert str(joined[0].peer.zid) == str(session.info.zid())
        # It hears us by our JOIN, and sends once it knows a subscriber.
        declared = Declare(body=DeclareSubscriber(id=0, key=WireExpr(0, "down/**")))
        machine.send(declared, now())
        machine.send(put("up/a", b"small"), now())
        machine.send(put("up/a", MEGABYTES[:50_000]), now())
        flush()
        assert got.get(timeout=TIMEOUT).payload.to_bytes() == b"small"
        assert got.get(timeout=TIMEOUT).payload.to_bytes() == MEGABYTES[:50_000]
        session.put("down/a", b"x")
        # Not so much that the socket's buffer, which nobody empties meanwhile, loses some.
        session.put("down/a", MEGABYTES[:150_000], congestion_control=zenoh.CongestionControl.BLOCK)
        until(lambda: len(payloads) == 2)
        assert payloads == [b"x", MEGABYTES[:150_000]]
        assert machine.stats.rx_fragments >= 2
        machine.close(now())
        flush()
