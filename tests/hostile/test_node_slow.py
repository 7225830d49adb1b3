"""Those who do not read: what waits for them is bounded, and nobody else waits with it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.hostile.peers import BLOCK, TIMEOUT, Peer, Victim, attacked, config, put, until
from zenwire import aio
from zenwire.transport import Cause
from zenwire.wire.declare import DeclareFinal, DeclareSubscriber
from zenwire.wire.network import Declare
from zenwire.wire.objects import encode
from zenwire.wire.transport import Fragment
from zenwire.wire.values import WhatAmI, WireExpr


def patience(wait_ms: int) -> dict[str, Any]:
    """A node that soon has enough of someone who does not read."""
    control = {"block": {"wait_before_close": wait_ms * 1000}}
    return {"transport": {"link": {"tx": {"queue": {"congestion_control": control}}}}}


async def deaf(victim: Victim, whatami: WhatAmI = WhatAmI.PEER, rcvbuf: int = 4_096) -> Peer:
    """A neighbour that subscribes, and never reads again."""
    peer = await Peer.connect(victim, rcvbuf)
    peer.whatami = whatami
    # It says nothing for as long as a test takes.
    await peer.open(lease=600_000)
    subscriber = DeclareSubscriber(id=1, key=WireExpr(0, "deaf/**"))
    # That was all: a peer that has not said so gets everything.
    final = Declare(interest_id=0, body=DeclareFinal(), qos=BLOCK)
    peer.send(Declare(body=subscriber, qos=BLOCK), final)
    await until(lambda: victim.node.find(peer.zid) is not None)
    return peer


def test_block_waits_then_closes_the_one_who_does_not_read() -> None:
    async def scenario() -> None:
        async with attacked(**patience(300)) as victim:
            await deaf(victim)
            block = aio.CongestionControl.BLOCK
            async with asyncio.timeout(TIMEOUT):
                while len(victim.node.neighbours) == 2:
                    await victim.session.put("deaf/x", bytes(50_000), congestion_control=block)
            assert victim.stats.endings == {"unresponsive": 1}
            assert victim.stats.ended_dropped[Cause.LINK_LOST] >= 1

    asyncio.run(scenario())


def test_drop_drops_and_counts_and_keeps_the_session() -> None:
    async def scenario() -> None:
        async with attacked(**patience(30_000)) as victim:
            peer = await deaf(victim)
            neighbour = victim.node.find(peer.zid)
            assert neighbour is not None
            drop = aio.CongestionControl.DROP
            async with asyncio.timeout(TIMEOUT):
                while victim.of(peer).dropped[Cause.CONGESTION] < 50:
                    await victim.session.put("deaf/x", bytes(50_000), congestion_control=drop)
            # Without anyone who waits, what waits is bounded by time. What tells of others may wait
            # too, and for longer.
            puts = [
                asyncio.ensure_future(
                    victim.session.put("deaf/x", b"small", congestion_control=drop)
                )
                for _ in range(500)
            ]
            await asyncio.wait(puts)
            assert victim.stats.endings == {}
            assert victim.of(peer).dropped[Cause.CONGESTION] >= 550
            assert victim.node.find(peer.zid) is neighbour

    asyncio.run(scenario())


def test_who_sends_to_one_that_does_not_read_is_held_back_not_lost() -> None:
    """A client publishes through us with Block, to one who reads and one who does not."""

    async def scenario() -> None:
        async with attacked(**patience(500)) as victim:
            where = {"endpoints": [f"tcp/127.0.0.1:{victim.port}"]}
            numbers: list[int] = []

            def take(sample: aio.Sample) -> None:
                numbers.append(int.from_bytes(bytes(sample.payload)[:4], "big"))

            reader = aio.open(config("client", connect=where))
            source = aio.open(config("client", connect=where))
            async with reader as reading, source as sending:
                taker = aio.Callback(take, capacity=1_000)
                async with reading.declare_subscriber("deaf/**", taker):
                    await deaf(victim, WhatAmI.CLIENT)
                    publisher = await sending.declare_publisher(
                        "deaf/x", congestion_control=aio.CongestionControl.BLOCK
                    )
                    await until(lambda: publisher.matching_status.matching)
                    await until(lambda: len(victim.node.neighbours) == 4)
                    peak = 0
                    for number in range(300):
                        await publisher.put(number.to_bytes(4, "big") + bytes(20_000))
                        await asyncio.sleep(0)
                        waiting = (one.waiting for one in victim.node.neighbours.values())
                        peak = max(peak, *waiting)

                    def arrived() -> bool:
                        nonlocal peak
                        waiting = (one.waiting for one in victim.node.neighbours.values())
                        peak = max(peak, *waiting)
                        return len(numbers) == 300

                    await until(arrived)
            # It waits at its source: here is only what one read had brought.
            assert 0 < peak < 60
            assert numbers == list(range(300))
            assert victim.stats.endings["unresponsive"] == 1

    asyncio.run(scenario())


async def fragmented(peer: Peer, payload: bytes, *, reliable: bool) -> None:
    """Send one put with Block as FRAGMENTs, and wait until the system has taken it."""
    data, size = encode(put(payload, "deaf/x")), 40_000
    for at in range(0, len(data), size):
        piece = Fragment(
            reliable=reliable,
            more=at + size < len(data),
            sn=peer.next_sn(),
            first=at == 0,
            payload=data[at : at + size],
        )
        peer.say(piece)
        await peer.drain()


@pytest.mark.parametrize("reliable", [True, False])
def test_fragments_with_block_wait_for_a_slow_reader(reliable: bool) -> None:
    """zenoh-pico sends the FRAGMENTs of a reliable put as best effort: Block counts there too."""

    async def scenario() -> None:
        async with attacked() as victim:
            reader = await deaf(victim, WhatAmI.CLIENT, rcvbuf=200_000)
            sender = await Peer.connect(victim)
            sender.whatami = WhatAmI.CLIENT
            await sender.open(lease=600_000)
            wanted = 150

            async def send() -> None:
                for number in range(wanted):
                    payload = number.to_bytes(4, "big") + bytes(100_000)
                    await fragmented(sender, payload, reliable=reliable)

            sending = asyncio.create_task(send())
            # Until the buffers of the system are full, and for some time after that.
            await until(lambda: sum(one.waiting for one in victim.node.neighbours.values()))
            await asyncio.sleep(0.2)
            assert not victim.of(reader).dropped
            ends = 0
            async with asyncio.timeout(TIMEOUT):
                while ends < wanted:
                    heard = await reader.hear()
                    assert heard
                    ends += sum(isinstance(one, Fragment) and not one.more for one in heard)
                await sending
            assert not victim.of(reader).dropped
            assert victim.stats.endings == {}

    asyncio.run(scenario())
