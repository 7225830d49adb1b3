"""The same exchange with the reference under everything that two nodes can agree on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import zenoh

from tests.interop.exchange import (
    PATIENCE,
    ROLES,
    Settings,
    exchange,
    matching,
    meeting,
    node_settings,
    opened,
    publications,
)
from tests.ports import free_port
from tests.unit.api.nodes import run, within
from tests.unit.api.reference import Taker
from zenwire import aio
from zenwire.transport import Cause, Peer

pytestmark = pytest.mark.interop

TEXT = b"compressible " * 20_000
NOISE = random.Random(0).randbytes(200_000)
BLOCK, THEIR_BLOCK = aio.CongestionControl.BLOCK, zenoh.CongestionControl.BLOCK


def tx(**values: Any) -> Settings:
    return {"link": {"tx": values}}


def unicast(**values: Any) -> Settings:
    return {"unicast": values}


QUIET = unicast(qos={"enabled": False})
FAST = unicast(lowlatency=True, qos={"enabled": False})
LZ4 = unicast(compression={"enabled": True})
FAST_LZ4 = unicast(lowlatency=True, qos={"enabled": False}, compression={"enabled": True})


@dataclass
class Agreement:
    """What both sides have below ``transport``, and what comes of it."""

    ours: Settings = field(default_factory=dict)
    theirs: Settings = field(default_factory=dict)
    holds: Callable[[Peer], bool] = lambda _: True
    large: bytes = TEXT


def _batch(size: int) -> Callable[[Peer], bool]:
    return lambda peer: peer.batch_size == size


def _bits(bits: int) -> Callable[[Peer], bool]:
    return lambda peer: peer.resolution.frame_sn == bits


AGREEMENTS = {
    "nothing": Agreement(holds=lambda p: p.qos and not (p.compression or p.lowlatency)),
    "compression": Agreement(LZ4, LZ4, lambda p: p.compression),
    "compression of noise": Agreement(LZ4, LZ4, lambda p: p.compression, NOISE),
    "compression, only ours": Agreement(LZ4, {}, lambda p: not p.compression),
    "compression, only theirs": Agreement({}, LZ4, lambda p: not p.compression),
    "compression, small": Agreement(
        LZ4 | tx(batch_size=128), LZ4, lambda p: p.compression and p.batch_size == 128, TEXT[:9_000]
    ),
    "no qos": Agreement(QUIET, QUIET, lambda p: not p.qos),
    "no qos, only ours": Agreement(QUIET, {}, lambda p: not p.qos),
    "no qos, only theirs": Agreement({}, QUIET, lambda p: not p.qos),
    # Low latency has no fragments: all must fit into a batch.
    "low latency": Agreement(FAST, FAST, lambda p: p.lowlatency and not p.qos, TEXT[:40_000]),
    "low latency, only ours": Agreement(FAST, {}, lambda p: not p.lowlatency),
    "low latency, only theirs": Agreement({}, FAST, lambda p: not p.lowlatency),
    "low latency, compression": Agreement(
        FAST_LZ4, FAST_LZ4, lambda p: p.lowlatency and not p.compression, TEXT[:40_000]
    ),
    "batches of 96": Agreement(tx(batch_size=96), tx(batch_size=96), _batch(96), TEXT[:20_000]),
    "batches of 256": Agreement(tx(batch_size=256), tx(batch_size=256), _batch(256)),
    "batches of 96, only ours": Agreement(tx(batch_size=96), {}, _batch(96), TEXT[:20_000]),
    "batches of 256, only theirs": Agreement({}, tx(batch_size=256), _batch(256)),
    "batches as long as can be": Agreement(tx(batch_size=65_535), tx(batch_size=65_535)),
    "no batching": Agreement(
        tx(queue={"batching": {"enabled": False}}), tx(queue={"batching": {"enabled": False}})
    ),
    "8 bit": Agreement(
        tx(sequence_number_resolution="8bit"), tx(sequence_number_resolution="8bit"), _bits(8)
    ),
    "8 bit, only ours": Agreement(tx(sequence_number_resolution="8bit"), {}, _bits(8)),
    "8 bit, only theirs": Agreement({}, tx(sequence_number_resolution="8bit"), _bits(8)),
    "8 bit, batches of 96": Agreement(
        tx(sequence_number_resolution="8bit", batch_size=96), {}, _bits(8), TEXT[:50_000]
    ),
    "16 bit": Agreement(tx(sequence_number_resolution="16bit"), {}, _bits(16)),
    "32 bit": Agreement(
        tx(sequence_number_resolution="32bit"), tx(sequence_number_resolution="32bit"), _bits(32)
    ),
}


def agreed(session: aio.Session) -> Peer:
    """What our side says was agreed, with the only neighbour it has."""
    [neighbour] = session._core.node.neighbours.values()
    return neighbour.session.peer


def nothing_was_lost(session: aio.Session) -> None:
    [neighbour] = session.info.stats().neighbours
    assert not neighbour.dropped
    assert not neighbour.transport.rx_missing


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", list(AGREEMENTS))
def test_whatever_is_agreed(name: str, role: str) -> None:
    agreement = AGREEMENTS[name]

    async def main() -> None:
        mine, their = {"transport": agreement.ours}, {"transport": agreement.theirs}
        async with meeting(role, None, mine, their) as (ours, theirs):
            assert agreement.holds(agreed(ours)), agreed(ours)
            [transport] = ours.info.transports()
            assert transport.is_qos is agreed(ours).qos
            if not agreed(ours).lowlatency:
                # Asked for one of low latency, the reference panics.
                [their_transport] = theirs.info.transports()
                assert their_transport.is_qos is transport.is_qos
            await exchange(ours, theirs, agreement.large)
            nothing_was_lost(ours)

    run(main())


# Sequence numbers that begin anew.

LANES = [(priority, reliability) for priority in aio.Priority for reliability in aio.Reliability]
MANY = 300
"""More than an 8-bit sequence number counts twice."""


@pytest.mark.parametrize("role", ROLES)
def test_every_lane_counts_beyond_its_range(role: str) -> None:
    """Small messages, then one whose fragments alone are more than there are numbers."""
    # The reference drops what is best effort, whatever its congestion control, unless it waits.
    queue = {"congestion_control": {"drop": PATIENCE}}
    how = {"transport": tx(sequence_number_resolution="8bit", batch_size=96, queue=queue)}
    sent = [*(b"%d" % n for n in range(MANY)), TEXT[:15_000], b"end"]

    async def main() -> None:
        async with meeting(role, None, how, how) as (ours, theirs):
            got: Taker[zenoh.Sample] = Taker()
            theirs.declare_subscriber("a/*", got)
            for priority, reliability in LANES:
                async with ours.declare_publisher(
                    "a/1",
                    priority=priority,
                    reliability=reliability,
                    congestion_control=BLOCK,
                    express=True,
                ) as publisher:
                    await matching(publisher)
                    for payload in sent:
                        await publisher.put(payload)
                    for payload in sent:
                        assert (await got.get()).payload.to_bytes() == payload

            async with ours.declare_subscriber("b/*", aio.FifoChannel(len(sent))) as subscriber:
                for priority, reliability in LANES:
                    their = theirs.declare_publisher(
                        "b/1",
                        priority=getattr(zenoh.Priority, priority.name),
                        reliability=getattr(zenoh.Reliability, reliability.name),
                        congestion_control=THEIR_BLOCK,
                        express=True,
                    )
                    await matching(their)

                    def send(publisher: zenoh.Publisher = their) -> None:
                        for payload in sent:
                            publisher.put(payload)

                    await asyncio.to_thread(send)
                    for payload in sent:
                        sample = await within(subscriber.recv())
                        assert sample.payload == payload
                        assert (sample.priority, sample.reliability) == (priority, reliability)
                    their.undeclare()  # type: ignore[no-untyped-call]
                assert subscriber.dropped == 0
            nothing_was_lost(ours)

    run(main())


# Batches that are just full.


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("size", [96, 256, 65_535])
def test_payloads_around_the_size_of_a_batch(role: str, size: int) -> None:
    """Whole or in two pieces, by one byte more or less."""
    how = {"transport": tx(batch_size=size)}

    async def main() -> None:
        async with meeting(role, None, how, how) as (ours, theirs):
            # That of the longest batches is less on most links.
            full = agreed(ours).batch_size
            assert full == size or full < size == 65_535
            payloads = [TEXT[:length] for length in range(full - 90, full + 3)]
            await publications(ours, theirs, payloads)
            [neighbour] = ours.info.stats().neighbours
            counted = neighbour.transport
            assert counted.tx_fragments
            assert counted.rx_fragments
            nothing_was_lost(ours)

    run(main())


@pytest.mark.parametrize("role", ROLES)
def test_what_low_latency_cannot_carry_is_counted(role: str) -> None:
    how = {"transport": FAST}

    async def main() -> None:
        async with meeting(role, None, how, how) as (ours, theirs):
            got: Taker[zenoh.Sample] = Taker()
            theirs.declare_subscriber("a", got)
            async with ours.declare_publisher("a", congestion_control=BLOCK) as publisher:
                await matching(publisher)
                await publisher.put(TEXT)
                await publisher.put("fits")
                assert (await got.get()).payload.to_string() == "fits"
            [neighbour] = ours.info.stats().neighbours
            assert neighbour.dropped == {Cause.TOO_LARGE: 1}

    run(main())


# Users and passwords.


def auth(user: str, password: str, users: Path | None = None) -> Settings:
    usrpwd = {"user": user, "password": password}
    if users is not None:
        usrpwd["dictionary_file"] = str(users)
    return {"transport": {"auth": {"usrpwd": usrpwd}}}


@pytest.fixture
def users(tmp_path: Path) -> Path:
    file = tmp_path / "users"
    file.write_text("me:secret\nyou:hidden\n")
    return file


@pytest.mark.parametrize("role", ROLES)
def test_users_with_the_right_password(role: str, users: Path) -> None:
    async def main() -> None:
        mine, their = auth("me", "secret", users), auth("you", "hidden", users)
        async with meeting(role, None, mine, their) as (ours, theirs):
            await exchange(ours, theirs, TEXT)
            if role in {"dialling peer", "client"}:
                [link] = ours.info.links()
                assert link.auth_identifier == "you"

    run(main())


@pytest.mark.parametrize("theirs_has", [auth("you", "wrong"), auth("nobody", "hidden"), {}])
def test_our_node_refuses_others(theirs_has: Settings, users: Path) -> None:
    where = f"tcp/127.0.0.1:{free_port()}"

    async def main() -> None:
        settings = node_settings("peer", listen=where, **auth("me", "secret", users))
        async with aio.open(aio.Config.from_dict(settings)) as ours:
            with pytest.raises(zenoh.ZError):
                async with opened(node_settings("client", connect=where, **theirs_has)):
                    pass
            assert ours.info.transports() == []
            assert ours.info.stats().failures["generic"] >= 1

    run(main())


@pytest.mark.parametrize("ours_has", [auth("me", "wrong"), auth("nobody", "secret"), {}])
def test_their_node_refuses_others(ours_has: Settings, users: Path) -> None:
    where = f"tcp/127.0.0.1:{free_port()}"

    async def main() -> None:
        settings = node_settings("router", listen=where, **auth("you", "hidden", users))
        async with opened(settings) as theirs:
            with pytest.raises(aio.LinkError, match=where):
                await aio.open(
                    aio.Config.from_dict(node_settings("client", connect=where, **ours_has))
                )
            assert list(theirs.info.transports()) == []

    run(main())
