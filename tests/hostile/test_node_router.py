"""A router whose neighbours are hostile, or unlucky: its clients do not notice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from tests.hostile.peers import BLOCK, TIMEOUT, Exchange, Peer, Victim, config, put, until
from zenwire import aio
from zenwire.node import open_node
from zenwire.routing import Limits
from zenwire.transport import Cause
from zenwire.wire.data import Put, Reply
from zenwire.wire.declare import DeclareSubscriber
from zenwire.wire.linkstate import OAM_LINKSTATE, Link, LinkState, LinkStateList
from zenwire.wire.network import Declare, Interest, Oam, Push, Response, ResponseFinal
from zenwire.wire.objects import encode
from zenwire.wire.transport import Fragment
from zenwire.wire.values import InterestMode, WhatAmI, WireExpr, ZenohId

ROLES = [WhatAmI.CLIENT, WhatAmI.PEER, WhatAmI.ROUTER]


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the columnar data plane, whose memory is in the way of tests that count it."""
    monkeypatch.setenv("ZENWIRE_FAST", "0")


@asynccontextmanager
async def router(limits: Limits | None = None, **more: Any) -> AsyncIterator[Victim]:
    """A router that a client talks with all the time; no sample may get lost."""
    chosen = config("router", **more)
    session = aio.Session(await open_node(chosen, limits=limits), chosen)
    async with session, AsyncExitStack() as stack:
        victim = Victim(session)
        await stack.enter_async_context(Exchange(victim, {}).running("zenwire"))
        try:
            yield victim
        finally:
            for peer in victim.peers:
                await peer.close()


async def rogue(victim: Victim, whatami: WhatAmI, rcvbuf: int | None = None) -> Peer:
    peer = await Peer.connect(victim, rcvbuf)
    peer.whatami = whatami
    await peer.open(lease=600_000)
    await until(lambda: victim.node.find(peer.zid) is not None)
    return peer


def linkstate(*entries: LinkState) -> Oam:
    return Oam(id=OAM_LINKSTATE, qos=BLOCK, body=encode(LinkStateList(entries=entries)))


def subscriber(number: int, key: str, node_id: int = 0) -> Declare:
    body = DeclareSubscriber(id=number, key=WireExpr(0, key))
    return Declare(body=body, node_id=node_id, qos=BLOCK)


async def gone(victim: Victim, peer: Peer) -> None:
    """It leaves, and nothing of it stays."""
    await peer.close()
    await until(lambda: victim.node.find(peer.zid) is None)
    core = victim.node.tables._core
    await until(lambda: not core.busy)
    assert not [entry for entry in victim.node.tables.declared() if entry[1].startswith("flood")]
    assert set(core.routers.graph.routers) == {victim.node.zid}
    assert not core.routers._far
    assert core.sourced is not None
    assert core.sourced._count == core.sourced._chunks == 0


def test_a_client_that_does_not_read_loses_alone() -> None:
    async def scenario() -> None:
        async with router() as victim:
            deaf = await rogue(victim, WhatAmI.CLIENT, rcvbuf=4_096)
            deaf.send(subscriber(1, "rogue/**"))
            sender = await rogue(victim, WhatAmI.CLIENT)
            async with asyncio.timeout(TIMEOUT):
                while victim.of(deaf).dropped[Cause.CONGESTION] < 20:
                    drop = Push(key=WireExpr(0, "rogue/x"), body=Put(payload=bytes(30_000)))
                    sender.flood([drop] * 20)
                    await sender.drain()
            assert victim.stats.endings == {}

    asyncio.run(scenario())


@pytest.mark.parametrize("whatami", ROLES)
def test_a_flood_of_declarations_meets_its_limit(whatami: WhatAmI) -> None:
    async def scenario() -> None:
        limits = Limits(declarations=5_000, sourced=5_000)
        async with router(limits) as victim:
            peer = await rogue(victim, whatami)
            me = LinkState(psid=0, sn=2, zid=peer.zid, whatami=WhatAmI.ROUTER)
            if whatami is WhatAmI.ROUTER:
                peer.send(linkstate(me))
            peer.flood(subscriber(n + 1, f"flood/{n}") for n in range(20_000))
            await peer.drain()
            await until(lambda: victim.stats.routing.limit_declarations == 15_000)
            assert victim.stats.endings == {}
            await gone(victim, peer)

    asyncio.run(scenario())


def test_a_router_that_tells_of_thousands_of_others() -> None:
    async def scenario() -> None:
        limits = Limits(nodes=256, links=64)
        async with router(limits) as victim:
            one, two = await rogue(victim, WhatAmI.ROUTER), await rogue(victim, WhatAmI.ROUTER)
            for peer in (one, two):
                names = [peer.zid, victim.node.zid]
                names += [ZenohId(bytes([1, n % 250 + 1, n // 250 + 1])) for n in range(2_000)]
                for version in range(2, 6):
                    entries = [
                        LinkState(
                            psid=n,
                            sn=version,
                            zid=name,
                            whatami=WhatAmI.ROUTER,
                            links=tuple(Link((n + k) % 200) for k in range(1, 20)),
                        )
                        for n, name in enumerate(names)
                        if n != 1
                    ]
                    for at in range(0, len(entries), 400):
                        peer.send(linkstate(*entries[at : at + 400]))
                peer.flood(subscriber(0, f"flood/{n}", node_id=n) for n in range(2, 250))
                await peer.drain()
            await until(lambda: victim.stats.routing.limit_nodes > 1_000)
            graph = victim.node.tables._core.routers.graph
            assert len(graph.routers) <= 256
            assert victim.stats.endings == {}
            await one.close()
            await until(lambda: victim.node.find(one.zid) is None)
            await gone(victim, two)

    asyncio.run(scenario())


def test_interests_without_end_are_answered_or_refused() -> None:
    async def scenario() -> None:
        limits = Limits(interests=100)
        async with router(limits) as victim:
            peer = await rogue(victim, WhatAmI.CLIENT)
            peer.flood(
                Interest(
                    mode=InterestMode.CURRENT_FUTURE,
                    id=n,
                    subscribers=True,
                    key=WireExpr(0, f"flood/{n}/**"),
                    qos=BLOCK,
                )
                for n in range(1, 3_000)
            )
            await peer.drain()
            await until(lambda: victim.stats.routing.limit_interests == 2_899)
            assert victim.stats.endings == {}
            await gone(victim, peer)

    asyncio.run(scenario())


@pytest.mark.parametrize("whatami", ROLES)
def test_answers_to_nothing_and_the_half_of_a_message(whatami: WhatAmI) -> None:
    async def scenario() -> None:
        async with router() as victim:
            peer = await rogue(victim, whatami)
            reply = Reply(body=Put(payload=b"x"))
            for n in range(100):
                peer.send(
                    Response(request_id=n, key=WireExpr(0, "k"), qos=BLOCK, body=reply),
                    ResponseFinal(request_id=n, qos=BLOCK),
                )
            await until(lambda: victim.stats.routing.unknown_request == 200)
            half = encode(put(bytes(100_000)))[:30_000]
            peer.say(encode(Fragment(more=True, sn=peer.next_sn(), first=True, payload=half)))
            await peer.drain()
            await gone(victim, peer)

    asyncio.run(scenario())
