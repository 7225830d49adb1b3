"""What the network does to a session: it is full, it breaks, and it comes back."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import threading
import warnings
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from subprocess import PIPE, Popen
from typing import Any

import pytest
import zenoh

from tests.interop.exchange import (
    Settings,
    ask_them,
    exchange,
    matching,
    node_settings,
    opened,
    said,
    they_see_alive,
)
from tests.ports import free_port
from tests.unit.api.nodes import config, run, until, within
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


ROUTER = """
import sys, zenoh
session = zenoh.open(zenoh.Config.from_json5(sys.argv[1]))
held = []

def answer(query):
    query.reply("slow", "so far")
    held.append(query)

queryable = session.declare_queryable("slow", answer)
print("ready", flush=True)
sys.stdin.read()
"""
"""It has an answer of its own that never ends."""


@asynccontextmanager
async def router_process(settings: Settings) -> AsyncIterator[Popen[str]]:
    """A router of the reference that can be killed."""
    child = Popen(  # noqa: ASYNC220 # starting one takes no time
        [sys.executable, "-c", ROUTER, json.dumps(settings)], stdin=PIPE, stdout=PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdin is not None
    try:
        assert await asyncio.to_thread(child.stdout.readline) == "ready\n"
        yield child
    finally:
        child.kill()
        await asyncio.to_thread(child.wait)
        child.stdout.close()
        child.stdin.close()


def soon_again(mode: str, where: str) -> Settings:
    """The settings of a node that dials, and dials again at once."""
    retry = {"period_init_ms": 50, "period_max_ms": 100}
    return node_settings(mode) | {"connect": {"endpoints": [where], "retry": retry}}


@pytest.mark.parametrize("mode", ["client", "peer"])
def test_a_killed_router_ends_queries_and_is_told_everything_when_it_returns(mode: str) -> None:
    async def main() -> None:
        where = f"tcp/127.0.0.1:{free_port()}"
        router = node_settings("router", listen=where)
        none = aio.ConsolidationMode.NONE
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(router_process(router))
            enter = stack.enter_async_context
            theirs = await enter(opened(soon_again("client", where)))
            ours = await enter(aio.open(aio.Config.from_dict(soon_again(mode, where))))
            subscriber = await ours.declare_subscriber("a/*")
            queryable = await ours.declare_queryable("q")
            publisher = await ours.declare_publisher("b")
            querier = await ours.declare_querier("slow", timeout=25, consolidation=none)
            alive = await ours.liveliness().declare_subscriber("theirs/*", history=True)
            await ours.liveliness().declare_token("ours/1")
            got: Taker[zenoh.Sample] = Taker()
            theirs.declare_subscriber("b", got)
            # Who lets go of a token of theirs has undeclared it.
            _token = theirs.liveliness().declare_token("theirs/1")
            their_publisher = theirs.declare_publisher("a/1")
            their_querier = theirs.declare_querier("q", timeout=25)
            sample = await within(alive.recv())
            assert (str(sample.key_expr), sample.kind.name) == ("theirs/1", "PUT")
            for one in (publisher, querier, their_publisher, their_querier):
                await matching(one)

            # Both have a query under way when the router is killed.
            replies = querier.get()
            assert said(await within(replies.recv())) == "slow=so far"
            asked = asyncio.create_task(ask_them(their_querier))
            query = await within(queryable.recv())
            await query.reply("q", "so far")
            assert not replies.finished
            first.kill()
            assert [reply async for reply in replies] == []
            assert [said(reply) for reply in await asked] in (["q=so far"], [])
            sample = await within(alive.recv())
            assert (str(sample.key_expr), sample.kind.name) == ("theirs/1", "DELETE")
            assert not publisher.matching_status.matching
            # An answer that nobody waits for any more harms nobody.
            await query.reply("q", "too late")
            query.drop()

            await enter(router_process(router))
            for one in (publisher, querier, their_publisher, their_querier):
                await matching(one)
            sample = await within(alive.recv())
            assert (str(sample.key_expr), sample.kind.name) == ("theirs/1", "PUT")
            await they_see_alive(theirs, "ours/*", ["ours/1"])
            await publisher.put("found")
            assert (await got.get()).payload.to_string() == "found"
            await asyncio.to_thread(their_publisher.put, "again")
            assert (await within(subscriber.recv())).payload == b"again"
            asked = asyncio.create_task(ask_them(their_querier))
            async with await within(queryable.recv()) as query:
                await query.reply("q", "new")
            assert [said(reply) for reply in await asked] == ["q=new"]
            replies = querier.get()
            assert said(await within(replies.recv())) == "slow=so far"

    run(main())


@pytest.mark.parametrize("mode", ["client", "peer"])
def test_their_node_tells_ours_everything_when_it_returns(mode: str) -> None:
    """The other way round: it is our node that goes, with a query of theirs under way."""

    async def main() -> None:
        where = f"tcp/127.0.0.1:{free_port()}"
        settings = aio.Config.from_dict(node_settings("peer", listen=where))
        async with AsyncExitStack() as stack:
            first = await aio.open(settings)
            theirs = await stack.enter_async_context(opened(soon_again(mode, where)))
            got: Taker[zenoh.Sample] = Taker()
            theirs.declare_subscriber("a", got)

            def answer(query: zenoh.Query) -> None:
                with query:
                    query.reply("theirs", "x")

            theirs.declare_queryable("theirs", answer)
            _token = theirs.liveliness().declare_token("theirs/1")
            their_publisher = theirs.declare_publisher("b")
            their_querier = theirs.declare_querier("q", timeout=25)
            queryable = await first.declare_queryable("q")
            await matching(their_querier)
            asked = asyncio.create_task(ask_them(their_querier))
            query = await within(queryable.recv())
            await query.reply("q", "so far")
            await first.close()
            assert [said(reply) for reply in await asked] in (["q=so far"], [])

            ours = await stack.enter_async_context(aio.open(settings))
            publisher = await ours.declare_publisher("a")
            querier = await ours.declare_querier("theirs")
            subscriber = await ours.declare_subscriber("b")
            for one in (publisher, querier, their_publisher):
                await matching(one)
            await publisher.put("found")
            assert (await got.get()).payload.to_string() == "found"
            await asyncio.to_thread(their_publisher.put, "again")
            assert (await within(subscriber.recv())).payload == b"again"
            assert [said(reply) async for reply in querier.get()] == ["theirs=x"]
            alive = [said(reply) async for reply in ours.liveliness().get("theirs/*")]
            assert alive == ["theirs/1="]

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


def on_loopback(**more: Any) -> Settings:
    """Scouting that stays on this machine, in a group of its own."""
    where = f"224.0.0.224:{free_port(socket.SOCK_DGRAM)}"
    multicast = {"enabled": True, "address": where, "interface": "lo"} | more
    return {"multicast": multicast, "gossip": {"enabled": False}}


def silent(scouting: Settings) -> Settings:
    """The same group, for a node that is found but looks for nobody."""
    return scouting | {"multicast": scouting["multicast"] | {"autoconnect": []}}


@pytest.mark.parametrize("theirs_is", ["router", "peer"])
@pytest.mark.parametrize("ours_is", ["client", "peer"])
def test_ours_finds_theirs_by_scouting(ours_is: str, theirs_is: str) -> None:
    async def main() -> None:
        scouting, where = on_loopback(), f"tcp/127.0.0.1:{free_port()}"
        settings = node_settings(theirs_is, listen=where, scouting=silent(scouting))
        mine = aio.Config.from_dict(node_settings(ours_is, scouting=scouting))
        async with opened(settings) as theirs, aio.open(mine) as ours:
            await until(ours.info.transports)
            [transport] = ours.info.transports()
            assert str(transport.zid) == str(theirs.zid())
            await exchange(ours, theirs, b"x")

    run(main())


@pytest.mark.parametrize("theirs_is", ["client", "peer", "router"])
def test_theirs_finds_ours_by_scouting(theirs_is: str) -> None:
    async def main() -> None:
        scouting, where = on_loopback(), f"tcp/127.0.0.1:{free_port()}"
        # Routers look for routers, unless they are told to look for others.
        looks = {"multicast": scouting["multicast"] | {"autoconnect": ["router", "peer"]}}
        mine = node_settings("peer", listen=where, scouting=silent(scouting))
        async with aio.open(aio.Config.from_dict(mine)) as ours:
            settings = node_settings(theirs_is, scouting=scouting | looks)
            async with opened(settings) as theirs:
                await until(ours.info.transports)
                [transport] = ours.info.transports()
                assert str(transport.zid) == str(theirs.zid())
                await exchange(ours, theirs, b"x")

    run(main())


@pytest.mark.parametrize("hub", ["ours", "theirs"])
def test_gossip_makes_a_mesh(hub: str) -> None:
    """One peer knows all; the others hear of each other from it, whoever is of which kind."""
    scouting = {"multicast": {"enabled": False}, "gossip": {"enabled": True}}

    async def main() -> None:
        center, *others = (f"tcp/127.0.0.1:{free_port()}" for _ in range(3))
        async with AsyncExitStack() as stack:
            enter = stack.enter_async_context

            async def mine(scouting: dict[str, Any], **ends: str) -> aio.Session:
                settings = node_settings("peer", scouting=scouting, **ends)
                return await enter(aio.open(aio.Config.from_dict(settings)))

            async def theirs(scouting: dict[str, Any], **ends: str) -> zenoh.Session:
                return await enter(opened(node_settings("peer", scouting=scouting, **ends)))

            # It connects to nobody itself: the reference may do so once more while it is closed.
            tells = scouting | {"gossip": {"enabled": True, "autoconnect": []}}
            middle: Any = await (mine if hub == "ours" else theirs)(tells, listen=center)
            one = await mine(scouting, listen=others[0], connect=center)
            two = await theirs(scouting, listen=others[1], connect=center)
            wanted = {str(middle.zid()), str(two.zid())}
            await until(lambda: {str(zid) for zid in one.info.peers_zid()} == wanted)
            wanted = {str(middle.zid()), str(one.zid())}
            await until(lambda: {str(zid) for zid in two.info.peers_zid()} == wanted)
            # They need nobody between them any more.
            await (middle.close() if hub == "ours" else asyncio.to_thread(middle.close))
            await until(lambda: len(one.info.peers_zid()) == 1)
            await exchange(one, two, b"x")

    run(main())


async def _some(scout: aio.Scout, count: int) -> AsyncIterator[aio.Hello]:
    for _ in range(count):
        yield await scout.recv()
