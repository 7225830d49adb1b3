"""Those who take their time over a handshake: they lose it, and keep nobody out meanwhile."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from tests.hostile.peers import (
    FIRST_SN,
    TIMEOUT,
    Peer,
    Victim,
    allocated,
    attacked,
    config,
    dialled,
    until,
)
from zenwire import aio
from zenwire.node.seats import NotOpened
from zenwire.wire.batch import frame_stream
from zenwire.wire.objects import encode
from zenwire.wire.transport import InitSyn, OpenAck, OpenSyn

SOON = 250
"""Milliseconds."""
HASTY: dict[str, Any] = {"transport": {"unicast": {"accept_timeout": SOON, "open_timeout": SOON}}}

Stall = Callable[[Peer], Awaitable[None]]


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


async def nothing(_peer: Peer) -> None:
    """After the connection of TCP."""


async def one_byte(peer: Peer) -> None:
    peer.raw(b"\x10")


async def length_alone(peer: Peer) -> None:
    peer.raw(b"\x00\x40")


async def half_init_syn(peer: Peer) -> None:
    peer.raw(half(frame_stream(encode(peer.init_syn()))))


async def init_alone(peer: Peer) -> None:
    await peer.init()


async def half_open_syn(peer: Peer) -> None:
    cookie = (await peer.init()).cookie
    syn = OpenSyn(lease=10_000, initial_sn=FIRST_SN, cookie=cookie)
    peer.raw(half(frame_stream(encode(syn))))


STALLS: dict[str, Stall] = {
    "after TCP connect": nothing,
    "after one byte": one_byte,
    "after a length": length_alone,
    "half an InitSyn": half_init_syn,
    "after InitAck": init_alone,
    "half an OpenSyn": half_open_syn,
}


@pytest.mark.parametrize("stage", STALLS)
def test_a_connector_that_stalls(stage: str) -> None:
    async def scenario() -> None:
        async with attacked(**HASTY) as victim:
            peer = await Peer.connect(victim)
            await STALLS[stage](peer)
            assert await peer.end() is None
            assert victim.stats.failures == {"timeout": 1}
            assert len(victim.node.neighbours) == 1
            assert not victim.node.adjacency.sessions._accepting
            await peer.close()

    asyncio.run(scenario())


async def half_init_ack(peer: Peer) -> None:
    peer.raw(half(frame_stream(encode(peer.init_ack()))))


async def no_open_ack(peer: Peer) -> None:
    peer.say(peer.init_ack())
    await peer.expect(OpenSyn)


async def half_open_ack(peer: Peer) -> None:
    await no_open_ack(peer)
    peer.raw(half(frame_stream(encode(OpenAck(lease=10_000, initial_sn=FIRST_SN)))))


ANSWERS: dict[str, Stall] = {
    "after InitSyn": nothing,
    "after one byte": one_byte,
    "half an InitAck": half_init_ack,
    "after OpenSyn": no_open_ack,
    "half an OpenAck": half_open_ack,
}


@pytest.mark.parametrize("stage", ANSWERS)
def test_an_acceptor_that_stalls(stage: str) -> None:
    async def scenario() -> None:
        async with attacked(**HASTY) as victim, dialled(victim) as (peer, attempt):
            await peer.expect(InitSyn)
            await ANSWERS[stage](peer)
            assert await peer.end() is None
            with pytest.raises(NotOpened, match="took too long") as e:
                await asyncio.wait_for(attempt, TIMEOUT)
            assert e.value.close_reason is None
            assert victim.stats.failures == {"timeout": 1}
            assert not victim.node.adjacency._opening

    asyncio.run(scenario())


def test_a_byte_now_and_then_wins_no_time() -> None:
    """Each byte shows that somebody is there, and it ends all the same."""

    async def scenario() -> None:
        async with attacked(**HASTY) as victim:
            peer = await Peer.connect(victim)
            peer.raw(b"\x00\x40")

            async def drip() -> None:
                with suppress(ConnectionError):
                    while True:
                        peer.raw(b"\x41")
                        await peer.drain()
                        await asyncio.sleep(0.01)

            task = asyncio.create_task(drip())
            assert await peer.end() is None
            task.cancel()
            await asyncio.wait([task])
            assert victim.stats.failures == {"timeout": 1}
            await peer.close()

    asyncio.run(scenario())


def test_a_handshake_byte_by_byte_that_is_one_opens() -> None:
    """Slow is not wrong, as long as it is within the time."""

    async def scenario() -> None:
        async with attacked() as victim:
            peer = await Peer.connect(victim)
            for byte in frame_stream(encode(peer.init_syn())):
                peer.raw(bytes([byte]))
                await asyncio.sleep(0)
            cookie = (await peer.hear())[0].cookie
            syn = OpenSyn(lease=10_000, initial_sn=FIRST_SN, cookie=cookie)
            for byte in frame_stream(encode(syn)):
                peer.raw(bytes([byte]))
                await asyncio.sleep(0)
            await peer.expect(OpenAck)
            await until(lambda: victim.node.find(peer.zid) is not None)
            await peer.close()

    asyncio.run(scenario())


PENDING = 10


@pytest.mark.parametrize("stage", ["after TCP connect", "half an InitSyn", "after InitAck"])
def test_many_that_stall_give_way(stage: str) -> None:
    """Only so many are under way; the oldest go first, and honest ones come through."""
    pending: dict[str, Any] = {
        "transport": {"unicast": {"accept_pending": PENDING, "accept_timeout": 60_000}}
    }

    async def honest(victim: Victim) -> None:
        where = {"endpoints": [f"tcp/127.0.0.1:{victim.port}"]}
        async with aio.open(config("client", connect=where)) as session:
            await session.put("rogue/honest", b"honest")
            seen = len(victim.payloads)
            await until(lambda: len(victim.payloads) > seen or victim.payloads)

    async def scenario() -> None:
        async with attacked(**pending) as victim:
            under_way = victim.node.adjacency.sessions._accepting
            peers: list[Peer] = []
            with allocated() as peak:
                for number in range(150):
                    peer = await Peer.connect(victim)
                    await STALLS[stage](peer)
                    peers.append(peer)
                    assert len(under_way) <= PENDING
                    if number % 50 == 49:
                        await honest(victim)
                assert peak() < 8_000_000
            await until(lambda: victim.stats.evicted >= 150 - PENDING)
            assert victim.stats.evicted <= 150
            # The oldest are those that were cut off.
            for peer in peers[: 150 - 2 * PENDING]:
                assert await peer.end() is None
            for peer in peers:
                await peer.close()
            await until(lambda: not under_way)
            assert victim.payloads == [b"honest"] * 3
            assert len(victim.node.neighbours) == 1

    asyncio.run(scenario())


def test_sessions_that_come_and_go_leave_nothing() -> None:
    async def scenario() -> None:
        async with attacked() as victim:

            async def visit(goodbye: bool) -> None:
                peer = await Peer.connect(victim)
                await peer.open()
                if goodbye:
                    peer.raw(frame_stream(b"\x03\x00"))
                    await peer.end()
                await peer.close()
                victim.peers.clear()

            for number in range(20):
                await visit(number % 2 == 0)
            await until(lambda: len(victim.node.neighbours) == 1)
            with allocated():
                before = tracemalloc.get_traced_memory()[0]
                for number in range(200):
                    await visit(number % 2 == 0)
                await until(lambda: len(victim.node.neighbours) == 1)
                gc.collect()
                kept = tracemalloc.get_traced_memory()[0] - before
            # A link that were not forgotten would be ten thousand each.
            assert kept < 600_000
            adjacency = victim.node.adjacency
            assert len(adjacency._carriers) == len(adjacency._of_session) == 1
            assert len(adjacency.sessions) == 1
            assert sum(victim.stats.endings.values()) == 220
            assert set(victim.stats.endings) == {"closed_by_peer", "lost"}

    asyncio.run(scenario())
