"""Publications between sessions of ours and of the reference, however they meet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import zenoh

from tests.interop.exchange import PATIENCE, WAYS, Meet, meet_by
from tests.unit.api.nodes import config, run, until
from tests.unit.api.reference import Taker, reference, router
from zenwire import aio

pytestmark = pytest.mark.interop

SIZES = [0, 1, 65_536, 1_000_000, 50_000_000]
ENCODINGS = ["zenoh/bytes", "text/plain;utf-8", "application/json", "my/own", "my/own;and a schema"]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    patient = {"transport__link__tx__queue__congestion_control__drop": PATIENCE}
    with router(**patient) as port:
        yield port


@pytest.fixture(params=WAYS)
def both(request: pytest.FixtureRequest, port: int) -> Meet:
    return meet_by(request.param, port)


@asynccontextmanager
async def to_them(
    both: Meet, key: str, **how: Any
) -> AsyncIterator[tuple[aio.Publisher, Taker[zenoh.Sample]]]:
    """Our publisher, and what their subscriber gets."""
    async with both() as (ours, theirs):
        got: Taker[zenoh.Sample] = Taker()
        subscriber = theirs.declare_subscriber(key, got)
        async with ours.declare_publisher(key, **how) as publisher:
            await until(lambda: publisher.matching_status.matching)
            yield publisher, got
        subscriber.undeclare()  # type: ignore[no-untyped-call]


@asynccontextmanager
async def to_us(
    both: Meet, key: str, **how: Any
) -> AsyncIterator[tuple[zenoh.Publisher, aio.Subscriber]]:
    """Their publisher, and our subscriber."""
    async with (
        both() as (ours, theirs),
        ours.declare_subscriber(key) as subscriber,
    ):
        publisher = theirs.declare_publisher(key, **how)
        await until(lambda: publisher.matching_status.matching)  # type: ignore[attr-defined]
        yield publisher, subscriber
        publisher.undeclare()  # type: ignore[no-untyped-call]


QOS = [
    (priority, congestion, express)
    for priority in list(aio.Priority)
    for congestion in list(aio.CongestionControl)
    for express in (False, True)
]


def test_qos_goes_to_them(both: Meet) -> None:
    async def main() -> None:
        async with both() as (ours, theirs):
            got: Taker[zenoh.Sample] = Taker()
            theirs.declare_subscriber("qos/to/them", got)
            async with ours.declare_publisher("qos/to/them") as publisher:
                await until(lambda: publisher.matching_status.matching)
                for priority, congestion, express in QOS:
                    await ours.put(
                        "qos/to/them",
                        "x",
                        priority=priority,
                        congestion_control=congestion,
                        express=express,
                    )
                    sample = await got.get()
                    assert str(sample.priority) == str(priority)
                    assert str(sample.congestion_control) == str(congestion)
                    assert sample.express is express

    run(main())


def test_qos_comes_to_us(both: Meet) -> None:
    async def main() -> None:
        async with (
            both() as (ours, theirs),
            ours.declare_subscriber("qos/to/us") as subscriber,
        ):
            publisher = theirs.declare_publisher("qos/to/us")
            await until(lambda: publisher.matching_status.matching)  # type: ignore[attr-defined]
            for priority, congestion, express in QOS:
                theirs.put(
                    "qos/to/us",
                    "x",
                    priority=getattr(zenoh.Priority, priority.name),
                    congestion_control=getattr(zenoh.CongestionControl, congestion.name),
                    express=express,
                )
                sample = await subscriber.recv()
                assert (sample.priority, sample.congestion_control) == (priority, congestion)
                assert sample.express is express

    run(main())


@pytest.mark.parametrize("reliability", list(aio.Reliability))
def test_reliability(both: Meet, reliability: aio.Reliability) -> None:
    async def main() -> None:
        key = f"reliability/{reliability.name}"
        # What a sample says of it is in its text alone.
        word = {"RELIABLE": "Reliable", "BEST_EFFORT": "BestEffort"}[reliability.name]
        async with to_them(both, key, reliability=reliability) as (publisher, got):
            await publisher.put("x")
            assert f"reliability: {word}" in repr(await got.get())
        how = getattr(zenoh.Reliability, reliability.name)
        async with to_us(both, key, reliability=how) as (theirs, subscriber):
            theirs.put("x")
            assert (await subscriber.recv()).reliability is reliability

    run(main())


def test_encodings(both: Meet) -> None:
    async def main() -> None:
        async with to_them(both, "encoding") as (publisher, got):
            for encoding in ENCODINGS:
                await publisher.put("x", encoding=encoding)
                assert str((await got.get()).encoding) == encoding
        async with to_us(both, "encoding") as (theirs, subscriber):
            for encoding in ENCODINGS:
                theirs.put("x", encoding=zenoh.Encoding(encoding))
                assert (await subscriber.recv()).encoding == encoding

    run(main())


def test_attachment_timestamp_and_source(both: Meet) -> None:
    async def main() -> None:
        async with both() as (ours, theirs):
            got: Taker[zenoh.Sample] = Taker()
            theirs.declare_subscriber("rich/them", got)
            subscriber = await ours.declare_subscriber("rich/us")
            to_theirs = await ours.declare_publisher("rich/them")
            to_ours = theirs.declare_publisher("rich/us")
            await until(lambda: to_theirs.matching_status.matching)
            await until(lambda: to_ours.matching_status.matching)  # type: ignore[attr-defined]

            stamp = ours.new_timestamp()
            source = aio.SourceInfo(to_theirs.id, 42)
            await to_theirs.put("x", attachment="more", timestamp=stamp, source_info=source)
            await to_theirs.delete(attachment=b"why", timestamp=stamp, source_info=source)
            for kind, attachment in (
                (zenoh.SampleKind.PUT, "more"),
                (zenoh.SampleKind.DELETE, "why"),
            ):
                sample = await got.get()
                assert sample.kind == kind
                assert sample.attachment is not None
                assert sample.attachment.to_string() == attachment
                assert str(sample.timestamp) == str(stamp)
                assert sample.source_info is not None
                assert str(sample.source_info.source_id.zid) == str(ours.zid())
                assert sample.source_info.source_id.eid == to_theirs.id.eid
                assert sample.source_info.source_sn == 42

            their_stamp = theirs.new_timestamp()
            their_source = zenoh.SourceInfo(to_ours.id, 43)
            to_ours.put("x", attachment="more", timestamp=their_stamp, source_info=their_source)
            to_ours.delete(attachment="why", timestamp=their_stamp, source_info=their_source)
            for our_kind, attachment in (
                (aio.SampleKind.PUT, "more"),
                (aio.SampleKind.DELETE, "why"),
            ):
                mine = await subscriber.recv()
                assert mine.kind is our_kind
                assert mine.attachment == attachment
                assert str(mine.timestamp) == str(their_stamp)
                assert mine.source_info is not None
                assert str(mine.source_info.source_id.zid) == str(theirs.zid())
                assert mine.source_info.source_sn == 43

    run(main())


@pytest.mark.parametrize("size", SIZES)
def test_sizes(both: Meet, size: int) -> None:
    payload = (bytes(range(251)) * (size // 251 + 1))[:size]

    async def main() -> None:
        key = f"size/{size}"
        block = aio.CongestionControl.BLOCK
        async with to_them(both, key, congestion_control=block) as (publisher, got):
            await publisher.put(payload)
            assert (await got.get()).payload.to_bytes() == payload
        theirs_block = zenoh.CongestionControl.BLOCK
        async with to_us(both, key, congestion_control=theirs_block) as (theirs, subscriber):
            await asyncio.to_thread(theirs.put, payload)
            assert (await subscriber.recv()).payload == payload

    run(main())


def test_many_in_order(both: Meet) -> None:
    count = 5_000

    async def main() -> None:
        block = aio.CongestionControl.BLOCK
        async with to_them(both, "many", congestion_control=block) as (publisher, got):
            for n in range(count):
                await publisher.put(str(n))
            for n in range(count):
                assert (await got.get()).payload.to_string() == str(n)
        async with both() as (ours, theirs):
            subscriber = await ours.declare_subscriber("many", aio.FifoChannel(count))
            their = theirs.declare_publisher(
                "many", congestion_control=zenoh.CongestionControl.BLOCK
            )
            await until(lambda: their.matching_status.matching)  # type: ignore[attr-defined]

            def send() -> None:
                for n in range(count):
                    their.put(str(n))

            await asyncio.to_thread(send)
            for n in range(count):
                assert str((await subscriber.recv()).payload) == str(n)
            assert subscriber.dropped == 0

    run(main())


def test_matching_both_ways(both: Meet) -> None:
    async def main() -> None:
        async with both() as (ours, theirs):
            publisher = await ours.declare_publisher("match/a")
            listener = await publisher.declare_matching_listener()
            subscriber = theirs.declare_subscriber("match/*")
            assert (await listener.recv()).matching
            assert publisher.matching_status.matching
            subscriber.undeclare()  # type: ignore[no-untyped-call]
            assert not (await listener.recv()).matching

            told: Taker[zenoh.MatchingStatus] = Taker()
            their = theirs.declare_publisher("match/b")
            their.declare_matching_listener(told)
            async with ours.declare_subscriber("match/b"):
                assert (await told.get()).matching
            assert not (await told.get()).matching

            querier = await ours.declare_querier("match/q")
            answers = await querier.declare_matching_listener()
            queryable = theirs.declare_queryable("match/**", lambda _query: None)
            assert (await answers.recv()).matching
            queryable.undeclare()  # type: ignore[no-untyped-call]
            assert not (await answers.recv()).matching

            their_querier = theirs.declare_querier("match/r")
            their_querier.declare_matching_listener(told)
            async with ours.declare_queryable("match/r"):
                assert (await told.get()).matching
            assert not (await told.get()).matching

    run(main())


def test_declared_keys(both: Meet) -> None:
    """They change nothing but what a program has to check."""

    async def main() -> None:
        async with both() as (ours, theirs), ours.declare_subscriber("keys/us/*") as subscriber:
            key, their_key = await ours.declare_keyexpr("keys/them/1"), "keys/us/1"
            got: Taker[zenoh.Sample] = Taker()
            theirs.declare_subscriber("keys/them/*", got)
            publisher = await ours.declare_publisher(key)
            await until(lambda: publisher.matching_status.matching)
            await ours.put(key, "declared")
            await ours.put("keys/them/1", "named")
            await publisher.put("published")
            words = ["declared", "named", "published"]
            assert [(await got.get()).payload.to_string() for _ in words] == words
            await ours.undeclare(key)
            await ours.put(key, "again")
            assert str((await got.get()).key_expr) == "keys/them/1"

            declared = theirs.declare_keyexpr(their_key)
            their = theirs.declare_publisher(declared)
            await until(lambda: their.matching_status.matching)  # type: ignore[attr-defined]
            theirs.put(declared, "declared")
            theirs.put(their_key, "named")
            their.put("published")
            assert [str((await subscriber.recv()).payload) for _ in words] == words

    run(main())


def test_ids_are_numbered_as_theirs(port: int) -> None:
    async def main() -> None:
        async with meet_by(WAYS[0], port)() as (ours, theirs):
            assert ours.id.eid == theirs.id.eid == 1
            assert str(ours.id.zid) == str(ours.zid())
            first, second = [await ours.declare_publisher("ids") for _ in range(2)]
            assert ours.id.eid < first.id.eid < second.id.eid

    run(main())


def test_namespaces(port: int) -> None:
    async def main() -> None:
        space = "space/one"
        with reference("client", connect=port, namespace=space) as theirs:
            async with (
                aio.open(config("client", connect=port, namespace=space)) as ours,
                aio.open(config("client", connect=port)) as plain,
                ours.declare_subscriber("a/*") as subscriber,
                plain.declare_subscriber("space/**") as seen,
            ):
                their = theirs.declare_publisher("a/b")
                await until(lambda: their.matching_status.matching)  # type: ignore[attr-defined]
                their.put("x")
                assert str((await subscriber.recv()).key_expr) == "a/b"
                assert str((await seen.recv()).key_expr) == "space/one/a/b"
                got: Taker[zenoh.Sample] = Taker()
                theirs.declare_subscriber("c", got)
                publisher = await ours.declare_publisher("c")
                await until(lambda: publisher.matching_status.matching)
                await publisher.put("y")
                assert str((await got.get()).key_expr) == "c"
                assert str((await seen.recv()).key_expr) == "space/one/c"

    run(main())


def test_locality(both: Meet) -> None:
    async def main() -> None:
        async with both() as (ours, theirs):
            got: Taker[zenoh.Sample] = Taker()
            theirs.declare_subscriber("local", got)
            publisher = await ours.declare_publisher("local")
            await until(lambda: publisher.matching_status.matching)
            mine = await ours.declare_subscriber("local")
            remote = await ours.declare_subscriber("local", allowed_origin=aio.Locality.REMOTE)
            await ours.put("local", "here", allowed_destination=aio.Locality.SESSION_LOCAL)
            await ours.put("local", "there", allowed_destination=aio.Locality.REMOTE)
            await ours.put("local", "any")
            assert [(await got.get()).payload.to_string() for _ in range(2)] == ["there", "any"]
            assert [str((await mine.recv()).payload) for _ in range(2)] == ["here", "any"]
            theirs.put("local", "theirs")
            assert str((await remote.recv()).payload) == "theirs"

    run(main())


def test_times_along_the_way(both: Meet) -> None:
    async def main() -> None:
        async with both() as (ours, theirs):
            subscriber = await ours.declare_subscriber("times/us")
            got: Taker[zenoh.Sample] = Taker()
            theirs.declare_subscriber("times/them", got)
            publisher = await ours.declare_publisher("times/them")
            their = theirs.declare_publisher("times/us")
            await until(lambda: publisher.matching_status.matching)
            await until(lambda: their.matching_status.matching)  # type: ignore[attr-defined]

            points = aio.TimestampInstrumentationBuilder()
            everywhere = points.set_send(True).set_route(True).set_receive(True).build()
            await publisher.put("x", timestamp_instrumentation=everywhere)
            stack = (await got.get()).timestamp_stack
            assert stack is not None
            ours_seen = [str(record.point) for record in stack.records]

            builder = zenoh.TimestampInstrumentationBuilder()
            their_points = builder.set_send(True).set_route(True).set_receive(True).build()
            their.put("x", timestamp_instrumentation=their_points)
            mine = (await subscriber.recv()).timestamp_stack
            assert mine is not None
            assert [str(record.point) for record in mine.records] == ours_seen

            queryable = await ours.declare_queryable("times/q")
            querier = theirs.declare_querier("times/q")
            await until(lambda: querier.matching_status.matching)  # type: ignore[attr-defined]
            replies: Taker[zenoh.Reply] = Taker()
            querier.get(replies, timestamp_instrumentation=their_points)
            with await queryable.recv() as query:
                asked = query.timestamp_stack
                assert asked is not None
                assert [str(record.point) for record in asked.records] == ours_seen
                await query.reply("times/q", "x")
            reply = (await replies.get()).ok
            assert reply is not None
            assert reply.timestamp_stack is not None
            points_seen = [str(record.point) for record in reply.timestamp_stack.records]
            assert points_seen == ours_seen * 2

    run(main())


def test_who_is_connected(port: int) -> None:
    async def main() -> None:
        async with meet_by(WAYS[0], port)() as (ours, theirs):
            router_zids = [str(zid) for zid in theirs.info.routers_zid()]
            assert [str(zid) for zid in ours.info.routers_zid()] == router_zids
            assert ours.info.peers_zid() == []
            [transport] = ours.info.transports()
            assert (transport.whatami, transport.is_qos) == (aio.WhatAmI.ROUTER, True)
            [link] = ours.info.links()
            assert link.dst == f"tcp/127.0.0.1:{port}"

    run(main())
