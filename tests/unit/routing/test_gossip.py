"""Gossip: what is told of whom, and which nodes become known."""

from __future__ import annotations

from tests.unit.routing.scene import Scene, peer, raw, zid
from zenwire.routing import PEER, CloseFace, Limits, NodeKnown
from zenwire.wire.locator import Locator
from zenwire.wire.values import CloseReason, WhatAmI

HERE = Locator.parse("tcp/1.2.3.4:1")
THERE = '01 0d "tcp/1.2.3.4:1" 00'
"""One locator, no links."""


def told(*entries: str) -> str:
    """Link state as a neighbour says it."""
    body = bytes([len(entries)]) + b"".join(raw(entry) for entry in entries)
    return f"df 01 21 08 {len(body):02x} {body.hex()}"


def test_locators_of_a_neighbour_are_passed_on_once() -> None:
    scene = peer("aa02")
    one, two, client = scene.peer("b1"), scene.peer("b2"), scene.client("c1")
    scene.forget()
    own = told(f"07 00 02 01 b1 02 {THERE}")
    scene.hear(one, own)
    assert scene.sent(two) == raw(told(f"07 01 02 01 b1 02 {THERE}"))
    assert scene.sent(one) == scene.sent(client) == b""
    scene.hear(one, own)
    assert scene.quiet(), "the same version is no news"
    three = scene.peer("b3")
    assert raw(f"07 01 02 01 b1 02 {THERE}") in scene.sent(three)


def test_a_node_that_is_no_neighbour_becomes_known() -> None:
    scene = peer("aa02")
    one = scene.peer("b1")
    scene.peer("b2")
    scene.forget()
    scene.hear(
        one,
        told(
            f"07 00 02 01 b1 02 {THERE}",  # itself
            f"07 01 02 01 b2 02 {THERE}",  # linked to us
            f"07 02 02 01 b9 01 {THERE}",  # a router
            "03 03 02 01 b8 02 00",  # nobody knows where
            f"07 04 02 02 02 aa 02 {THERE}",  # us
        ),
    )
    assert scene.sent(one) == b""
    assert scene.events(NodeKnown) == [NodeKnown(zid("b9"), WhatAmI.ROUTER, (HERE,), one)]


def test_a_later_entry_is_named_by_its_number_alone() -> None:
    scene = peer("aa02")
    one = scene.peer("b1")
    scene.forget()
    scene.hear(one, told("03 02 01 01 b9 02 00"))
    scene.hear(one, told(f"06 02 02 02 {THERE}"))
    assert scene.events(NodeKnown) == [NodeKnown(zid("b9"), WhatAmI.PEER, (HERE,), one)]
    scene.hear(one, told(f"06 07 02 02 {THERE}"))
    assert scene.quiet()
    assert scene.tables.counters.ignored_oam == 1


def test_routers_are_told_our_links_as_they_change() -> None:
    scene = peer("bb03")
    router = scene.router("aa03")
    scene.forget()
    other = scene.peer("b1")
    assert scene.sent(router) == raw(told("03 02 00 01 b1 02 00", "06 00 03 02 00 02 01 02"))
    scene.forget()
    scene.tables.remove_face(other)
    assert scene.sent(router) == raw(told("06 00 04 02 00 01 01"))


def test_new_locators_are_told_to_all() -> None:
    scene = Scene(PEER, "aa02")
    other = scene.peer("b1")
    scene.forget()
    scene.tables.set_locators([HERE])
    assert scene.sent(other) == raw(told(f"07 00 03 02 02 aa 02 {THERE}"))
    scene.tables.set_locators([HERE])
    assert scene.quiet()


def test_bad_link_state_closes_the_face() -> None:
    scene = peer()
    other = scene.peer()
    scene.forget()
    scene.hear(other, "df 01 21 08 02 05 01")
    (close,) = scene.events(CloseFace)
    assert (close.face, close.reason) == (other, CloseReason.INVALID)
    assert scene.tables.counters.violations == {"link state: TRUNCATED": 1}


def test_other_oam_and_link_state_of_a_client_are_ignored() -> None:
    scene = peer()
    other, client = scene.peer(), scene.client()
    scene.forget()
    scene.hear(other, "df 07 21 08 01 00 3f 01 05 1f 01")
    scene.hear(client, "df 01 21 08 02 05 01")
    assert scene.quiet()
    assert scene.tables.counters.ignored_oam == 4


def test_a_neighbour_tells_of_so_many_nodes() -> None:
    scene = peer(limits=Limits(nodes=2))
    other = scene.peer()
    scene.forget()
    for n in range(4):
        scene.hear(other, told(f"07 0{n} 02 01 d{n} 02 {THERE}"))
    assert len(scene.events(NodeKnown)) == 2
    assert scene.tables.counters.limit_nodes == 2
