from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.unit.node.nodes import Lan, Taker, put, run, until
from zenwire.links import HIGH_WATER
from zenwire.node import open_node
from zenwire.node.config import Config
from zenwire.transport import Cause
from zenwire.wire.data import Put
from zenwire.wire.structs import Timestamp
from zenwire.wire.values import CongestionControl, QoS, WhatAmI

BLOCK = QoS.of(congestion_control=CongestionControl.BLOCK)


def test_samples_go_between_peers_and_their_clients() -> None:
    async def scenario() -> None:
        lan = Lan()
        a = await lan.open(listen="memory/a")
        b = await lan.open(listen="memory/b", connect=["memory/a"])
        c = await lan.open("client", connect=["memory/a"])
        d = await lan.open("client", connect=["memory/b"])
        takers = [Taker(node, "x/**") for node in (a, b, c, d)]
        await asyncio.sleep(1)
        for node in (a, b, c, d):
            put(node, "x/y", str(node.zid).encode())
        await asyncio.sleep(1)
        want = sorted(str(node.zid).encode() for node in lan.nodes)
        assert all(sorted(taker.payloads) == want for taker in takers)
        await lan.close()

    run(scenario())


def test_block_waits_for_a_link_and_what_is_queued_goes_out_before_the_end() -> None:
    async def scenario() -> None:
        lan = Lan(latency=0.1)
        a = await lan.open(listen="memory/a")
        b = await lan.open("client", connect=["memory/a"])
        taker = Taker(a, "big")
        await asyncio.sleep(1)
        session = b.session()
        waited = 0
        for _ in range(40):
            session.push("big", Put(payload=bytes(HIGH_WATER // 8)), qos=BLOCK)
            for waiting in b.settle():
                waited += 1
                await waiting.done
        assert waited > 1
        await b.close()
        await until(lambda: len(taker.payloads) == 40)
        await until(lambda: a.stats().endings == {"closed_by_peer": 1})
        assert not b.stats().ended_dropped
        await lan.close()

    run(scenario())


@pytest.mark.parametrize("drop", [True, False])
def test_samples_of_the_future(drop: bool) -> None:
    async def scenario() -> None:
        lan = Lan()
        stamping: dict[str, Any] = {
            "timestamping": {"enabled": True, "drop_future_timestamp": drop}
        }
        a = await lan.open(listen="memory/a", **stamping)
        b = await lan.open("client", connect=["memory/a"])
        taker = Taker(a, "x")
        await asyncio.sleep(1)
        ahead = Timestamp(time=b.clock.new_time() + (3600 << 32), id=b.zid)
        session = b.session()
        session.push("x", Put(payload=b"future", timestamp=ahead))
        session.push("x", Put(payload=b"now", timestamp=b.clock.new_timestamp()))
        b.settle()
        await until(lambda: b"now" in taker.payloads)
        assert (b"future" in taker.payloads) is not drop
        assert a.stats().late == 1
        await lan.close()

    run(scenario())


def test_what_fails_in_the_background_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        lan = Lan()
        node = lan.bare()

        async def broken() -> None:
            raise ValueError("this one")

        with caplog.at_level(logging.ERROR):
            node.spawn(broken())
            await asyncio.sleep(1)
        assert "this one" in caplog.text
        await lan.close()

    run(scenario())


def test_closing_ends_all_and_may_be_repeated() -> None:
    async def scenario() -> None:
        lan = Lan()
        a = await lan.open(listen="memory/a", scouting={"multicast": {"enabled": True}})
        b = await lan.open("client", connect=["memory/a"])
        closed: list[Any] = []

        async def closer() -> None:
            closed.append(a)

        a.at_close(closer)
        await asyncio.gather(a.close(), a.close())
        await a.close()
        assert closed == [a]
        assert a.neighbours == {}
        assert lan.network.members("224.0.0.224:7446") == []
        await until(lambda: not b.neighbours)
        # The name is free.
        again = await lan.open(listen="memory/a")
        assert again.config.mode is WhatAmI.PEER
        await lan.close()

    run(scenario())


def test_a_message_that_no_link_can_carry_is_counted() -> None:
    async def scenario() -> None:
        lan = Lan()
        small = {"link": {"rx": {"max_message_size": 1_000}}}
        a = await lan.open(listen="memory/a")
        b = await lan.open("client", connect=["memory/a"], transport=small)
        taker = Taker(a, "x")
        await asyncio.sleep(1)
        put(b, "x", bytes(2_000))
        put(b, "x", b"small")
        await until(lambda: taker.payloads == [b"small"])
        (stats,) = b.stats().neighbours
        assert stats.dropped == {Cause.TOO_LARGE: 1}
        await lan.close()

    run(scenario())


@pytest.mark.parametrize("protocol", ["tcp", "udp", "ws", "unixsock-stream"])
@pytest.mark.parametrize("leaver", ["listener", "dialler"])
def test_over_sockets_both_ways_and_with_a_good_bye(
    protocol: str, leaver: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        address = f"{tmp_path}/s" if protocol == "unixsock-stream" else "127.0.0.1:0"
        listen: dict[str, Any] = {"listen": {"endpoints": [f"{protocol}/{address}"]}}
        off: dict[str, Any] = {"scouting": {"multicast": {"enabled": False}}}
        a = await open_node(Config.from_dict(listen | off))
        places = {"endpoints": [str(a.locators()[0])]}
        connect: dict[str, Any] = {"mode": "client", "connect": places}
        b = await open_node(Config.from_dict(connect | off))
        takers = [Taker(a, "x"), Taker(b, "x")]
        async with asyncio.timeout(20):
            while not all({b"a", b"b"} <= set(taker.payloads) for taker in takers):
                put(a, "x", b"a")
                put(b, "x", b"b")
                await asyncio.sleep(0.01)
            first, last = (a, b) if leaver == "listener" else (b, a)
            await first.close()
            while last.neighbours:  # noqa: ASYNC110 # nothing announces it
                await asyncio.sleep(0.001)
            assert last.stats().endings == {"closed_by_peer": 1}
        await last.close()

    asyncio.run(scenario())
