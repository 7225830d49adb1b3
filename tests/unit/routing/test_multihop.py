from __future__ import annotations

from tests.unit.routing.scene import Scene, zid
from zenwire.routing import PEER, ROUTER, Face, Limits, NodeKnown, RoutingOptions, Send
from zenwire.wire.linkstate import (
    OAM_LINKSTATE,
    Link,
    LinkState,
    LinkStateList,
    decode_linkstate,
)
from zenwire.wire.locator import Locator
from zenwire.wire.network import Oam
from zenwire.wire.objects import encode
from zenwire.wire.values import WhatAmI, WhatAmIMatcher

MULTIHOP = RoutingOptions(multihop=True)
HERE, THERE = Locator("tcp", "10.0.0.1:1"), Locator("tcp", "10.0.0.2:1")


def tell(scene: Scene, face: Face, *entries: LinkState) -> None:
    body = encode(LinkStateList(entries=entries))
    scene.tables.receive(face, Oam(id=OAM_LINKSTATE, body=body), scene.now)


def told(scene: Scene, face: Face) -> list[LinkState]:
    """What a face was told of nodes since the last question."""
    sent = [
        output.message
        for output in scene.tables.outputs()
        if isinstance(output, Send) and output.face is face and isinstance(output.message, Oam)
    ]
    bodies = [message.body for message in sent if isinstance(message.body, bytes)]
    return [entry for body in bodies for entry in decode_linkstate(body).entries]


def node(psid: int, name: str, sn: int, *links: int, at: Locator = THERE) -> LinkState:
    ways = tuple(Link(each) for each in links)
    known = zid(name)
    return LinkState(psid=psid, sn=sn, zid=known, whatami=WhatAmI.PEER, locators=(at,), links=ways)


def test_nodes_beyond_neighbours_are_passed_on_and_forgotten_with_their_links() -> None:
    scene = Scene(PEER, options=MULTIHOP, locators=("tcp/10.0.0.9:1",))
    near, other = scene.peer("bb01"), scene.peer("bb02")
    scene.forget()
    tell(scene, near, node(0, "bb01", 5, 1, 2, at=HERE), node(1, "aa01", 1), node(2, "cc01", 3, 0))
    assert scene.events(NodeKnown) == [NodeKnown(zid("cc01"), WhatAmI.PEER, (THERE,), near)]
    tell(scene, near, node(2, "cc01", 4, 0, at=HERE))
    heard = told(scene, other)
    assert [(each.zid, each.sn, each.locators) for each in heard] == [(None, 4, (HERE,))]
    # A newcomer is told of all, with their links.
    late = scene.peer("bb03")
    known = {each.zid: each for each in told(scene, late)}
    assert set(known) == {zid(name) for name in ("aa01", "bb01", "bb02", "bb03", "cc01")}
    assert known[zid("cc01")].locators == (HERE,)
    assert len(known[zid("aa01")].links) == 3
    scene.tables.remove_face(near)
    last = scene.peer("bb04")
    assert {each.zid for each in told(scene, last)} == {
        zid(name) for name in ("aa01", "bb02", "bb03", "bb04")
    }


def test_older_news_are_not_passed_on() -> None:
    scene = Scene(PEER, options=MULTIHOP)
    near, other = scene.peer("bb01"), scene.peer("bb02")
    tell(scene, near, node(0, "bb01", 5, 1, 2), node(1, "aa01", 1), node(2, "cc01", 3, 0))
    scene.forget()
    tell(scene, near, node(2, "cc01", 3, 0, at=HERE), node(2, "cc01", 2, 0, at=HERE))
    assert told(scene, other) == []


def test_nodes_and_links_have_limits() -> None:
    scene = Scene(PEER, options=MULTIHOP, limits=Limits(nodes=4, links=2))
    near = scene.peer("bb01")
    tell(scene, near, *(node(at, f"c{at}01", 1) for at in range(1, 9)))
    assert scene.tables.counters.limit_nodes
    tell(scene, near, node(1, "c101", 2, 1, 2, 3))
    assert scene.tables.counters.limit_links


def test_locators_are_for_the_targets_alone() -> None:
    routers = RoutingOptions(multihop=True, gossip_target=WhatAmIMatcher.ROUTER)
    scene = Scene(PEER, options=routers, locators=("tcp/10.0.0.9:1",))
    assert [each.locators for each in told(scene, scene.peer())] == [None, None]
    mine = {each.zid: each.locators for each in told(scene, scene.router())}
    assert mine[zid("aa01")] == (Locator("tcp", "10.0.0.9:1"),)


def test_a_router_passes_on_what_its_peers_tell_of_others() -> None:
    scene = Scene(ROUTER, options=MULTIHOP)
    near, other = scene.peer("bb01"), scene.peer("bb02")
    scene.forget()
    tell(scene, near, node(2, "cc01", 3))
    tell(scene, near, node(2, "cc01", 3))
    assert [(each.zid, each.locators) for each in told(scene, other)] == [(zid("cc01"), (THERE,))]
    assert zid("cc01") in {each.zid for each in told(scene, scene.peer("bb03"))}
    scene.tables.remove_face(near)
    assert zid("cc01") not in {each.zid for each in told(scene, scene.peer("bb04"))}
