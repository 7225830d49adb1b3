"""Many items at once: channels, callbacks, links, and what becomes of them when something fails."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any

import pytest

from tests.ports import free_port

pytest.importorskip("numba")
pytest.importorskip("pyarrow")

from tests.unit.api.nodes import config, run, until
from tests.unit.plane.raw import Raw
from tests.unit.plane.talk import Talk, stream_of
from zenwire import aio
from zenwire.api.channel import Channel, Overflow
from zenwire.api.rows import RowSample
from zenwire.links import stream as links
from zenwire.links.base import Link
from zenwire.links.tcp import connect, listen
from zenwire.node import plane
from zenwire.node.carrier import Carrier
from zenwire.routing import Tables
from zenwire.transport import ReceivedRun
from zenwire.wire.batch import encode_batch
from zenwire.wire.data import Put
from zenwire.wire.locator import EndPoint
from zenwire.wire.network import Interest, Push
from zenwire.wire.values import InterestMode, Mapping, WireExpr


@pytest.mark.parametrize("overflow", ["drop_newest", "drop_oldest"])
@pytest.mark.parametrize("size", [None, len])
def test_a_channel_treats_many_as_one_by_one(overflow: Overflow, size: Any) -> None:
    lost: tuple[list[str], list[str]] = [], []
    channels: list[Channel[str]] = [
        Channel(7, overflow, on_drop=drop.append, size=size, max_bytes=20) for drop in lost
    ]
    woken: list[int] = []
    for number, channel in enumerate(channels):
        channel.take(partial(woken.append, number))
    for items in (["a" * n for n in range(1, 5)], ["b" * 30], ["c"] * 9, []):
        for item in items:
            channels[0].put(item)
        channels[1].put_many(iter(items))
        assert list(channels[0]._items) == list(channels[1]._items)
        assert channels[0]._bytes == channels[1]._bytes
        assert channels[0].dropped == channels[1].dropped
    assert lost[0] == lost[1] != []
    assert woken == [0, 1]
    channels[1].close()
    channels[1].put_many(["late"])
    assert lost[1][-1] == "late"


def test_large_messages_do_not_decide_how_small_ones_are_read() -> None:
    async def scenario() -> None:
        port = free_port()
        block = aio.CongestionControl.BLOCK
        async with (
            aio.open(config(listen=port)) as there,
            aio.open(config(connect=port)) as here,
            there.declare_subscriber("k", aio.FifoChannel(10_000)) as subscriber,
            here.declare_publisher("k", congestion_control=block) as publisher,
        ):
            await until(lambda: publisher.matching_status.matching)
            (carrier,) = next(iter(there.core.node.neighbours.values())).carriers
            # As after a read with one message in it.
            carrier._enough = 1_000_000
            for _ in range(5_000):
                await publisher.put(bytes(100))
            for _ in range(5_000):
                await subscriber.recv()
            assert carrier._enough < 10_000

    run(scenario())


def burst(raw: Raw, count: int) -> bytes:
    talk = Talk("burst", raw.first_sn, raw.mask)
    return stream_of([talk.aliases(), encode_batch([talk.frame(), *puts(0, count)])])


def puts(start: int, stop: int) -> list[Push]:
    return [
        Push(key=WireExpr(1, "", Mapping.SENDER), body=Put(payload=str(at).encode()))
        for at in range(start, stop)
    ]


async def told(count: int, callback: Any, seen: list[Any], **more: Any) -> aio.Subscriber[Any]:
    """What a callback does with a burst, until it has seen so many."""
    port = free_port()
    async with aio.open(config(listen=port)) as session:
        subscriber = await session.declare_subscriber("demo/**", aio.Callback(callback, **more))
        raw = await Raw.connect(port)
        await raw.say(burst(raw, count))
        await until(lambda: len(seen) >= count)
        await raw.close()
        return subscriber


@pytest.fixture(autouse=True)
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plane.VARIABLE, "all")


def test_a_callback_that_raises_gets_the_next_ones() -> None:
    seen: list[bytes] = []

    def fail(sample: aio.Sample) -> None:
        assert isinstance(sample, RowSample)
        seen.append(bytes(sample.payload))
        raise ValueError("no")

    run(told(50, fail, seen))
    assert seen == [str(at).encode() for at in range(50)]


def test_a_callback_that_waits_gets_the_next_ones_in_order() -> None:
    seen: list[bytes] = []

    async def wait(sample: aio.Sample) -> None:
        if len(seen) % 7 == 0:
            await asyncio.sleep(0)
        seen.append(bytes(sample.payload))

    run(told(50, wait, seen))
    assert seen == [str(at).encode() for at in range(50)]


def test_a_callback_that_is_called_by_the_network_itself() -> None:
    seen: list[bytes] = []
    run(told(50, lambda sample: seen.append(bytes(sample.payload)), seen, indirect=False))
    assert seen == [str(at).encode() for at in range(50)]


def test_a_callback_that_ends_its_subscriber_gets_no_more() -> None:
    async def main() -> None:
        port = free_port()
        async with aio.open(config(listen=port)) as session:
            seen: list[bytes] = []
            others: list[aio.Sample] = []

            async def end(sample: aio.Sample) -> None:
                seen.append(bytes(sample.payload))
                await first.undeclare()

            first = await session.declare_subscriber("demo/**", end)
            await session.declare_subscriber("demo/one", others.append)
            raw = await Raw.connect(port)
            await raw.say(burst(raw, 20))
            await until(lambda: len(others) == 20)
            await raw.close()
            assert seen[0] == b"0"

    run(main())


def test_what_was_not_told_is_told_later() -> None:
    """A program that ends itself in a callback breaks off what is being told."""

    async def main() -> None:
        port = free_port()
        async with aio.open(config(listen=port)) as session:
            node = session.core.node
            rows = await session.declare_subscriber("demo/one", aio.columnar(rows=1000))
            channel = await session.declare_subscriber("demo/one", aio.FifoChannel(100))
            raw = await Raw.connect(port)
            talk = Talk("broken off", raw.first_sn, raw.mask)

            def batch(reliable: bool, *payloads: str) -> bytes:
                pushes = [
                    Push(key=WireExpr(0, "demo/one"), body=Put(payload=one.encode()))
                    for one in payloads
                ]
                return encode_batch([talk.frame(reliable=reliable), *pushes])

            await raw.say(stream_of([batch(True, "a"), batch(False, "b")]))
            await until(lambda: len(channel.handler) == 2)
            (carrier,) = node.adjacency._carriers
            receive, taken = carrier.received_many, node.row_receivers.copy()

            def leave(*_: Any) -> None:
                node.row_receivers.update(taken)
                raise SystemExit

            def guarded(data: memoryview, fresh: int) -> int:
                with pytest.raises(SystemExit):
                    receive(data, fresh)
                data[:] = bytes(len(data))
                carrier.link._many = None  # type: ignore[attr-defined]
                return len(data)

            node.row_receivers[min(taken)] = leave
            carrier.link._many = guarded  # type: ignore[attr-defined]
            await raw.say(stream_of([batch(True, "1", "2", "3"), batch(False, "4")]))
            await until(lambda: carrier.link._many is None)  # type: ignore[attr-defined]
            node.settle()
            got = b"".join(bytes(one.payload) for one in channel.handler._items)
            assert got == b"ab1234"
            await rows.undeclare()
            (made,) = [one async for one in rows]
            # The one that was broken off has not got what it was broken off with.
            assert made["payload"].to_pylist() == [b"a", b"b", b"4"]
            await raw.close()

    run(main())


def test_what_is_postponed_is_made_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interest takes long, so what comes behind it has to wait while its place is used again."""
    interest = Tables._interest

    def slowly(*args: Any) -> None:
        time.sleep(0.006)
        interest(*args)

    monkeypatch.setattr(Tables, "_interest", slowly)

    async def main() -> None:
        port = free_port()
        async with aio.open(config(listen=port)) as session:
            channel = await session.declare_subscriber("demo/**", aio.FifoChannel(10_000))
            raw = await Raw.connect(port)
            talk = Talk("postponed", raw.first_sn, raw.mask)
            batches = [talk.aliases()]
            for at in range(30):
                asked = Interest(id=at + 1, mode=InterestMode.CURRENT_FUTURE, subscribers=True)
                batches.append(encode_batch([talk.frame(), asked, asked]))
                batches.append(encode_batch([talk.frame(), *puts(20 * at, 20 * at + 20)]))
            postponed: list[Any] = []
            postpone = Carrier.postpone

            def seen(carrier: Carrier, events: Any) -> None:
                postponed.extend(one for one in events if type(one) is ReceivedRun)
                postpone(carrier, events)

            monkeypatch.setattr(Carrier, "postpone", seen)
            await raw.say(stream_of(batches))
            await until(lambda: len(channel.handler) == 600)
            await raw.close()
            payloads = [bytes(one.payload) for one in channel.handler._items]
            assert payloads == [str(at).encode() for at in range(600)]
            assert postponed

    run(main())


class Slow:
    """A receiver that is done with whole tens only."""

    def __init__(self) -> None:
        self.data = b""
        self.sizes: list[int] = []
        self.over = asyncio.Event()

    def received(self, data: bytes) -> None:
        raise AssertionError("it has another way")

    def received_many(self, data: memoryview, fresh: int) -> int:
        done = len(data) // 10 * 10
        assert 0 < fresh <= len(data)
        assert len(data) - fresh < 10
        self.data += bytes(data[:done])
        self.sizes.append(len(data))
        return done

    def drained(self) -> None:
        pass

    def closed(self, error: object) -> None:
        self.over.set()


def test_a_link_gives_again_what_is_not_done_with() -> None:
    async def main() -> None:
        receiver, sender = Slow(), Slow()
        listener = await listen(EndPoint.parse("tcp/127.0.0.1:0"), lambda _: receiver)
        made: list[Link] = []

        def attach(link: Link) -> Slow:
            made.append(link)
            return sender

        await connect(listener.endpoint, attach, 5.0)
        sent = bytes(range(256)) * 8000
        for start in range(0, len(sent), 99_991):
            made[0].write(sent[start : start + 99_991])
            await asyncio.sleep(0)
        made[0].close()
        await receiver.over.wait()
        await listener.close()
        assert receiver.data == sent[: len(sent) // 10 * 10]
        # It began with little, and took more when there was more.
        assert receiver.sizes[0] <= links.READ_SIZES[0]
        assert links.READ_SIZES[0] < max(receiver.sizes) <= links.READ_SIZES[-1]

    run(main())


def test_what_pays_is_loaded_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(plane.VARIABLE)
    compiled = plane._Compiled()
    monkeypatch.setattr(plane, "_compiled", compiled)

    async def main() -> None:
        port = free_port()
        async with aio.open(config(listen=port)) as session:
            its = session.core.node.plane
            assert not its.always
            assert its.bursts() is None
            its.missed(plane._OFTEN - 1)
            assert not compiled.loading
            its.missed(1)
            assert compiled.loading
            await until(lambda: its.bursts() is not None)

    run(main())


@pytest.mark.parametrize("value", ["0", "", "all"])
def test_the_environment_says_when_it_is_used(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plane.VARIABLE, value)

    async def main() -> None:
        async with aio.open(config()) as session:
            its = session.core.node.plane
            assert (its.off, its.always) == (value == "0", value == "all")

    run(main())


@pytest.mark.parametrize("hasty", [False, True])
def test_a_link_of_the_patient_is_read_less_often(
    hasty: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It rests if nobody but columnar subscribers gets what it brings; nothing is lost by that."""
    rests: list[Carrier] = []
    rest = Carrier._take_a_rest

    def counted(carrier: Carrier) -> None:
        rests.append(carrier)
        rest(carrier)

    monkeypatch.setattr(Carrier, "_take_a_rest", counted)

    async def main() -> None:
        port = free_port()
        async with aio.open(config(listen=port)) as session:
            rows = await session.declare_subscriber("demo/**", aio.columnar(columns=["payload"]))
            seen: list[aio.Sample] = []
            if hasty:
                await session.declare_subscriber("demo/one", seen.append)
            raw = await Raw.connect(port)
            talk = Talk("patient", raw.first_sn, raw.mask)
            await raw.say(stream_of([talk.aliases()]))
            for at in range(20):
                await raw.say(
                    stream_of([encode_batch([talk.frame(), *puts(30 * at, 30 * at + 30)])])
                )
                await asyncio.sleep(0.001)
            (carrier,) = session.core.node.adjacency._carriers
            await until(lambda: carrier.machine.stats.rx_messages == 603)
            await raw.close()
            await rows.undeclare()
            found = [one async for one in rows]
            payloads = [value for one in found for value in one["payload"].to_pylist()]
            assert payloads == [str(at).encode() for at in range(600)]
            assert len(seen) == (600 if hasty else 0)

    run(main())
    assert bool(rests) is not hasty
