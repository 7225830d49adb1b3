"""Peers that mean harm, over real sockets: they lose their link, and nobody else notices."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from zenwire.node import Node, open_node
from zenwire.node.config import Config
from zenwire.routing import Limits, Output, SampleReceived
from zenwire.transport import Cause, Closed, Event, LinkFacts, Opened, Sessions, Settings
from zenwire.transport.states import State
from zenwire.wire.batch import decode_batch, frame_stream
from zenwire.wire.data import Put, Query
from zenwire.wire.declare import DeclareKeyExpr, DeclareSubscriber
from zenwire.wire.linkstate import OAM_LINKSTATE
from zenwire.wire.network import Declare, Interest, NetworkMessage, Oam, Request
from zenwire.wire.transport import Close
from zenwire.wire.values import (
    CloseReason,
    CongestionControl,
    InterestMode,
    QoS,
    WhatAmI,
    WireExpr,
    ZenohId,
)

TIMEOUT = 30.0
BLOCK = QoS.of(congestion_control=CongestionControl.BLOCK)
DROP = QoS.of(congestion_control=CongestionControl.DROP)


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while not reached():  # noqa: ASYNC110 # nothing announces it
            await asyncio.sleep(0.005)


def made(mode: str, **more: Any) -> Config:
    listen = ["tcp/127.0.0.1:0"] if mode == "peer" else []
    return Config.from_dict(
        {
            "mode": mode,
            "listen": {"endpoints": listen},
            "scouting": {"multicast": {"enabled": False}},
        }
        | more
    )


class Taker:
    def __init__(self, node: Node, key: str) -> None:
        self.payloads: list[bytes] = []
        self.id = node.session().declare_subscriber(key)
        node.receivers[self.id] = self._take
        node.settle()

    def _take(self, output: Output) -> None:
        assert isinstance(output, SampleReceived)
        assert isinstance(output.body, Put)
        self.payloads.append(output.body.payload)


@asynccontextmanager
async def victim(limits: Limits | None = None, **transport: Any) -> AsyncIterator[Node]:
    """A peer, and a client of it to which nothing must happen."""
    node = await open_node(made("peer", transport=transport), limits=limits)
    where = str(node.locators()[0])
    friend = await open_node(made("client", connect={"endpoints": [where]}))
    taker = Taker(friend, "friend/**")
    session = node.session()
    try:
        await _reaches(node, session, taker, b"before")
        yield node
        await _reaches(node, session, taker, b"after")
        (near,) = friend.neighbours.values()
        assert near.face.zid == node.zid
        assert friend.stats().endings == {}
    finally:
        await friend.close()
        await node.close()


async def _reaches(node: Node, session: Any, taker: Taker, payload: bytes) -> None:
    async with asyncio.timeout(TIMEOUT):
        while payload not in taker.payloads:
            session.push("friend/x", Put(payload=payload))
            node.settle()
            await asyncio.sleep(0.005)


class Rogue:
    """A link of somebody who knows the protocol, and says what it wants."""

    def __init__(self, node: Node, *, whatami: WhatAmI = WhatAmI.PEER, **settings: Any) -> None:
        self.address = node.locators()[0].address
        zid = ZenohId(os.urandom(16))
        sessions = Sessions(Settings(zid=zid, whatami=whatami, **settings), bytes(32), os.urandom)
        self.machine = sessions.connect(LinkFacts(), 0.0)
        self.events: list[Event] = []

    async def connect(self, *, rcvbuf: int | None = None) -> None:
        host, _, port = self.address.rpartition(":")
        sock = socket.socket()
        if rcvbuf is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, (host, int(port)))
        limit = 1024 if rcvbuf is not None else 65_536
        self.reader, self.writer = await asyncio.open_connection(sock=sock, limit=limit)

    def flush(self) -> None:
        while data := self.machine.pull(0.0):
            self.writer.write(data)

    async def read(self) -> bool:
        """Whether there is more."""
        async with asyncio.timeout(TIMEOUT):
            try:
                data = await self.reader.read(65_536)
            except ConnectionResetError:
                data = b""
        self.events += self.machine.receive(data, 0.0) if data else []
        return bool(data)

    async def open(self) -> None:
        await self.connect()
        while self.machine.state is not State.OPEN:
            self.flush()
            assert await self.read(), self.events
        assert any(isinstance(event, Opened) for event in self.events)

    def send(self, *messages: NetworkMessage) -> None:
        for message in messages:
            self.machine.send(message, 0.0, qos=BLOCK)
            self.flush()

    async def end(self) -> int | None:
        """The reason of the CLOSE with which the link ended, or None."""
        while await self.read():
            pass
        closes = [event for event in self.events if isinstance(event, Closed)]
        return closes[0].reason if closes else None

    async def close(self) -> None:
        self.writer.transport.abort()
        await asyncio.sleep(0)


async def raw_end(rogue: Rogue) -> bytes:
    """All that comes until the link ends."""
    data = b""
    async with asyncio.timeout(TIMEOUT):
        try:
            while piece := await rogue.reader.read(65_536):
                data += piece
        except ConnectionResetError:
            pass
    return data


# Handshakes.


def test_silent_handshakes_end_and_do_not_keep_others_out() -> None:
    async def scenario() -> None:
        async with victim(unicast={"accept_pending": 4, "accept_timeout": 300}) as node:
            silent = [Rogue(node) for _ in range(12)]
            for rogue in silent:
                await rogue.connect()
                rogue.writer.write(b"\x10")
            await until(lambda: node.stats().evicted >= 8)
            late = Rogue(node)
            await late.open()
            for rogue in silent:
                await raw_end(rogue)
                await rogue.close()
            # One gave way to the honest one, the rest were too slow.
            stats = node.stats()
            assert stats.evicted == 9
            assert stats.failures["timeout"] == 3
            assert len(node.neighbours) == 2
            await late.close()
            await until(lambda: len(node.neighbours) == 1)

    asyncio.run(scenario())


def test_a_handshake_byte_by_byte_ends_in_time() -> None:
    async def scenario() -> None:
        async with victim(unicast={"accept_timeout": 300}) as node:
            rogue = Rogue(node)
            await rogue.connect()
            for byte in rogue.machine.pull(0.0)[:-1]:
                rogue.writer.write(bytes([byte]))
                await asyncio.sleep(0.001)
            assert await raw_end(rogue) == b""
            assert node.stats().failures == {"timeout": 1}
            await rogue.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("stage", ["first", "after_init", "open"])
def test_garbage_ends_one_link(stage: str) -> None:
    async def scenario() -> None:
        chaos = random.Random(stage)
        async with victim() as node:
            for _ in range(20):
                rogue = Rogue(node)
                if stage == "open":
                    await rogue.open()
                else:
                    await rogue.connect()
                if stage == "after_init":
                    rogue.writer.write(rogue.machine.pull(0.0))
                    await rogue.reader.readexactly(20)
                # A header of no message, so that no luck makes it one.
                rogue.writer.write(frame_stream(b"\x1e" + chaos.randbytes(200)))
                data = await raw_end(rogue)
                if stage != "open":
                    close = decode_batch(data[-4:][2:] if stage == "first" else data[-2:])
                    assert close == [Close(reason=CloseReason.INVALID)]
                await rogue.close()
            await until(lambda: len(node.neighbours) == 1)
            stats = node.stats()
            if stage == "open":
                assert stats.endings == {"malformed": 20}
            else:
                assert stats.failures == {"invalid": 20}

    asyncio.run(scenario())


def test_noise_of_any_kind_leaves_the_node_alone() -> None:
    async def scenario() -> None:
        chaos = random.Random(1)
        async with victim(unicast={"accept_timeout": 300}) as node:
            for size in range(1, 60):
                rogue = Rogue(node)
                if size % 2:
                    await rogue.open()
                else:
                    await rogue.connect()
                rogue.writer.write(chaos.randbytes(size * 7))
                rogue.writer.write_eof()
                await raw_end(rogue)
                await rogue.close()
            await until(lambda: len(node.neighbours) == 1)

    asyncio.run(scenario())


# Open sessions.


def test_a_batch_above_what_was_agreed_ends_the_link() -> None:
    async def scenario() -> None:
        async with victim() as node:
            rogue = Rogue(node, batch_size=1_024)
            await rogue.open()
            rogue.writer.write((60_000).to_bytes(2, "little") + bytes(1_000))
            assert await rogue.end() is None
            await until(lambda: node.stats().endings == {"malformed": 1})
            await rogue.close()

    asyncio.run(scenario())


def test_floods_of_declarations_are_counted_and_bounded() -> None:
    async def scenario() -> None:
        limits = Limits(aliases=50, declarations=60, interests=20, pending_queries=10)
        async with victim(limits) as node:
            rogue = Rogue(node)
            await rogue.open()
            for number in range(1, 501):
                key = WireExpr(0, f"flood/{number}")
                rogue.send(
                    Declare(body=DeclareKeyExpr(expr_id=number, key=key), qos=BLOCK),
                    Declare(body=DeclareSubscriber(id=number, key=key), qos=BLOCK),
                    Interest(
                        id=number,
                        mode=InterestMode.FUTURE,
                        subscribers=True,
                        key=key,
                        qos=BLOCK,
                    ),
                )
            await until(lambda: node.stats().routing.limit_interests == 480)
            routing = node.stats().routing
            assert routing.limit_aliases == 450
            assert routing.limit_declarations == 440
            assert len(node.neighbours) == 2
            await rogue.close()
            await until(lambda: len(node.neighbours) == 1)

    asyncio.run(scenario())


def test_queries_that_nobody_answers_are_bounded() -> None:
    async def scenario() -> None:
        async with victim(Limits(pending_queries=10)) as node:
            session = node.session()
            id_ = session.declare_queryable("silent")
            node.receivers[id_] = lambda _output: None
            node.settle()
            rogue = Rogue(node)
            await rogue.open()
            for number in range(100):
                rogue.send(
                    Request(request_id=number, key=WireExpr(0, "silent"), body=Query(), qos=BLOCK)
                )
            await until(lambda: node.stats().routing.limit_pending_queries == 90)
            await rogue.close()

    asyncio.run(scenario())


def test_bad_link_state_closes_the_session() -> None:
    async def scenario() -> None:
        async with victim() as node:
            rogue = Rogue(node)
            await rogue.open()
            rogue.send(Oam(id=OAM_LINKSTATE, qos=BLOCK, body=b"\xff\xff"))
            reason = await rogue.end()
            assert reason is not None
            stats = node.stats()
            assert stats.endings == {CloseReason(reason).name.lower(): 1}
            assert sum(stats.routing.violations.values()) == 1
            await rogue.close()

    asyncio.run(scenario())


# Those who do not read.


def slow(wait_ms: int) -> dict[str, Any]:
    """A node that soon has enough of someone who does not read."""
    control = {"block": {"wait_before_close": wait_ms * 1000}}
    return {"link": {"tx": {"queue": {"congestion_control": control}}}}


async def deaf(node: Node, key: str = "deaf/**", **more: Any) -> Rogue:
    """A neighbour that subscribes, and never reads again."""
    rogue = Rogue(node, **more)
    await rogue.connect(rcvbuf=4_096)
    while rogue.machine.state is not State.OPEN:
        rogue.flush()
        data = await rogue.reader.read(1_024)
        rogue.events += rogue.machine.receive(data, 0.0)
    transport = rogue.writer.transport
    assert isinstance(transport, asyncio.ReadTransport)
    transport.pause_reading()
    subscriber = DeclareSubscriber(id=1, key=WireExpr(0, key))
    rogue.send(Declare(body=subscriber, qos=BLOCK))
    return rogue


def test_block_waits_then_closes_the_one_who_does_not_read() -> None:
    async def scenario() -> None:
        async with victim(**slow(300)) as node:
            rogue = await deaf(node)
            session = node.session()
            payload = bytes(50_000)
            waited = 0
            async with asyncio.timeout(TIMEOUT):
                while len(node.neighbours) == 2:
                    session.push("deaf/x", Put(payload=payload), qos=BLOCK)
                    for waiting in node.settle():
                        waited += 1
                        await waiting.done
                    await asyncio.sleep(0)
            assert waited >= 1
            stats = node.stats()
            assert stats.endings == {"unresponsive": 1}
            assert stats.ended_dropped[Cause.LINK_LOST] >= 1
            await rogue.close()

    asyncio.run(scenario())


def test_drop_drops_and_counts_and_keeps_the_session() -> None:
    async def scenario() -> None:
        async with victim(**slow(300)) as node:
            rogue = await deaf(node)
            session = node.session()
            payload = bytes(50_000)
            face = next(f for f in node.neighbours if f.whatami is WhatAmI.PEER)
            neighbour = node.neighbours[face]

            def dropped() -> int:
                (one,) = (s for s in node.stats().neighbours if s.zid == face.zid)
                return one.dropped[Cause.CONGESTION]

            async with asyncio.timeout(TIMEOUT):
                while dropped() < 50:
                    session.push("deaf/x", Put(payload=payload), qos=DROP)
                    for waiting in node.settle():
                        await waiting.done
                    await asyncio.sleep(0)
            assert neighbour.waiting == 0
            # Without anyone who waits, what waits is bounded by time.
            for _ in range(500):
                session.push("deaf/x", Put(payload=b"small"), qos=DROP)
                node.settle()
            await until(lambda: neighbour.waiting == 0)
            assert dropped() >= 550
            assert node.neighbours.get(face) is neighbour
            await rogue.close()

    asyncio.run(scenario())


def test_who_sends_to_one_that_does_not_read_is_held_back_not_lost() -> None:
    """A client publishes through us with Block, to one who reads and one who does not."""

    async def scenario() -> None:
        async with victim(**slow(500)) as node:
            where = str(node.locators()[0])
            reader = await open_node(made("client", connect={"endpoints": [where]}))
            taker = Taker(reader, "deaf/**")
            rogue = await deaf(node, whatami=WhatAmI.CLIENT)
            source = await open_node(made("client", connect={"endpoints": [where]}))
            session = source.session()
            publisher = session.declare_publisher("deaf/x", source.now)
            source.settle()
            await until(lambda: session.matching(publisher))
            await until(lambda: len(node.neighbours) == 4)
            peak = 0
            for number in range(300):
                payload = number.to_bytes(4, "big") + bytes(20_000)
                session.push("deaf/x", Put(payload=payload), qos=BLOCK)
                for waiting in source.settle():
                    await waiting.done
                await asyncio.sleep(0)
                peak = max(peak, *(one.waiting for one in node.neighbours.values()))
            await until(lambda: len(taker.payloads) == 300)
            # It waits at its source: here is only what one read had brought.
            assert 0 < peak < 60
            assert [int.from_bytes(p[:4], "big") for p in taker.payloads] == list(range(300))
            assert node.stats().endings == {"unresponsive": 1}
            assert source.stats().endings == reader.stats().endings == {}
            await rogue.close()
            await source.close()
            await reader.close()

    asyncio.run(scenario())


# Scouting.


def test_noise_on_the_scouting_group_is_counted() -> None:
    async def scenario() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        scouting = {"multicast": {"address": f"224.0.0.224:{port}", "interface": "lo"}}
        node = await open_node(made("peer", scouting=scouting))
        assert node.scouting is not None
        chaos = random.Random(2)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.setsockopt(
                socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1")
            )
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
            sock.bind(("127.0.0.1", 0))
            sock.setblocking(False)
            for size in range(100):
                sock.sendto(b"\x1f" + chaos.randbytes(size), ("224.0.0.224", port))
            await until(lambda: node.scouting is not None and node.scouting.malformed == 100)
            # A HELLO that lies is tried, and leads nowhere.
            sock.sendto(b"\x01\x09\x07", ("224.0.0.224", port))
            async with asyncio.timeout(TIMEOUT):
                hello = await asyncio.get_running_loop().sock_recv(sock, 2_048)
            assert str(node.locators()[0]).encode() in hello
        await node.close()

    asyncio.run(scenario())
