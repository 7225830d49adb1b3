from __future__ import annotations

import asyncio

import pytest

from tests.unit.node.nodes import Lan, Taker, put, run, until
from zenwire.links.memory import MemoryLink
from zenwire.node.node import Node
from zenwire.node.stream import Stream
from zenwire.wire.data import Put
from zenwire.wire.values import CongestionControl, QoS

BLOCK = QoS.of(congestion_control=CongestionControl.BLOCK)


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


class Writes:
    """What a link is given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        write = MemoryLink.write

        def noted(link: MemoryLink, data: bytes | bytearray | memoryview) -> None:
            self.sizes.append(len(data))
            write(link, data)

        monkeypatch.setattr(MemoryLink, "write", noted)


@pytest.mark.parametrize("at_once", [False, True])
def test_many_values_go_out_in_few_writes_that_grow(
    monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    async def scenario() -> None:
        lan = Lan()
        a = await lan.open(listen="memory/a")
        b = await lan.open("client", connect=["memory/a"])
        taker = Taker(b, "x")
        await asyncio.sleep(1)
        (carrier,) = next(iter(a.neighbours.values())).carriers
        stream = Stream(a, a.session(), "x", Put(payload=b""), qos=BLOCK)
        values = [b"%04d" % n * 256 for n in range(220)]
        before, messages = sent(a)
        writes = Writes(monkeypatch)
        if at_once:
            assert stream.put_all(values, 0, []) == len(values)
        else:
            assert all(stream.put(value) for value in values)
        assert carrier.link.writable
        assert carrier.most > 128 * 1024
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        batches = sent(a)[0] - before
        assert sent(a)[1] - messages == len(values)
        # The first value may go out alone.
        assert batches in {4, 5}
        assert len(writes.sizes) < batches
        # One that the link does not take whole is the last of its size.
        assert all(stream.put(value) for value in values)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not carrier.link.writable
        assert carrier.most == 1
        await until(lambda: len(taker.payloads) == 2 * len(values))
        assert taker.payloads == values + values
        await lan.close()

    run(scenario())
