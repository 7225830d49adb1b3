"""Advanced publishers and subscribers of one process, with each other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.ports import free_port
from tests.unit.api.nodes import config, run, until
from zenwire import aio
from zenwire.aio import ext
from zenwire.api import core
from zenwire.errors import ChannelClosed, SessionClosed, Undeclared, ZError
from zenwire.node import plane

NUMBERS = ext.MissDetectionConfig()
TIMES = {"timestamping": {"enabled": True}}


@asynccontextmanager
async def pair(**more: Any) -> AsyncIterator[tuple[aio.Session, aio.Session]]:
    port = free_port()
    async with (
        aio.open(config(listen=port, **more)) as one,
        aio.open(config(connect=port, **more)) as two,
    ):
        await until(two.info.transports)
        yield one, two


async def words(subscriber: aio.Subscriber, count: int) -> list[str]:
    return [str((await subscriber.recv()).payload) for _ in range(count)]


def test_an_answer_has_all_that_was_published_before_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also what was while it was given: who asked takes what is missing then for lost."""
    monkeypatch.setattr(core, "_TURN", 1)

    async def main() -> None:
        async with pair() as (one, two):
            publisher = await ext.declare_advanced_publisher(
                one, "a", cache=ext.CacheConfig(1000), sample_miss_detection=NUMBERS
            )
            heard: list[str] = []

            def hear(one: aio.Sample) -> None:
                heard.append(str(one.payload))

            async with two.declare_subscriber("a", aio.Callback(hear, indirect=False)):
                await until(lambda: publisher.matching_status.matching)
                for n in range(50):
                    await publisher.put(str(n))

                async def goes_on() -> None:
                    for n in range(50, 500):
                        await publisher.put(str(n))
                        await asyncio.sleep(0)

                task = asyncio.create_task(goes_on())
                told: list[str] = []
                ends: asyncio.Future[int] = asyncio.get_running_loop().create_future()
                await two.get(
                    "a/@adv/**?_sn=0..",
                    aio.Callback(
                        lambda reply: told.append(str(reply.result.payload)),
                        lambda: ends.set_result(len(heard)),
                        indirect=False,
                    ),
                    consolidation=aio.ConsolidationMode.NONE,
                    accept_replies=aio.ReplyKeyExpr.ANY,
                )
                assert 50 < await ends <= len(told)
                assert told == [str(n) for n in range(len(told))]
                await task

    run(main())


def test_history_and_what_follows() -> None:
    async def main() -> None:
        async with pair(**TIMES) as (one, two):
            for sequencing in (NUMBERS, None):
                publisher = await ext.declare_advanced_publisher(
                    one,
                    "a",
                    cache=ext.CacheConfig(2),
                    sample_miss_detection=sequencing,
                    publisher_detection=True,
                )
                for n in range(3):
                    await publisher.put(str(n))
                # What answers came after them: none of them is under way any more.
                how: dict[str, Any] = {"accept_replies": aio.ReplyKeyExpr.ANY}
                while not [r async for r in two.get("a/@adv/**", **how)]:  # noqa: ASYNC110 # as ever
                    await asyncio.sleep(0.01)
                async with ext.declare_advanced_subscriber(
                    two, "*", history=ext.HistoryConfig(detect_late_publishers=True)
                ) as subscriber:
                    assert await words(subscriber, 2) == ["1", "2"]
                    await until(lambda: publisher.matching_status.matching)  # noqa: B023 # now
                    await publisher.put("3")
                    assert await words(subscriber, 1) == ["3"]
                    await publisher.delete()
                    gone = await subscriber.recv()
                    assert gone.kind is aio.SampleKind.DELETE
                    assert gone.timestamp is not None
                await publisher.undeclare()

    run(main())


def test_in_one_session_and_a_namespace() -> None:
    async def main() -> None:
        async with aio.open(config(namespace="n")) as session:
            publisher = await ext.declare_advanced_publisher(
                session,
                "a",
                cache=ext.CacheConfig(5),
                sample_miss_detection=ext.MissDetectionConfig(heartbeat=0.01),
                publisher_detection=True,
            )
            await publisher.put("0")
            subscriber = await ext.declare_advanced_subscriber(
                session, "a", recovery=ext.RecoveryConfig(heartbeat=True)
            )
            # A heartbeat tells of what was there before.
            assert await words(subscriber, 1) == ["0"]
            found = await subscriber.detect_publishers(history=True)
            key = str((await found.recv()).key_expr)
            assert key == f"a/@adv/pub/{session.zid()}/{publisher.id.eid}/_"

    run(main())


def test_callbacks_get_samples_and_misses() -> None:
    async def main() -> None:
        async with pair() as (one, two):
            got: list[str] = []
            missed: list[int] = []
            ended = asyncio.Event()
            subscriber = await ext.declare_advanced_subscriber(
                two, "a", aio.Callback(lambda s: got.append(str(s.payload)), ended.set)
            )
            await subscriber.sample_miss_listener(lambda miss: missed.append(miss.nb))
            publisher = await one.declare_publisher("a")
            await until(lambda: publisher.matching_status.matching)
            for sn in (3, 4, 4, 9):
                await publisher.put(str(sn), source_info=aio.SourceInfo(publisher.id, sn))
            await until(lambda: len(got) == 3)
            assert got == ["3", "4", "9"]
            await until(lambda: missed)
            assert missed == [4]
            assert (subscriber.missed, subscriber.duplicates) == (4, 1)
            with pytest.raises(ZError, match="callback"):
                await subscriber.recv()
            await subscriber.undeclare()
            await ended.wait()

    run(main())


def test_undeclared_means_all_of_it() -> None:
    async def main() -> None:
        async with pair() as (one, two):
            publisher = await ext.declare_advanced_publisher(
                one,
                "a",
                cache=ext.CacheConfig(),
                sample_miss_detection=ext.MissDetectionConfig(sporadic_heartbeat=0.01),
                publisher_detection=True,
            )
            subscriber = await ext.declare_advanced_subscriber(
                two,
                "a",
                history=ext.HistoryConfig(detect_late_publishers=True),
                recovery=ext.RecoveryConfig(heartbeat=True),
                subscriber_detection=True,
            )
            listener = await subscriber.sample_miss_listener()
            await until(lambda: publisher.matching_status.matching)
            await publisher.put("x")
            assert await words(subscriber, 1) == ["x"]
            await publisher.undeclare()
            await publisher.undeclare()
            await subscriber.undeclare()
            with pytest.raises(Undeclared):
                await publisher.put("y")
            with pytest.raises(Undeclared):
                await subscriber.detect_publishers()
            for receiving in (subscriber, listener):
                with pytest.raises(ChannelClosed):
                    await receiving.recv()
            assert not one._core.held
            assert not two._core.held
            # One of another key comes after them.
            async with two.liveliness().declare_token("end"):
                while not [r async for r in one.liveliness().get("end")]:  # noqa: ASYNC110 # as ever
                    await asyncio.sleep(0.01)
            assert [r async for r in one.liveliness().get("a/@adv/**")] == []
            assert publisher._heart is not None
            await asyncio.wait([publisher._heart])
            assert publisher._heart.cancelled()

    run(main())


def test_the_end_of_a_session_ends_them() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            publisher = await ext.declare_advanced_publisher(
                session,
                "a",
                cache=ext.CacheConfig(),
                sample_miss_detection=ext.MissDetectionConfig(heartbeat=0.01),
            )
            subscriber = await ext.declare_advanced_subscriber(
                session, "a", recovery=ext.RecoveryConfig(periodic_queries=0.01)
            )
            await publisher.put("x")
            assert await words(subscriber, 1) == ["x"]
        with pytest.raises(ChannelClosed):
            await subscriber.recv()
        with pytest.raises(SessionClosed):
            await publisher.put("x")
        with pytest.raises(SessionClosed):
            await ext.declare_advanced_subscriber(session, "a")
        with pytest.raises(SessionClosed):
            await ext.declare_advanced_publisher(session, "a")

    run(main())


def test_what_cannot_be() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            with pytest.raises(ZError, match="timestamping"):
                await ext.declare_advanced_publisher(session, "a", cache=ext.CacheConfig())
            publisher = await ext.declare_advanced_publisher(
                session, "a", sample_miss_detection=NUMBERS
            )
            with pytest.raises(ValueError, match="numbers its samples"):
                await publisher.put("x", source_info=aio.SourceInfo(publisher.id, 1))

    run(main())


def test_a_cache_answers_only_those_who_accept_its_keys() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            publisher = await ext.declare_advanced_publisher(
                session, "a", cache=ext.CacheConfig(), sample_miss_detection=NUMBERS
            )
            await publisher.put("x")
            [reply] = [r async for r in session.get("a/@adv/**")]
            assert reply.err is not None
            any_key = aio.ReplyKeyExpr.ANY
            [reply] = [r async for r in session.get("a/@adv/**", accept_replies=any_key)]
            assert reply.ok is not None
            assert str(reply.ok.key_expr) == "a"
            assert reply.ok.source_info == aio.SourceInfo(publisher.id, 0)

    run(main())


def test_a_plain_publisher_is_heard_too() -> None:
    async def main() -> None:
        async with pair() as (one, two):
            subscriber = await ext.declare_advanced_subscriber(
                two, "a", history=ext.HistoryConfig(), recovery=ext.RecoveryConfig(heartbeat=True)
            )
            publisher = await one.declare_publisher("a")
            await until(lambda: publisher.matching_status.matching)
            for _ in range(3):
                await publisher.put("same")
            assert await words(subscriber, 3) == ["same"] * 3

    run(main())


def test_samples_of_rows_are_put_in_order_too() -> None:
    """With the extra, many samples come at once, and are made when they are looked at."""
    pytest.importorskip("pyarrow")
    plane.load()
    count = 3000

    async def main() -> None:
        async with pair() as (one, other):
            room: aio.FifoChannel[aio.Sample] = aio.FifoChannel(count)
            subscriber = await ext.declare_advanced_subscriber(one, "a", room)
            async with ext.declare_advanced_publisher(
                other,
                "a",
                congestion_control=aio.CongestionControl.BLOCK,
                sample_miss_detection=ext.MissDetectionConfig(),
            ) as publisher:
                await until(lambda: publisher.matching_status.matching)
                for number in range(count):
                    await publisher.put(str(number))
                got = [str((await subscriber.recv()).payload) for _ in range(count)]
            assert got == [str(number) for number in range(count)]
            assert (subscriber.missed, subscriber.duplicates) == (0, 0)
            with pytest.raises(TypeError, match="gives no batches"):
                await ext.declare_advanced_subscriber(one, "b", aio.columnar())

    run(main())
