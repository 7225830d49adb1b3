"""What a router passes on in bulk where links are slow, gone, or have other things to say."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.ports import free_port

pytest.importorskip("numba")
pytest.importorskip("pyarrow")

from tests.unit.api.nodes import config, run, until, within
from tests.unit.plane.raw import Raw
from tests.unit.plane.talk import stream_of
from tests.unit.transport.pair import pair
from zenwire import aio
from zenwire.node import plane
from zenwire.transport import Received
from zenwire.transport.runs import Run
from zenwire.wire.batch import encode_batch, frame_stream
from zenwire.wire.data import Put
from zenwire.wire.declare import DeclareSubscriber
from zenwire.wire.network import Declare, Push
from zenwire.wire.transport import Frame
from zenwire.wire.values import CongestionControl, Priority, QoS, WhatAmI, WireExpr

BLOCK = QoS.of(Priority.DATA, CongestionControl.BLOCK)
KEY = WireExpr(0, "load/one")


@pytest.fixture(autouse=True)
def _all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plane.VARIABLE, "all")


def batches(raw: Raw, qos: QoS, count: int, each: int, size: int = 1000) -> bytes:
    found = []
    for at in range(count):
        pushes = [
            Push(key=KEY, qos=qos, body=Put(payload=str(at * each + n).encode().ljust(size)))
            for n in range(each)
        ]
        found.append(encode_batch([Frame(reliable=True, sn=raw.first_sn + at & raw.mask), *pushes]))
    return stream_of(found)


async def deaf(port: int) -> Raw:
    """A client that wants everything, and reads nothing."""
    raw = await Raw.connect(port, whatami=WhatAmI.CLIENT)
    raw._reading.cancel()
    frame = Frame(reliable=True, sn=raw.first_sn, priority=Priority.CONTROL)
    declare = Declare(
        qos=QoS.of(Priority.CONTROL, CongestionControl.BLOCK),
        body=DeclareSubscriber(id=1, key=WireExpr(0, "load/**")),
    )
    raw.writer.transport.pause_reading()  # type: ignore[attr-defined] # one that reads
    raw.writer.write(frame_stream(encode_batch([frame, declare])))
    await raw.writer.drain()
    return raw


def _queues(**congestion: Any) -> dict[str, Any]:
    return {"link": {"tx": {"queue": {"congestion_control": congestion}}}}


def test_one_that_reads_nothing_is_closed_and_the_others_get_all() -> None:
    async def main() -> None:
        port = free_port()
        transport = _queues(block={"wait_before_close": 300_000})
        async with aio.open(config("router", listen=port, transport=transport)) as router:
            node = router.core.node
            async with aio.open(config("client", connect=port)) as client:
                heard: list[bytes] = []
                await client.declare_subscriber(
                    "load/*", lambda one: heard.append(bytes(one.payload))
                )
                never = await deaf(port)
                source = await Raw.connect(port, whatami=WhatAmI.CLIENT)
                await until(lambda: len(node.neighbours) == 3)
                said = asyncio.create_task(source.say(batches(source, BLOCK, 450, 40)))
                await until(lambda: len(heard) == 18_000)
                await within(said)
                assert [int(one) for one in heard] == [*range(18_000)]
                assert node.adjacency.past.endings["unresponsive"] == 1
                stats = node.stats()
                # What it had not taken is counted, and nothing else.
                assert sum(stats.dropped.values()) == sum(stats.ended_dropped.values()) > 0
                never.writer.transport.abort()
                await source.close()

    run(main())


def test_what_may_be_dropped_does_not_wait_for_one_that_reads_nothing() -> None:
    async def main() -> None:
        port = free_port()
        async with aio.open(config("router", listen=port)) as router:
            node = router.core.node
            never = await deaf(port)
            source = await Raw.connect(port, whatami=WhatAmI.CLIENT)
            await until(lambda: len(node.neighbours) == 2)
            drop = QoS.of(Priority.DATA, CongestionControl.DROP)
            await within(source.say(batches(source, drop, 450, 40)))
            received = list(node.adjacency._carriers)[-1].machine.stats
            await until(lambda: received.rx_messages == 450 * 40)
            await until(lambda: all(not each.size for each in node.neighbours.values()))
            sums = node.stats()
            sent = sum(each.transport.tx_messages for each in sums.neighbours)
            lost = sum(sums.dropped.values())
            queued: list[int] = [
                one.count
                for each in node.neighbours.values()
                for link in each.session.links
                for queue in link._outbox._queues  # type: ignore[union-attr] # none of low latency
                for one in queue
                if isinstance(one, Run)
            ]
            assert lost > 0
            # Each message is on its way, or counted; those of declarations go out too.
            assert sent + lost + sum(queued) >= 450 * 40
            assert not node.adjacency.past.endings
            never.writer.transport.abort()
            await source.close()

    run(main())


def test_the_numbers_of_a_lane_go_on_after_what_went_past_it() -> None:
    both = pair({}, {})
    machine, other = both.a.machine, both.b.machine
    push = Push(key=KEY, qos=BLOCK, body=Put(payload=b"x"))

    def heard(data: bytes) -> int:
        events = other.receive(data, 0.0)
        return sum(len(one.messages) for one in events if isinstance(one, Received))

    before = machine.stats.tx_batches
    for _ in range(3):
        straight = machine.straight(Priority.DATA, True)
        assert straight is not None
        frames = [
            Frame(reliable=True, sn=straight.sn + at & straight.mask, priority=Priority.DATA)
            for at in range(2)
        ]
        assert [encode_batch([one]) for one in frames] == [
            straight.heads.head(one.sn) for one in frames
        ]
        data = stream_of([encode_batch([one, push, push]) for one in frames])
        machine.went(straight, 2, 4, len(data), 0.0)
        assert heard(data) == 4
        machine.send(push, 0.0)
        # Nothing may overtake what waits.
        assert machine.straight(Priority.DATA, True) is None
        assert heard(machine.pull(0.0)) == 1
    assert machine.stats.tx_messages == other.stats.rx_messages == 15
    assert machine.stats.tx_batches - before == 9
    assert machine.stats.tx_frames == 9
    assert not other.stats.dropped
    machine.close(0.0)
    assert machine.straight(Priority.DATA, True) is None


@pytest.mark.parametrize("settings", [{"lowlatency": True, "qos": False}, {"compression": True}])
def test_who_has_other_batches_is_not_written_to(settings: dict[str, Any]) -> None:
    assert pair(settings, settings).a.machine.straight(Priority.DATA, True) is None
