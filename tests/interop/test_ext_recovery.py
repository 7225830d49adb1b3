"""Samples that are lost on the way, between publishers and subscribers of ours and the reference."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import zenoh
import zenoh.ext

from tests.interop.exchange import PATIENT, Meet, meet_by, node_settings, opened
from tests.ports import free_port
from tests.unit.api.nodes import run, until
from tests.unit.api.reference import Taker, router
from zenwire import aio
from zenwire.aio import ext

pytestmark = pytest.mark.interop

WAYS = ["through a router", "peer"]
BLOCK, THEIR_BLOCK = aio.CongestionControl.BLOCK, zenoh.CongestionControl.BLOCK


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with router() as port:
        yield port


@pytest.fixture(params=WAYS)
def both(request: pytest.FixtureRequest, port: int) -> Meet:
    return meet_by(request.param, port)


async def our_words(subscriber: aio.Subscriber, count: int) -> list[str]:
    return [str((await subscriber.recv()).payload) for _ in range(count)]


async def their_words(got: Taker[zenoh.Sample], count: int) -> list[str]:
    return [(await got.get()).payload.to_string() for _ in range(count)]


def numbers(first: int, last: int) -> list[str]:
    return [str(n) for n in range(first, last + 1)]


def lose_sent(publisher: ext.AdvancedPublisher, *lost: int) -> None:
    """Samples of these numbers do not leave the node, as if a link had dropped them."""
    push = publisher._push

    def dropping(body: Any, times: Any) -> Any:
        return None if body.source_info.sn in lost else push(body, times)

    publisher._push = dropping  # type: ignore[method-assign]


def lose_received(subscriber: ext.AdvancedSubscriber, *lost: int) -> None:
    """Publications of these numbers do not reach the subscriber, but replies do."""
    receivers, eid = subscriber._core.node.receivers, subscriber.id.eid
    deliver = receivers[eid]
    # One by one, however many come at once.
    subscriber._core.node.row_receivers.pop(eid, None)

    def dropping(output: Any) -> None:
        if output.body.source_info.sn not in lost:
            deliver(output)

    receivers[eid] = dropping


def our_publisher(
    ours: aio.Session, key: str, cache: int = 100, **detection: float
) -> aio.Awaited[ext.AdvancedPublisher]:
    return ext.declare_advanced_publisher(
        ours,
        key,
        congestion_control=BLOCK,
        cache=ext.CacheConfig(cache),
        sample_miss_detection=ext.MissDetectionConfig(**detection),
    )


def their_publisher(
    theirs: zenoh.Session, key: str, cache: int = 100, **detection: float
) -> zenoh.ext.AdvancedPublisher:
    both: dict[str, Any] = {"heartbeat": None, "sporadic_heartbeat": None} | detection
    return zenoh.ext.declare_advanced_publisher(
        theirs,
        key,
        congestion_control=THEIR_BLOCK,
        cache=zenoh.ext.CacheConfig(cache),
        sample_miss_detection=zenoh.ext.MissDetectionConfig(**both),
    )


HEARTBEAT: dict[str, Any] = {"heartbeat": True, "periodic_queries": None}
PERIODIC: dict[str, Any] = {"heartbeat": None, "periodic_queries": timedelta(seconds=0.05)}


def test_they_recover_what_we_lost(both: Meet) -> None:
    async def main() -> None:
        async with both() as (ours, theirs), our_publisher(ours, "r/them") as publisher:
            lose_sent(publisher, 3, 4, 8)
            got: Taker[zenoh.Sample] = Taker()
            misses: Taker[zenoh.ext.Miss] = Taker()
            their = zenoh.ext.declare_advanced_subscriber(
                theirs, "r/*", got, recovery=zenoh.ext.RecoveryConfig(**HEARTBEAT)
            )
            their.sample_miss_listener(misses)
            await until(lambda: publisher.matching_status.matching)
            for n in range(12):
                await publisher.put(str(n))
            assert await their_words(got, 12) == numbers(0, 11)
            assert misses.empty()

    run(main())


def test_we_recover_what_they_lost(both: Meet) -> None:
    async def main() -> None:
        async with (
            both() as (ours, theirs),
            ext.declare_advanced_subscriber(
                ours, "r/*", recovery=ext.RecoveryConfig(**HEARTBEAT)
            ) as subscriber,
        ):
            lose_received(subscriber, 3, 4, 8)
            their = their_publisher(theirs, "r/us")
            await they_match(theirs, "r/us")
            for n in range(12):
                their.put(str(n))
            assert await our_words(subscriber, 12) == numbers(0, 11)
            assert subscriber.missed == 0

    run(main())


async def they_match(theirs: zenoh.Session, key: str) -> None:
    """Wait until publications of theirs reach a subscriber: the advanced ones do not tell."""
    plain = theirs.declare_publisher(key)
    await until(lambda: plain.matching_status.matching)  # type: ignore[attr-defined]
    plain.undeclare()  # type: ignore[no-untyped-call]


def test_what_our_cache_has_not_they_miss_once(both: Meet) -> None:
    async def main() -> None:
        async with both() as (ours, theirs), our_publisher(ours, "m/them", cache=2) as publisher:
            lose_sent(publisher, *range(1, 7))
            got: Taker[zenoh.Sample] = Taker()
            misses: Taker[zenoh.ext.Miss] = Taker()
            their = zenoh.ext.declare_advanced_subscriber(
                theirs, "m/*", got, recovery=zenoh.ext.RecoveryConfig(**HEARTBEAT)
            )
            their.sample_miss_listener(misses)
            await until(lambda: publisher.matching_status.matching)
            for n in range(8):
                await publisher.put(str(n))
            assert await their_words(got, 3) == ["0", "6", "7"]
            miss = await misses.get()
            assert miss.nb == 5
            assert miss.source.eid == publisher.id.eid
            await publisher.put("8")
            assert await their_words(got, 1) == ["8"]
            assert misses.empty()

    run(main())


def test_what_their_cache_has_not_we_miss_once(both: Meet) -> None:
    async def main() -> None:
        async with (
            both() as (ours, theirs),
            ext.declare_advanced_subscriber(
                ours, "m/*", recovery=ext.RecoveryConfig(**HEARTBEAT)
            ) as subscriber,
            subscriber.sample_miss_listener() as listener,
        ):
            lose_received(subscriber, *range(1, 7))
            their = their_publisher(theirs, "m/us", cache=2)
            await they_match(theirs, "m/us")
            for n in range(8):
                their.put(str(n))
            assert await our_words(subscriber, 3) == ["0", "6", "7"]
            miss = await listener.recv()
            assert (miss.nb, miss.source.eid) == (5, their.id.eid)
            assert str(miss.source.zid) == str(theirs.zid())
            their.put("8")
            assert await our_words(subscriber, 1) == ["8"]
            assert listener.try_recv() is None
            assert subscriber.missed == 5

    run(main())


def test_without_recovery_misses_are_told_at_once(both: Meet) -> None:
    async def main() -> None:
        async with (
            both() as (ours, theirs),
            our_publisher(ours, "n/them") as publisher,
            ext.declare_advanced_subscriber(ours, "n/us") as subscriber,
            subscriber.sample_miss_listener() as listener,
        ):
            lose_sent(publisher, 1, 2, 5)
            lose_received(subscriber, 1, 2, 5)
            got: Taker[zenoh.Sample] = Taker()
            misses: Taker[zenoh.ext.Miss] = Taker()
            theirs_sub = zenoh.ext.declare_advanced_subscriber(theirs, "n/them", got)
            theirs_sub.sample_miss_listener(misses)
            their = their_publisher(theirs, "n/us")
            await they_match(theirs, "n/us")
            await until(lambda: publisher.matching_status.matching)
            for n in range(8):
                await publisher.put(str(n))
                their.put(str(n))
            wanted = ["0", "3", "4", "6", "7"]
            assert await their_words(got, 5) == wanted
            assert [(await misses.get()).nb for _ in range(2)] == [2, 1]
            assert await our_words(subscriber, 5) == wanted
            assert [(await listener.recv()).nb for _ in range(2)] == [2, 1]

    run(main())


@pytest.mark.parametrize("kind", ["heartbeat", "sporadic_heartbeat"])
def test_heartbeats_bring_the_last_sample(both: Meet, kind: str) -> None:
    async def main() -> None:
        beat: dict[str, Any] = {kind: 0.05}
        async with (
            both() as (ours, theirs),
            our_publisher(ours, "b/them", **beat) as publisher,
            ext.declare_advanced_subscriber(
                ours, "b/us", recovery=ext.RecoveryConfig(**HEARTBEAT)
            ) as subscriber,
        ):
            lose_sent(publisher, 2, 3)
            lose_received(subscriber, 2, 3)
            got: Taker[zenoh.Sample] = Taker()
            zenoh.ext.declare_advanced_subscriber(
                theirs, "b/them", got, recovery=zenoh.ext.RecoveryConfig(**HEARTBEAT)
            )
            their = their_publisher(theirs, "b/us", **beat)
            await they_match(theirs, "b/us")
            await until(lambda: publisher.matching_status.matching)
            for n in range(4):
                await publisher.put(str(n))
                their.put(str(n))
            assert await their_words(got, 4) == numbers(0, 3)
            assert await our_words(subscriber, 4) == numbers(0, 3)
            assert subscriber.missed == 0

    run(main())


def test_periodic_queries_bring_the_last_sample(both: Meet) -> None:
    async def main() -> None:
        async with (
            both() as (ours, theirs),
            our_publisher(ours, "q/them") as publisher,
            ext.declare_advanced_subscriber(
                ours, "q/us", recovery=ext.RecoveryConfig(periodic_queries=0.05)
            ) as subscriber,
        ):
            lose_sent(publisher, 2, 3)
            lose_received(subscriber, 2, 3)
            got: Taker[zenoh.Sample] = Taker()
            zenoh.ext.declare_advanced_subscriber(
                theirs, "q/them", got, recovery=zenoh.ext.RecoveryConfig(**PERIODIC)
            )
            their = their_publisher(theirs, "q/us")
            await they_match(theirs, "q/us")
            await until(lambda: publisher.matching_status.matching)
            for n in range(4):
                await publisher.put(str(n))
                their.put(str(n))
            assert await their_words(got, 4) == numbers(0, 3)
            assert await our_words(subscriber, 4) == numbers(0, 3)

    run(main())


def test_their_publisher_restarts_under_the_same_id() -> None:
    """Its numbers start anew, which its clock shows."""

    async def main() -> None:
        where = f"tcp/127.0.0.1:{free_port()}"
        mine = aio.Config.from_dict(node_settings("peer", listen=where, **PATIENT))
        same: dict[str, Any] = {"id": "abcdef", "timestamping": {"enabled": True}}
        settings = node_settings("peer", connect=where, **PATIENT, **same)
        async with (
            aio.open(mine) as ours,
            ext.declare_advanced_subscriber(ours, "s/*") as subscriber,
        ):
            eids = []
            for turn in ("a", "b"):
                async with opened(settings) as theirs:
                    their = their_publisher(theirs, "s/1")
                    eids.append(their.id.eid)
                    await they_match(theirs, "s/1")
                    for n in range(3):
                        their.put(f"{turn}{n}")
                    assert await our_words(subscriber, 3) == [f"{turn}{n}" for n in range(3)]
            assert eids[0] == eids[1]
            assert subscriber.missed == 0
            assert subscriber.duplicates == 0

    run(main())


def test_our_publisher_restarts(both: Meet) -> None:
    async def main() -> None:
        async with both() as (ours, theirs):
            got: Taker[zenoh.Sample] = Taker()
            misses: Taker[zenoh.ext.Miss] = Taker()
            their = zenoh.ext.declare_advanced_subscriber(
                theirs,
                "s/*",
                got,
                history=zenoh.ext.HistoryConfig(detect_late_publishers=True),
                recovery=zenoh.ext.RecoveryConfig(**HEARTBEAT),
            )
            their.sample_miss_listener(misses)
            for turn in ("a", "b"):
                async with ext.declare_advanced_publisher(
                    ours,
                    "s/1",
                    cache=ext.CacheConfig(9),
                    sample_miss_detection=ext.MissDetectionConfig(heartbeat=0.05),
                    publisher_detection=True,
                ) as publisher:
                    await until(lambda: publisher.matching_status.matching)
                    for n in range(3):
                        await publisher.put(f"{turn}{n}")
                    wanted = [f"{turn}{n}" for n in range(3)]
                    assert await their_words(got, 3) == wanted
            assert got.empty()
            assert misses.empty()

    run(main())


def test_many_with_loss_in_order(both: Meet) -> None:
    count = 500

    async def main() -> None:
        async with (
            both() as (ours, theirs),
            ext.declare_advanced_subscriber(
                ours, "o/*", aio.FifoChannel(count), recovery=ext.RecoveryConfig(**HEARTBEAT)
            ) as subscriber,
        ):
            lose_received(subscriber, *range(7, count, 7))
            their = their_publisher(theirs, "o/us", cache=count, heartbeat=0.05)
            await they_match(theirs, "o/us")

            def send() -> None:
                for n in range(count):
                    their.put(str(n))

            await asyncio.to_thread(send)
            assert await our_words(subscriber, count) == numbers(0, count - 1)
            assert subscriber.missed == 0
            assert subscriber.dropped == 0

    run(main())
