"""Our node among eclipse-zenoh nodes: connecting, finding each other, losing each other."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import zenoh

from tests.ports import free_port
from zenwire.links import LinkError
from zenwire.node import Node, open_node, scout
from zenwire.node.config import Config, effective
from zenwire.routing import Output, SampleReceived
from zenwire.wire.data import Put
from zenwire.wire.locator import EndPoint
from zenwire.wire.values import WhatAmI, WhatAmIMatcher

pytestmark = pytest.mark.interop

TIMEOUT = 30.0
"""Long enough for a busy machine; nothing here waits for it to pass."""

OFF = {"multicast": {"enabled": False}, "gossip": {"enabled": True}}


def on_loopback() -> dict[str, Any]:
    """Scouting that stays on this machine, in a group of its own."""
    port = free_port(socket.SOCK_DGRAM)
    return {"multicast": {"address": f"224.0.0.224:{port}", "interface": "lo"}}


def made(
    mode: str,
    *,
    listen: list[str] | None = None,
    connect: list[str] | None = None,
    scouting: dict[str, Any] | None = None,
    **transport: Any,
) -> dict[str, Any]:
    return {
        "mode": mode,
        "listen": {"endpoints": listen or []},
        "connect": {"endpoints": connect or []},
        "scouting": scouting or OFF,
        "transport": {"shared_memory": {"enabled": False}} | transport,
    }


@asynccontextmanager
async def reference(config: dict[str, Any]) -> AsyncIterator[zenoh.Session]:
    """An eclipse-zenoh node."""
    wanted = zenoh.Config.from_json5(json.dumps(config))
    session = await asyncio.to_thread(zenoh.open, wanted)
    try:
        yield session
    finally:
        await asyncio.to_thread(session.close)


@asynccontextmanager
async def ours(config: dict[str, Any]) -> AsyncIterator[Node]:
    node = await open_node(Config.from_dict(config))
    try:
        yield node
    finally:
        await node.close()


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while not reached():  # noqa: ASYNC110 # the other node tells nothing
            await asyncio.sleep(0.01)


class Taker:
    """A subscriber of our node."""

    def __init__(self, node: Node, key: str) -> None:
        self.payloads: list[bytes] = []
        id_ = node.session().declare_subscriber(key)
        node.receivers[id_] = self._take
        node.settle()

    def _take(self, output: Output) -> None:
        assert isinstance(output, SampleReceived)
        assert isinstance(output.body, Put)
        self.payloads.append(output.body.payload)


def put(node: Node, key: str, payload: bytes) -> None:
    node.session().push(key, Put(payload=payload))
    node.settle()


async def both_ways(node: Node, other: zenoh.Session, key: str = "test/key") -> None:
    """Samples go from one to the other until one arrives, then from the other to the one."""
    taker = Taker(node, f"{key}/**")
    heard: list[bytes] = []
    subscriber = await asyncio.to_thread(
        other.declare_subscriber, f"{key}/**", lambda sample: heard.append(bytes(sample.payload))
    )
    async with asyncio.timeout(TIMEOUT):
        while b"theirs" not in taker.payloads or b"ours" not in heard:
            put(node, f"{key}/a", b"ours")
            other.put(f"{key}/b", b"theirs")
            await asyncio.sleep(0.05)
    await asyncio.to_thread(subscriber.undeclare)


async def told(other: zenoh.Session, taker: Taker, payload: bytes) -> None:
    """The other node knows of our subscriber."""
    async with asyncio.timeout(TIMEOUT):
        while payload not in taker.payloads:
            other.put("test/key", payload)
            await asyncio.sleep(0.02)


def linked(node: Node, other: zenoh.Session) -> bool:
    return str(other.zid()) in {str(face.zid) for face in node.neighbours}


# Connecting.


def test_a_router_that_comes_back_is_found_and_told_everything_again() -> None:
    async def scenario() -> None:
        where = f"tcp/127.0.0.1:{free_port()}"
        router = made("router", listen=[where])
        async with reference(router) as first, ours(made("client", connect=[where])) as node:
            taker = Taker(node, "test/**")
            await told(first, taker, b"first")
            before = next(iter(node.neighbours))
            await asyncio.to_thread(first.close)
            await until(lambda: not node.neighbours)
            async with reference(router) as second:
                await until(lambda: linked(node, second))
                assert next(iter(node.neighbours)) is not before
                await told(second, taker, b"second")
                await both_ways(node, second)

    asyncio.run(scenario())


@pytest.mark.parametrize("protocol", ["udp", "ws", "unixsock-stream"])
@pytest.mark.parametrize("dialler", ["ours", "theirs"])
def test_over_every_kind_of_link(protocol: str, dialler: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        kind = socket.SOCK_DGRAM if protocol == "udp" else socket.SOCK_STREAM
        address = f"{tmp_path}/s" if "unix" in protocol else f"127.0.0.1:{free_port(kind)}"
        where = [f"{protocol}/{address}"]
        if dialler == "ours":
            async with (
                reference(made("router", listen=where)) as router,
                ours(made("client", connect=where)) as node,
            ):
                await both_ways(node, router)
        else:
            async with (
                ours(made("peer", listen=where)) as node,
                reference(made("peer", connect=where)) as peer,
            ):
                await both_ways(node, peer)

    asyncio.run(scenario())


def test_peers_that_dial_each_other_have_one_session() -> None:
    async def scenario() -> None:
        here, there = (f"tcp/127.0.0.1:{free_port()}" for _ in range(2))
        opening = reference(made("peer", listen=[there], connect=[here]))
        task = asyncio.create_task(opening.__aenter__())
        async with ours(made("peer", listen=[here], connect=[there])) as node:
            other = await task
            await until(lambda: linked(node, other))
            await both_ways(node, other)
            assert len(node.neighbours) == 1
            peers = [str(zid) for zid in other.info.peers_zid()]
            assert peers == [str(node.zid)]
            await opening.__aexit__(None, None, None)

    asyncio.run(scenario())


def test_user_and_password_are_shown_and_demanded(tmp_path: Path) -> None:
    users = tmp_path / "users.txt"
    users.write_text("me:secret\n")
    good = {"usrpwd": {"user": "me", "password": "secret"}}
    demand = {"usrpwd": {"user": "x", "password": "y", "dictionary_file": str(users)}}

    async def scenario() -> None:
        where = f"tcp/127.0.0.1:{free_port()}"
        async with reference(made("router", listen=[where], auth=demand)) as router:
            async with ours(made("client", connect=[where], auth=good)) as node:
                await both_ways(node, router)
            wrong = {"usrpwd": {"user": "me", "password": "wrong"}}
            with pytest.raises(LinkError, match=where):
                await open_node(Config.from_dict(made("client", connect=[where], auth=wrong)))
        here = f"tcp/127.0.0.1:{free_port()}"
        async with ours(made("peer", listen=[here], auth=demand)) as node:
            async with reference(made("client", connect=[here], auth=good)) as client:
                await both_ways(node, client)
            with pytest.raises(zenoh.ZError):
                async with reference(made("client", connect=[here], auth=wrong)):
                    pass
            assert node.stats().failures["generic"] >= 1

    asyncio.run(scenario())


REFERENCE = """
import json, sys, zenoh
session = zenoh.open(zenoh.Config.from_json5(sys.argv[1]))
token = session.liveliness().declare_token("alive/other")
print(session.zid(), flush=True)
sys.stdin.read()
"""


@asynccontextmanager
async def process(config: dict[str, Any]) -> AsyncIterator[tuple[subprocess.Popen[str], str]]:
    """An eclipse-zenoh node in a process of its own, and its id."""
    child = subprocess.Popen(  # noqa: ASYNC220 # starting one takes no time
        [sys.executable, "-c", REFERENCE, json.dumps(config)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdin is not None
    try:
        zid = (await asyncio.to_thread(child.stdout.readline)).strip()
        yield child, zid
    finally:
        with suppress(ProcessLookupError):
            child.kill()
        child.wait()
        child.stdout.close()
        child.stdin.close()


@pytest.mark.parametrize("killed", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_that_dies_or_hangs_is_noticed(killed: signal.Signals) -> None:
    async def scenario() -> None:
        here = f"tcp/127.0.0.1:{free_port()}"
        lease: dict[str, Any] = {"link": {"tx": {"lease": 400, "keep_alive": 4}}}
        async with ours(made("peer", listen=[here])) as node:
            alive: dict[str, bool] = {}

            def take(output: Any) -> None:
                alive[output.key] = output.alive

            async with process(made("peer", connect=[here], **lease)) as (child, zid):
                session = node.session()
                id_ = session.declare_liveliness_subscriber("alive/**", node.now, history=True)
                node.receivers[id_] = take
                node.settle()
                await until(lambda: alive.get("alive/other") is True)
                assert [str(face.zid) for face in node.neighbours] == [zid]
                os.kill(child.pid, killed)
                await until(lambda: not node.neighbours)
                assert alive == {"alive/other": False}
                how = "lost" if killed is signal.SIGKILL else "expired"
                assert node.stats().endings == {how: 1}

    asyncio.run(scenario())


# Finding each other.


def test_a_client_finds_a_router_by_scouting_and_finds_it_again() -> None:
    async def scenario() -> None:
        scouting = on_loopback()
        where = f"tcp/127.0.0.1:{free_port()}"
        router = made("router", listen=[where], scouting=scouting)
        client = made("client", scouting=scouting)
        async with reference(router) as first, ours(client) as node:
            assert linked(node, first)
            await asyncio.to_thread(first.close)
            await until(lambda: not node.neighbours)
            async with reference(router) as second:
                await until(lambda: linked(node, second))
                await both_ways(node, second)

    asyncio.run(scenario())


def test_its_client_finds_our_peer() -> None:
    async def scenario() -> None:
        scouting = on_loopback()
        here = f"tcp/127.0.0.1:{free_port()}"
        async with (
            ours(made("peer", listen=[here], scouting=scouting)) as node,
            reference(made("client", scouting=scouting)) as client,
        ):
            assert linked(node, client)
            await both_ways(node, client)

    asyncio.run(scenario())


@pytest.mark.parametrize("finder", ["ours", "theirs"])
def test_peers_find_each_other_by_scouting(finder: str) -> None:
    async def scenario() -> None:
        scouting = on_loopback()
        passive = {"multicast": scouting["multicast"] | {"autoconnect": []}}
        here, there = (f"tcp/127.0.0.1:{free_port()}" for _ in range(2))
        own, other = (scouting, passive) if finder == "ours" else (passive, scouting)
        async with (
            reference(made("peer", listen=[there], scouting=other)) as peer,
            ours(made("peer", listen=[here], scouting=own)) as node,
        ):
            await until(lambda: linked(node, peer))
            await both_ways(node, peer)
            assert len(node.neighbours) == 1

    asyncio.run(scenario())


def test_peers_that_both_look_have_one_session() -> None:
    async def scenario() -> None:
        scouting = on_loopback()
        here, there = (f"tcp/127.0.0.1:{free_port()}" for _ in range(2))
        opening = reference(made("peer", listen=[there], scouting=scouting))
        task = asyncio.create_task(opening.__aenter__())
        async with ours(made("peer", listen=[here], scouting=scouting)) as node:
            peer = await task
            await until(lambda: linked(node, peer))
            await both_ways(node, peer)
            assert len(node.neighbours) == 1
            await opening.__aexit__(None, None, None)

    asyncio.run(scenario())


def test_gossip_makes_a_mesh() -> None:
    async def scenario() -> None:
        hub, here, there = (f"tcp/127.0.0.1:{free_port()}" for _ in range(3))
        async with (
            reference(made("peer", listen=[hub])) as a,
            ours(made("peer", listen=[here], connect=[hub])) as b,
            reference(made("peer", listen=[there], connect=[hub])) as c,
        ):
            await until(lambda: linked(b, a) and linked(b, c))
            await both_ways(b, c)
            await both_ways(b, a, "other/key")

    asyncio.run(scenario())


def test_gossip_of_ours_makes_a_mesh_of_theirs() -> None:
    async def scenario() -> None:
        hub, one, two = (f"tcp/127.0.0.1:{free_port()}" for _ in range(3))
        async with (
            ours(made("peer", listen=[hub])) as node,
            reference(made("peer", listen=[one], connect=[hub])) as a,
            reference(made("peer", listen=[two], connect=[hub])) as b,
        ):
            await until(lambda: linked(node, a) and linked(node, b))
            await until(lambda: b.zid() in list(a.info.peers_zid()))
            await until(lambda: a.zid() in list(b.info.peers_zid()))

    asyncio.run(scenario())


def test_scout_hears_all_of_a_kind() -> None:
    async def scenario() -> None:
        scouting = on_loopback()
        where = f"tcp/127.0.0.1:{free_port()}"
        here = f"tcp/127.0.0.1:{free_port()}"
        async with (
            reference(made("router", listen=[where], scouting=scouting)) as router,
            ours(made("peer", listen=[here], scouting=scouting)) as node,
        ):
            await until(lambda: linked(node, router))
            config = Config.from_dict({"scouting": scouting})
            found: dict[str, tuple[WhatAmI, list[str]]] = {}
            async with asyncio.timeout(TIMEOUT):
                async for hello in scout(config=config):
                    found[str(hello.zid)] = hello.whatami, list(map(str, hello.locators))
                    if len(found) == 2:
                        break
            assert found == {
                str(router.zid()): (WhatAmI.ROUTER, [where]),
                str(node.zid): (WhatAmI.PEER, [here]),
            }
            async with asyncio.timeout(TIMEOUT):
                async for hello in scout(WhatAmIMatcher.PEER, effective(config.settings)):
                    assert str(hello.zid) == str(node.zid)
                    break
            # And theirs hears ours.
            wanted = zenoh.Config.from_json5(json.dumps({"scouting": scouting}))
            theirs = zenoh.scout(what="peer", config=wanted)
            heard = await asyncio.to_thread(theirs.recv)
            assert (str(heard.zid), list(heard.locators)) == (str(node.zid), [here])
            theirs.stop()  # type: ignore[no-untyped-call] # eclipse-zenoh's

    asyncio.run(scenario())


# The multicast transport.


@pytest.mark.parametrize("as_listener", [True, False])
def test_samples_cross_a_multicast_group(as_listener: bool) -> None:
    async def scenario() -> None:
        group = f"udp/224.0.0.225:{free_port(socket.SOCK_DGRAM)}#iface=lo"
        listen, connect = ([group], []) if as_listener else ([], [group])
        async with (
            reference(made("peer", listen=[group])) as peer,
            ours(made("peer", listen=listen, connect=connect)) as node,
        ):
            await until(lambda: bool(node.groups))
            (joined,) = node.groups.values()
            await both_ways(node, peer)
            members = node.stats().groups[0].members
            assert [str(zid) for zid in members] == [str(peer.zid())]
            assert str(EndPoint.parse(group).locator) == str(joined.endpoint.locator)
            await asyncio.to_thread(peer.close)
            await until(lambda: not node.stats().groups[0].members)

    asyncio.run(scenario())
