"""A router towards its clients and peers, as captures of the reference show it."""

from __future__ import annotations

import pytest

from tests.unit.routing.scene import Scene, put, raw, zid
from zenwire.routing import (
    ROUTER,
    Face,
    Limits,
    LivelinessChanged,
    NodeKnown,
    QueryReceived,
    SampleReceived,
)
from zenwire.routing.routers import CALM, PAUSE
from zenwire.wire.locator import Locator
from zenwire.wire.values import WhatAmI

THERE = '01 0d "tcp/1.2.3.4:1"'


def router(name: str = "aa", limits: Limits | None = None) -> Scene:
    return Scene(ROUTER, name, limits=limits)


def told(*entries: str) -> str:
    """Link state as a neighbour says it."""
    body = bytes([len(entries)]) + b"".join(raw(entry) for entry in entries)
    return f"df 01 21 08 {len(body):02x} {body.hex()}"


# Clients hear each other.


def test_a_client_is_told_nothing_unless_it_asks() -> None:
    scene = router()
    one, two = scene.client("c1"), scene.client("c2")
    scene.hear(one, '9e 21 08 62 01 00 01 "k" 9e 21 08 66 02 00 01 "t"')
    assert scene.quiet()
    scene.hear(two, 'f9 02 33 00 01 "k" 21 08')
    assert scene.sent(two) == raw('9e 21 08 20 01 00 01 "k" be 02 21 08 42 01 01 be 02 21 08 1a')
    assert scene.sent(one) == b""
    scene.hear(one, "9e 21 08 03 01")
    assert scene.sent(two) == raw("9e 21 08 03 01")


def test_data_goes_once_to_each_client_that_wants_it_and_not_back() -> None:
    scene = router()
    one, two, three = (scene.client(f"c{n}") for n in (1, 2, 3))
    for face in (one, two):
        scene.hear(face, '9e 21 08 62 01 00 01 "k" 9e 21 08 62 02 00 02 "**"')
    scene.session.declare_subscriber("k")
    scene.hear(one, '3d 00 01 "k" 01 01 "x"')
    assert scene.sent(two) == raw('7d 00 01 "k" 01 01 "x"')
    assert scene.sent(one) == scene.sent(three) == b""
    [sample] = scene.events(SampleReceived)
    assert sample.key == "k"
    scene.session.push("other", put())
    assert scene.sent(one) == scene.sent(two) == raw('7d 00 05 "other" 01 01 "x"')


def test_aggregates_say_whether_there_is_anything() -> None:
    scene = router()
    one, two = scene.client("c1"), scene.client("c2")
    scene.hear(two, 'f9 01 b4 00 02 "**" 21 08')
    assert scene.sent(two) == raw("be 01 21 08 1a")
    scene.hear(one, '9e 21 08 64 01 00 01 "a"')
    assert scene.sent(two) == raw('9e 21 08 64 01 00 02 "**"')
    # Complete, but not for all of it.
    scene.hear(one, '9e 21 08 e4 02 00 01 "b" 21 01')
    assert scene.sent(two) == b""
    scene.hear(one, '9e 21 08 e4 03 00 02 "**" 21 01')
    assert scene.sent(two) == raw('9e 21 08 e4 01 00 02 "**" 21 01')
    scene.hear(one, "9e 21 08 85 01 5f 02 00 00 9e 21 08 85 02 5f 02 00 00")
    assert scene.sent(two) == b""
    scene.hear(one, '9e 21 08 64 03 00 02 "**"')
    assert scene.sent(two) == raw('9e 21 08 64 01 00 02 "**"')
    scene.hear(one, "9e 21 08 85 03 5f 02 00 00")
    assert scene.sent(two) == raw("9e 21 08 85 01 5f 02 00 00")


def test_tokens_are_told_by_key_and_own_ones_too() -> None:
    scene = router()
    one, two = scene.client("c1"), scene.client("c2")
    scene.hear(one, '9e 21 08 66 01 00 01 "t"')
    scene.hear(two, '9e 21 08 66 01 00 01 "t"')
    scene.hear(one, 'b9 05 39 00 02 "**" 21 08')
    assert scene.sent(one) == raw('be 05 21 08 66 00 00 01 "t" be 05 21 08 1a')
    scene.hear(two, 'f9 06 38 00 02 "**" 21 08')
    assert scene.sent(two) == raw('be 06 21 08 66 01 00 01 "t" be 06 21 08 1a')
    scene.tables.remove_face(one)
    assert scene.quiet(), "the other one is alive"
    scene.hear(two, "9e 21 08 87 01 5f 02 00 00")
    assert scene.sent(two) == raw("9e 21 08 87 01 5f 02 00 00")


# Queries.


def test_a_query_gets_all_replies_and_one_final() -> None:
    scene = router()
    asker, one, two = scene.client("c1"), scene.client("c2"), scene.client("c3")
    for face in (one, two):
        scene.hear(face, '9e 21 08 64 01 00 01 "q"')
    queryable = scene.session.declare_queryable("q")
    scene.hear(asker, 'fc 07 00 01 "q" 21 0d 03')
    assert scene.sent(one) == scene.sent(two) == raw('fc 01 00 01 "q" 21 0d 03')
    [query] = scene.events(QueryReceived)
    scene.hear(one, 'fb 01 00 01 "q" 21 0d 04 01 01 "1" 9a 01 21 0d')
    scene.session.finish(query.query, queryable)
    assert scene.sent(asker) == raw('fb 07 00 01 "q" 21 0d 04 01 01 "1"')
    scene.tables.remove_face(two)
    assert scene.sent(asker) == raw("9a 07 21 0d"), "who went has answered"


def test_a_budget_ends_a_query() -> None:
    scene = router()
    asker, one = scene.client("c1"), scene.client("c2")
    scene.hear(one, '9e 21 08 64 01 00 01 "q"')
    scene.hear(asker, 'fc 07 00 01 "q" a1 0d 25 02 03')
    scene.hear(one, 'fb 01 00 01 "q" 21 0d 04 01 01 "1"' * 3)
    assert scene.sent(asker) == raw(
        'fb 07 00 01 "q" 21 0d 04 01 01 "1" fb 07 00 01 "q" 21 0d 04 01 01 "1" 9a 07 21 0d'
    )
    assert scene.tables.counters.unknown_request == 1
    scene.hear(one, "9a 01 21 0d")
    scene.wait(60)
    assert scene.sent(asker) == b""


def test_a_budget_counts_the_errors_of_those_who_are_silent() -> None:
    scene = router()
    asker = scene.client("c1")
    silent = [scene.client(f"d{n}") for n in range(3)]
    for face in silent:
        scene.hear(face, '9e 21 08 64 01 00 01 "q"')
    scene.hear(asker, 'fc 07 00 01 "q" a1 0d 25 02 03')
    scene.wait(11)
    error = 'db 07 00 a1 0d 43 03 00 {} 00 05 07 "Timeout"'
    assert scene.sent(asker) == raw(error.format("d0") + error.format("d1") + "9a 07 21 0d")


# Peers: what is beyond the router, and each other's places.


def test_a_peer_is_told_of_the_others_and_asked_nothing() -> None:
    scene = router()
    one = scene.peer("b1")
    assert scene.sent(one) == raw("df 01 21 08 01 00"), "nobody yet"
    scene.hear(one, told(f"07 00 02 01 b1 02 {THERE} 01 01", "13 01 00 01 aa 01 00"))
    two = scene.peer("b2")
    assert scene.sent(two) == raw(told(f"07 01 02 01 b1 02 {THERE} 00"))
    scene.hear(two, told(f"07 00 02 01 b2 02 {THERE} 01 01", "13 01 00 01 aa 01 00"))
    assert scene.sent(one) == raw(told(f"07 02 02 01 b2 02 {THERE} 00"))
    assert scene.sent(two) == b""
    scene.hear(one, told(f"07 02 02 01 b9 02 {THERE} 00"))
    here = Locator.parse("tcp/1.2.3.4:1")
    assert scene.events(NodeKnown) == [NodeKnown(zid("b9"), WhatAmI.PEER, (here,), one)]


def test_peers_do_not_hear_each_other_through_it() -> None:
    scene = router()
    one, two, client = scene.peer("b1"), scene.peer("b2"), scene.client("c1")
    scene.forget()
    declared = '9e 21 08 62 01 00 02 "**" 9e 21 08 64 02 00 02 "**" 9e 21 08 66 03 00 01 "t"'
    for face in (one, two, client):
        scene.hear(face, declared)
    scene.hear(one, '3d 00 01 "k" 01 01 "x" fc 07 00 01 "k" 21 0d 03')
    assert scene.sent(two) == b""
    assert scene.sent(client) == raw('7d 00 01 "k" 01 01 "x" fc 01 00 01 "k" 21 0d 03')
    scene.hear(one, 'f9 02 3e 00 02 "**" 21 08')
    answer = scene.sent(one)
    assert answer.count(b"\x00\x02**") == 2, "the client's, not the other peer's"
    scene.tables.remove_face(two)
    assert scene.sent(one) == b"", "not the end of what it does not hear either"
    scene.hear(client, '3d 00 01 "k" 01 01 "y"')
    assert scene.sent(one) == raw('7d 00 01 "k" 01 01 "y"')


@pytest.mark.parametrize(("other", "primary"), [("a", True), ("bb", False), ("ab0a", True)])
def test_one_of_the_routers_of_a_peer_passes_on(other: str, primary: bool) -> None:
    """The one with the greatest id, read from its least byte on."""
    scene = router("aa")
    far = scene.router("dd")
    scene.hear(far, told("03 00 02 01 dd 01 01 01", "03 01 00 01 aa 01 00"))
    scene.wait(PAUSE)
    scene.wait(CALM)
    peer = scene.peer("b1")
    name = zid(other).raw.hex()
    scene.hear(
        peer,
        told(
            "07 00 02 01 b1 02 00 02 01 02",
            "13 01 00 01 aa 01 00",
            f"13 02 00 {len(name) // 2:02x} {name} 01 00",
        ),
    )
    scene.hear(far, '9e 21 08 62 00 00 02 "**"')
    scene.hear(peer, '9e 21 08 62 01 00 02 "**"')
    client = scene.client("c1")
    scene.hear(client, '9e 21 08 62 01 00 02 "**"')
    scene.wait(1.0)
    scene.forget()
    scene.hear(peer, '3d 00 01 "k" 01 01 "x"')
    assert bool(scene.sent(far)) == primary
    assert scene.sent(client), "its own clients are its alone"
    scene.hear(far, '3d 00 01 "k" 01 01 "y"')
    assert bool(scene.sent(peer)) == primary
    scene.hear(client, '3d 00 01 "k" 01 01 "z"')
    assert scene.sent(peer)


def test_what_came_in_at_another_router_of_a_peer_has_reached_it() -> None:
    scene = router("ff")
    far = scene.router("dd")
    scene.hear(far, told("03 00 02 01 dd 01 01 01", "03 01 00 01 ff 01 00"))
    scene.wait(PAUSE)
    peer = scene.peer("b1")
    scene.hear(
        peer,
        told("07 00 02 01 b1 02 00 02 01 02", "13 01 00 01 ff 01 00", "13 02 00 01 dd 01 00"),
    )
    scene.hear(peer, '9e 21 08 62 01 00 02 "**"')
    scene.forget()
    assert peer.primary
    scene.hear(far, '3d 00 01 "k" 01 01 "y"')
    assert scene.sent(peer) == b""


def test_tokens_of_peers_and_clients_reach_a_session_of_the_router() -> None:
    scene = router()
    one, two = scene.peer("b1"), scene.client("c1")
    watcher = scene.session.declare_liveliness_subscriber("**", scene.now, history=True)
    for face in (one, two):
        scene.hear(face, '9e 21 08 66 01 00 01 "t"')
    scene.tables.remove_face(one)
    scene.tables.remove_face(two)
    assert scene.events(LivelinessChanged) == [
        LivelinessChanged((watcher,), "t", alive=True),
        LivelinessChanged((watcher,), "t", alive=False),
    ]


# Those who want too much.


def test_a_client_that_declares_without_end() -> None:
    scene = router(limits=Limits(declarations=100, interests=10, aliases=50))
    greedy, honest = scene.client("c1"), scene.client("c2")
    scene.hear(honest, '9e 21 08 62 01 00 01 "k"')
    for n in range(1, 300):
        scene.hear(greedy, f'9e 21 08 62 {_z(n)} 00 04 "{n:04x}"')
        scene.hear(greedy, f'9e 21 08 20 {_z(n)} 00 04 "{n:04x}"')
        scene.hear(greedy, f'f9 {_z(n)} 3a 00 04 "{n:04x}" 21 08')
    counters = scene.tables.counters
    assert counters.limit_declarations == 199
    assert counters.limit_aliases == 249
    assert counters.limit_interests == 289
    finals = scene.sent(greedy).count(b"\x21\x08\x1a")
    assert finals == 299, "also who is refused is answered"
    scene.hear(greedy, '3d 00 01 "k" 01 01 "x"')
    assert scene.sent(honest) == raw('7d 00 01 "k" 01 01 "x"')


def test_answers_to_what_was_not_asked_are_nobodys() -> None:
    scene = router()
    liar, asker, other = scene.client("c1"), scene.client("c2"), scene.client("c3")
    scene.hear(other, '9e 21 08 64 01 00 01 "q"')
    scene.hear(asker, 'fc 07 00 01 "q" 21 0d 03')
    scene.forget()
    for number in range(3):
        scene.hear(liar, f'fb {number:02x} 00 01 "q" 21 0d 04 01 01 "1" 9a {number:02x} 21 0d')
    assert scene.quiet()
    assert scene.tables.counters.unknown_request == 6
    scene.hear(other, "9a 01 21 0d")
    assert scene.sent(asker) == raw("9a 07 21 0d")


def _z(number: int) -> str:
    return f"{number:02x}" if number < 128 else f"{number & 127 | 128:02x} {number >> 7:02x}"


def test_a_face_that_is_gone_is_not_heard() -> None:
    scene = router()
    one, two = scene.client("c1"), scene.client("c2")
    scene.hear(two, '9e 21 08 62 01 00 02 "**"')
    scene.tables.remove_face(one)
    scene.hear(one, '3d 00 01 "k" 01 01 "x"')
    assert scene.quiet()
    assert isinstance(one, Face)
