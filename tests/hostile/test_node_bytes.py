"""Random bytes, and good traffic with something changed, at every stage of a link."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from tests.hostile.peers import BLOCK, FIRST_SN, Peer, Victim, attacked, dialled, opened, put, until
from zenwire.wire.batch import frame_stream
from zenwire.wire.data import Put, Query, Reply
from zenwire.wire.declare import (
    DeclareFinal,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    UndeclareSubscriber,
)
from zenwire.wire.linkstate import OAM_LINKSTATE, LinkState, LinkStateList
from zenwire.wire.network import (
    Declare,
    Interest,
    NetworkMessage,
    Oam,
    Request,
    Response,
    ResponseFinal,
)
from zenwire.wire.objects import encode
from zenwire.wire.transport import InitSyn, OpenAck, OpenSyn
from zenwire.wire.values import InterestMode, WireExpr, ZenohId

STAGES = ("first", "after_init", "open")
HASTY: dict[str, Any] = {"transport": {"unicast": {"accept_timeout": 300, "open_timeout": 300}}}


async def reach(victim: Victim, stage: str) -> Peer:
    """A link that has come so far, from the side that connects."""
    peer = await Peer.connect(victim)
    if stage == "after_init":
        await peer.init()
    elif stage == "open":
        await peer.open()
    return peer


async def ended(peer: Peer) -> None:
    """Whatever the other side said, it has said its last."""
    while await peer.hear():
        pass
    await peer.close()


def check(victim: Victim, runs: int) -> None:
    """Each attempt ended in a way that has a name, and none is left."""
    stats = victim.stats
    refused = {"invalid", "generic", "malformed", "timeout", "lost", "closed_by_peer"}
    assert set(stats.failures) <= refused
    names = {"malformed", "lost", "closed_by_peer", "invalid", "expired", "unresponsive"}
    assert set(stats.endings) <= names
    assert sum(stats.failures.values()) + sum(stats.endings.values()) == runs
    assert len(victim.node.adjacency._carriers) == 1


@pytest.mark.parametrize("framed", [True, False], ids=["batches", "stream"])
@pytest.mark.parametrize("stage", STAGES)
def test_random_bytes_to_one_who_accepted(stage: str, framed: bool) -> None:
    async def scenario() -> None:
        chaos = Random(f"{stage} {framed}")
        async with attacked(**HASTY) as victim:
            for _ in range(40):
                peer = await reach(victim, stage)
                for _ in range(chaos.randint(1, 4)):
                    noise = chaos.randbytes(chaos.choice([1, 2, 3, 9, 40, 300, 3_000]))
                    peer.raw(frame_stream(noise) if framed else noise)
                peer._writer.write_eof()
                await ended(peer)
            await until(lambda: len(victim.node.adjacency._carriers) == 1)
            check(victim, 40)

    asyncio.run(scenario())


@pytest.mark.parametrize("framed", [True, False], ids=["batches", "stream"])
@pytest.mark.parametrize("stage", STAGES)
def test_random_bytes_to_one_who_dialled(stage: str, framed: bool) -> None:
    async def scenario() -> None:
        chaos = Random(f"dialled {stage} {framed}")
        async with attacked(**HASTY) as victim:
            for _ in range(20):
                async with dialled(victim) as (peer, attempt):
                    if stage == "open":
                        await peer.accept()
                    else:
                        await peer.expect(InitSyn)
                    if stage == "after_init":
                        peer.say(peer.init_ack())
                        await peer.expect(OpenSyn)
                    for _ in range(chaos.randint(1, 4)):
                        noise = chaos.randbytes(chaos.choice([1, 2, 3, 9, 40, 300, 3_000]))
                        peer.raw(frame_stream(noise) if framed else noise)
                    peer._writer.write_eof()
                    await ended(peer)
                    await asyncio.wait([attempt])
                    assert attempt.exception() is None or stage != "open"
            await until(lambda: len(victim.node.adjacency._carriers) == 1)
            check(victim, 20)

    asyncio.run(scenario())


# Good traffic, but for some bytes.


def expr(text: str) -> WireExpr:
    return WireExpr(0, text)


def conversation() -> list[NetworkMessage]:
    """What peers say to each other, of every kind."""
    me = LinkState(psid=0, sn=1, zid=ZenohId(b"some one"), locators=())
    bodies: list[Any] = [
        DeclareKeyExpr(expr_id=1, key=expr("rogue/key")),
        DeclareSubscriber(id=2, key=expr("rogue/**")),
        DeclareQueryable(id=3, key=expr("rogue/*")),
        DeclareToken(id=4, key=expr("rogue/token")),
        UndeclareSubscriber(id=2),
        DeclareFinal(),
    ]
    return [
        Oam(id=OAM_LINKSTATE, qos=BLOCK, body=encode(LinkStateList(entries=(me,)))),
        *(Declare(body=body, qos=BLOCK) for body in bodies),
        Interest(
            id=5, mode=InterestMode.CURRENT_FUTURE, subscribers=True, key=expr("**"), qos=BLOCK
        ),
        Interest(id=6, mode=InterestMode.CURRENT, tokens=True, key=expr("**"), qos=BLOCK),
        put(b"payload", "rogue/key"),
        Request(request_id=7, key=expr("rogue/q"), body=Query(parameters="a=1"), qos=BLOCK),
        Response(request_id=8, key=expr("rogue/q"), body=Reply(body=Put(payload=b"r")), qos=BLOCK),
        ResponseFinal(request_id=8, qos=BLOCK),
    ]


def mutated(chaos: Random, data: bytes) -> bytes:
    """One thing changed: a bit, a byte, a piece gone, doubled or put in, or the end cut off."""
    changed = bytearray(data)
    at = chaos.randrange(len(changed))
    how = chaos.randrange(6)
    if how == 0:
        changed[at] ^= 1 << chaos.randrange(8)
    elif how == 1:
        changed[at] = chaos.choice([0, 0x7F, 0x80, 0xFF])
    elif how == 2:
        del changed[at : at + chaos.randint(1, 4)]
    elif how == 3:
        changed[at:at] = changed[at : at + chaos.randint(1, 8)]
    elif how == 4:
        changed[at:at] = chaos.randbytes(chaos.randint(1, 8))
    else:
        del changed[at:]
    return bytes(changed)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("seed", range(3))
def test_mutated_traffic(stage: str, seed: int) -> None:
    """It goes on or ends, and nothing that comes of it reaches anyone else."""

    async def scenario() -> None:
        chaos = Random(f"{stage} {seed}")
        async with attacked(**HASTY) as victim:
            runs = 40
            for _ in range(runs):
                peer = await reach(victim, stage)
                if stage == "first":
                    good = encode(peer.init_syn())
                elif stage == "after_init":
                    cookie = peer.heard[0].cookie
                    good = encode(OpenSyn(lease=10_000, initial_sn=FIRST_SN, cookie=cookie))
                else:
                    good = peer.frame(*conversation())
                peer.say(mutated(chaos, good))
                if stage == "open":
                    peer.send(*conversation())
                peer._writer.write_eof()
                await ended(peer)
            await until(lambda: len(victim.node.adjacency._carriers) == 1)
            check(victim, runs)
            assert len(victim.node.neighbours) == 1
            # A good one after all of them.
            async with opened(victim, "accepted") as peer:
                peer.send(put(b"good"))
                await until(lambda: b"good" in victim.payloads)

    asyncio.run(scenario())


@pytest.mark.parametrize("seed", range(3))
def test_mutated_answers(seed: int) -> None:
    async def scenario() -> None:
        chaos = Random(seed)
        async with attacked(**HASTY) as victim:
            for number in range(20):
                async with dialled(victim) as (peer, attempt):
                    await peer.expect(InitSyn)
                    if number % 2:
                        peer.say(peer.init_ack())
                        await peer.expect(OpenSyn)
                        good = encode(OpenAck(lease=10_000, initial_sn=FIRST_SN))
                    else:
                        good = encode(peer.init_ack())
                    peer.say(mutated(chaos, good))
                    peer._writer.write_eof()
                    await ended(peer)
                    await asyncio.wait([attempt])
            await until(lambda: len(victim.node.adjacency._carriers) == 1)
            check(victim, 20)

    asyncio.run(scenario())
