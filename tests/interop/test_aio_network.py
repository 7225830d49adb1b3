"""What the network does to a session: it is full, it breaks, and it comes back."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import warnings
from collections.abc import AsyncIterator

import pytest
import zenoh

from tests.unit.api.nodes import config, free_port, run, until
from tests.unit.api.reference import Taker, reference
from zenwire import aio

pytestmark = pytest.mark.interop

PAYLOAD = bytes(65_536)


class Stalled:
    """Their subscriber, whose callback keeps their receiving thread until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.count = 0

    def __call__(self, _sample: zenoh.Sample) -> None:
        self.go.wait()
        self.count += 1


def test_block_waits_for_room_and_loses_nothing() -> None:
    count = 400

    async def main() -> None:
        port, stalled = free_port(), Stalled()
        with reference("peer", listen=port) as theirs:
            theirs.declare_subscriber("k", zenoh.handlers.Callback(stalled, indirect=False))
            async with (
                aio.open(config(connect=port)) as ours,
                ours.declare_publisher(
                    "k", congestion_control=aio.CongestionControl.BLOCK
                ) as publisher,
                ours.declare_subscriber("elsewhere") as elsewhere,
            ):
                await until(lambda: publisher.matching_status.matching)
                sent = 0

                async def send() -> None:
                    nonlocal sent
                    for _ in range(count):
                        await publisher.put(PAYLOAD)
                        sent += 1

                task = asyncio.create_task(send())
                await until(lambda: ours.info.stats().neighbours[0].waiting)
                assert sent < count
                # Nobody else waits.
                await ours.put("elsewhere", "here")
                assert (await elsewhere.recv()).payload == b"here"
                stalled.go.set()
                await task
                await until(lambda: stalled.count == count)

    run(main())


def test_drop_waits_no_longer_than_it_may_and_counts() -> None:
    count = 400

    async def main() -> None:
        port, stalled = free_port(), Stalled()
        with reference("peer", listen=port) as theirs:
            theirs.declare_subscriber("k", zenoh.handlers.Callback(stalled, indirect=False))
            async with (
                aio.open(config(connect=port)) as ours,
                ours.declare_publisher("k") as publisher,
            ):
                await until(lambda: publisher.matching_status.matching)
                for _ in range(count):
                    await publisher.put(PAYLOAD)
                dropped = sum(ours.info.stats().neighbours[0].dropped.values())
                assert 0 < dropped < count
                stalled.go.set()
                await until(lambda: stalled.count == count - dropped)

    run(main())


def test_a_cancelled_wait_leaves_the_session_usable() -> None:
    async def main() -> None:
        port, stalled = free_port(), Stalled()
        with reference("peer", listen=port) as theirs:
            theirs.declare_subscriber("k", zenoh.handlers.Callback(stalled, indirect=False))
            got: Taker[zenoh.Sample] = Taker()
            theirs.declare_subscriber("last", got)
            async with (
                aio.open(config(connect=port)) as ours,
                ours.declare_publisher(
                    "k", congestion_control=aio.CongestionControl.BLOCK
                ) as publisher,
                ours.declare_publisher(
                    "last", congestion_control=aio.CongestionControl.BLOCK
                ) as last,
            ):
                await until(lambda: publisher.matching_status.matching)

                async def send() -> None:
                    while True:
                        await publisher.put(PAYLOAD)

                task = asyncio.create_task(send())
                await until(lambda: ours.info.stats().neighbours[0].waiting)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                stalled.go.set()
                await last.put("x")
                await got.get()

    run(main())


def test_a_router_that_returns_is_found_and_told_everything() -> None:
    async def main() -> None:
        port = free_port()
        retry = {"endpoints": [f"tcp/127.0.0.1:{port}"], "retry": {"period_init_ms": 50}}
        settings = config("client")
        settings.insert_json5("connect", retry)
        first = reference("router", listen=port)
        first.__enter__()
        async with (
            aio.open(settings) as ours,
            ours.info.declare_transport_events_listener() as events,
            ours.declare_subscriber("a/*") as subscriber,
            ours.declare_publisher("b") as publisher,
            ours.liveliness().declare_token("t"),
        ):
            await asyncio.to_thread(first.__exit__, None, None, None)
            assert (await events.recv()).kind is aio.SampleKind.DELETE
            assert ours.info.routers_zid() == []
            # Nobody is there, and nothing fails for that.
            await publisher.put("lost")
            assert [reply async for reply in ours.get("a/1")] == []
            with reference("router", listen=port) as router:
                assert (await events.recv()).kind is aio.SampleKind.PUT
                their = router.declare_publisher("a/1")
                await until(lambda: their.matching_status.matching)  # type: ignore[attr-defined]
                their.put("again")
                assert (await subscriber.recv()).payload == b"again"
                got: Taker[zenoh.Sample] = Taker()
                router.declare_subscriber("b", got)
                await until(lambda: publisher.matching_status.matching)
                await publisher.put("found")
                assert (await got.get()).payload.to_string() == "found"
                alive: Taker[zenoh.Sample] = Taker()
                router.liveliness().declare_subscriber("t", alive, history=True)
                assert str((await alive.get()).key_expr) == "t"

    run(main())


def test_a_forked_child_talks_to_the_router_of_its_parent() -> None:
    async def child(session: aio.Session, port: int) -> int:
        try:
            await session.put("k", "not mine")
        except aio.ForkedSession:
            async with aio.open(config("client", connect=port)) as own:
                await own.put("k", "child", congestion_control=aio.CongestionControl.BLOCK)
            return 0
        return 1

    async def main() -> None:
        port = free_port()
        with reference("router", listen=port) as router:
            got: Taker[zenoh.Sample] = Taker()
            router.declare_subscriber("k", got)
            async with aio.open(config("client", connect=port)) as session:
                await session.put("k", "parent")
                assert (await got.get()).payload.to_string() == "parent"
                with warnings.catch_warnings():
                    # Python warns of forks beside threads; this child runs none of theirs.
                    warnings.simplefilter("ignore", DeprecationWarning)
                    pid = os.fork()
                if not pid:
                    code = 2
                    try:
                        loop = asyncio.new_event_loop()
                        code = loop.run_until_complete(child(session, port))
                    finally:
                        os._exit(code)
                assert (await got.get()).payload.to_string() == "child"
                _, status = await asyncio.to_thread(os.waitpid, pid, 0)
                assert os.waitstatus_to_exitcode(status) == 0
                await session.put("k", "parent")
                assert (await got.get()).payload.to_string() == "parent"

    run(main())


def test_scouting_finds_both() -> None:
    async def main() -> None:
        group, port = free_port(), free_port()
        multicast = {"enabled": True, "address": f"224.0.0.224:{group}", "interface": "lo"}
        scouting = {"multicast": multicast, "gossip": {"enabled": False}}
        settings = aio.Config.from_dict(
            {
                "mode": "peer",
                "scouting": {**scouting, "multicast": {**multicast, "autoconnect": []}},
                "listen": {"endpoints": [f"tcp/127.0.0.1:{port}"]},
            }
        )
        only_scouting = aio.Config.from_dict({"scouting": scouting})
        their_scouting = zenoh.Config()
        their_scouting.insert_json5("scouting", json.dumps(scouting))
        with reference("router", listen=free_port(), scouting=scouting) as theirs:
            async with aio.open(settings) as ours:
                async with aio.scout(config=only_scouting) as scout:
                    found = {str(hello.zid): hello async for hello in _some(scout, 2)}
                assert set(found) == {str(theirs.zid()), str(ours.zid())}
                assert found[str(theirs.zid())].whatami is aio.WhatAmI.ROUTER
                assert found[str(ours.zid())].locators == [f"tcp/127.0.0.1:{port}"]
                with pytest.raises(aio.ChannelClosed):
                    await scout.recv()

                async with aio.scout(what="peer", config=only_scouting) as peers:
                    assert (await peers.recv()).zid == ours.zid()

                heard: Taker[zenoh.Hello] = Taker()
                their_scout = zenoh.scout(heard, what="peer", config=their_scouting)  # type: ignore[arg-type] # a callable, which its stub allows elsewhere
                hello = await heard.get()
                their_scout.stop()  # type: ignore[no-untyped-call]
                assert str(hello.zid) == str(ours.zid())
                assert hello.locators == [f"tcp/127.0.0.1:{port}"]

    run(main())


async def _some(scout: aio.Scout, count: int) -> AsyncIterator[aio.Hello]:
    for _ in range(count):
        yield await scout.recv()
