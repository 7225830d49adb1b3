from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.node.nodes import Lan, Taker, put, run, until
from zenwire.links import LinkError
from zenwire.node import NotConnected
from zenwire.routing.propagation import Propagation
from zenwire.wire.values import CloseReason, WhatAmI

SCOUTED: dict[str, Any] = {"multicast": {"enabled": True}}


def now() -> float:
    return asyncio.get_running_loop().time()


# Clients.


def test_a_client_takes_the_first_endpoint_that_works() -> None:
    async def scenario() -> None:
        lan = Lan()
        second, third = await lan.open(listen="memory/b"), await lan.open(listen="memory/c")
        places = ["memory/a", "memory/b", "memory/c"]
        client = await lan.open("client", connect=places)
        assert [face.zid for face in client.neighbours] == [second.zid]
        assert not third.neighbours
        await lan.close()

    run(scenario())


def test_a_client_tries_once_and_says_why_each_endpoint_failed() -> None:
    async def scenario() -> None:
        lan = Lan()
        groups = ["memory/a", {"strategy": "oneOf", "locators": ["memory/b", "memory/c"]}]
        with pytest.raises(NotConnected) as error:
            await lan.open("client", connect=groups)
        assert list(error.value.failures) == ["memory/a", "memory/b", "memory/c"]
        for name in "abc":
            assert f"\n  memory/{name}: nobody listens there" in str(error.value)
        assert now() == 0
        await lan.close()

    run(scenario())


def test_a_client_with_a_timeout_tries_with_back_off_until_then() -> None:
    async def scenario() -> None:
        lan = Lan()
        connect = {"endpoints": ["memory/a"], "timeout_ms": 6_000}
        with pytest.raises(NotConnected, match="memory/a"):
            await lan.open("client", connect=connect)
        # 0, 1, 3; the next one would be at 7.
        assert 3 <= now() <= 6
        since = now()
        opening = asyncio.create_task(lan.open("client", connect=connect))
        await asyncio.sleep(1.5)
        await lan.open(listen="memory/a")
        client = await opening
        assert 3 <= now() - since < 3.2
        assert len(client.neighbours) == 1
        await lan.close()

    run(scenario())


def test_a_timeout_also_bounds_a_handshake_that_hangs() -> None:
    async def scenario() -> None:
        lan = Lan(lose=lambda _src, _dst, _data: True)
        await lan.open(listen="memory/a")
        connect = {"endpoints": ["memory/a?rel=0"], "timeout_ms": 2_000}
        with pytest.raises(NotConnected, match="within the 2 s of connect/timeout_ms"):
            await lan.open("client", connect=connect)
        assert now() == pytest.approx(2)
        await lan.close()

    run(scenario())


def test_a_client_without_endpoints_scouts() -> None:
    async def scenario() -> None:
        lan = Lan()
        with pytest.raises(NotConnected, match="no node was found by scouting for 3 s"):
            await lan.open("client", scouting=SCOUTED)
        assert now() == pytest.approx(3)
        opening = asyncio.create_task(lan.open("client", scouting=SCOUTED))
        await asyncio.sleep(0.5)
        peer = await lan.open(listen="memory/a", scouting=SCOUTED)
        client = await opening
        # It asks at 0, 1 and 3 seconds.
        assert [face.zid for face in client.neighbours] == [peer.zid]
        assert 4 <= now() < 4.2
        await lan.close()

    run(scenario())


def test_a_client_that_was_found_by_scouting_looks_again_after_a_loss() -> None:
    async def scenario() -> None:
        lan = Lan()
        first = await lan.open(listen="memory/a", scouting=SCOUTED)
        client = await lan.open("client", scouting=SCOUTED)
        taker = Taker(client, "a/**")
        await asyncio.sleep(5)
        await first.close()
        await asyncio.sleep(20)
        assert not client.neighbours
        second = await lan.open(listen="memory/b", scouting=SCOUTED)
        await until(lambda: bool(client.neighbours))
        await asyncio.sleep(1)
        put(second, "a/b", b"x")
        await until(lambda: taker.payloads == [b"x"])
        await lan.close()

    run(scenario())


def test_a_client_needs_somewhere_to_go() -> None:
    async def scenario() -> None:
        lan = Lan()
        with pytest.raises(LinkError, match="multicast scouting is off"):
            await lan.open("client")
        await lan.close()

    run(scenario())


def test_a_router_waits_for_nobody() -> None:
    async def scenario() -> None:
        lan = Lan()
        await lan.open("router", listen="memory/a", connect=["memory/nobody"])
        assert now() == 0
        await lan.close()

    run(scenario())


# Peers.


def test_a_peer_alone_opens_at_once_or_after_the_delay_of_scouting() -> None:
    async def scenario() -> None:
        lan = Lan()
        await lan.open(listen="memory/a")
        assert now() == 0
        await lan.open(listen="memory/b", scouting=SCOUTED)
        assert now() == pytest.approx(0.5)
        await lan.open(listen="memory/c", scouting=SCOUTED | {"delay": 100})
        assert now() < 0.65
        quick: dict[str, Any] = {"open": {"return_conditions": {"connect_scouted": False}}}
        since = now()
        await lan.open(listen="memory/d", scouting=SCOUTED, **quick)
        assert now() == since
        await lan.close()

    run(scenario())


def test_a_peer_waits_for_those_it_finds_and_not_longer() -> None:
    async def scenario() -> None:
        lan = Lan(latency=0.01)
        a = await lan.open(listen="memory/a", scouting=SCOUTED)
        taker = Taker(a, "a/**")
        since = now()
        b = await lan.open(listen="memory/b", scouting=SCOUTED)
        # A SCOUT, a HELLO, the handshake and what the other side has.
        assert 0.05 < now() - since < 0.2
        assert all(face.introduced for face in b.neighbours)
        put(b, "a/x", b"at once")
        await until(lambda: taker.payloads == [b"at once"])
        await lan.close()

    run(scenario())


def test_a_peer_waits_for_declarations_unless_it_need_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody says here that its declarations are complete."""
    monkeypatch.setattr(Propagation, "final", lambda *_: None)

    async def scenario() -> None:
        lan = Lan(latency=0.01)
        await lan.open(listen="memory/a")
        since = now()
        await lan.open(connect=["memory/a"])
        assert now() - since == pytest.approx(0.5)
        since = now()
        await lan.open(connect=["memory/a"], open={"return_conditions": {"declares": False}})
        assert now() - since < 0.2
        await lan.close()

    run(scenario())


def test_a_peer_goes_on_connecting_in_the_background() -> None:
    async def scenario() -> None:
        lan = Lan()
        a = await lan.open(listen="memory/a", connect=["memory/b", "memory/c"])
        assert now() == pytest.approx(0.5)
        b = await lan.open(listen="memory/b")
        await until(lambda: a.find(b.zid) is not None, 3)
        c = await lan.open(listen="memory/c")
        await until(lambda: a.find(c.zid) is not None, 5)
        await lan.close()

    run(scenario())


def test_a_peer_that_must_connect_does_or_fails() -> None:
    async def scenario() -> None:
        lan = Lan()
        must = {"endpoints": ["memory/b"], "exit_on_failure": True, "timeout_ms": 2_500}
        with pytest.raises(NotConnected):
            await lan.open(listen="memory/a", connect=must)
        assert now() == pytest.approx(1)  # the next try would come too late
        once = {"endpoints": ["memory/b"], "timeout_ms": 0}
        since = now()
        node = await lan.open(listen="memory/a", connect=once)
        assert now() == since
        await lan.open(listen="memory/b")
        await asyncio.sleep(20)
        assert not node.neighbours
        await lan.close()

    run(scenario())


def test_one_of_several_endpoints_or_all_of_them() -> None:
    async def scenario() -> None:
        lan = Lan()
        off = {"multicast": {"enabled": False}, "gossip": {"autoconnect": []}}
        for name in "abcd":
            await lan.open(listen=f"memory/{name}", scouting=off)
        groups = [
            {"strategy": "oneOf", "locators": ["memory/x", "memory/a", "memory/b"]},
            {"strategy": "allOf", "locators": ["memory/c", "memory/d"]},
        ]
        node = await lan.open(connect=groups, scouting=off)
        await asyncio.sleep(1)
        a, b, c, d = lan.nodes[:4]
        assert {face.zid for face in node.neighbours} == {a.zid, c.zid, d.zid}
        # The one that is lost is replaced by another of its group.
        await a.close()
        await until(lambda: node.find(b.zid) is not None)
        await lan.close()

    run(scenario())


@pytest.mark.parametrize("latency", [0.0, 0.01, 0.3])
def test_peers_that_dial_each_other_at_once_have_one_session(latency: float) -> None:
    async def scenario() -> None:
        lan = Lan(latency)
        a, b = await asyncio.gather(
            lan.open(listen="memory/a", connect=["memory/b"]),
            lan.open(listen="memory/b", connect=["memory/a"]),
        )
        await asyncio.sleep(10)
        assert [face.zid for face in a.neighbours] == [b.zid]
        assert [face.zid for face in b.neighbours] == [a.zid]
        assert len(a.stats().neighbours[0].links) == 1
        assert a.stats().endings == b.stats().endings == {}
        # Both hold it from then on, and find each other again.
        before = next(iter(a.neighbours))
        a.adjacency.expel(before, CloseReason.GENERIC, "test")
        await until(lambda: bool(a.neighbours) and before not in a.neighbours)
        await lan.close()

    run(scenario())


def test_a_peer_does_not_stay_connected_to_itself() -> None:
    async def scenario() -> None:
        lan = Lan()
        node = await lan.open(listen="memory/a", connect=["memory/a"])
        await asyncio.sleep(20)
        assert not node.neighbours
        assert node.stats().failures.total() == 2  # both sides, once
        await lan.close()

    run(scenario())


# Listening.


def test_an_endpoint_that_is_taken_ends_opening_unless_it_may_not() -> None:
    async def scenario() -> None:
        lan = Lan()
        first = await lan.open(listen="memory/a")
        with pytest.raises(LinkError, match="the name is taken"):
            await lan.open(listen="memory/a")
        mild = {"exit_on_failure": False}
        node = await lan.open(listen=["memory/a", "memory/b"], listening=mild)
        assert [str(where) for where in node.locators()] == ["memory/b"]
        later = await lan.open(
            listen=["memory/a"], listening={"exit_on_failure": False, "timeout_ms": 10_000}
        )
        assert later.locators() == []
        await asyncio.sleep(2)
        await first.close()
        await until(lambda: [str(where) for where in later.locators()] == ["memory/a"], 5)
        await lan.close()

    run(scenario())


def test_listening_waits_for_its_place_if_it_must() -> None:
    async def scenario() -> None:
        lan = Lan()
        first = await lan.open(listen="memory/a")
        must = {"exit_on_failure": True, "timeout_ms": 5_000}
        opening = asyncio.create_task(lan.open(listen="memory/a", listening=must))
        await asyncio.sleep(0.5)
        await first.close()
        node = await opening
        assert now() < 2
        assert node.config.mode is WhatAmI.PEER
        with pytest.raises(LinkError, match="the name is taken"):
            await lan.open(listen="memory/a", listening=must)
        await lan.close()

    run(scenario())


def test_opening_that_is_cancelled_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        lan = Lan()
        forever = {"endpoints": ["memory/x"], "timeout_ms": -1}
        opening = asyncio.create_task(lan.open("client", connect=forever, scouting=SCOUTED))
        await asyncio.sleep(30)
        opening.cancel()
        await asyncio.wait([opening])
        assert opening.cancelled()
        assert not lan.network.members("224.0.0.224:7446")
        await lan.close()

    run(scenario())
