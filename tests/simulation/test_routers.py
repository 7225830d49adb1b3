"""Routers in virtual time: links, transports and timers are real, and minutes take no time."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.node.nodes import Lan, Taker, put, run, until
from zenwire.node import Node

SIZE = 6


async def ring(lan: Lan) -> list[Node]:
    """Routers that each dial the one before; the first dials the last."""
    return [
        await lan.open(
            "router",
            listen=f"memory/r{at}",
            connect=[f"memory/r{(at - 1) % SIZE}"],
            id=f"a{at}",
        )
        for at in range(SIZE)
    ]


async def everywhere(nodes: list[Node], takers: list[Taker], text: bytes) -> None:
    """What each puts, each gets, once; asked again until the network is as it should be."""

    def once() -> None:
        for at, node in enumerate(nodes):
            put(node, "k", text + str(at).encode())

    wanted = sorted(text + str(at).encode() for at in range(len(nodes)))
    for _ in range(100):
        for taker in takers:
            taker.payloads.clear()
        once()
        await asyncio.sleep(0.5)
        if all(sorted(taker.payloads) == wanted for taker in takers):
            return
        for taker in takers:
            assert len(set(taker.payloads)) == len(taker.payloads), "nothing twice"
    raise AssertionError([len(taker.payloads) for taker in takers])


def test_a_ring_loses_a_router_and_gets_it_back() -> None:
    async def scenario() -> None:
        lan = Lan()
        routers = await ring(lan)
        clients = [await lan.open("client", connect=[f"memory/r{at}"]) for at in range(SIZE)]
        takers = [Taker(node, "k") for node in clients]
        await everywhere(clients, takers, b"start ")
        for at in (2, 0):
            await routers[at].close()
            lan.nodes.remove(routers[at])
            others = [n for n in range(SIZE) if n != at]
            await everywhere([clients[n] for n in others], [takers[n] for n in others], b"without ")
            connect = [f"memory/r{(at - 1) % SIZE}"]
            routers[at] = await lan.open(
                "router", listen=f"memory/r{at}", connect=connect, id=f"a{at}"
            )
            await everywhere(clients, takers, b"again ")
        for router in routers:
            graph = router.tables._core.routers.graph
            assert len(graph.routers) == SIZE
            assert len(graph.me.links) == 2
        await lan.close()

    run(scenario())


def test_sessions_of_routers_themselves_hear_each_other() -> None:
    async def scenario() -> None:
        lan = Lan()
        routers = await ring(lan)
        takers = [Taker(node, "k") for node in routers]
        await everywhere(routers, takers, b"x ")
        await lan.close()

    run(scenario())


@pytest.mark.parametrize("weight", [None, 1000])
def test_a_weight_that_is_set_moves_messages_to_another_way(weight: int | None) -> None:
    async def scenario() -> None:
        lan = Lan()
        more = {}
        if weight is not None:
            weights = [{"dst_zid": "a1", "weight": weight}]
            more = {"routing": {"router": {"linkstate": {"transport_weights": weights}}}}
        first = await lan.open("router", listen="memory/r0", id="a0", **more)
        middle = await lan.open("router", listen="memory/r2", connect=["memory/r0"], id="a2")
        last = await lan.open("router", connect=["memory/r0", "memory/r2"], id="a1")
        taker = Taker(last, "k")
        await asyncio.sleep(2)
        put(first, "k", b"x")
        await until(lambda: taker.payloads == [b"x"])
        tree = first.tables._core.routers.tree(None)
        assert tree.hops[last.zid] == (last.zid if weight is None else middle.zid)
        await lan.close()

    run(scenario())
