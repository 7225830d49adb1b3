from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.unit.transport.pair import DATAGRAM, payload, put
from zenwire.transport import (
    ACCEPTED,
    Cause,
    Dropped,
    Event,
    Full,
    Joined,
    Left,
    Multicast,
    Packed,
    Received,
    Settings,
    Then,
    Writable,
)
from zenwire.wire import decode, encode
from zenwire.wire.transport import Join
from zenwire.wire.values import CloseReason, Priority, QoS, Resolution, WhatAmI, ZenohId


class Group:
    """Nodes that hear each other, and themselves."""

    def __init__(self, count: int = 3, **settings: Any) -> None:
        self.now = 100.0
        self.nodes = [self.node(n, **settings) for n in range(count)]
        self.events: list[list[Event]] = [[] for _ in self.nodes]
        self.deaf: set[int] = set()

    def node(self, n: int, **settings: Any) -> Multicast:
        given = {"qos": False} | settings
        made = Settings(zid=ZenohId.parse(f"a{n}"), whatami=WhatAmI.PEER, **given)
        return Multicast(made, DATAGRAM, self.now, Random(n).randbytes)

    def run(self) -> None:
        moved = True
        while moved:
            moved = False
            for n, node in enumerate(self.nodes):
                while data := node.pull(self.now):
                    moved = True
                    for i, other in enumerate(self.nodes):
                        if n not in self.deaf:
                            self.events[i] += other.receive(data, n, self.now)

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while (due := min(n.deadline for n in self.nodes if n.deadline is not None)) <= end:
            self.now = max(self.now, due)
            for n, node in enumerate(self.nodes):
                self.events[n] += node.tick(self.now)
            self.run()
        self.now = end

    def payloads(self, n: int) -> list[tuple[object, bytes]]:
        received = [e for e in self.events[n] if isinstance(e, Received)]
        return [(e.source, payload(m)) for e in received for m in e.messages]


@pytest.mark.parametrize("qos", [False, True])
@pytest.mark.parametrize("compression", [False, True])
def test_all_hear_all(qos: bool, compression: bool) -> None:
    group = Group(qos=qos, compression=compression)
    group.run()
    for n, node in enumerate(group.nodes):
        assert set(node.peers) == {0, 1, 2} - {n}
    for n, node in enumerate(group.nodes):
        assert node.send(put(b"%d" % n, Priority.REAL_TIME), group.now) is ACCEPTED
        assert node.send(put(bytes([n]) * 30_000), group.now, reliable=False) is ACCEPTED
    group.run()
    for n in range(3):
        wanted = {(i, b"%d" % i) for i in range(3)} | {(i, bytes([i]) * 30_000) for i in range(3)}
        assert set(group.payloads(n)) == {w for w in wanted if w[0] != n}
        assert not group.nodes[n].stats.dropped


def test_join_is_that_of_the_reference() -> None:
    group = Group(1)
    text = group.nodes[0].pull(group.now).hex()
    assert text.startswith("a70901a00a")
    assert text.endswith("2701")
    join = decode(bytes.fromhex(text), "transport")
    assert isinstance(join, Join)
    assert (join.lease, join.batch_size) == (10_000, 8192)
    assert group.nodes[0].deadline == group.now + 2.5


@pytest.mark.parametrize(("interval", "seconds"), [(0.5, 0.5), (60.0, 2.5)])
def test_a_join_comes_as_often_as_it_should(interval: float, seconds: float) -> None:
    """And as often as it must, to be in the group."""
    group = Group(1, join_interval=interval)
    assert group.nodes[0].pull(group.now)
    assert group.nodes[0].deadline == group.now + seconds


def test_who_comes_later_hears_from_then_on() -> None:
    group = Group(2)
    group.run()
    group.nodes[0].send(put(b"before"), group.now)
    group.run()
    group.nodes.append(group.node(2))
    group.events.append([])
    group.nodes[0].send(put(b"unheard"), group.now)
    group.run()
    assert group.nodes[2].stats.dropped == {Cause.UNKNOWN_SOURCE: 1}
    group.wait(3.0)
    group.nodes[0].send(put(b"after"), group.now)
    group.run()
    assert group.payloads(2) == [(0, b"after")]
    assert group.nodes[2].stats.rx_missing == 0


def test_who_is_silent_has_left() -> None:
    group = Group(2)
    group.run()
    group.wait(100.0)
    assert set(group.nodes[0].peers) == {1}
    group.deaf = {1}
    group.wait(10.0)
    assert isinstance(group.events[0][-1], Left)
    assert group.events[0][-1].reason == CloseReason.EXPIRED
    assert group.nodes[0].peers == {}


def test_who_closes_has_left() -> None:
    group = Group(2)
    group.run()
    group.nodes[1].close(group.now, CloseReason.GENERIC)
    group.run()
    assert isinstance(group.events[0][-1], Left)
    assert group.events[0][-1].reason == 0
    assert group.nodes[1].deadline is None
    assert group.nodes[1].send(put(b""), group.now) == Dropped(Cause.NOT_OPEN)


def test_who_differs_is_not_heard() -> None:
    group = Group(1)
    for other in (
        {"resolution": Resolution.of(8)},
        {"batch_size": 1000},
        {"qos": True},
    ):
        stranger = group.node(5, **other)
        while data := stranger.pull(group.now):
            assert group.nodes[0].receive(data, "s", group.now) == []
    assert group.nodes[0].peers == {}


def test_another_at_the_same_address() -> None:
    group = Group(1)
    first, second = group.node(5), group.node(6)
    (joined,) = group.nodes[0].receive(first.pull(group.now), "s", group.now)
    assert isinstance(joined, Joined)
    left, joined = group.nodes[0].receive(second.pull(group.now), "s", group.now)
    assert isinstance(left, Left)
    assert isinstance(joined, Joined)
    assert str(joined.peer.zid) == "a6"


def test_there_are_not_more_nodes_than_may_be() -> None:
    group = Group(1, max_sessions=3)
    for n in range(1, 10):
        group.nodes[0].receive(group.node(n).pull(group.now), n, group.now)
    assert len(group.nodes[0].peers) == 3


def test_a_node_that_talks_garbage_leaves_alone() -> None:
    group = Group(3)
    group.run()
    (left,) = group.nodes[0].receive(b"\xff\xff", 1, group.now)
    assert isinstance(left, Left)
    assert set(group.nodes[0].peers) == {2}
    assert group.nodes[0].receive(b"\xff\xff", "nobody", group.now) == []


def test_congestion_never_ends_a_group() -> None:
    group = Group(1)
    node = group.nodes[0]
    node.pull(group.now)
    while (result := node.send(put(bytes(8000)), group.now)) is ACCEPTED:
        pass
    assert isinstance(result, Full)
    assert result.then is Then.DROP
    assert result.until == group.now + 5.0
    late = node.send(put(b""), group.now + 5.0, retry=result)
    assert late == Dropped(Cause.CONGESTION)
    node.pull(group.now)
    assert node.tick(group.now) == [Writable(Priority.DATA)]


def test_packed_messages_go_to_all() -> None:
    group = Group(2)
    group.run()
    one = encode(put(b"one"))
    node = group.nodes[0]
    assert node.packing > 4 * len(one)
    assert node.send(Packed(one * 4, 4, QoS()), group.now) is ACCEPTED
    large = encode(put(bytes(30_000)))
    assert node.send(Packed(large, 1, QoS()), group.now) is ACCEPTED
    group.run()
    assert group.payloads(1) == [(0, b"one")] * 4 + [(0, bytes(30_000))]
    node.close(group.now)
    lost = Packed(one * 4, 4, QoS())
    assert node.send(lost, group.now) == Dropped(Cause.NOT_OPEN)
    assert node.stats.dropped[Cause.NOT_OPEN] == 4
