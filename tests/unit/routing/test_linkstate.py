"""The network of routers: link state in and out, weights, trees, and what becomes of the lost."""

from __future__ import annotations

import itertools

import pytest

from tests.unit.routing.scene import Scene, put, raw, zid
from zenwire.routing import ROUTER, CloseFace, Face, Limits, NodeKnown, Tables
from zenwire.routing.graph import Graph, spread
from zenwire.routing.routers import CALM, PAUSE
from zenwire.wire.locator import Locator
from zenwire.wire.values import CloseReason, WhatAmI

HERE = Locator.parse("tcp/1.2.3.4:1")
THERE = '01 0d "tcp/1.2.3.4:1"'


def told(*entries: str) -> str:
    """Link state as a neighbour says it."""
    body = bytes([len(entries)]) + b"".join(raw(entry) for entry in entries)
    return f"df 01 21 08 {len(body):02x} {body.hex()}"


def linked(scene: Scene, name: str, me: str = "aa") -> Face:
    """A router after both have said that they are linked."""
    face = scene.router(name)
    scene.hear(face, told(f"03 00 02 01 {name} 01 01 01", f"03 01 00 01 {me} 01 00"))
    scene.wait(PAUSE)
    return face


def graph(*links: tuple[str, str], me: str = "a0") -> Graph:
    made = Graph(zid(me))
    for one, other in links:
        for name in (one, other):
            if zid(name) not in made.routers:
                made.add(zid(name))
        made.routers[zid(one)].links[zid(other)] = 0
        made.routers[zid(other)].links[zid(one)] = 0
    return made


# The graph.


@pytest.mark.parametrize(
    ("one", "other", "length"),
    [
        ("aa01", "bb02f3", 100.68670068324698),
        ("aa01", "c123456789abcdef01234567", 100.52681822807688),
        ("c123456789abcdef01234567", "bb02f3", 100.755635658455),
    ],
)
def test_links_are_as_long_as_the_reference_says(one: str, other: str, length: float) -> None:
    # As its admin space tells under linkstate/north.
    assert 100 * spread(zid(one), zid(other)) == length
    assert spread(zid(one), zid(other)) == spread(zid(other), zid(one))


def test_a_link_counts_if_both_ends_tell_it() -> None:
    net = graph(("a0", "a1"))
    net.add(zid("a2")).links[zid("a0")] = 0
    ways = net.ways()
    assert ways.tree(zid("a0")).children == (zid("a1"),)
    assert ways.distance(zid("a2")) == float("inf")
    assert int(ways.distance(zid("a1"))) == 100


def test_the_greater_weight_of_both_ends_counts() -> None:
    net = graph(("a0", "a1"), ("a0", "a2"), ("a1", "a2"))
    assert net.ways().tree(zid("a0")).hops[zid("a2")] == zid("a2")
    net.routers[zid("a2")].links[zid("a0")] = 300
    net.me.links[zid("a2")] = 7
    assert net.weight(net.me, net.routers[zid("a2")]) == 300
    assert net.ways().tree(zid("a0")).hops[zid("a2")] == zid("a1")
    assert net.ways().tree(zid("a0")).children == (zid("a1"),)


def test_trees_of_one_source_fit_together_at_all_nodes() -> None:
    names = [f"a{n}" for n in range(7)]
    links = [("a0", "a1"), ("a1", "a2"), ("a2", "a3"), ("a3", "a0"), ("a2", "a4"), ("a4", "a5")]
    links += [("a5", "a0"), ("a5", "a6")]
    for source in names:
        parents = {}
        children: dict[str, set[str]] = {}
        for me in names:
            tree = graph(*links, me=me).ways().tree(zid(source))
            parents[me] = None if tree.parent is None else str(tree.parent)
            children[me] = {str(child) for child in tree.children}
            assert set(tree.hops.values()) == set(tree.children)
        assert parents[source] is None
        for me, child in itertools.product(names, names):
            assert (child in children[me]) == (parents[child] == me)


def test_those_without_a_chain_of_links_are_forgotten() -> None:
    net = graph(("a0", "a1"), ("a1", "a2"), ("a3", "a4"))
    assert {str(router.zid) for router in net.remove_detached()} == {"a3", "a4"}
    number = net.add(zid("a3")).psid
    assert number not in {router.psid for router in net.routers.values() if router.zid != zid("a3")}
    assert number > 4, "a number is not used again as long as there are others"


# Among neighbours.


def test_a_router_is_told_all_and_the_others_of_it() -> None:
    scene = Scene(ROUTER, "aa", locators=("tcp/1.2.3.4:1",))
    one = scene.router("b1")
    assert scene.sent(one) == raw(told(f"07 00 02 01 aa 01 {THERE} 01 01", "03 01 00 01 b1 01 00"))
    scene.hear(one, told("03 00 05 01 b1 01 01 01", "03 01 00 01 aa 01 00"))
    # What is new is told to all, also to the one it came from: now it knows the number.
    assert scene.sent(one) == raw(told("03 01 05 01 b1 01 01 00"))
    two = scene.router("b2")
    assert scene.sent(one) == raw(told("03 02 00 01 b2 01 00", f"06 00 03 01 {THERE} 02 01 02"))
    assert scene.sent(two) == raw(
        told(
            f"07 00 03 01 aa 01 {THERE} 02 01 02",
            "03 01 05 01 b1 01 01 00",
            "03 02 00 01 b2 01 00",
        )
    )
    scene.tables.remove_face(two)
    assert scene.sent(one) == raw(told(f"06 00 04 01 {THERE} 01 01"))


def test_changes_are_passed_on_and_old_versions_are_not() -> None:
    scene = Scene(ROUTER, "aa")
    one, two = linked(scene, "b1"), linked(scene, "b2")
    scene.forget()
    scene.hear(one, told("03 05 03 01 b5 01 01 00", "02 00 03 01 02 01 05"))
    assert scene.sent(two) == raw(told("03 03 03 01 b5 01 01 01", "02 01 03 01 02 00 03"))
    assert scene.sent(one) == raw(told("03 03 03 01 b5 01 01 01"))
    scene.hear(one, told("02 05 03 01 00", "02 00 02 01 00"))
    assert scene.quiet()
    assert scene.tables.counters.ignored_oam == 0


def test_a_node_known_by_link_state_is_told_to_the_node() -> None:
    scene = Scene(ROUTER, "aa")
    one = linked(scene, "b1")
    scene.hear(one, told(f"07 05 03 01 b5 01 {THERE} 01 00", "02 00 03 01 02 01 05"))
    assert scene.events(NodeKnown) == [NodeKnown(zid("b5"), WhatAmI.ROUTER, (HERE,), one)]


def test_what_was_said_of_this_node_in_an_earlier_life_is_corrected() -> None:
    scene = Scene(ROUTER, "aa")
    one = linked(scene, "b1")
    scene.forget()
    scene.hear(one, told("02 01 63 01 01 00"))
    assert scene.sent(one) == raw(told("06 00 64 01 00 01 01"))
    later = Tables(zid("aa"), ROUTER, life=1000)
    face = later.add_face(zid("b1"), WhatAmI.ROUTER, 0.0)
    [sent] = later.outputs()
    assert sent[0] is face  # type: ignore[index] # a Send
    assert b"\xe9\x07" in sent.message.body, "versions begin at its life"  # type: ignore[union-attr,operator]


def test_weights_that_are_set_are_told() -> None:
    scene = Scene(ROUTER, "aa")
    scene.tables.set_weights({zid("b1"): 7})
    one = scene.router("b1")
    assert raw("0f 00 02 01 aa 01 00 01 01 07") in scene.sent(one)
    scene.tables.set_weights({zid("b1"): 8})
    assert scene.sent(one) == raw(told("0e 00 03 01 00 01 01 08"))
    scene.tables.set_weights({zid("b1"): 8})
    assert scene.quiet()


# What others have, and where it comes from.


def test_a_child_is_told_when_the_network_is_calm() -> None:
    scene = Scene(ROUTER, "aa")
    scene.session.declare_subscriber("far/**")
    scene.session.declare_queryable("q", complete=True)
    one = linked(scene, "b1")
    scene.forget()
    scene.session.declare_token("t")
    assert scene.sent(one) == b""
    scene.wait(CALM)
    assert scene.sent(one) == raw(
        '9e 21 08 20 01 00 03 "far" 9e 21 08 62 00 01 03 "/**"'
        '9e 21 08 20 02 00 01 "q" 9e 21 08 c4 00 02 21 01'
        '9e 21 08 20 03 00 01 "t" 9e 21 08 46 00 03'
    )


def test_what_a_router_declared_is_passed_on_with_its_source() -> None:
    scene = Scene(ROUTER, "aa")
    one, two = linked(scene, "b1"), linked(scene, "b2")
    scene.wait(CALM)
    scene.forget()
    scene.hear(one, '9e 21 08 20 01 00 03 "far" 9e 21 08 62 00 01 03 "/**"')
    assert scene.sent(two) == raw('9e 21 08 20 01 00 03 "far" 9e a1 08 33 01 62 00 01 03 "/**"'), (
        "b1 is our number 1"
    )
    assert scene.sent(one) == b""
    scene.session.push("far/x", put())
    assert scene.sent(one) == raw('3d 01 02 "/x" 01 01 "x"'), "from us: no id"
    scene.hear(one, "9e 21 08 83 00 5f 05 03 01 2f 2a 2a")
    assert scene.sent(two) == raw("9e a1 08 33 01 83 00 5f 05 03 01 2f 2a 2a")
    scene.session.push("far/x", put())
    assert scene.quiet()


def test_data_of_another_router_goes_on_along_its_tree() -> None:
    scene = Scene(ROUTER, "aa")
    one, two = linked(scene, "b1"), linked(scene, "b2")
    client = scene.client("c1")
    scene.wait(CALM)
    scene.hear(one, told("03 05 03 01 b5 01 01 00", "02 00 03 01 02 01 05"))
    scene.hear(two, '9e 21 08 62 00 00 01 "k"')
    scene.hear(client, '9e 21 08 62 01 00 01 "k"')
    scene.wait(1.0)
    scene.forget()
    scene.hear(one, 'bd 00 01 "k" 33 05 01 01 "x"')
    assert scene.sent(two) == raw('dd 01 33 03 01 01 "x"'), "b5 is our number 3"
    assert scene.sent(client) == raw('7d 00 01 "k" 01 01 "x"')
    assert scene.sent(one) == b""
    # It comes by another way than the one that leads here: somebody has not changed his yet.
    scene.hear(two, told("03 07 03 01 b5 01 01 00"))
    scene.hear(two, 'bd 00 01 "k" 33 07 01 01 "x"')
    assert scene.tables.counters.off_tree == 1
    scene.hear(one, 'bd 00 01 "k" 33 09 01 01 "x"')
    assert scene.tables.counters.unknown_node == 1
    scene.hear(one, 'bd 00 01 "k" 33 01 01 01 "x"')
    assert scene.tables.counters.unknown_node == 2, "our own does not come back"
    assert scene.sent(client) == scene.sent(two) == b""


def test_a_query_goes_to_the_nearest_complete_queryable() -> None:
    scene = Scene(ROUTER, "aa")
    one, two = linked(scene, "b1"), linked(scene, "b2")
    client = scene.client("c1")
    scene.wait(CALM)
    scene.hear(one, told("03 05 03 01 b5 01 01 00", "02 00 03 01 02 01 05"))
    # Behind b1, two links away; and b2, which is one.
    scene.hear(one, '9e a1 08 33 05 e4 00 00 01 "q" 21 01')
    scene.hear(two, '9e 21 08 e4 00 00 01 "q" 21 01')
    scene.wait(1.0)
    scene.forget()
    scene.hear(client, 'fc 07 00 01 "q" 21 0d 03')
    assert scene.sent(one) == b""
    assert scene.sent(two) == raw("dc 01 01 21 0d 03")
    scene.hear(two, 'fb 01 00 01 "q" 21 0d 04 01 01 "r" 9a 01 21 0d')
    assert scene.sent(client) == raw('fb 07 00 01 "q" 21 0d 04 01 01 "r" 9a 07 21 0d')


def test_a_query_of_another_router_goes_on_with_its_source_and_gets_one_final() -> None:
    scene = Scene(ROUTER, "aa")
    one, two = linked(scene, "b1"), linked(scene, "b2")
    scene.wait(CALM)
    scene.hear(one, told("03 05 03 01 b5 01 01 00", "02 00 03 01 02 01 05"))
    scene.hear(two, '9e 21 08 64 00 00 01 "q"')
    scene.wait(1.0)
    scene.forget()
    scene.hear(one, 'fc 09 00 01 "q" a1 0d 33 05 03')
    assert scene.sent(two) == raw('fc 01 00 01 "q" a1 0d 33 03 03')
    scene.hear(two, "9a 01 21 0d 9a 01 21 0d")
    assert scene.sent(one) == raw("9a 09 21 0d")
    # From nowhere: it has its final all the same.
    scene.hear(one, 'fc 0a 00 01 "q" a1 0d 33 63 03')
    assert scene.sent(one) == raw("9a 0a 21 0d")


def test_routers_that_are_out_of_reach_take_along_what_they_had() -> None:
    scene = Scene(ROUTER, "aa")
    one, client = linked(scene, "b1"), scene.client("c1")
    scene.hear(one, told("03 05 03 01 b5 01 01 00", "02 00 03 01 02 01 05"))
    scene.wait(1.0)
    scene.hear(client, 'f9 01 3a 00 02 "**" 21 08')
    scene.forget()
    scene.hear(one, '9e 21 08 62 00 00 01 "k" 9e a1 08 33 05 62 00 00 01 "k"')
    assert scene.sent(client) == raw('9e 21 08 62 01 00 01 "k"'), "told once"
    scene.hear(one, told("02 00 04 01 01 01"))
    assert scene.sent(client) == b""
    scene.tables.remove_face(one)
    assert scene.sent(client) == raw("9e 21 08 03 01")


# Those who break rules, or want too much.


def test_link_state_that_cannot_be_read_ends_the_session() -> None:
    scene = Scene(ROUTER, "aa")
    one = scene.router("b1")
    scene.hear(one, "df 01 21 08 01 05")
    assert scene.events(CloseFace) == [CloseFace(one, CloseReason.INVALID, "link state: TRUNCATED")]


def test_limits_of_nodes_links_and_declarations() -> None:
    scene = Scene(ROUTER, "aa", limits=Limits(nodes=4, links=2, all_links=3, sourced=2))
    one = linked(scene, "b1")
    scene.hear(one, told(*(f"03 {n:02x} 03 01 c{n} 01 01 00" for n in range(2, 9))))
    counters = scene.tables.counters
    assert counters.limit_nodes > 0
    scene.hear(one, told("02 00 09 01 05 01 02 03 02 03"))
    assert counters.limit_links >= 3
    known = scene.tables._core.routers.graph
    assert known.links == sum(len(each.links) for each in known.routers.values()) - 1 <= 3
    for n in range(5):
        scene.hear(one, f'9e 21 08 62 00 00 01 "{"abcde"[n]}"')
    assert counters.limit_declarations == 3
    scene.hear(one, '9e 21 08 83 00 5f 03 03 00 61 9e 21 08 62 00 00 01 "e"')
    assert counters.limit_declarations == 3, "what goes makes room"
    scene.hear(one, "9e 21 08 03 00 9e 21 08 83 00 5f 03 03 00 7a")
    assert counters.unknown_undeclare == 2


def test_link_state_and_interests_are_for_some_only() -> None:
    scene = Scene(ROUTER, "aa")
    one, client = scene.router("b1"), scene.client("c1")
    scene.forget()
    scene.hear(client, told("03 00 02 01 c1 04 00"))
    scene.hear(one, "5f 02 00")
    assert scene.tables.counters.ignored_oam == 2
    scene.hear(one, 'f9 01 3a 00 02 "**" 21 08')
    assert scene.tables.counters.ignored_interest == 1
    assert scene.quiet()
