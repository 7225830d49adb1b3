"""Hostile and unlucky neighbours of a router, and what its operator sees of them.

For each of them: memory is bounded by a limit, others do not notice, and what was lost is in the
statistics, in the admin space, and in what the command says.
"""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import pytest

from tests.hostile.peers import BLOCK, TIMEOUT, Peer, Victim, allocated, config, put, until
from tests.hostile.test_node_router import gone, rogue, router, subscriber
from zenwire import aio
from zenwire.cli.router_status import Report
from zenwire.routing import Limits
from zenwire.routing.core import PORTION
from zenwire.transport import Cause
from zenwire.wire.data import Put, Reply
from zenwire.wire.network import Interest, Push, Response, ResponseFinal
from zenwire.wire.objects import encode
from zenwire.wire.transport import Fragment
from zenwire.wire.values import InterestMode, WhatAmI, WireExpr

ADMIN = {"adminspace": {"enabled": True}}
DECLARED = 2_000


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the columnar data plane, whose memory is in the way of tests that count it."""
    monkeypatch.setenv("ZENWIRE_FAST", "0")


class Operator:
    """Somebody who looks at the admin space, and at what the command says."""

    def __init__(self, victim: Victim, session: aio.Session) -> None:
        self._victim = victim
        self._session = session
        self._report = Report(victim.node)

    async def sees(self, path: str = "stats") -> Any:
        """One value of the admin space."""
        key = f"@/{self._victim.node.zid}/router/{path}"
        replies = await self._session.get(key, timeout=TIMEOUT)
        [value] = [json.loads(reply.ok.payload.to_bytes()) async for reply in replies if reply.ok]
        return value

    async def sees_that(self, true: Callable[[Any], bool], path: str = "stats") -> None:
        async with asyncio.timeout(TIMEOUT):
            while not true(await self.sees(path)):  # noqa: ASYNC110 # there is no event for it
                await asyncio.sleep(0.02)

    def reads(self) -> str:
        """What is said of losses since the last time."""
        return self._report.losses()


@asynccontextmanager
async def watched(limits: Limits | None = None) -> AsyncIterator[tuple[Victim, Operator]]:
    async with router(limits, **ADMIN) as victim:
        where = {"endpoints": [f"tcp/127.0.0.1:{victim.port}"]}
        async with aio.open(config("client", connect=where)) as session:
            yield victim, Operator(victim, session)


async def turns(until_: Callable[[], bool]) -> int:
    """How often the loop went round until then."""
    count = 0
    async with asyncio.timeout(TIMEOUT):
        while not until_():
            count += 1
            await asyncio.sleep(0)
    return count


def test_one_that_never_reads() -> None:
    async def scenario() -> None:
        async with watched() as (victim, operator):
            deaf = await rogue(victim, WhatAmI.CLIENT, rcvbuf=4_096)
            deaf.send(subscriber(1, "rogue/**"))
            sender = await rogue(victim, WhatAmI.CLIENT)
            with allocated() as peak:
                async with asyncio.timeout(TIMEOUT):
                    while victim.of(deaf).dropped[Cause.CONGESTION] < 20:
                        drop = Push(key=WireExpr(0, "rogue/x"), body=Put(payload=bytes(30_000)))
                        sender.flood([drop] * 20)
                        await sender.drain()
                assert peak() < 32_000_000
            assert victim.stats.endings == {}
            own = await operator.sees(f"stats/session/{deaf.zid}")
            assert own["dropped"]["congestion"] >= 20
            assert own["links"][0]["unsent_bytes"] > 0
            assert (await operator.sees())["dropped"]["congestion"] >= 20
            assert "congestion" in operator.reads()
            assert operator.reads() == ""

    asyncio.run(scenario())


def heard(victim: Victim, peer: Peer, many: int) -> bool:
    return bool(victim.of(peer).transport.rx_messages >= many)


def heard_pieces(victim: Victim, peer: Peer, many: int) -> bool:
    return bool(victim.of(peer).transport.rx_fragments == many)


@contextmanager
def resident() -> Iterator[Callable[[], int]]:
    """The bytes that this process has in memory more than at most before."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield lambda: (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


async def declare_much(
    limits: Limits, many: int, most: int, measure: Callable[[], Any] = allocated
) -> None:
    async with watched(limits) as (victim, operator):
        peer = await rogue(victim, WhatAmI.CLIENT)
        refused = many - limits.declarations
        with measure() as peak:
            for start in range(0, many, 2_000):
                part = range(start, min(start + 2_000, many))
                peer.flood(subscriber(n + 1, f"flood/{n % 100}/{n}") for n in part)
                # It runs in the same loop as those who must not notice.
                await until(partial(heard, victim, peer, part.stop))
            await operator.sees_that(lambda seen: seen["routing"]["limit_declarations"] == refused)
            assert peak() < most
        assert victim.stats.routing.limit_declarations == refused
        assert victim.stats.endings == {}
        seen = await operator.sees()
        assert seen["declared"]["subscriber"]["remote"] >= limits.declarations
        assert f"{refused:,} limit_declarations" in operator.reads()
        # That it leaves is told in portions: others have their turn between them.
        await peer.close()
        await until(lambda: victim.node.find(peer.zid) is None)
        core = victim.node.tables._core
        assert core.busy
        assert await turns(lambda: not core.busy) >= limits.declarations // PORTION // 4
        assert not [one for one in victim.node.tables.declared() if one[1].startswith("flood")]


def test_one_that_declares_more_than_it_may() -> None:
    asyncio.run(declare_much(Limits(declarations=DECLARED), 3 * DECLARED, 40_000_000))


@pytest.mark.long
def test_one_that_declares_a_million_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("hostile.test_router_faces", "hostile.peers", "unit.api.nodes"):
        monkeypatch.setattr(f"tests.{module}.TIMEOUT", 900)
    asyncio.run(declare_much(Limits(), 1_000_000, 250_000_000, resident))


def test_one_that_answers_what_it_was_not_asked() -> None:
    async def scenario() -> None:
        async with watched() as (victim, operator):
            peer = await rogue(victim, WhatAmI.CLIENT)
            reply = Reply(body=Put(payload=b"x"))
            for n in range(500):
                peer.send(
                    Response(request_id=n, key=WireExpr(0, "k"), qos=BLOCK, body=reply),
                    ResponseFinal(request_id=n, qos=BLOCK),
                )
            await operator.sees_that(lambda seen: seen["routing"]["unknown_request"] == 1_000)
            assert "1,000 unknown_request" in operator.reads()
            assert victim.stats.endings == {}
            await gone(victim, peer)

    asyncio.run(scenario())


def test_one_that_vanishes_in_the_middle_of_a_message() -> None:
    async def scenario() -> None:
        async with watched() as (victim, operator):
            with allocated() as peak:
                for _ in range(20):
                    peer = await rogue(victim, WhatAmI.CLIENT)
                    half = encode(put(bytes(2_000_000)))[:1_000_000]
                    for start in range(0, len(half), 40_000):
                        piece = half[start : start + 40_000]
                        sn, first = peer.next_sn(), start == 0
                        peer.say(encode(Fragment(more=True, sn=sn, first=first, payload=piece)))
                    await peer.drain()
                    await until(partial(heard_pieces, victim, peer, 25))
                    await gone(victim, peer)
                # Of all of them, one at a time is held.
                assert peak() < 18_000_000
            seen = await operator.sees()
            assert seen["dropped"]["fragment_interrupted"] == 20
            assert "20 fragment_interrupted" in operator.reads()

    asyncio.run(scenario())


def test_one_that_floods_interests_in_all_there_is() -> None:
    async def scenario() -> None:
        limits = Limits(interests=10)
        async with watched(limits) as (victim, operator):
            other = await rogue(victim, WhatAmI.CLIENT)
            other.flood(subscriber(n + 1, f"flood/{n}") for n in range(DECLARED))
            await other.drain()
            await operator.sees_that(
                lambda seen: seen["declared"]["subscriber"]["remote"] >= DECLARED
            )
            peer = await rogue(victim, WhatAmI.CLIENT)
            listening = asyncio.create_task(listen(peer))
            core = victim.node.tables._core
            with allocated() as peak:
                peer.flood(
                    Interest(
                        mode=InterestMode.CURRENT_FUTURE,
                        id=n,
                        subscribers=True,
                        key=WireExpr(0, "flood/**"),
                        qos=BLOCK,
                    )
                    for n in range(1, 1_000)
                )
                await peer.drain()
                await operator.sees_that(lambda seen: seen["routing"]["limit_interests"] == 989)
                # Each of those that were taken is answered by thousands of messages.
                assert core.busy
                assert peak() < 60_000_000
            assert "989 limit_interests" in operator.reads()
            assert victim.stats.endings == {}
            await peer.close()
            await until(lambda: victim.node.find(peer.zid) is None)
            await gone(victim, other)
            listening.cancel()
            await asyncio.wait([listening])

    asyncio.run(scenario())


async def listen(peer: Any) -> None:
    while await peer.hear():
        pass


def test_one_that_asks_the_admin_space_without_end() -> None:
    """It is answered, or told that it is too much; others are answered, too."""

    async def scenario() -> None:
        async with watched() as (victim, operator):
            where = {"endpoints": [f"tcp/127.0.0.1:{victim.port}"]}
            async with aio.open(config("client", connect=where)) as curious:
                key = f"@/{victim.node.zid}/router/**"
                asked = [await curious.get(key, timeout=TIMEOUT) for _ in range(500)]
                assert (await operator.sees())["sessions"] >= 3
                errors = 0
                for replies in asked:
                    errors += len([reply async for reply in replies if reply.err])
                seen = await operator.sees()
                assert seen["admin_refused"].get("busy", 0) == errors
                assert victim.stats.endings == {}

    asyncio.run(scenario())
