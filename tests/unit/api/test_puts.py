"""Many puts that differ in their value alone: they go a shorter way, and nobody can tell."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.ports import free_port
from tests.unit.api.nodes import config, run, until
from zenwire import aio
from zenwire.errors import ForkedSession, SessionClosed, Undeclared

BLOCK = aio.CongestionControl.BLOCK


@asynccontextmanager
async def two(**settings: Any) -> AsyncIterator[tuple[aio.Session, aio.Session]]:
    """Two peers with one link."""
    port = free_port()
    async with (
        aio.open(config(listen=port, **settings)) as there,
        aio.open(config(connect=port, **settings)) as here,
    ):
        yield here, there


async def matched(session: aio.Session, key: str, **how: Any) -> aio.Publisher:
    publisher = await session.declare_publisher(key, **how)
    await until(lambda: publisher.matching_status.matching)
    return publisher


def sent(session: aio.Session) -> int:
    return sum(one.transport.tx_messages for one in session.info.stats().neighbours)


@pytest.mark.parametrize("express", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"transport": {"unicast": {"lowlatency": True, "qos": {"enabled": False}}}},
        {"transport": {"unicast": {"compression": {"enabled": True}}}},
        {"transport": {"link": {"tx": {"batch_size": 200}}}},
        {"transport": {"link": {"tx": {"queue": {"batching": {"enabled": False}}}}}},
        {"transport": {"link": {"tx": {"sequence_number_resolution": "8bit"}}}},
        {"namespace": "name/space"},
        {"timestamping": {"enabled": True}},
    ],
    ids=str,
)
def test_the_order_is_that_of_the_calls(settings: dict[str, Any], express: bool) -> None:
    async def scenario() -> None:
        got: list[tuple[str, bytes, bytes]] = []

        def take(sample: aio.Sample) -> None:
            attachment = sample.attachment
            more = b"" if attachment is None else attachment.to_bytes()
            kind = sample.kind.name if sample.kind is aio.SampleKind.DELETE else ""
            got.append((f"{sample.key_expr}{kind}", sample.payload.to_bytes(), more))

        wanted: list[tuple[str, bytes, bytes]] = []
        # Low latency carries no message that is larger than a batch.
        large = bytes(7000 if "lowlatency" in str(settings) else 70_000)
        async with two(**settings) as (here, there), there.declare_subscriber("k/*", take):
            how: dict[str, Any] = {"congestion_control": BLOCK, "express": express}
            one = await matched(here, "k/1", **how)
            two_ = await matched(here, "k/2", **how)
            for n in range(1500):
                value = b"%d" % n * (1 + n % 3) + (large if n % 500 == 7 else b"")
                await one.put(value)
                wanted.append(("k/1", value, b""))
                if n % 2:
                    await two_.put(value)
                    wanted.append(("k/2", value, b""))
                if n % 11 == 0:
                    await here.put("k/3", value, **how)
                    wanted.append(("k/3", value, b""))
                if n % 101 == 0:
                    await one.put(value, attachment=b"more")
                    wanted.append(("k/1", value, b"more"))
                if n % 203 == 0:
                    await one.delete()
                    wanted.append(("k/1DELETE", b"", b""))
            await until(lambda: len(got) >= len(wanted))
            assert got == wanted

    run(scenario())


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"transport": {"unicast": {"lowlatency": True, "qos": {"enabled": False}}}},
        {"transport": {"unicast": {"qos": {"enabled": False}}}},
        {"transport": {"unicast": {"compression": {"enabled": True}}}},
        {"transport": {"link": {"tx": {"batch_size": 200}}}},
        {"transport": {"link": {"tx": {"batch_size": 200, "sequence_number_resolution": "8bit"}}}},
    ],
    ids=str,
)
def test_many_at_once(settings: dict[str, Any]) -> None:
    """Those of one size may go past the queues, and are told apart from the others by nobody."""

    async def scenario() -> None:
        got: list[bytes] = []
        async with (
            two(**settings) as (here, there),
            there.declare_subscriber("k", lambda s: got.append(bytes(s.payload))),
        ):
            how: dict[str, Any] = {"congestion_control": BLOCK, "priority": aio.Priority.DATA_LOW}
            publisher = await matched(here, "k", **how)
            wanted: list[bytes] = []
            for turn in range(4):
                values = [b"%04d%d" % (n, turn) for n in range(1500)]
                for waiting in publisher.put_all(values):
                    await waiting.done
                more = [b"%d" % n for n in range(90, 110)]
                for waiting in publisher.put_all(more):
                    await waiting.done
                await publisher.put(b"alone")
                wanted += [*values, *more, b"alone"]
            await until(lambda: len(got) >= len(wanted))
            assert got == wanted
            assert not here.info.stats().dropped

    run(scenario())


def test_who_comes_and_goes_meanwhile() -> None:
    async def scenario() -> None:
        async with two() as (here, there):
            publisher = await here.declare_publisher("k", congestion_control=BLOCK)
            before = sent(here)
            for _ in range(1000):
                await publisher.put(b"nobody")
            assert sent(here) == before
            got: list[bytes] = []
            async with there.declare_subscriber("k", lambda s: got.append(bytes(s.payload))):
                await until(lambda: publisher.matching_status.matching)
                for n in range(1000):
                    await publisher.put(b"%d" % n)
                await until(lambda: len(got) == 1000)
                # One in this node gets them too, from when it is there.
                near: list[bytes] = []
                async with here.declare_subscriber("k", lambda s: near.append(bytes(s.payload))):
                    for n in range(1000, 1100):
                        await publisher.put(b"%d" % n)
                    await until(lambda: len(got) == 1100)
                for n in range(1100, 2000):
                    await publisher.put(b"%d" % n)
                await until(lambda: len(got) == 2000)
                assert near == [b"%d" % n for n in range(1000, 1100)]
                assert got == [b"%d" % n for n in range(2000)]
            await until(lambda: not publisher.matching_status.matching)
            before = sent(here)
            await publisher.put(b"nobody")
            assert sent(here) == before

    run(scenario())


def test_others_have_their_turn() -> None:
    """A loop of puts does not keep other tasks from running, whoever gets them."""

    async def scenario() -> None:
        async with two() as (here, there), there.declare_subscriber("k", lambda _: None):
            publisher = await matched(here, "k", congestion_control=BLOCK)
            nobody = await here.declare_publisher("nobody")
            for put in (publisher.put, nobody.put, lambda v: here.put("k", v)):
                ran = 0

                async def other() -> None:
                    nonlocal ran
                    while True:
                        ran += 1
                        await asyncio.sleep(0)

                task = asyncio.create_task(other())
                for _ in range(5000):
                    await put(b"value")
                assert ran > 3
                task.cancel()

    run(scenario())


def test_it_is_over_when_it_is() -> None:
    async def scenario() -> None:
        async with two() as (here, there), there.declare_subscriber("k", lambda _: None):
            publisher = await matched(here, "k")
            for _ in range(10):
                await publisher.put(b"x")
                await here.put("k", b"x")
            await publisher.undeclare()
            with pytest.raises(Undeclared):
                await publisher.put(b"x")
            again = await matched(here, "k")
            await again.put(b"x")
            await here.close()
            with pytest.raises(SessionClosed):
                await again.put(b"x")
            with pytest.raises(SessionClosed):
                await here.put("k", b"x")

    run(scenario())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_is_told() -> None:
    async def scenario() -> None:
        async with two() as (here, there), there.declare_subscriber("k", lambda _: None):
            publisher = await matched(here, "k")
            for _ in range(10):
                await publisher.put(b"x")
                await here.put("k", b"x")
            child = os.fork()
            if not child:
                told = 0
                for call in (publisher.put(b"x"), here.put("k", b"x")):
                    try:
                        call.send(None)
                    except ForkedSession:
                        told += 1
                os._exit(told)
            _, status = os.waitpid(child, 0)  # noqa: ASYNC222 # it ends at once
            assert os.waitstatus_to_exitcode(status) == 2

    run(scenario())


def test_what_finds_no_room_waits_or_is_dropped() -> None:
    async def scenario() -> None:
        async with two() as (here, there):
            got: list[int] = []
            async with there.declare_subscriber(
                "k", lambda s: got.append(int(bytes(s.payload)[:9]))
            ):
                block = await matched(here, "k", congestion_control=BLOCK)
                drop = await matched(here, "k")
                (carrier,) = next(iter(there.core.node.neighbours.values())).carriers
                (out,) = next(iter(here.core.node.neighbours.values())).carriers
                carrier.link.pause()

                async def puts() -> None:
                    for n in range(12_000):
                        await block.put(b"%09d" % n + bytes(1000))

                task = asyncio.create_task(puts())
                await until(
                    lambda: not out.link.writable and here.core.node.stats().neighbours[0].waiting
                )
                for _ in range(3):
                    await drop.put(b"000000000")
                carrier.link.resume()
                await task
                await until(lambda: len(got) == 12_000)
                assert got == list(range(12_000))
                assert sum(here.info.stats().dropped.values()) == 3

    run(scenario())
