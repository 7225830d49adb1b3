from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.node.nodes import Lan, Taker, put, run, until
from zenwire.links import LinkError
from zenwire.node import Node, NotConnected
from zenwire.node.config import RetryPolicy
from zenwire.node.connecting import connect_any
from zenwire.node.neighbour import Neighbour
from zenwire.routing import LivelinessChanged, QueryReceived, ReplyReceived, question
from zenwire.wire.data import Put
from zenwire.wire.locator import EndPoint
from zenwire.wire.values import CloseReason

POLICY = RetryPolicy(exit_on_failure=False)


def now() -> float:
    return asyncio.get_running_loop().time()


def attempts(lan: Lan) -> list[tuple[float, str]]:
    """When somebody tries to connect, and where."""
    seen: list[tuple[float, str]] = []
    connect = lan.network.connect

    class Watched:
        join, listen = lan.network.join, lan.network.listen

        def connect(self, endpoint: EndPoint, attach: Any) -> Any:
            seen.append((round(now(), 2), endpoint.address))
            return connect(endpoint, attach)

    lan.network = Watched()  # type: ignore[assignment] # all that nodes use
    return seen


def test_after_a_loss_at_once_then_with_back_off() -> None:
    async def scenario() -> None:
        lan = Lan()
        seen = attempts(lan)
        peer = await lan.open(listen="memory/a")
        client = await lan.open("client", connect=["memory/a"])
        await asyncio.sleep(100 - now())
        seen.clear()
        await peer.close()
        lost = await until(lambda: not client.neighbours)
        await asyncio.sleep(16)
        assert [round(when - lost) for when, _ in seen] == [0, 1, 3, 7, 11, 15]
        await lan.close()

    run(scenario())


def test_an_endpoint_has_its_own_back_off() -> None:
    async def scenario() -> None:
        lan = Lan()
        seen = attempts(lan)
        node = lan.bare()
        own = EndPoint.parse(
            "memory/b#retry_period_init_ms=500;retry_period_increase_factor=1;"
            "retry_period_max_ms=500"
        )
        with pytest.raises(NotConnected):
            await connect_any(node, [EndPoint.parse("memory/a"), own], POLICY, 2.1)
        assert seen == [
            (0.0, "a"),
            (0.0, "b"),
            (0.5, "b"),
            (1.0, "a"),
            (1.0, "b"),
            (1.5, "b"),
            (2.0, "b"),
        ]
        await lan.close()

    run(scenario())


def test_a_node_that_throws_us_out_at_once_is_not_asked_without_end() -> None:
    async def scenario() -> None:
        lan = Lan()
        seen = attempts(lan)
        peer = await lan.open(listen="memory/a")

        def refuse(near: Neighbour, came: bool) -> None:
            if came:
                args = near.face, CloseReason.GENERIC, "no"
                asyncio.get_running_loop().call_soon(peer.adjacency.expel, *args)

        peer.on_neighbour.append(refuse)
        await lan.open("client", connect=["memory/a"])
        await asyncio.sleep(30)
        assert 5 < len(seen) < 12
        await lan.close()

    run(scenario())


def test_everything_is_declared_again_after_a_loss() -> None:
    async def scenario() -> None:
        lan = Lan()
        first = await lan.open(listen="memory/a")
        client = await lan.open("client", connect=["memory/a"])
        taker = Taker(client, "sub/**")
        session = client.session()
        queryable = session.declare_queryable("ask/**")
        session.declare_token("alive/client")
        publisher = session.declare_publisher("pub/x", client.now)
        watcher = session.declare_liveliness_subscriber("alive/**", client.now, history=True)
        alive: dict[str, bool] = {}

        def answer(output: Any) -> None:
            assert isinstance(output, QueryReceived)
            session.reply(output.query, queryable, "ask/me", Put(payload=b"here"))
            session.finish(output.query, queryable)
            client.settle()

        def change(output: Any) -> None:
            assert isinstance(output, LivelinessChanged)
            alive[output.key] = output.alive

        client.receivers[queryable] = answer
        client.receivers[watcher] = change
        client.settle()
        await asyncio.sleep(10)
        await works(first, taker, b"first")

        await first.close()
        await until(lambda: not client.neighbours)
        assert not session.matching(publisher)
        second = await lan.open(listen="memory/a")
        other = second.session()
        other.declare_subscriber("pub/**")
        other.declare_token("alive/other")
        second.settle()
        await until(lambda: bool(client.neighbours))
        await asyncio.sleep(1)
        await works(second, taker, b"second")
        assert session.matching(publisher)
        assert alive == {"alive/client": True, "alive/other": True}
        await lan.close()

    async def works(node: Node, taker: Taker, payload: bytes) -> None:
        """The node reaches all that the client has declared."""
        put(node, "sub/x", payload)
        await until(lambda: payload in taker.payloads)
        replies: list[bytes] = []
        tokens: list[str] = []
        session = node.session()
        query = session.query(question("ask/*"), node.now)

        def take(output: Any) -> None:
            if isinstance(output, ReplyReceived):
                assert isinstance(output.body, Put)
                replies.append(output.body.payload)

        node.receivers[query] = take
        get = session.liveliness_get("alive/client", node.now)
        node.receivers[get] = lambda output: (
            tokens.append(output.key) if isinstance(output, ReplyReceived) else None
        )
        node.settle()
        await until(lambda: replies == [b"here"] and tokens == ["alive/client"])

    run(scenario())


def test_a_link_that_goes_silent_is_given_up_after_the_lease_and_replaced() -> None:
    async def scenario() -> None:
        silent = [False]
        lan = Lan(lose=lambda _src, _dst, _data: silent[0])
        peer = await lan.open(listen="memory/a")
        client = await lan.open("client", connect=["memory/a?rel=0"])
        await asyncio.sleep(5)
        silent[0] = True
        since = now()
        await until(lambda: not client.neighbours)
        assert 7 < now() - since < 11
        await asyncio.sleep(5)
        silent[0] = False
        await until(lambda: len(client.neighbours) == 1 and len(peer.neighbours) == 1)
        # Whoever notices first closes, and the other end of a link in memory hears that.
        ends = client.stats().endings + peer.stats().endings
        assert ends.total() == 2
        assert ends["expired"] >= 1
        await lan.close()

    run(scenario())


def test_what_can_be_tried_never_again() -> None:
    async def scenario() -> None:
        lan = Lan()
        never = RetryPolicy(exit_on_failure=False, period_init_ms=-1)
        with pytest.raises(NotConnected) as error:
            await connect_any(lan.bare(), [EndPoint.parse("memory/a")], never, float("inf"))
        assert now() == 0
        (reason,) = error.value.failures.values()
        assert isinstance(reason, LinkError)
        assert str(reason) in str(error.value)
        await lan.close()

    run(scenario())
