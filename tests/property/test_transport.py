"""What holds for all traffic: nothing twice, nothing out of order, however it is cut."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.transport.pair import DATAGRAM, Pair, put, sessions
from zenwire.transport import Event, LinkFacts, Received
from zenwire.wire.data import Put
from zenwire.wire.network import Push
from zenwire.wire.values import Priority, Resolution, WhatAmI

FEATURES = st.fixed_dictionaries(
    {
        "qos": st.booleans(),
        "compression": st.booleans(),
        "patch": st.integers(0, 1),
        "batching": st.booleans(),
        "batch_size": st.integers(32, 400) | st.just(65_535),
        "resolution": st.sampled_from([8, 16, 32, 64]).map(Resolution.of),
    }
)
SENT = st.lists(
    st.tuples(
        st.sampled_from(list(Priority)),
        st.booleans(),
        st.booleans(),
        st.integers(0, 50) | st.integers(0, 3_000),
    ),
    max_size=30,
)


def told(events: list[Event]) -> list[tuple[Any, ...]]:
    """Events, with what two runs have in common."""
    return [
        (e.priority, e.reliable, *e.messages) if isinstance(e, Received) else (type(e),)
        for e in events
    ]


def talk(ours: dict[str, Any], theirs: dict[str, Any], link: LinkFacts) -> Pair:
    return Pair(sessions("cc01", WhatAmI.CLIENT, **ours), sessions("aa01", **theirs), link).open()


@settings(max_examples=60)
@given(FEATURES, FEATURES, SENT, st.booleans(), st.integers(1, 300))
def test_all_arrives_once_and_in_order_by_lane(
    ours: dict[str, Any],
    theirs: dict[str, Any],
    sent: list[tuple[Priority, bool, bool, int]],
    stream: bool,
    chunk: int,
) -> None:
    both = talk(ours, theirs, LinkFacts() if stream else DATAGRAM)
    peer = both.a.machine.peer
    assert peer is not None
    if stream:
        both.chunk = chunk
    wanted: dict[tuple[Priority, bool], list[tuple[int, int]]] = defaultdict(list)
    for number, (priority, reliable, express, size) in enumerate(sent):
        message = put(bytes(size), priority, express=express, key=f"k/{number}")
        both.send(message, reliable=reliable)
        lane = priority if peer.qos else Priority.DATA
        wanted[lane, reliable].append((number, size))
    both.run()
    got: dict[tuple[Priority, bool], list[tuple[int, int]]] = defaultdict(list)
    for event in both.b.of(Received):
        for message in event.messages:
            assert isinstance(message, Push)
            assert isinstance(message.body, Put)
            number = int(message.key.suffix.removeprefix("k/"))
            got[event.priority, event.reliable].append((number, len(message.body.payload)))
    assert got == wanted
    stats = both.b.machine.stats
    assert not stats.dropped
    assert (stats.rx_missing, stats.rx_messages) == (0, len(sent))


@settings(max_examples=40)
@given(FEATURES, SENT, st.integers(0, 2**32))
def test_any_cut_of_the_stream_gives_the_same_events(
    ours: dict[str, Any], sent: list[tuple[Priority, bool, bool, int]], seed: int
) -> None:
    def run(cuts: Random | None) -> list[tuple[Any, ...]]:
        both = talk(ours, {"compression": True}, LinkFacts())
        data = b""
        for priority, reliable, express, size in sent:
            both.a.machine.send(
                put(bytes(size), priority, express=express), both.now, reliable=reliable
            )
            while batch := both.a.machine.pull(both.now):
                data += batch
        at = 0
        events: list[Event] = []
        while at < len(data):
            size = len(data) if cuts is None else cuts.randint(1, 200)
            events += both.b.machine.receive(data[at : at + size], both.now)
            at += size
        return told(events)

    assert run(None) == run(Random(seed))


@settings(max_examples=40)
@given(FEATURES, SENT, st.integers(0, 2**32))
def test_loss_and_disorder_never_repeat_or_reorder(
    ours: dict[str, Any], sent: list[tuple[Priority, bool, bool, int]], seed: int
) -> None:
    """Datagrams are lost, come twice and overtake each other."""
    both = talk(ours | {"patch": 1}, {}, DATAGRAM)
    chance = Random(seed)
    waiting: list[bytes] = []
    for number, (priority, reliable, express, size) in enumerate(sent):
        message = put(bytes(size), priority, express=express, key=f"k/{number}")
        both.a.machine.send(message, both.now, reliable=reliable)
        while batch := both.a.machine.pull(both.now):
            waiting.append(batch)
    for at in range(len(waiting) - 1):
        if chance.random() < 0.2:
            waiting[at : at + 2] = reversed(waiting[at : at + 2])
    for batch in waiting:
        for _ in range(chance.choice([0, 1, 1, 1, 2])):
            both.b.events += both.b.machine.receive(batch, both.now)
    assert both.b.closed is None
    last: dict[tuple[Priority, bool], int] = {}
    for event in both.b.of(Received):
        for message in event.messages:
            assert isinstance(message, Push)
            assert isinstance(message.body, Put)
            number = int(message.key.suffix.removeprefix("k/"))
            assert number > last.get((event.priority, event.reliable), -1)
            last[event.priority, event.reliable] = number
            assert len(message.body.payload) == sent[number][3]
