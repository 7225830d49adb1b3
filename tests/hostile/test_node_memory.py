"""Little that wants to become much: batches, fragments, lengths and answers that cost no memory."""

from __future__ import annotations

import asyncio

import pytest

from tests.hostile.peers import BLOCK, Peer, allocated, attacked, opened, put, until
from tests.hostile.test_node_flood import interest, subscriber, through, token
from zenwire.node.plane import VARIABLE
from zenwire.routing import Limits
from zenwire.transport import Cause
from zenwire.wire.batch import compress_batch, encode_batch, frame_stream
from zenwire.wire.data import Put, Reply
from zenwire.wire.declare import DeclareQueryable, DeclareSubscriber, UndeclareSubscriber
from zenwire.wire.network import Declare, Interest, Request, Response, ResponseFinal
from zenwire.wire.transport import Fragment, Frame
from zenwire.wire.values import CloseReason, InterestMode, Priority, WhatAmI, WireExpr

COMPRESSED = {"unicast": {"compression": {"enabled": True}}}


@pytest.fixture(params=["0", "all"], autouse=True)
def plane(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Without the columnar plane, and with it, which has its arrays before anything is measured."""
    monkeypatch.setenv(VARIABLE, request.param)
    return str(request.param)


def expanding(content: bytes) -> bytes:
    """A compressed batch as a peer would send it."""
    return frame_stream(compress_batch(content))


# Batches.


@pytest.mark.parametrize(
    ("text", "batch"),
    [
        ("a match that goes on", b"\x01\x1f\x00\x01\x00" + b"\xff" * 40_000 + b"\x00\x50aaaaa"),
        ("literals that are not there", b"\x01\xf0" + b"\xff" * 100),
        ("a length without an end", b"\x01\xff" + b"\xff" * 1_000),
        ("a match before the start", b"\x01\x10a\x09\x00"),
        ("an unknown header", b"\x02abc"),
        ("noise", b"\x01" + bytes(range(256))),
    ],
)
def test_a_bomb_ends_its_link(text: str, batch: bytes) -> None:
    async def scenario() -> None:
        async with (
            attacked(transport=COMPRESSED) as victim,
            opened(victim, "accepted", compression=True) as peer,
        ):
            assert victim.node.find(peer.zid).session.peer.compression  # type: ignore[union-attr] # it is there
            with allocated() as peak:
                peer.raw(frame_stream(batch))
                assert await peer.end() is None
                assert peak() < 2_000_000
            await until(lambda: victim.stats.endings == {"malformed": 1})

    asyncio.run(scenario())


def test_batches_that_expand_are_read_one_by_one() -> None:
    """Many of them fit into one read, and are many more messages."""
    one = bytes.fromhex("7d 00 01 61 01 00")

    async def scenario() -> None:
        async with (
            attacked(transport=COMPRESSED) as victim,
            opened(victim, "accepted", compression=True) as peer,
        ):
            sent = b"".join(expanding(peer.frame(one * 5_000)) for _ in range(12))
            assert len(sent) < 8_000
            with allocated() as peak:
                peer.raw(sent)
                peer.send(put(b"end"))
                await until(lambda: victim.payloads == [b"end"])
                assert peak() < 6_000_000
            assert victim.of(peer).transport.rx_messages == 60_001

    asyncio.run(scenario())


def test_a_length_above_what_a_batch_may_have_is_refused_at_once() -> None:
    async def scenario() -> None:
        async with attacked() as victim:
            peer = await Peer.connect(victim)
            peer.raw(b"\xff\xff")
            assert await peer.end() == CloseReason.INVALID
            assert victim.stats.failures == {"invalid": 1}

    asyncio.run(scenario())


def test_declared_lengths_cost_nothing() -> None:
    """Low latency has four bytes of length: what they promise is not believed."""
    fast = {"unicast": {"lowlatency": True, "qos": {"enabled": False}}}
    offer = {"lowlatency": True, "qos": False}

    async def scenario() -> None:
        async with (
            attacked(transport=fast) as victim,
            opened(victim, "accepted", **offer) as patient,
        ):
            assert victim.node.find(patient.zid).session.peer.lowlatency  # type: ignore[union-attr] # it is there
            with allocated() as peak:
                patient.raw((2**30).to_bytes(4, "little") + bytes(50_000))
                await until(lambda: victim.of(patient).transport.rx_bytes > 50_000)
                assert peak() < 1_000_000
            assert victim.stats.endings == {}
            greedy = await Peer.connect(victim)
            await greedy.open(offer)
            greedy.raw((2**30 + 1).to_bytes(4, "little"))
            while await greedy.hear():
                pass
            await until(lambda: victim.stats.endings == {"malformed": 1})

    asyncio.run(scenario())


@pytest.mark.parametrize("lanes", [1, 16])
def test_fragments_that_never_end(lanes: int, plane: str) -> None:
    if plane == "all":
        pytest.skip("its arrays grow with what is read at once: memory that is there, but not used")
    limit = {"link": {"rx": {"max_message_size": 100_000}}}
    where = [(p, r) for p in Priority for r in (True, False)][-lanes:]

    async def scenario() -> None:
        async with attacked(transport=limit) as victim, opened(victim, "accepted") as peer:
            with allocated() as peak:
                for number in range(160 // lanes):
                    for priority, reliable in where:
                        cut = Fragment(
                            reliable=reliable,
                            more=True,
                            first=not number,
                            sn=1_000 + number,
                            priority=priority,
                            payload=bytes(20_000),
                        )
                        peer.say(cut)
                    await peer.drain()
                peer.sn = 5_000
                await through(victim, peer)
                assert peak() < 100_000 * lanes + 4_000_000
            assert victim.of(peer).dropped[Cause.FRAGMENT_TOO_LARGE] == lanes
            assert victim.stats.endings == {}

    asyncio.run(scenario())


# Declarations and answers.


def test_a_hundred_thousand_declarations() -> None:
    async def scenario() -> None:
        async with attacked() as victim, opened(victim, "accepted") as peer:
            peer.flood(subscriber(n, f"flood/{n}") for n in range(100_000))
            await through(victim, peer)
            declarations = victim.node.tables._core.declarations
            (face,) = (f for f in victim.node.neighbours if f.zid == peer.zid)
            assert declarations.count(face) == Limits().declarations
            assert victim.stats.routing.limit_declarations == 100_000 - Limits().declarations
            assert victim.stats.endings == {}
            await peer.close()
            await until(lambda: len(victim.node.neighbours) == 1)
            # It leaves in portions, so that others have their turn.
            await until(lambda: declarations.count(face) == 0)

    asyncio.run(scenario())


def test_deep_keys_meet_a_limit_that_bounds_memory() -> None:
    async def scenario() -> None:
        async with attacked() as victim, opened(victim, "accepted") as peer:
            keys = [f"{n}/" + "/".join("d" * 2_000) for n in range(280)]
            peer.flood(subscriber(n, key) for n, key in enumerate(keys))
            peer.flood(interest(n, key) for n, key in enumerate(keys))
            await through(victim, peer)
            (face,) = (f for f in victim.node.neighbours if f.zid == peer.zid)
            assert Limits().chunks - 2_001 < face.chunks <= Limits().chunks
            assert victim.stats.routing.limit_declarations == 280 - Limits().chunks // 2_001
            assert victim.stats.routing.limit_interests == 280
            for n in range(280):
                peer.send(Declare(body=UndeclareSubscriber(id=n), qos=BLOCK))
            victim.payloads.clear()
            await through(victim, peer)
            assert face.chunks == 0

    asyncio.run(scenario())


def test_interests_whose_answers_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of some bytes asks for all there is; what they come to is never held at once."""
    monkeypatch.setattr("zenwire.node.neighbour.WAITING_MAX", 2_000)

    async def scenario() -> None:
        async with attacked(listen=["tcp/127.0.0.1:0#so_sndbuf=8192"]) as victim:
            peer = await Peer.connect(victim, rcvbuf=4_096)
            peer.whatami = WhatAmI.CLIENT
            await peer.open()
            peer.flood(token(n, f"flood/{n}/" + "x" * 100) for n in range(100))
            await through(victim, peer)
            with allocated() as peak:
                both = InterestMode.CURRENT_FUTURE
                # Without aliases, so that the answers are larger than what buffers hold.
                peer.flood(Interest(id=n, mode=both, tokens=True, qos=BLOCK) for n in range(2_000))
                await until(lambda: victim.stats.endings == {"unresponsive": 1})
                assert peak() < 24_000_000
            assert victim.node.find(peer.zid) is None

    asyncio.run(scenario())


def test_interests_whose_answers_take_long_keep_nobody_waiting() -> None:
    """Many thousand answers to one write: others have their turn between them."""

    async def scenario() -> None:
        async with attacked() as victim:
            peer = await Peer.connect(victim, rcvbuf=4_096)
            peer.whatami = WhatAmI.CLIENT
            await peer.open()
            peer.flood(token(n, f"flood/{n}") for n in range(250))
            await through(victim, peer)
            both = InterestMode.CURRENT_FUTURE
            before = victim.stats
            peer.flood(interest(n % 10, None, both) for n in range(2_000))
            peer.send(put(b"behind"))

            def others() -> int:
                seen = {one.zid: one for one in victim.stats.neighbours}
                return sum(
                    seen[one.zid].transport.rx_messages - one.transport.rx_messages
                    for one in before.neighbours
                    if one.zid != peer.zid and one.zid in seen
                )

            await until(lambda: others() >= 10)
            assert b"behind" not in victim.payloads
            assert set(victim.stats.endings) <= {"unresponsive"}

    asyncio.run(scenario())


def test_a_newcomer_is_told_of_a_flood_and_stays() -> None:
    """That one neighbour has declared much must not cost another one its session."""

    async def scenario() -> None:
        narrow = ["tcp/127.0.0.1:0#so_sndbuf=8192"]
        async with attacked(listen=narrow) as victim, opened(victim, "accepted") as peer:
            peer.flood(subscriber(n, f"flood/{n}/" + "x" * 60) for n in range(20_000))
            await through(victim, peer)
            late = await Peer.connect(victim, rcvbuf=65_536)
            late.whatami = WhatAmI.CLIENT
            await late.open()
            late.send(interest(1, None, InterestMode.CURRENT_FUTURE))
            told = 0
            while told < 20_000:
                heard = await late.hear()
                assert heard
                declared = (m.body for m in heard if isinstance(m, Declare))
                told += sum(isinstance(body, DeclareSubscriber) for body in declared)
            assert victim.stats.endings == {}

    asyncio.run(scenario())


def test_replies_without_end() -> None:
    async def scenario() -> None:
        async with (
            attacked(limits=Limits(replies=100)) as victim,
            opened(victim, "accepted") as peer,
        ):
            everything = DeclareQueryable(id=1, key=WireExpr(0, "ask/**"))
            peer.send(Declare(body=everything, qos=BLOCK))
            await through(victim, peer)
            replies = await victim.session.get("ask/**")
            asked: list[Request] = []
            while not asked:
                asked = [m for m in await peer.hear() if isinstance(m, Request)]
            id_ = asked[0].request_id
            peer.flood(
                Response(
                    request_id=id_,
                    key=WireExpr(0, f"ask/{n}"),
                    qos=BLOCK,
                    body=Reply(body=Put(payload=b"x")),
                )
                for n in range(2_000)
            )
            peer.send(ResponseFinal(request_id=id_, qos=BLOCK))
            assert len([reply async for reply in replies]) == 100
            assert victim.stats.routing.limit_replies == 1_900

    asyncio.run(scenario())


def test_a_batch_of_nothing_but_empty_frames() -> None:
    async def scenario() -> None:
        async with attacked() as victim, opened(victim, "accepted") as peer:
            with allocated() as peak:
                for _ in range(4):
                    frames = [Frame(reliable=True, sn=peer.next_sn()) for _ in range(5_000)]
                    peer.say(encode_batch(frames))
                    await peer.drain()
                peer.say(b"\x04" * 20_000)
                await through(victim, peer)
                assert peak() < 8_000_000
            assert victim.of(peer).transport.rx_frames == 20_001

    asyncio.run(scenario())
