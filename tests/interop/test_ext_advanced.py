"""Advanced publishers and subscribers of ours with those of the reference: history, detection."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import zenoh
import zenoh.ext

from tests.interop.exchange import PATIENT, Meet, ask_them, meet_by, meeting, node_settings, opened
from tests.ports import free_port
from tests.unit.api.nodes import run, until
from tests.unit.api.reference import Taker, router
from zenwire import aio
from zenwire.aio import ext

pytestmark = pytest.mark.interop

WAYS = ["through a router", "peer"]
TIMES = {"timestamping": {"enabled": True}}


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


async def they_reach(theirs: zenoh.Session, key: str) -> None:
    """Wait until somebody answers them on that key."""
    how = {"accept_replies": zenoh.ReplyKeyExpr.ANY, "target": zenoh.QueryTarget.ALL}
    while not await ask_them(theirs, key, **how):  # noqa: ASYNC110 # there is no event for it
        await asyncio.sleep(0.02)


async def we_reach(ours: aio.Session, key: str) -> None:
    how: dict[str, Any] = {"accept_replies": aio.ReplyKeyExpr.ANY, "target": aio.QueryTarget.ALL}
    while not [reply async for reply in ours.get(key, **how)]:  # noqa: ASYNC110 # as above
        await asyncio.sleep(0.02)


NUMBERS: dict[str, Any] = {"sample_miss_detection": ext.MissDetectionConfig()}
THEIR_NUMBERS: dict[str, Any] = {
    "sample_miss_detection": zenoh.ext.MissDetectionConfig(heartbeat=None, sporadic_heartbeat=None)
}


def test_our_history_for_their_late_joiner(both: Meet) -> None:
    async def main() -> None:
        async with both() as (ours, theirs):
            publisher = await ext.declare_advanced_publisher(
                ours, "h/them", cache=ext.CacheConfig(3), encoding="text/plain", **NUMBERS
            )
            for n in range(5):
                await publisher.put(str(n), attachment=f"a{n}")
            await they_reach(theirs, "h/them/@adv/**")
            got: Taker[zenoh.Sample] = Taker()
            zenoh.ext.declare_advanced_subscriber(
                theirs, "h/*", got, history=zenoh.ext.HistoryConfig()
            )
            for n in (2, 3, 4):
                sample = await got.get()
                assert str(sample.key_expr) == "h/them"
                assert sample.payload.to_string() == str(n)
                assert str(sample.encoding) == "text/plain"
                assert sample.attachment is not None
                assert sample.attachment.to_string() == f"a{n}"
                assert sample.source_info is not None
                assert sample.source_info.source_sn == n
                assert sample.source_info.source_id.eid == publisher.id.eid
            await until(lambda: publisher.matching_status.matching)
            await publisher.put("5")
            assert await their_words(got, 1) == ["5"]
            await publisher.delete()
            assert (await got.get()).kind == zenoh.SampleKind.DELETE
            assert got.empty()

    run(main())


def test_their_history_for_our_late_joiner(both: Meet) -> None:
    async def main() -> None:
        async with both() as (ours, theirs):
            their = zenoh.ext.declare_advanced_publisher(
                theirs, "h/us", cache=zenoh.ext.CacheConfig(3), **THEIR_NUMBERS
            )
            for n in range(5):
                their.put(str(n), attachment=f"a{n}")
            await we_reach(ours, "h/us/@adv/**")
            async with ext.declare_advanced_subscriber(
                ours, "h/*", history=ext.HistoryConfig()
            ) as subscriber:
                for n in (2, 3, 4):
                    sample = await subscriber.recv()
                    assert str(sample.key_expr) == "h/us"
                    assert sample.payload == str(n)
                    assert sample.attachment == f"a{n}"
                    assert sample.source_info is not None
                    assert sample.source_info.source_sn == n
                their.put("5")
                their.delete()
                assert await our_words(subscriber, 1) == ["5"]
                assert (await subscriber.recv()).kind is aio.SampleKind.DELETE
                assert subscriber.try_recv() is None

    run(main())


@pytest.mark.parametrize(
    ("how", "wanted"),
    [({}, "01234"), ({"max_samples": 2}, "34"), ({"max_samples": 1}, "4"), ({"max_age": 3600}, "01234"),
     ({"max_age": 0.000001}, ""), ({"max_samples": 9, "max_age": 60}, "01234")],
)  # fmt: skip
def test_how_much_history(how: dict[str, Any], wanted: str) -> None:
    """By time, without numbers; the last one shows that there is no more."""

    async def main() -> None:
        async with meeting("peer", None, PATIENT | TIMES, PATIENT | TIMES) as (ours, theirs):
            publisher = await ext.declare_advanced_publisher(
                ours, "h/them", cache=ext.CacheConfig(5)
            )
            their = zenoh.ext.declare_advanced_publisher(
                theirs, "h/us", cache=zenoh.ext.CacheConfig(5)
            )
            for n in range(5):
                await publisher.put(str(n))
                their.put(str(n))
            await they_reach(theirs, "h/them/@adv/**")
            await we_reach(ours, "h/us/@adv/**")
            got: Taker[zenoh.Sample] = Taker()
            zenoh.ext.declare_advanced_subscriber(
                theirs, "h/them", got, history=zenoh.ext.HistoryConfig(**how)
            )
            assert await their_words(got, len(wanted)) == list(wanted)
            subscriber = await ext.declare_advanced_subscriber(
                ours, "h/us", history=ext.HistoryConfig(**how)
            )
            assert await our_words(subscriber, len(wanted)) == list(wanted)
            await until(lambda: publisher.matching_status.matching)
            await publisher.put("end")
            their.put("end")
            assert await their_words(got, 1) == ["end"]
            assert await our_words(subscriber, 1) == ["end"]

    run(main())


def test_our_subscriber_detects_their_late_publisher() -> None:
    async def main() -> None:
        where = f"tcp/127.0.0.1:{free_port()}"
        retry = {"period_init_ms": 50, "period_max_ms": 50}
        mine = node_settings("peer", **PATIENT)
        mine["connect"] = {"endpoints": [where], "timeout_ms": -1, "exit_on_failure": False,
                           "retry": retry}  # fmt: skip
        async with (
            aio.open(aio.Config.from_dict(mine)) as ours,
            ext.declare_advanced_subscriber(
                ours, "l/*", history=ext.HistoryConfig(detect_late_publishers=True)
            ) as subscriber,
            subscriber.detect_publishers(history=True) as detected,
            opened(node_settings("peer", listen=where, **PATIENT)) as theirs,
        ):
            their = zenoh.ext.declare_advanced_publisher(
                theirs,
                "l/1",
                cache=zenoh.ext.CacheConfig(9),
                publisher_detection=True,
                **THEIR_NUMBERS,
            )
            for n in range(3):
                their.put(str(n))
            assert await our_words(subscriber, 3) == ["0", "1", "2"]
            token = await detected.recv()
            assert token.kind is aio.SampleKind.PUT
            assert str(token.key_expr) == f"l/1/@adv/pub/{theirs.zid()}/{their.id.eid}/_"
            their.put("3")
            assert await our_words(subscriber, 1) == ["3"]
            await asyncio.to_thread(their.undeclare)
            assert (await detected.recv()).kind is aio.SampleKind.DELETE

    run(main())


def test_their_subscriber_detects_our_late_publisher() -> None:
    async def main() -> None:
        where = f"tcp/127.0.0.1:{free_port()}"
        retry = {"period_init_ms": 50, "period_max_ms": 50}
        their_settings = node_settings("peer", **PATIENT)
        their_settings["connect"] = {"endpoints": [where], "timeout_ms": -1,
                                     "exit_on_failure": False, "retry": retry}  # fmt: skip
        async with opened(their_settings) as theirs:
            got: Taker[zenoh.Sample] = Taker()
            detected: Taker[zenoh.Sample] = Taker()
            their = zenoh.ext.declare_advanced_subscriber(
                theirs, "l/*", got, history=zenoh.ext.HistoryConfig(detect_late_publishers=True)
            )
            their.detect_publishers(detected, history=True)
            settings = node_settings("peer", listen=where, **PATIENT)
            async with aio.open(aio.Config.from_dict(settings)) as ours:
                publisher = await ext.declare_advanced_publisher(
                    ours,
                    "l/1",
                    cache=ext.CacheConfig(9),
                    publisher_detection=True,
                    **NUMBERS,
                )
                for n in range(3):
                    await publisher.put(str(n))
                assert await their_words(got, 3) == ["0", "1", "2"]
                token = await detected.get()
                assert token.kind == zenoh.SampleKind.PUT
                assert str(token.key_expr) == f"l/1/@adv/pub/{ours.zid()}/{publisher.id.eid}/_"
                await publisher.put("3")
                assert await their_words(got, 1) == ["3"]
                await publisher.undeclare()
                assert (await detected.get()).kind == zenoh.SampleKind.DELETE

    run(main())


def test_subscribers_are_detected(both: Meet) -> None:
    async def main() -> None:
        async with both() as (ours, theirs):
            seen: Taker[zenoh.Sample] = Taker()
            theirs.liveliness().declare_subscriber("d/**/@adv/sub/**", seen, history=True)
            async with ext.declare_advanced_subscriber(
                ours, "d/x", subscriber_detection=True
            ) as subscriber:
                key = f"d/x/@adv/sub/{ours.zid()}/{subscriber.id.eid}/_"
                assert str((await seen.get()).key_expr) == key
            assert (await seen.get()).kind == zenoh.SampleKind.DELETE
            watch = await ours.liveliness().declare_subscriber("d/**/@adv/sub/**", history=True)
            their = zenoh.ext.declare_advanced_subscriber(
                theirs, "d/y", lambda _sample: None, subscriber_detection=True
            )
            key = f"d/y/@adv/sub/{theirs.zid()}/{their.id.eid}/_"
            assert str((await watch.recv()).key_expr) == key

    run(main())


def test_plain_subscribers_see_neither_heartbeats_nor_caches(both: Meet) -> None:
    async def main() -> None:
        async with both() as (ours, theirs):
            got: Taker[zenoh.Sample] = Taker()
            theirs.declare_subscriber("p/**", got)
            beats: Taker[zenoh.Sample] = Taker()
            theirs.declare_subscriber("p/x/@adv/pub/**", beats)
            publisher = await ext.declare_advanced_publisher(
                ours,
                "p/x",
                cache=ext.CacheConfig(),
                sample_miss_detection=ext.MissDetectionConfig(heartbeat=0.02),
            )
            await until(lambda: publisher.matching_status.matching)
            await publisher.put("one")
            for _ in range(2):
                beat = await beats.get()
                assert beat.payload.to_bytes() == bytes(4)
                assert zenoh.ext.z_deserialize(zenoh.ext.UInt32, beat.payload) == 0
            await publisher.put("two")
            while (await beats.get()).payload.to_bytes() != b"\1\0\0\0":
                pass
            assert await their_words(got, 2) == ["one", "two"]
            assert got.empty()

    run(main())
