"""Sessions that cannot be: what each conflict of a handshake ends with, on both sides of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.peers import (
    FIRST_SN,
    TIMEOUT,
    Peer,
    Victim,
    attacked,
    config,
    dialled,
    opened,
    put,
    until,
)
from zenwire import aio
from zenwire.node.seats import NotOpened
from zenwire.wire.objects import encode
from zenwire.wire.transport import Close, InitSyn, OpenAck, OpenSyn
from zenwire.wire.values import CloseReason, Resolution, WhatAmI

pytestmark = pytest.mark.interop

Attack = Callable[[Victim, Peer], Awaitable[None]]

MANDATORY = b"\x1f"
"""An extension that nobody knows, and that must be known."""


def extended(message: object) -> bytes:
    """A message without extensions, with one that nobody knows."""
    data = encode(message)
    return bytes([data[0] | 0x80]) + data[1:] + MANDATORY


def altered(data: bytes, at: int, value: int) -> bytes:
    return data[:at] + bytes([value]) + data[at + 1 :]


@dataclass(frozen=True)
class Row:
    """What a peer does until the victim has had enough, and the reason it is then told."""

    text: str
    attack: Attack
    reason: CloseReason
    config: dict[str, Any] = field(default_factory=dict)


# The victim has accepted the link.


async def own_zid(victim: Victim, peer: Peer) -> None:
    peer.zid = victim.node.zid
    ack = await peer.init()
    peer.say(OpenSyn(lease=10_000, initial_sn=FIRST_SN, cookie=ack.cookie))


async def open_after(peer: Peer, **offer: Any) -> None:
    ack = await peer.init(**offer)
    peer.say(OpenSyn(lease=10_000, initial_sn=FIRST_SN, cookie=ack.cookie))


async def kind_3(_victim: Victim, peer: Peer) -> None:
    data = encode(peer.init_syn())
    peer.say(altered(data, 2, data[2] | 3))


async def bad_version(_victim: Victim, peer: Peer) -> None:
    peer.say(peer.init_syn(version=8))


async def zero_zid(_victim: Victim, peer: Peer) -> None:
    peer.say(bytes.fromhex("01 09 01 00"))


async def unknown_extension(_victim: Victim, peer: Peer) -> None:
    peer.say(extended(peer.init_syn(qos=False, patch=0)))


async def bad_cookie(_victim: Victim, peer: Peer) -> None:
    cookie = (await peer.init()).cookie
    changed = altered(cookie, 0, cookie[0] ^ 1)
    peer.say(OpenSyn(lease=10_000, initial_sn=FIRST_SN, cookie=changed))


async def foreign_cookie(_victim: Victim, peer: Peer) -> None:
    await peer.init()
    peer.say(OpenSyn(lease=10_000, initial_sn=FIRST_SN, cookie=b"made up"))


async def bad_bound(_victim: Victim, peer: Peer) -> None:
    ack = await peer.init()
    peer.say(OpenSyn(lease=10_000, initial_sn=1, cookie=ack.cookie, remote_bound=5))


async def first_sn_too_large(_victim: Victim, peer: Peer) -> None:
    ack = await peer.init(resolution=Resolution.of(8, 32))
    peer.say(OpenSyn(lease=10_000, initial_sn=128, cookie=ack.cookie))


ACCEPTED = [
    Row("InitSyn with acceptor's own zid", own_zid, CloseReason.CONNECTION_TO_SELF),
    Row(
        "max_sessions reached",
        lambda _, peer: open_after(peer),
        CloseReason.INVALID,
        {"transport": {"unicast": {"max_sessions": 1}}},
    ),
    Row("wai=3", kind_3, CloseReason.INVALID),
    Row("bad version", bad_version, CloseReason.INVALID),
    Row("zero zid", zero_zid, CloseReason.INVALID),
    Row("unknown mandatory ext", unknown_extension, CloseReason.INVALID),
    Row("bad cookie", bad_cookie, CloseReason.INVALID),
    Row("bad cookie, of nobody", foreign_cookie, CloseReason.INVALID),
    Row("bad RemoteBound", bad_bound, CloseReason.GENERIC),
    Row("first sequence number above the resolution", first_sn_too_large, CloseReason.INVALID),
]


@pytest.mark.parametrize("row", ACCEPTED, ids=lambda row: row.text)
def test_a_link_that_came_is_refused(row: Row) -> None:
    async def scenario() -> None:
        async with attacked("reference", **row.config) as victim:
            peer = await Peer.connect(victim)
            await row.attack(victim, peer)
            assert await peer.end() == row.reason
            await peer.close()
            assert victim.stats.failures == {row.reason.name.lower(): 1}
            assert victim.stats.endings == {}
            assert len(victim.node.neighbours) == 1

    asyncio.run(scenario())


# The victim has dialled.


async def answers_as_victim(victim: Victim, peer: Peer) -> None:
    await peer.expect(InitSyn)
    peer.say(peer.init_ack(zid=victim.node.zid))


async def answers_kind_3(_victim: Victim, peer: Peer) -> None:
    await peer.expect(InitSyn)
    data = encode(peer.init_ack())
    peer.say(altered(data, 2, data[2] | 3))


async def answers_bad_version(_victim: Victim, peer: Peer) -> None:
    await peer.expect(InitSyn)
    peer.say(peer.init_ack(version=8))


async def answers_zero_zid(_victim: Victim, peer: Peer) -> None:
    await peer.expect(InitSyn)
    peer.say(bytes.fromhex("21 09 01 00 01 aa"))


async def answers_unknown_extension(_victim: Victim, peer: Peer) -> None:
    await peer.expect(InitSyn)
    peer.say(extended(peer.init_ack(qos=False, patch=0)))


async def answers_large_cookie(_victim: Victim, peer: Peer) -> None:
    await peer.expect(InitSyn)
    peer.say(peer.init_ack(cookie=bytes(1_025)))


async def answers_higher_resolution(_victim: Victim, peer: Peer) -> None:
    await peer.expect(InitSyn)
    peer.say(peer.init_ack(resolution=Resolution.of(64, 64)))


async def answers_higher_patch(_victim: Victim, peer: Peer) -> None:
    await peer.expect(InitSyn)
    peer.say(peer.init_ack(patch=2))


async def asks_for_no_password(_victim: Victim, peer: Peer) -> None:
    await peer.expect(InitSyn)
    peer.say(peer.init_ack())


async def answers_bad_bound(_victim: Victim, peer: Peer) -> None:
    await peer.expect(InitSyn)
    peer.say(peer.init_ack())
    await peer.expect(OpenSyn)
    peer.say(OpenAck(lease=10_000, initial_sn=FIRST_SN, remote_bound=5))


DIALLED = [
    Row("InitAck with connector's own zid", answers_as_victim, CloseReason.CONNECTION_TO_SELF),
    Row("wai=3", answers_kind_3, CloseReason.INVALID),
    Row("bad version", answers_bad_version, CloseReason.INVALID),
    Row("zero zid", answers_zero_zid, CloseReason.INVALID),
    Row("unknown mandatory ext", answers_unknown_extension, CloseReason.INVALID),
    Row("bad cookie, too large", answers_large_cookie, CloseReason.INVALID),
    Row("resolution above the offer", answers_higher_resolution, CloseReason.INVALID),
    Row("patch too high", answers_higher_patch, CloseReason.GENERIC),
    Row(
        "auth failure",
        asks_for_no_password,
        CloseReason.GENERIC,
        {"transport": {"auth": {"usrpwd": {"user": "u", "password": "p"}}}},
    ),
    Row("bad RemoteBound", answers_bad_bound, CloseReason.GENERIC),
]


@pytest.mark.parametrize("row", DIALLED, ids=lambda row: row.text)
def test_a_link_that_was_dialled_is_refused(row: Row) -> None:
    async def scenario() -> None:
        async with (
            attacked("reference", **row.config) as victim,
            dialled(victim) as (peer, attempt),
        ):
            await row.attack(victim, peer)
            assert await peer.end() == row.reason
            with pytest.raises(NotOpened) as e:
                await asyncio.wait_for(attempt, TIMEOUT)
            assert e.value.close_reason == row.reason
            assert victim.stats.failures == {row.reason.name.lower(): 1}
            assert len(victim.node.neighbours) == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("stage", ["InitAck", "OpenAck"])
@pytest.mark.parametrize("reason", [0, 2, 3, 5, 7, 200])
def test_a_close_instead_of_an_answer(stage: str, reason: int) -> None:
    async def scenario() -> None:
        async with attacked() as victim, dialled(victim) as (peer, attempt):
            await peer.expect(InitSyn)
            if stage == "OpenAck":
                peer.say(peer.init_ack())
                await peer.expect(OpenSyn)
            peer.say(Close(reason=reason))
            with pytest.raises(NotOpened) as e:
                await asyncio.wait_for(attempt, TIMEOUT)
            assert e.value.close_reason == reason
            assert await peer.end() is None
            assert victim.stats.failures == {"closed_by_peer": 1}

    asyncio.run(scenario())


# One who is there already.


@pytest.mark.parametrize(
    ("text", "whatami", "offer", "reason"),
    [
        ("same parameters, max_links=1", WhatAmI.PEER, {}, CloseReason.MAX_LINKS),
        ("other mode", WhatAmI.CLIENT, {}, CloseReason.INVALID),
        ("other parameters", WhatAmI.PEER, {"qos": False}, CloseReason.INVALID),
        ("other parameters", WhatAmI.PEER, {"patch": 0}, CloseReason.INVALID),
    ],
)
def test_zid_already_connected(
    text: str, whatami: WhatAmI, offer: dict[str, Any], reason: CloseReason
) -> None:
    async def scenario() -> None:
        async with attacked("reference") as victim, opened(victim, "accepted") as first:
            second = await Peer.connect(victim)
            second.zid, second.whatami = first.zid, whatami
            await open_after(second, **offer)
            assert await second.end() == reason
            await second.close()
            # The old session stays.
            first.send(put(b"still here"))
            await until(lambda: victim.payloads == [b"still here"])
            assert victim.stats.failures == {reason.name.lower(): 1}
            assert victim.stats.endings == {}
            assert len(victim.node.neighbours) == 2

    asyncio.run(scenario())


def test_zid_already_connected_and_dialled_again() -> None:
    async def scenario() -> None:
        async with attacked("reference") as victim, opened(victim, "accepted") as first:
            async with dialled(victim) as (second, attempt):
                second.zid = first.zid
                await second.expect(InitSyn)
                second.say(second.init_ack())
                assert await second.end() == CloseReason.MAX_LINKS
                # Whoever wanted a session has one.
                connection = await asyncio.wait_for(asyncio.shield(attempt), TIMEOUT)
                assert connection.neighbour is victim.node.find(first.zid)
                assert connection.carrier is None
            first.send(put(b"still here"))
            await until(lambda: victim.payloads == [b"still here"])
            assert victim.stats.failures == {"max_links": 1}

    asyncio.run(scenario())


# What needs a configuration of its own.


@pytest.mark.parametrize("proof", ["none", "wrong"])
def test_auth_failure(tmp_path: Path, proof: str) -> None:
    users = tmp_path / "users.txt"
    users.write_text("friend:secret\n")

    def password(**usrpwd: str) -> dict[str, Any]:
        return {"transport": {"auth": {"usrpwd": usrpwd}}}

    async def scenario() -> None:
        async with attacked(
            "zenwire",
            friendly=password(user="friend", password="secret"),
            **password(dictionary_file=str(users)),
        ) as victim:
            if proof == "none":
                peer = await Peer.connect(victim)
                peer.say(peer.init_syn())
                assert await peer.end() == CloseReason.GENERIC
                await peer.close()
            else:
                where = {"endpoints": [f"tcp/127.0.0.1:{victim.port}"]}
                wrong = config("client", connect=where, **password(user="friend", password="x"))
                with pytest.raises(aio.LinkError, match="GENERIC"):
                    await aio.open(wrong)
            assert victim.stats.failures == {"generic": 1}
            assert len(victim.node.neighbours) == 1

    asyncio.run(scenario())


def test_patch_too_high_is_answered_with_what_is_known() -> None:
    async def scenario() -> None:
        async with attacked("reference") as victim:
            peer = await Peer.connect(victim)
            assert (await peer.init(patch=5)).patch == 1
            await peer.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("role", ["accepted", "dialled"])
def test_client_and_client(role: str) -> None:
    async def scenario() -> None:
        async with aio.open(config("peer")) as hub:
            heard: list[bytes] = []

            def take(sample: aio.Sample) -> None:
                heard.append(bytes(sample.payload))

            hub_port = Victim(hub).port
            where = {"endpoints": [f"tcp/127.0.0.1:{hub_port}"]}
            chosen = config("client", connect=where)
            chosen.insert_json5("listen/endpoints", '["tcp/127.0.0.1:0"]')
            async with hub.declare_subscriber("**", take), aio.open(chosen) as client:
                victim = Victim(client)
                if role == "dialled":
                    async with dialled(victim) as (peer, attempt):
                        peer.whatami = WhatAmI.CLIENT
                        await peer.expect(InitSyn)
                        peer.say(peer.init_ack())
                        assert await peer.end() == CloseReason.GENERIC
                        with pytest.raises(NotOpened):
                            await attempt
                else:
                    peer = await Peer.connect(victim)
                    peer.whatami = WhatAmI.CLIENT
                    await open_after(peer)
                    assert await peer.end() == CloseReason.GENERIC
                    await peer.close()
                assert victim.stats.failures == {"generic": 1}
                await client.put("still/here", b"x")
                await until(lambda: heard == [b"x"])

    asyncio.run(scenario())


@pytest.mark.parametrize("role", ["accepted", "dialled"])
def test_init_in_an_open_session_is_ignored(role: str) -> None:
    async def scenario() -> None:
        async with attacked("reference") as victim, opened(victim, role) as peer:
            peer.say(peer.init_syn())
            peer.say(peer.init_ack())
            peer.say(OpenAck(lease=1, initial_sn=5))
            peer.send(put(b"goes on"))
            await until(lambda: victim.payloads == [b"goes on"])
            assert victim.of(peer).transport.rx_ignored == 3
            assert victim.stats.endings == victim.stats.failures == {}

    asyncio.run(scenario())
