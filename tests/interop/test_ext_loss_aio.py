"""The same over a link that drops for asyncio: our publishers to the reference, and theirs to us."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
import zenoh
import zenoh.ext

from tests.interop.exchange import PATIENT, matching, node_settings, opened
from tests.interop.lossy import Lossy, by_chance, lossy, these
from tests.unit.api.nodes import run, until
from tests.unit.api.reference import Taker
from zenwire import aio
from zenwire.aio import ext
from zenwire.api.ext import advanced_subscriber

pytestmark = pytest.mark.interop

links = pytest.mark.parametrize("kind", ["tcp", "udp"])
HOW = ["heartbeat", "queries"]


@asynccontextmanager
async def we_send(link: Lossy) -> AsyncIterator[tuple[aio.Session, zenoh.Session]]:
    mine = aio.Config.from_dict(node_settings("peer", connect=link.dial, **PATIENT))
    async with (
        opened(node_settings("peer", listen=link.where, **PATIENT)) as theirs,
        aio.open(mine) as ours,
    ):
        yield ours, theirs


@asynccontextmanager
async def they_send(link: Lossy, **more: Any) -> AsyncIterator[tuple[aio.Session, zenoh.Session]]:
    mine = aio.Config.from_dict(node_settings("peer", listen=link.where, **PATIENT))
    theirs_has = node_settings("peer", connect=link.dial, **PATIENT | more)
    async with aio.open(mine) as ours, opened(theirs_has) as theirs:
        yield ours, theirs


def recovery(module: Any, how: str) -> Any:
    if how == "heartbeat":
        return module.RecoveryConfig(heartbeat=True)
    return module.RecoveryConfig(periodic_queries=timedelta(seconds=0.05))


def our_publisher(ours: aio.Session, cache: int = 200) -> aio.Awaited[ext.AdvancedPublisher]:
    return ext.declare_advanced_publisher(
        ours,
        "k/1",
        congestion_control=aio.CongestionControl.BLOCK,
        cache=ext.CacheConfig(cache),
        sample_miss_detection=ext.MissDetectionConfig(heartbeat=0.05),
        publisher_detection=True,
    )


async def their_publisher(theirs: zenoh.Session, cache: int = 200) -> zenoh.ext.AdvancedPublisher:
    made = zenoh.ext.declare_advanced_publisher(
        theirs,
        "k/1",
        congestion_control=zenoh.CongestionControl.BLOCK,
        cache=zenoh.ext.CacheConfig(cache),
        sample_miss_detection=zenoh.ext.MissDetectionConfig(heartbeat=0.05),  # type: ignore[call-arg]
        publisher_detection=True,
    )
    plain = theirs.declare_publisher("k/1")
    await matching(plain)
    plain.undeclare()  # type: ignore[no-untyped-call]
    return made


def numbers(count: int) -> list[str]:
    return [str(n) for n in range(count)]


@links
@pytest.mark.parametrize("how", HOW)
def test_they_recover_what_we_lost(kind: str, how: str) -> None:
    async def main() -> None:
        with lossy(kind) as link:
            async with we_send(link) as (ours, theirs), our_publisher(ours) as publisher:
                got: Taker[zenoh.Sample] = Taker()
                misses: Taker[zenoh.ext.Miss] = Taker()
                their = zenoh.ext.declare_advanced_subscriber(
                    theirs, "k/*", got, recovery=recovery(zenoh.ext, how)
                )
                their.sample_miss_listener(misses)
                await matching(publisher)
                link.loses = these(2, 3, 7)
                for word in numbers(8):
                    await publisher.put(word)
                assert [(await got.get()).payload.to_string() for _ in range(8)] == numbers(8)
                assert link.lost == [2, 3, 7]
                assert misses.empty()

    run(main())


@links
@pytest.mark.parametrize("how", HOW)
def test_we_recover_what_they_lost(kind: str, how: str) -> None:
    async def main() -> None:
        with lossy(kind) as link:
            async with they_send(link) as (ours, theirs):
                subscriber = await ext.declare_advanced_subscriber(
                    ours, "k/*", recovery=recovery(ext, how)
                )
                their = await their_publisher(theirs)
                link.loses = these(2, 3, 7)
                for word in numbers(8):
                    their.put(word)
                words = [(await subscriber.recv()).payload.to_string() for _ in range(8)]
                assert words == numbers(8)
                assert link.lost == [2, 3, 7]
                assert subscriber.missed == 0

    run(main())


@links
def test_a_third_is_lost_by_chance(kind: str) -> None:
    async def main() -> None:
        with lossy(kind) as link:
            async with they_send(link) as (ours, theirs):
                subscriber = await ext.declare_advanced_subscriber(
                    ours, "k/*", aio.FifoChannel(200), recovery=recovery(ext, "heartbeat")
                )
                their = await their_publisher(theirs)
                link.loses = by_chance(7, 1 / 3)
                for word in numbers(200):
                    their.put(word)
                words = [(await subscriber.recv()).payload.to_string() for _ in range(200)]
                assert words == numbers(200)
                assert len(link.lost) > 40
                assert (subscriber.missed, subscriber.dropped) == (0, 0)

    run(main())


@links
def test_an_answer_that_is_lost_is_asked_for_again(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advanced_subscriber, "QUERY_TIMEOUT", 0.2)

    async def main() -> None:
        with lossy(kind) as link:
            async with they_send(link) as (ours, theirs):
                subscriber = await ext.declare_advanced_subscriber(
                    ours, "k/*", recovery=recovery(ext, "heartbeat")
                )
                their = await their_publisher(theirs)
                link.loses = these(1)
                link.queries = 1
                for word in numbers(3):
                    their.put(word)
                words = [(await subscriber.recv()).payload.to_string() for _ in range(3)]
                assert words == numbers(3)
                assert (link.lost, len(link.unanswered), subscriber.missed) == ([1], 1, 0)

    run(main())


@links
def test_what_no_cache_has_is_missed_once(kind: str) -> None:
    async def main() -> None:
        with lossy(kind) as link:
            async with we_send(link) as (ours, theirs), our_publisher(ours, 2) as publisher:
                got: Taker[zenoh.Sample] = Taker()
                told: Taker[zenoh.ext.Miss] = Taker()
                their = zenoh.ext.declare_advanced_subscriber(
                    theirs, "k/*", got, recovery=recovery(zenoh.ext, "heartbeat")
                )
                their.sample_miss_listener(told)
                await matching(publisher)
                link.loses = these(*range(1, 7))
                for word in numbers(9):
                    await publisher.put(word)
                    if word == "7":
                        assert (await told.get()).nb == 5
                words = [(await got.get()).payload.to_string() for _ in range(4)]
                assert words == ["0", "6", "7", "8"]
                assert told.empty()
        with lossy(kind) as link:
            async with they_send(link) as (ours, theirs):
                subscriber = await ext.declare_advanced_subscriber(
                    ours, "k/*", recovery=recovery(ext, "heartbeat")
                )
                misses = await subscriber.sample_miss_listener()
                theirs_too = await their_publisher(theirs, 2)
                link.loses = these(*range(1, 7))
                for word in numbers(9):
                    theirs_too.put(word)
                    if word == "7":
                        miss = await misses.recv()
                        assert (miss.nb, miss.source.eid) == (5, theirs_too.id.eid)
                words = [(await subscriber.recv()).payload.to_string() for _ in range(4)]
                assert words == ["0", "6", "7", "8"]
                assert misses.try_recv() is None

    run(main())


@links
def test_their_publisher_restarts_under_its_id(kind: str) -> None:
    async def main() -> None:
        with lossy(kind) as link:
            mine = aio.Config.from_dict(node_settings("peer", listen=link.where, **PATIENT))
            same = node_settings("peer", connect=link.dial, **PATIENT, id="abcdef")
            async with aio.open(mine) as ours:
                subscriber = await ext.declare_advanced_subscriber(
                    ours,
                    "k/*",
                    history=ext.HistoryConfig(detect_late_publishers=True),
                    recovery=recovery(ext, "heartbeat"),
                )
                for turn in ("a", "b"):
                    async with opened(same) as theirs:
                        their = await their_publisher(theirs)
                        link.loses = these(1, 2, 5)
                        for n in range(6):
                            their.put(f"{turn}{n}")
                        words = [(await subscriber.recv()).payload.to_string() for _ in range(6)]
                        assert words == [f"{turn}{n}" for n in range(6)]
                    await until(lambda: not ours.info.transports())
                assert link.lost == [1, 2, 5, 1, 2, 5]
                assert subscriber.missed == 0

    run(main())
