"""Random and mutilated bytes at every stage: a typed end of one link, and bounded memory."""

from __future__ import annotations

import tracemalloc
from random import Random
from typing import Any

import pytest

from tests.unit.transport.pair import DATAGRAM, Pair, Side, put, sessions
from zenwire.transport import (
    Cause,
    Closed,
    LinkFacts,
    Multicast,
    Received,
    Settings,
    Unicast,
)
from zenwire.transport.rsa import generate
from zenwire.wire import encode, encode_batch, frame_stream
from zenwire.wire.transport import Fragment, Frame
from zenwire.wire.values import CloseReason, Priority, Resolution, WhatAmI, ZenohId

MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "compression": {"compression": True},
    "low latency": {"lowlatency": True, "qos": False},
    "no qos": {"qos": False, "patch": 0},
    "auth": {"private_key": generate(512, Random(1).randbytes), "users": {b"u": b"p"}},
    "multilink": {"max_links": 2},
}


def stage(number: int, mode: str, link: LinkFacts) -> Side:
    """A machine that waits for InitSyn, InitAck, OpenSyn, OpenAck, or is open."""
    settings = MODES[mode]
    both = Pair(sessions("cc01", WhatAmI.PEER, **settings), sessions("aa01", **settings), link)
    sides = [both.b, both.a, both.b, both.a, both.b]
    others = [both.a, both.b, both.a, both.b, both.a]
    for step in range(number):
        data = others[step].machine.pull(both.now)
        if data:
            sides[step].events += sides[step].machine.receive(data, both.now)
    return sides[number]


def check(machine: Unicast, events: list[Any]) -> None:
    """Nothing but the documented, and an end that is an end."""
    closed = [event for event in events if isinstance(event, Closed)]
    assert len(closed) <= 1
    assert machine.closed is bool(closed)
    if closed:
        assert closed[0].by_peer or closed[0].reason in (None, *CloseReason)
        while machine.pull(1000.0):
            pass
        assert machine.done


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("link", [LinkFacts(), DATAGRAM], ids=["stream", "datagram"])
def test_random_bytes(number: int, mode: str, link: LinkFacts) -> None:
    random = Random(f"{number} {mode}")
    for _ in range(10 if mode == "multilink" else 60):
        side = stage(number, mode, link)
        if side.machine.closed:
            continue
        events: list[Any] = []
        for _ in range(random.randint(1, 4)):
            batch = random.randbytes(random.choice([0, 1, 2, 5, 30, 200]))
            data = frame_stream(batch) if link.stream and random.random() < 0.8 else batch
            events += side.machine.receive(data, 1000.0)
        check(side.machine, events)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("number", range(4))
def test_mutilated_handshakes(number: int, mode: str) -> None:
    """Each byte of each message in turn: refused or agreed, and nothing else."""
    settings = MODES[mode]
    if mode == "auth":
        settings = settings | {"users": None}
    outcomes = set()
    # A key for each pair takes its time: not every byte there.
    for at in range(0, 400, 11 if mode == "multilink" else 1):
        both = Pair(
            sessions("cc01", WhatAmI.PEER, **settings), sessions("aa01", **settings), LinkFacts()
        )
        sides = [both.b, both.a, both.b, both.a]
        others = [both.a, both.b, both.a, both.b]
        for step in range(number):
            sides[step].machine.receive(others[step].machine.pull(both.now), both.now)
        data = bytearray(others[number].machine.pull(both.now))
        if at >= len(data) - 2:
            break
        data[2 + at] ^= 1 << at % 8
        events = sides[number].machine.receive(bytes(data), both.now)
        check(sides[number].machine, events)
        outcomes.add(sides[number].machine.closed)
    assert True in outcomes


def open_machine(**settings: Any) -> Pair:
    return Pair(sessions("cc01", WhatAmI.CLIENT), sessions("aa01", **settings)).open()


FRAME = encode(Frame(reliable=True, sn=7))
ENDS: dict[str, bytes] = {
    "unknown transport id": b"\x08",
    "unknown network id": FRAME + b"\x18",
    "unknown mandatory extension": b"\x84\x1b",
    "reserved encoding": b"\x84\x6b\x00",
    "above the mask": encode(Frame(reliable=True, sn=2**28)),
    "utf-8": FRAME + bytes.fromhex("7d0001ff010178"),
    "rid": FRAME + bytes.fromhex("9affffffff1f"),
    "cut": FRAME + bytes.fromhex("7d0001610105"),
    "fragments of garbage": encode(
        Fragment(reliable=True, more=False, sn=5, first=True, payload=b"\0\0")
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_what_ends_an_open_link_does_so_without_a_word(name: str) -> None:
    both = open_machine()
    lanes = both.b.machine.session.lanes  # type: ignore[union-attr] # it is open
    for at in range(16):
        lanes.newest[at].last = 4
    events = both.b.machine.receive(frame_stream(ENDS[name]), both.now)
    (closed,) = [e for e in events if isinstance(e, Closed)]
    assert (closed.reason, closed.by_peer) == (None, False)
    assert both.b.machine.pull(both.now) == b""
    assert both.b.machine.done


def test_a_batch_longer_than_agreed_ends_the_link() -> None:
    both = open_machine(batch_size=100)
    assert both.b.machine.receive((98).to_bytes(2, "little"), both.now) == []
    both = open_machine(batch_size=100)
    assert len(both.b.machine.receive((99).to_bytes(2, "little"), both.now)) == 1
    assert both.b.machine.closed


def test_a_priority_without_qos_ends_the_link() -> None:
    both = open_machine(qos=False)
    frame = encode(Frame(reliable=True, sn=0, priority=Priority.REAL_TIME))
    assert len(both.b.machine.receive(frame_stream(frame), both.now)) == 1
    assert both.b.machine.closed


@pytest.mark.parametrize("text", ["", "0007", "200700", "04", "0109120acc"])
def test_what_is_ignored(text: str) -> None:
    both = open_machine()
    events = both.b.machine.receive(frame_stream(bytes.fromhex(text)), both.now)
    assert not [e for e in events if isinstance(e, Closed)]
    assert not both.b.machine.closed


# Memory.


def peak(run: Any) -> int:
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_declared_lengths_cost_nothing() -> None:
    both = Pair(
        sessions("cc01", WhatAmI.CLIENT, lowlatency=True, qos=False),
        sessions("aa01", lowlatency=True, qos=False),
    ).open()

    def run() -> None:
        for byte in (2**30 - 1).to_bytes(4, "little") + bytes(1000):
            assert both.b.machine.receive(bytes([byte]), both.now) == []

    assert peak(run) < 100_000


def test_fragments_of_one_byte_cost_a_byte() -> None:
    both = open_machine(max_message_size=15_000)
    session = both.b.machine.session
    assert session is not None
    first = session.lanes.newest[11].last + 1

    def run() -> None:
        for n in range(20_000):
            sn = first + n & session.lanes.mask
            cut = Fragment(reliable=True, more=True, sn=sn, first=not n, payload=b"x")
            both.b.machine.receive(frame_stream(encode(cut)), both.now)

    assert peak(run) < 120_000
    assert both.b.machine.stats.dropped == {Cause.FRAGMENT_TOO_LARGE: 1}


def test_sixteen_unfinished_messages_share_one_budget() -> None:
    both = open_machine(max_reassembly=500_000, max_message_size=400_000)
    session = both.b.machine.session
    assert session is not None

    def run() -> None:
        for n in range(20):
            for priority in Priority:
                for reliable in (True, False):
                    at = session.lanes.newest[2 * priority + reliable]
                    sn = at.last + 1 & session.lanes.mask
                    cut = Fragment(
                        reliable=reliable,
                        more=True,
                        sn=sn,
                        priority=priority,
                        first=not n,
                        payload=bytes(60_000),
                    )
                    both.b.machine.receive(frame_stream(encode(cut)), both.now)

    assert peak(run) < 1_500_000
    assert both.b.machine.stats.dropped[Cause.FRAGMENT_EVICTED] >= 8


def test_expansion_is_bounded_by_the_batch() -> None:
    both = Pair(
        sessions("cc01", WhatAmI.CLIENT, compression=True), sessions("aa01", compression=True)
    ).open()
    bomb = b"\x01" + b"\x1f\x00\x01\x00" + b"\xff" * 60_000 + b"\x00" + b"\x50aaaaa"

    def run() -> None:
        (closed,) = both.b.machine.receive(frame_stream(bomb), both.now)
        assert isinstance(closed, Closed)

    assert peak(run) < 1_000_000


def test_a_queue_that_nobody_empties_is_bounded() -> None:
    both = open_machine()

    def run() -> None:
        for _ in range(5_000):
            both.b.machine.send(put(bytes(1000)), both.now)

    assert peak(run) < 1_000_000


def test_handshakes_under_way_are_bounded() -> None:
    node = sessions("aa01", max_pending=10)
    made = [node.accept(LinkFacts(), 0.0) for _ in range(1000)]
    assert sum(machine is not None for machine in made) == 10
    for machine in made[:10]:
        assert machine is not None
        machine.tick(11.0)
    assert node.accept(LinkFacts(), 11.0) is not None


def test_numbers_that_jump_are_dropped_not_followed() -> None:
    both = open_machine(resolution=Resolution.of(8))
    random = Random(4)
    for _ in range(2_000):
        batch = encode_batch([Frame(reliable=True, sn=random.randrange(128)), put(b"x")])
        for event in both.b.machine.receive(frame_stream(batch), both.now):
            assert isinstance(event, Received)
    stats = both.b.machine.stats
    assert stats.rx_messages + stats.dropped[Cause.LATE] + stats.dropped[Cause.DUPLICATE] == 2_000


def test_random_datagrams_to_a_group() -> None:
    settings = Settings(zid=ZenohId.parse("aa"), whatami=WhatAmI.PEER, qos=False)
    group = Multicast(settings, DATAGRAM, 0.0, Random(1).randbytes)
    other = Multicast(
        Settings(zid=ZenohId.parse("bb"), whatami=WhatAmI.PEER, qos=False),
        DATAGRAM,
        0.0,
        Random(2).randbytes,
    )
    join = other.pull(0.0)
    random = Random(3)
    for n in range(3_000):
        data = bytearray(join)
        if n % 2:
            data[random.randrange(len(data))] = random.randrange(256)
        else:
            data = bytearray(random.randbytes(random.randrange(40)))
        group.receive(bytes(data), random.randrange(10), float(n) / 100)
        group.tick(float(n) / 100)
    assert not group.closed
    assert len(group.peers) <= 10
