from __future__ import annotations

import asyncio

from tests.unit.node.nodes import Lan, Taker, put, run, until
from zenwire.node import Node

GROUP = "udp/224.0.0.225:7447"


def members(node: Node) -> set[str]:
    (group,) = node.stats().groups
    return {str(zid) for zid in group.members}


def test_all_of_a_group_hear_each_other() -> None:
    async def scenario() -> None:
        lan = Lan()
        a = await lan.open(listen=GROUP)
        b = await lan.open(connect=[GROUP])
        c = await lan.open(listen=GROUP)
        zids = {str(node.zid) for node in lan.nodes}
        await until(lambda: all(members(n) == zids - {str(n.zid)} for n in lan.nodes))
        takers = [Taker(node, "a/**") for node in lan.nodes]
        put(a, "a/1", b"of a")
        put(b, "a/1", b"of b")
        put(b, "other", b"unwanted")
        await asyncio.sleep(1)
        assert all(sorted(taker.payloads) == [b"of a", b"of b"] for taker in takers)
        assert not any(node.neighbours for node in lan.nodes)
        assert c.stats().groups[0].transport.rx_messages >= 3
        await lan.close()

    run(scenario())


def test_who_leaves_is_gone_at_once_and_who_is_silent_after_its_lease() -> None:
    async def scenario() -> None:
        silent = [False]
        lan = Lan(lose=lambda _src, _dst, _data: silent[0])
        a = await lan.open(listen=GROUP)
        b = await lan.open(listen=GROUP)
        await lan.open(listen=GROUP)
        await until(lambda: len(members(a)) == 2)
        await b.close()
        await until(lambda: len(members(a)) == 1, 0.1)
        silent[0] = True
        since = a.now
        await until(lambda: not members(a))
        assert 7 < a.now - since < 11
        await lan.close()

    run(scenario())


def test_a_client_of_a_member_is_part_of_it() -> None:
    async def scenario() -> None:
        lan = Lan()
        a = await lan.open(listen=["memory/a", GROUP])
        b = await lan.open(listen=GROUP)
        client = await lan.open("client", connect=["memory/a"])
        await until(lambda: len(members(a)) == 1 and len(members(b)) == 1)
        far, near = Taker(b, "x"), Taker(client, "y")
        await asyncio.sleep(1)
        put(client, "x", b"out")
        put(b, "y", b"in")
        await until(lambda: far.payloads == [b"out"] and near.payloads == [b"in"])
        await lan.close()

    run(scenario())


def test_large_samples_cross_in_fragments() -> None:
    async def scenario() -> None:
        lan = Lan()
        a, b = await lan.open(listen=GROUP), await lan.open(listen=GROUP)
        await until(lambda: len(members(a)) == 1 and len(members(b)) == 1)
        taker = Taker(b, "big")
        payload = bytes(range(256)) * 400
        put(a, "big", payload)
        await until(lambda: taker.payloads == [payload])
        await lan.close()

    run(scenario())
