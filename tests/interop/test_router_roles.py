"""What a router does beside passing on: times, gossip, gateways, scouting, and coming back."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import zenoh
import zenoh.ext

from tests.interop.exchange import (
    PATIENT,
    ask_them,
    matching,
    node_settings,
    opened,
    said,
    they_see_alive,
)
from tests.interop.routers import Net, chain
from tests.ports import free_port
from tests.unit.api.nodes import run, until
from tests.unit.api.reference import Taker
from zenwire import aio

pytestmark = pytest.mark.interop


async def unmatched(one: Any) -> None:
    """Wait until a publisher of either kind has nobody on the other side."""
    await until(lambda: not one.matching_status.matching)


def test_sessions_of_the_reference_through_a_router_of_ours() -> None:
    async def main() -> None:
        async with chain("Z") as net:
            one, two = await net.theirs("client", 0), await net.theirs("client", 0)
            got: Taker[zenoh.Sample] = Taker()
            alive: Taker[zenoh.Sample] = Taker()
            watch = two.liveliness().declare_subscriber("t/*", alive, history=True)
            subscriber = two.declare_subscriber("k/**", got)
            publisher = one.declare_publisher("k/1")
            await matching(publisher)
            await asyncio.to_thread(publisher.put, "x")
            assert (await got.get()).payload.to_string() == "x"
            subscriber.undeclare()  # type: ignore[no-untyped-call]
            await unmatched(publisher)

            def answer(query: zenoh.Query) -> None:
                with query:
                    query.reply(query.key_expr, f"{query.parameters}")

            queryable = one.declare_queryable("q", answer, complete=True)
            querier = two.declare_querier("q", target=zenoh.QueryTarget.ALL_COMPLETE)
            await matching(querier)
            for target in (zenoh.QueryTarget.BEST_MATCHING, zenoh.QueryTarget.ALL):
                replies = await ask_them(two, "q?a=1", target=target)
                assert [said(reply) for reply in replies] == ["q=a=1"]
            queryable.undeclare()  # type: ignore[no-untyped-call]
            assert await ask_them(two, "q") == []

            token = one.liveliness().declare_token("t/1")
            assert (await alive.get()).kind == zenoh.SampleKind.PUT
            await they_see_alive(two, "t/**", ["t/1"])
            await asyncio.to_thread(one.close)
            # What came too late for a query, the reference gives to subscribers once more.
            while (await alive.get()).kind != zenoh.SampleKind.DELETE:
                pass
            del token, watch

    run(main())


def test_an_advanced_publisher_and_subscriber_through_routers_of_ours() -> None:
    async def main() -> None:
        async with chain("ZZ") as net:
            one, two = await net.theirs("client", 0), await net.theirs("client", 1)
            publisher = zenoh.ext.declare_advanced_publisher(
                one,
                "adv/k",
                cache=zenoh.ext.CacheConfig(max_samples=10),
                sample_miss_detection=zenoh.ext.MissDetectionConfig(heartbeat=0.1),  # type: ignore[call-arg] # its stub
                publisher_detection=True,
            )
            for text in "abc":
                await asyncio.to_thread(publisher.put, text)
            got: Taker[zenoh.Sample] = Taker()
            await asyncio.sleep(0.3)
            subscriber = zenoh.ext.declare_advanced_subscriber(
                two,
                "adv/*",
                got,
                history=zenoh.ext.HistoryConfig(detect_late_publishers=True),
                recovery=zenoh.ext.RecoveryConfig(heartbeat=True),  # type: ignore[call-arg] # its stub
                subscriber_detection=True,
            )
            texts = [(await got.get()).payload.to_string() for _ in range(3)]
            assert texts == ["a", "b", "c"]
            await asyncio.to_thread(publisher.put, "d")
            assert (await got.get()).payload.to_string() == "d"
            del subscriber

    run(main())


def test_puts_get_the_time_of_the_router_and_deletes_none() -> None:
    async def main() -> None:
        async with chain("Z", id="abc1") as net:
            one, two = await net.theirs("client", 0), await net.theirs("client", 0)
            got: Taker[zenoh.Sample] = Taker()
            subscriber = two.declare_subscriber("k", got)
            publisher = one.declare_publisher("k")
            await matching(publisher)

            def send() -> None:
                publisher.put("x")
                publisher.delete()
                publisher.put("y", timestamp=stamp)
                publisher.put("z", timestamp=future)

            stamp = one.new_timestamp()
            future = zenoh.Timestamp(stamp.get_time() + timedelta(hours=1), b"\x01")
            await asyncio.to_thread(send)
            samples = [await got.get() for _ in range(4)]
            ids = [sample.timestamp and str(sample.timestamp.get_id()) for sample in samples]
            assert ids == ["abc1", None, str(one.zid()), "abc1"]
            assert str(samples[2].timestamp) == str(stamp)
            router = net.routers[0]
            assert isinstance(router, aio.Session)
            assert router.info.stats().late == 1
            del subscriber

    run(main())


def test_puts_of_the_future_are_dropped_if_one_wants_it() -> None:
    async def main() -> None:
        settings = {"timestamping": {"enabled": True, "drop_future_timestamp": True}}
        async with chain("Z", **settings) as net:
            one, two = await net.theirs("client", 0), await net.theirs("client", 0)
            got: Taker[zenoh.Sample] = Taker()
            subscriber = two.declare_subscriber("k", got)
            publisher = one.declare_publisher("k")
            await matching(publisher)
            now = one.new_timestamp().get_time()
            future = zenoh.Timestamp(now + timedelta(hours=1), b"\x01")
            await asyncio.to_thread(lambda: publisher.put("late", timestamp=future))
            await asyncio.to_thread(publisher.put, "in time")
            assert (await got.get()).payload.to_string() == "in time"
            del subscriber

    run(main())


@pytest.mark.parametrize("kinds", ["ZZ", "ZE", "EZ"])
@pytest.mark.parametrize("who", ["ours", "theirs"])
def test_a_peer_with_two_routers_hears_and_is_heard_once(kinds: str, who: str) -> None:
    async def main() -> None:
        scouting = {"multicast": {"enabled": False}, "gossip": {"autoconnect": []}}
        async with AsyncExitStack() as stack:
            net = Net(stack, kinds)
            for at, kind in enumerate(kinds):
                # That of the reference would pass on to ours what ours has heard already.
                greater = "fe" if kind == "Z" else "01"
                await net.router(range(at), scouting=scouting, id=f"ab{at}{greater}")
            at_first, at_second = await net.theirs("client", 0), await net.theirs("client", 1)
            heard: list[str] = []

            def hear(sample: zenoh.Sample | aio.Sample) -> None:
                heard.append(sample.payload.to_string())

            for one in (at_first, at_second):
                one.declare_subscriber("up", zenoh.handlers.Callback(hear))
            if who == "theirs":
                theirs = await net.theirs("peer", 0, 1, scouting=scouting)
                theirs.declare_subscriber("down", zenoh.handlers.Callback(hear))
                put: Callable[[], Awaitable[None]] = partial(
                    asyncio.to_thread, theirs.put, "up", "up"
                )
            else:
                ours = await net.ours("peer", 0, 1, scouting=scouting)
                await until(lambda: len(ours.info.transports()) == 2)
                await ours.declare_subscriber("down", hear)
                put = partial(ours.put, "up", "up")
            # Until all know of all, by whatever way.
            async with asyncio.timeout(20):
                while sorted(heard) != ["1", "2", "up", "up"]:
                    heard.clear()
                    await put()
                    await asyncio.to_thread(at_first.put, "down", "1")
                    await asyncio.to_thread(at_second.put, "down", "2")
                    await asyncio.sleep(0.3)
            for _ in range(5):
                heard.clear()
                await put()
                await asyncio.to_thread(at_first.put, "down", "1")
                await asyncio.to_thread(at_second.put, "down", "2")
                await until(lambda: len(heard) >= 4)
                await asyncio.sleep(0.05)
                assert sorted(heard) == ["1", "2", "up", "up"]

    run(main())


def test_peers_find_each_other_by_a_router() -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            scouting = {"multicast": {"enabled": False}, "gossip": {"enabled": True}}
            net = Net(stack, "Z")
            await net.router(scouting=scouting)
            listen = {"endpoints": ["tcp/127.0.0.1:0"]}
            theirs = await net.theirs("peer", 0, scouting=scouting, listen=listen)
            ours = await net.ours("peer", 0, scouting=scouting, listen=listen)
            await until(lambda: str(theirs.zid()) in map(str, ours.info.peers_zid()))
            await until(lambda: str(ours.zid()) in map(str, theirs.info.peers_zid()))

    run(main())


def test_it_is_found_by_scouting() -> None:
    async def main() -> None:
        address = f"224.0.0.224:{free_port(socket.SOCK_DGRAM)}"
        multicast = {"multicast": {"enabled": True, "address": address, "interface": "lo"}}
        settings = node_settings("router", listen="tcp/127.0.0.1:0") | {"scouting": multicast}
        async with aio.open(aio.Config.from_dict(settings)) as router:
            config = zenoh.Config.from_json5(json.dumps({"scouting": multicast}))

            def scout() -> list[zenoh.Hello]:
                with zenoh.scout(what="router", config=config) as hellos:
                    return [next(iter(hellos))]

            [hello] = await asyncio.to_thread(scout)
            assert str(hello.zid) == str(router.zid())
            assert hello.whatami == zenoh.WhatAmI.ROUTER
            settings = node_settings("client") | {"scouting": multicast | {"timeout": 20_000}}
            async with opened(settings) as client:
                assert [str(one) for one in client.info.routers_zid()] == [str(router.zid())]

    run(main())


def test_sessions_come_back_to_a_router_that_was_started_anew() -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            net = Net(stack, "Z")
            place = f"tcp/127.0.0.1:{net.ports[0]}"
            settings = node_settings("router", listen=place, id="abc2", **PATIENT)
            config = aio.Config.from_dict(settings)
            got: Taker[zenoh.Sample] = Taker()
            async with aio.open(config):
                one, two = await net.ours("client", 0), await net.theirs("client", 0)
                subscriber = two.declare_subscriber("k", got)
                publisher = await stack.enter_async_context(one.declare_publisher("k"))
                await matching(publisher)
            await unmatched(publisher)
            async with aio.open(config):
                await matching(publisher)
                await publisher.put("again")
                assert (await got.get()).payload.to_string() == "again"
            del subscriber

    run(main())
