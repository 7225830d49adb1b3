from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.node.nodes import Lan, run, until
from zenwire.node import Node
from zenwire.node.autoconnect import DIALS_MAX, JITTER, TRIES, Autoconnect, connect_found
from zenwire.wire.locator import Locator
from zenwire.wire.scouting import Hello
from zenwire.wire.transport import VERSION
from zenwire.wire.values import WhatAmI, ZenohId

SCOUTED: dict[str, Any] = {"multicast": {"enabled": True}}


def meshed(nodes: list[Node]) -> bool:
    return all(len(node.neighbours) == len(nodes) - 1 for node in nodes)


def test_gossip_makes_a_mesh_of_all_who_know_one() -> None:
    async def scenario() -> None:
        lan = Lan()
        await lan.open(listen="memory/hub")
        for name in "abcdef":
            await lan.open(listen=f"memory/{name}", connect=["memory/hub"])
        await until(lambda: meshed(lan.nodes), 2)
        assert all(not node.stats().endings for node in lan.nodes)
        await lan.close()

    run(scenario())


@pytest.mark.parametrize("how", ["gossip", "multicast"])
def test_greater_zid_alone_dials(how: str) -> None:
    async def scenario() -> None:
        lan = Lan()
        greater = {"autoconnect_strategy": "greater-zid"}
        scouting = {
            "multicast": {"enabled": how == "multicast"} | greater,
            "gossip": greater,
        }
        hub = ["memory/hub"] if how == "gossip" else []
        await lan.open(listen="memory/hub", scouting=scouting, id="1")
        for number in range(2, 6):
            where = f"memory/{number}"
            await lan.open(listen=where, connect=hub, scouting=scouting, id=str(number))
        await until(lambda: meshed(lan.nodes), 20)
        for node in lan.nodes[1:]:
            for near in node.neighbours.values():
                dialled = near.carriers[0].link.dst.address == "hub" or int(node.zid) > int(
                    near.face.zid
                )
                role = near.carriers[0].machine.role.value
                assert role == ("connector" if dialled and int(near.face.zid) != 0 else "acceptor")
        await lan.close()

    run(scenario())


def test_nobody_is_dialled_who_is_not_wanted() -> None:
    async def scenario() -> None:
        lan = Lan()
        routers = {"autoconnect": ["router"]}
        scouting = {"multicast": {"enabled": True} | routers, "gossip": routers}
        for name in "abc":
            await lan.open(listen=f"memory/{name}", scouting=scouting)
        await asyncio.sleep(20)
        assert not any(node.neighbours for node in lan.nodes)
        await lan.close()

    run(scenario())


def test_who_is_found_must_be_who_answers() -> None:
    async def scenario() -> None:
        lan = Lan()
        node = await lan.open(listen="memory/a")
        b = await lan.open(listen="memory/b")
        c = await lan.open(listen="memory/c")
        wrong, right = Locator("memory", "b"), Locator("memory", "c")
        assert await connect_found(node, c.zid, [wrong]) is None
        assert node.stats().failures == {"invalid": 1}
        found = await connect_found(node, c.zid, [Locator("memory", "nowhere"), wrong, right])
        assert found is not None
        assert found.neighbour.face.zid == c.zid
        assert not b.neighbours
        await lan.close()

    run(scenario())


def hello(number: int, *locators: Locator) -> Hello:
    return Hello(
        version=VERSION,
        zid=ZenohId(number.to_bytes(4, "little")),
        whatami=WhatAmI.PEER,
        locators=locators,
    )


def test_a_lie_is_tried_a_few_times_and_floods_of_them_are_bounded() -> None:
    async def scenario() -> None:
        lan = Lan()
        node = lan.bare()
        auto = Autoconnect(node)
        dials: list[bool] = []
        auto.on_dial = lambda _zid, begins: dials.append(begins)
        nowhere = Locator("memory", "nowhere")
        for number in range(1, DIALS_MAX + 11):
            auto.hello(hello(number, nowhere))
            auto.hello(hello(number, nowhere))
        # Those who say no place are not dialled, nor are we ourselves.
        auto.hello(hello(99_999))
        auto.hello(Hello(version=VERSION, zid=node.zid, whatami=WhatAmI.PEER, locators=(nowhere,)))
        assert auto.ignored == 20
        await asyncio.sleep(60)
        assert dials == [True] * DIALS_MAX + [False] * DIALS_MAX
        assert TRIES > 1
        await lan.close()

    run(scenario())


def test_who_was_lost_without_a_word_is_dialled_again() -> None:
    async def scenario() -> None:
        lan = Lan()
        for name in "abc":
            connect = [] if name == "a" else ["memory/a"]
            await lan.open(listen=f"memory/{name}", connect=connect)
        _, b, c = lan.nodes
        await until(lambda: meshed(lan.nodes))
        await asyncio.sleep(5)
        near = b.find(c.zid)
        assert near is not None
        near.carriers[0].link.abort()
        await until(lambda: b.find(c.zid) is None)
        await until(lambda: b.find(c.zid) is not None and c.find(b.zid) is not None, 3)
        assert JITTER < 1
        # One who said good-bye is not.
        await c.close()
        failures = b.stats().failures.total()
        await asyncio.sleep(20)
        assert b.stats().failures.total() == failures
        await lan.close()

    run(scenario())


def test_scouting_finds_all_in_spite_of_losses() -> None:
    async def scenario() -> None:
        count = iter(range(10**6))
        lan = Lan(lose=lambda _src, _dst, _data: next(count) % 3 != 0)
        for name in "abcd":
            await lan.open(listen=f"memory/{name}", scouting=SCOUTED)
        await until(lambda: meshed(lan.nodes), 60)
        await lan.close()

    run(scenario())
