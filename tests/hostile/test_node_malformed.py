"""Input that is wrong: what each kind of it does to a link, and that it does so to no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.hostile.peers import (
    BLOCK,
    FIRST_SN,
    TIMEOUT,
    Peer,
    attacked,
    dialled,
    opened,
    put,
    until,
)
from zenwire.node.seats import NotOpened
from zenwire.transport import Cause
from zenwire.wire.batch import encode_batch, frame_stream
from zenwire.wire.linkstate import OAM_LINKSTATE
from zenwire.wire.network import Oam
from zenwire.wire.objects import encode
from zenwire.wire.transport import Fragment, Frame, InitSyn, OpenSyn, TransportOam
from zenwire.wire.values import CloseReason, Priority, Resolution

pytestmark = pytest.mark.interop

ROLES = ("accepted", "dialled")


# Handshakes.


HANDSHAKE = {
    "a header of no message": (b"\x1e", CloseReason.INVALID),
    "noise": (b"\x7f" + bytes(range(200)), CloseReason.INVALID),
    "a message that is cut": (b"\x41\x09", CloseReason.INVALID),
    "a message of another stage": (b"\x04", CloseReason.INVALID),
    "a length above what is there": (bytes.fromhex("22 0a 01 ff ff 03"), CloseReason.INVALID),
    "not even a header": (b"", None),
}


@pytest.mark.parametrize("stage", ["first", "second"])
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("text", HANDSHAKE)
def test_undecodable_handshake_message(text: str, role: str, stage: str) -> None:
    batch, reason = HANDSHAKE[text]
    counted = "malformed" if reason is None else "invalid"

    async def scenario() -> None:
        async with attacked("reference") as victim:
            if role == "accepted":
                peer = await Peer.connect(victim)
                if stage == "second":
                    await peer.init()
                peer.say(batch)
                assert await peer.end() == reason
                await peer.close()
            else:
                async with dialled(victim) as (peer, attempt):
                    await peer.expect(InitSyn)
                    if stage == "second":
                        peer.say(peer.init_ack())
                        await peer.expect(OpenSyn)
                    peer.say(batch)
                    assert await peer.end() == reason
                    with pytest.raises(NotOpened) as e:
                        await asyncio.wait_for(attempt, TIMEOUT)
                    assert e.value.close_reason == reason
            assert victim.stats.failures == {counted: 1}
            assert len(victim.node.neighbours) == 1

    asyncio.run(scenario())


# What ends an open session, without a CLOSE.


@dataclass(frozen=True)
class Bad:
    """A batch, and what has to be offered for it to mean what it should."""

    batch: Callable[[Peer], bytes]
    offer: dict[str, Any] = field(default_factory=dict)


def framed(text: str) -> Bad:
    return Bad(lambda peer: peer.frame(bytes.fromhex(text)))


def whole(text: str) -> Bad:
    return Bad(lambda _: bytes.fromhex(text))


ENDS = {
    "undecodable batch: unknown transport id": whole("08"),
    "undecodable batch: noise": whole("ff fe fd fc"),
    "undecodable batch: cut message": framed("7d 00 01 61 01 05"),
    "undecodable batch: fragments of no message": Bad(
        lambda peer: encode(
            Fragment(reliable=True, more=False, first=True, sn=peer.next_sn(), payload=b"\0\0")
        )
    ),
    "SN > mask": Bad(lambda _: encode(Frame(reliable=True, sn=2**28))),
    "SN > mask, 8 bits": Bad(
        lambda _: encode(Frame(reliable=True, sn=128)), {"resolution": Resolution.of(8, 32)}
    ),
    "SN > mask, fragment": Bad(
        lambda _: encode(Fragment(reliable=True, more=True, sn=2**28, first=True, payload=b"x"))
    ),
    "batch longer than agreed": Bad(lambda _: b"\x04" * 1_023, {"batch_size": 1_024}),
    "priority ext without QoS": Bad(
        lambda peer: encode(Frame(reliable=True, sn=peer.next_sn(), priority=Priority.REAL_TIME)),
        {"qos": False},
    ),
    "unknown network id": framed("18"),
    "unknown mandatory ext": framed("9d 00 1b"),
    "unknown mandatory ext of the transport": whole("84 1b"),
    "ENC=3": framed("9d 00 6b 00"),
    "ENC=3 of OAM": framed("7f 07 00"),
    "invalid UTF-8 key": framed("7d 00 01 ff 01 01 78"),
    "rid > u32": framed("9a ff ff ff ff 1f"),
    "bad target": framed("bc 05 00 01 61 34 09 03"),
}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("text", ENDS)
def test_link_closed(text: str, role: str) -> None:
    bad = ENDS[text]
    offer = dict(bad.offer)
    small = offer.get("resolution")

    async def scenario() -> None:
        async with attacked("reference") as victim:
            if small is not None:
                # The number that sessions start with must be one that there is.
                peer = await Peer.connect(victim)
                await peer.open(offer, initial_sn=5)
                await until(lambda: victim.node.find(peer.zid) is not None)
                await broken(peer)
                return
            async with opened(victim, role, **offer) as peer:
                peer.send(put(b"good"))
                await until(lambda: victim.payloads == [b"good"])
                await broken(peer)
                assert victim.stats.endings == {"malformed": 1}
                assert victim.stats.failures == {}
                assert len(victim.node.neighbours) == 1

    async def broken(peer: Peer) -> None:
        peer.say(bad.batch(peer))
        peer.send(put(b"never"))
        assert await peer.end() is None
        await peer.close()

    asyncio.run(scenario())


# What loses a message, and nothing else.


def late(peer: Peer) -> list[bytes]:
    return [peer.frame(put(b"old"), sn=sn) for sn in (FIRST_SN - 500, FIRST_SN + 2**27)]


def repeated(peer: Peer) -> list[bytes]:
    return [peer.frame(put(b"good")), peer.frame(put(b"again"), sn=FIRST_SN)]


def keyed(text: str) -> Callable[[Peer], list[bytes]]:
    """A PUSH with the key as it is in hex."""
    return lambda peer: [peer.frame(bytes.fromhex(f"{text} 01 01 78"))]


def pieces(
    peer: Peer, *, first: bool = True, gap: int = 0, size: int = 40_000, count: int = 3
) -> list[bytes]:
    """A PUT in fragments, perhaps without its start, or with a number left out."""
    data = encode_batch([put(bytes(size * (count - 1)))])
    cut = [data[at : at + size] for at in range(0, len(data), size)]
    made = []
    for index, payload in enumerate(cut):
        peer.sn += gap if index == 1 else 0
        made.append(
            encode(
                Fragment(
                    reliable=True,
                    more=index < len(cut) - 1,
                    first=first and not index,
                    sn=peer.next_sn(),
                    payload=payload,
                )
            )
        )
    return made


@dataclass(frozen=True)
class Lost:
    """Batches, the cause and how often it is counted; or the counter of routing."""

    batches: Callable[[Peer], list[bytes]]
    counted: Cause | str
    times: int = 1


LOST = {
    "SN out of window: late": Lost(late, Cause.LATE, 2),
    "SN out of window: repeated": Lost(repeated, Cause.DUPLICATE),
    "unknown scope": Lost(keyed("7d 07 01 61"), "unknown_scope"),
    "unknown scope of the receiver": Lost(keyed("3d 63 01 61"), "unknown_scope"),
    "non-canonical key": Lost(keyed("7d 00 03 61 2f 2f"), "bad_key"),
    "non-canonical key, stars": Lost(keyed("7d 00 05 2a 2a 2f 2a 2a"), "bad_key"),
    "non-canonical key, slash": Lost(keyed("7d 00 02 2f 61"), "bad_key"),
    "empty key": Lost(keyed("7d 00 00"), "bad_key"),
    "empty key without a suffix": Lost(keyed("5d 00"), "bad_key"),
    "reassembly over limit": Lost(lambda peer: pieces(peer, count=4), Cause.FRAGMENT_TOO_LARGE),
    "missing First": Lost(lambda peer: pieces(peer, first=False), Cause.FRAGMENT_NO_FIRST),
    "SN gap": Lost(lambda peer: pieces(peer, gap=1), Cause.FRAGMENT_GAP),
    "a FRAME in between": Lost(
        lambda peer: [pieces(peer)[0], peer.frame(put(b"good"))], Cause.FRAGMENT_INTERRUPTED
    ),
}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("text", LOST)
def test_message_dropped(text: str, role: str) -> None:
    lost = LOST[text]

    async def scenario() -> None:
        limit = {"link": {"rx": {"max_message_size": 100_000}}}
        async with attacked("reference", transport=limit) as victim, opened(victim, role) as peer:
            for batch in lost.batches(peer):
                peer.say(batch)
            peer.send(put(b"good"))

            def dropped() -> int:
                if isinstance(lost.counted, Cause):
                    return sum(victim.of(peer).dropped.values())
                return int(getattr(victim.stats.routing, lost.counted))

            await until(lambda: victim.payloads and dropped() >= lost.times)
            assert set(victim.payloads) == {b"good"}
            if isinstance(lost.counted, Cause):
                assert victim.of(peer).dropped == {lost.counted: lost.times}
            else:
                assert dropped() == lost.times
            assert victim.stats.endings == {}
            assert len(victim.node.neighbours) == 2

    asyncio.run(scenario())


# What means nothing.


IGNORED: dict[str, Callable[[Peer], bytes]] = {
    "unknown transport OAM": lambda _: encode(TransportOam(id=7, body=b"?")),
    "unknown transport OAM without a body": lambda _: encode(TransportOam(id=60_000)),
    "INIT in session": lambda peer: encode(peer.init_syn()),
    "JOIN in session": lambda _: bytes.fromhex("27 09 11 10 aa 0a 00 00"),
    "empty batch": lambda _: b"",
}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("text", IGNORED)
def test_ignored(text: str, role: str) -> None:
    async def scenario() -> None:
        async with attacked("reference") as victim, opened(victim, role) as peer:
            peer.say(IGNORED[text](peer))
            peer.send(put(b"good"))
            await until(lambda: victim.payloads == [b"good"])
            assert victim.of(peer).transport.rx_ignored == 1
            assert victim.stats.endings == {}

    asyncio.run(scenario())


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("oam", ["1f 07", "3f 07 05", "5f 07 01 aa"])
def test_unknown_network_oam_is_ignored(oam: str, role: str) -> None:
    async def scenario() -> None:
        async with attacked("reference") as victim, opened(victim, role) as peer:
            peer.say(peer.frame(bytes.fromhex(oam), put(b"good")))
            await until(lambda: victim.payloads == [b"good"])
            assert victim.stats.routing.ignored_oam == 1
            assert victim.stats.endings == {}

    asyncio.run(scenario())


@pytest.mark.parametrize("role", ROLES)
def test_undecodable_link_state_closes_the_session(role: str) -> None:
    async def scenario() -> None:
        async with attacked("reference") as victim, opened(victim, role) as peer:
            # Network messages that are known only by their bodies are refused with a word.
            peer.send(Oam(id=OAM_LINKSTATE, qos=BLOCK, body=b"\xff\xff"))
            assert await peer.end() == CloseReason.INVALID
            assert victim.stats.endings == {"invalid": 1}
            assert victim.stats.failures == {}
            assert sum(victim.stats.routing.violations.values()) == 1
        # One end is one, whatever follows the first reason for it in the same breath.
        async with attacked("reference") as victim, opened(victim, role) as peer:
            bad = peer.frame(Oam(id=OAM_LINKSTATE, qos=BLOCK, body=b"\xff\xff"))
            peer.raw(frame_stream(bad) + frame_stream(b"\x08"))
            await peer.end()
            assert victim.stats.endings == {"invalid": 1}
            assert victim.stats.failures == {}

    asyncio.run(scenario())
