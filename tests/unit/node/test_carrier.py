from __future__ import annotations

import asyncio

from tests.unit.node.nodes import Lan, Taker, put, run, until
from zenwire.node.node import Node


def sent(node: Node) -> tuple[int, int]:
    """Batches and messages that went out."""
    (neighbour,) = node.stats().neighbours
    return neighbour.transport.tx_batches, neighbour.transport.tx_messages


def test_a_message_alone_goes_out_at_once_and_those_right_after_it_together() -> None:
    async def scenario() -> None:
        lan = Lan()
        a = await lan.open(listen="memory/a")
        b = await lan.open("client", connect=["memory/a"])
        taker = Taker(b, "x")
        await asyncio.sleep(1)
        batches, messages = sent(a)
        put(a, "x", b"0")
        assert sent(a) == (batches + 1, messages + 1)
        for n in range(1, 10):
            put(a, "x", b"%d" % n)
        assert sent(a) == (batches + 1, messages + 1)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert sent(a) == (batches + 2, messages + 10)
        await until(lambda: len(taker.payloads) == 10)
        assert taker.payloads == [b"%d" % n for n in range(10)]
        await lan.close()

    run(scenario())


def test_a_link_is_kept_alive_after_traffic_has_moved_its_deadlines_on() -> None:
    async def scenario() -> None:
        lan = Lan()
        a = await lan.open(listen="memory/a")
        b = await lan.open("client", connect=["memory/a"])
        taker = Taker(b, "x")
        await asyncio.sleep(1)
        for _ in range(100):
            put(a, "x", b"")
            await asyncio.sleep(0.3)
        assert len(taker.payloads) == 100
        before = sent(a)[0]
        # Far beyond the lease: only keep-alives hold it.
        await asyncio.sleep(100)
        assert sent(a)[0] > before + 30
        assert [one.zid for one in b.stats().neighbours] == [a.zid]
        assert a.stats().endings == b.stats().endings == {}
        await lan.close()

    run(scenario())
