"""What a handler is read from, as type checkers see it; mypy reads this file in ``make check``."""

from __future__ import annotations

import queue
from typing import assert_type

import zenwire
from tests.unit.api.nodes import config, run
from zenwire import aio, ext
from zenwire.handlers import Callback, DefaultHandler, FifoChannel, Handler, RingChannel

Items = queue.Queue[zenwire.Sample]


def test_sync() -> None:
    items: Items = queue.Queue()
    pair = items.put, items
    with zenwire.open(config()) as session:
        plain = session.declare_subscriber("a")
        assert_type(plain, zenwire.Subscriber[Handler[zenwire.Sample]])
        assert_type(plain.handler, Handler[zenwire.Sample])
        ring = session.declare_subscriber("a", RingChannel(1))
        assert_type(ring.handler, Handler[zenwire.Sample])
        assert_type(
            session.declare_subscriber("a", DefaultHandler()).handler, Handler[zenwire.Sample]
        )
        called = session.declare_subscriber("a", lambda sample: sample.payload)
        assert_type(called, zenwire.Subscriber[None])
        assert_type(session.declare_subscriber("a", Callback(items.put)), zenwire.Subscriber[None])
        paired = session.declare_subscriber("a", pair)
        assert_type(paired.handler, Items)
        assert isinstance(plain.handler, Handler)
        assert (called.handler, paired.handler) == (None, items)

        queryable = session.declare_queryable("q")
        assert_type(queryable.handler, Handler[zenwire.Query])
        assert_type(session.get("nothing"), Handler[zenwire.Reply])
        assert_type(session.declare_querier("nothing").get(), Handler[zenwire.Reply])
        assert_type(session.liveliness().get("nothing"), Handler[zenwire.Reply])
        tokens = session.liveliness().declare_subscriber("t", FifoChannel(1))
        assert_type(tokens, zenwire.Subscriber[Handler[zenwire.Sample]])
        listener = session.declare_publisher("p").declare_matching_listener()
        assert_type(listener, zenwire.MatchingListener[Handler[zenwire.MatchingStatus]])

        advanced = ext.declare_advanced_subscriber(session, "x")
        assert_type(advanced, ext.AdvancedSubscriber[Handler[zenwire.Sample]])
        assert_type(advanced.sample_miss_listener(), ext.SampleMissListener[Handler[ext.Miss]])
        assert_type(advanced.detect_publishers(pair).handler, Items)
        given = ext.declare_advanced_subscriber(session, "x", items.put)
        assert_type(given, ext.AdvancedSubscriber[None])


def test_asyncio() -> None:
    async def main() -> None:
        items: Items = queue.Queue()
        pair = items.put, items
        async with aio.open(config()) as session:
            plain = await session.declare_subscriber("a")
            assert_type(plain, aio.Subscriber[aio.Channel[aio.Sample]])
            assert_type(plain.handler, aio.Channel[aio.Sample])
            called = await session.declare_subscriber("a", aio.Callback(items.put))
            assert_type(called, aio.Subscriber[None])
            paired = await session.declare_subscriber("a", pair)
            assert_type(paired.handler, Items)
            assert isinstance(plain.handler, aio.Channel)
            assert (called.handler, paired.handler) == (None, items)
            queryable = await session.declare_queryable("q")
            assert_type(queryable.handler, aio.Channel[aio.Query])
            tokens = await session.liveliness().declare_subscriber("t", items.put)
            assert_type(tokens, aio.Subscriber[None])
            publisher = await session.declare_publisher("p")
            listener = await publisher.declare_matching_listener()
            assert_type(listener.handler, aio.Channel[aio.MatchingStatus])
            advanced = await aio.ext.declare_advanced_subscriber(session, "x")
            assert_type(advanced, aio.ext.AdvancedSubscriber[aio.Channel[aio.Sample]])
            misses = await advanced.sample_miss_listener(lambda miss: miss.nb)
            assert_type(misses, aio.ext.SampleMissListener[None])

    run(main())
