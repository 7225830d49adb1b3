from __future__ import annotations

import asyncio

import pytest

from tests.unit.node.nodes import Lan, Taker, put, run, until
from zenwire.links import Attach, EndpointError, Link, LinkError
from zenwire.node.neighbour import Neighbour
from zenwire.node.node import Node
from zenwire.node.seats import NotOpened
from zenwire.wire.locator import EndPoint, Locator
from zenwire.wire.values import CloseReason, ZenohId


def test_a_protocol_that_is_not_allowed_is_not_used() -> None:
    async def scenario() -> None:
        lan = Lan()
        node = lan.bare(transport={"link": {"protocols": ["tcp", "udp"]}})
        where = EndPoint.parse("memory/a")
        for doing in (node.listen(where), node.connect(where), node.join(where)):
            with pytest.raises(LinkError, match="allows tcp, udp only"):
                await doing
        await node.close()
        with pytest.raises(LinkError, match="this node is closed"):
            await node.connect(EndPoint.parse("tcp/127.0.0.1:1"))
        await lan.close()

    run(scenario())


@pytest.mark.parametrize("protocol", ["quic", "serial", "unixpipe", "vsock"])
def test_a_protocol_without_a_link_is_refused_by_its_name(protocol: str) -> None:
    """The configuration is not to blame: there is nothing in it that would help."""

    async def scenario() -> None:
        lan = Lan()
        node = lan.bare(transport={"link": {"protocols": ["tcp"]}})
        where = EndPoint(protocol, "127.0.0.1:1", "", "")
        for doing in (node.listen(where), node.connect(where), node.connect(where.locator)):
            with pytest.raises(EndpointError, match=f"{protocol} is a protocol of Zenoh") as error:
                await doing
            assert "transport/link/protocols" not in str(error.value)
            assert "supported are tcp, tls, udp" in str(error.value)
        await lan.close()

    run(scenario())


def test_connecting_twice_gives_the_same_neighbour() -> None:
    async def scenario() -> None:
        lan = Lan()
        a, b = lan.bare(), lan.bare()
        await a.listen(EndPoint.parse("memory/a"))
        await a.listen(EndPoint.parse("memory/a2"))
        first = await b.connect(Locator("memory", "a"))
        second = await b.connect(Locator("memory", "a2"))
        assert second.neighbour is first.neighbour is b.find(a.zid)
        assert first.carrier is not None
        assert second.carrier is None
        assert len(first.neighbour.carriers) == 1
        # But not if somebody else was expected.
        with pytest.raises(NotOpened):
            await b.connect(Locator("memory", "a2"), ZenohId(b"\x07"))
        first.carrier.link.abort()
        await first.ended()
        await second.ended()
        assert b.find(a.zid) is None
        await lan.close()

    run(scenario())


def test_a_refusal_says_why() -> None:
    async def scenario() -> None:
        lan = Lan()
        a, b = lan.bare("client"), lan.bare("client")
        await a.listen(EndPoint.parse("memory/a"))
        with pytest.raises(NotOpened, match="client") as error:
            await b.connect(Locator("memory", "a"))
        assert error.value.close_reason == CloseReason.GENERIC
        await lan.close()

    run(scenario())


def test_one_who_says_nothing_is_given_up() -> None:
    async def scenario() -> None:
        class Silent:
            def received(self, data: bytes) -> None: ...
            def drained(self) -> None: ...
            def closed(self, error: LinkError | None) -> None: ...

        lan = Lan()
        attach: Attach = lambda _link: Silent()  # noqa: E731 # it has a type
        lan.network.listen(EndPoint.parse("memory/silent"), attach)
        node = lan.bare(transport={"unicast": {"open_timeout": 3_000}})
        with pytest.raises(NotOpened, match="took too long"):
            await node.connect(Locator("memory", "silent"))
        assert node.now == pytest.approx(3)
        await lan.close()

    run(scenario())


def test_handshakes_beyond_the_limit_push_out_the_oldest() -> None:
    async def scenario() -> None:
        class Mute:
            ended = False

            def received(self, data: bytes) -> None: ...
            def drained(self) -> None: ...
            def closed(self, error: LinkError | None) -> None:
                self.ended = True

        lan = Lan()
        node = lan.bare(transport={"unicast": {"accept_pending": 3}})
        await node.listen(EndPoint.parse("memory/a"))
        mutes = [Mute() for _ in range(5)]
        for mute in mutes:

            def attach(_link: Link, mute: Mute = mute) -> Mute:
                return mute

            lan.network.connect(EndPoint.parse("memory/a"), attach)
        await asyncio.sleep(1)
        assert [mute.ended for mute in mutes] == [True, True, False, False, False]
        assert node.stats().evicted == 2
        client = await lan.open("client", connect=["memory/a"])
        assert client.find(node.zid) is not None
        assert node.stats().evicted == 3
        await lan.close()

    run(scenario())


def test_the_silent_give_way_to_a_newcomer() -> None:
    """Not those that were dialled or are not read; first those that never sent a message."""

    async def scenario() -> None:
        lan = Lan()
        slow = {"link": {"tx": {"lease": 60_000}}}
        hub = lan.bare(transport={"unicast": {"max_sessions": 4}})
        up = lan.bare(transport=slow)
        await hub.listen(EndPoint.parse("memory/hub"))
        await up.listen(EndPoint.parse("memory/up"))
        await hub.connect(Locator("memory", "up"))
        said, held, mute = (lan.bare("client", transport=slow) for _ in range(3))
        for client in (held, said, mute):
            await client.connect(Locator("memory", "hub"))
            await asyncio.sleep(1)

        def session(client: Node) -> Neighbour:
            found = hub.find(client.zid)
            assert found is not None
            return found

        for client in (held, said, mute):
            session(client).carriers[0].machine.stats.rx_messages = int(client is said)
        newcomers = [lan.bare("client", transport=slow) for _ in range(3)]
        with pytest.raises(NotOpened):
            await newcomers[0].connect(Locator("memory", "hub"))
        await asyncio.sleep(6)
        session(held).carriers[0]._resting = True
        await newcomers[0].connect(Locator("memory", "hub"))
        assert [hub.find(one.zid) is None for one in (up, held, said, mute)] == [0, 0, 0, 1]
        await newcomers[1].connect(Locator("memory", "hub"))
        assert [hub.find(one.zid) is None for one in (up, held, said)] == [0, 0, 1]
        with pytest.raises(NotOpened):
            await newcomers[2].connect(Locator("memory", "hub"))
        assert hub.stats().endings == {"evicted": 2}
        session(held).carriers[0]._resting = False
        await lan.close()

    run(scenario())


def test_everyone_is_told_of_neighbours_that_come_and_go() -> None:
    async def scenario() -> None:
        lan = Lan()
        a = await lan.open(listen="memory/a")
        told: list[tuple[ZenohId, bool]] = []
        a.on_neighbour.append(lambda near, came: told.append((near.face.zid, came)))
        b = await lan.open("client", connect=["memory/a"])
        waiting = asyncio.create_task(a.adjacency.neighbour(b.zid))
        assert (await waiting).face.zid == b.zid
        await b.close()
        await until(lambda: not a.neighbours)
        assert told == [(b.zid, True), (b.zid, False)]
        await lan.close()

    run(scenario())


def test_links_of_one_session_end_together() -> None:
    async def scenario() -> None:
        lan = Lan()
        many = {"unicast": {"max_links": 3}}
        a = await lan.open(listen=["memory/a", "memory/b"], transport=many)
        b = await lan.open(connect=["memory/a", "memory/b"], transport=many)
        await until(lambda: all(len(n.carriers) == 2 for n in b.neighbours.values()))
        (near,) = b.neighbours.values()
        taker = Taker(a, "x")
        await asyncio.sleep(1)
        # One link is lost: the session goes on, and the link comes back.
        near.carriers[0].link.abort()
        await until(lambda: len(near.carriers) == 1)
        put(b, "x", b"still")
        await until(lambda: taker.payloads == [b"still"])
        await until(lambda: len(near.carriers) == 2)
        assert b.neighbours == {near.face: near}
        (stats,) = b.stats().neighbours
        assert len(stats.links) == 2
        assert stats.transport.tx_messages > sum(one.transport.tx_messages for one in stats.links)
        await a.close()
        await until(lambda: not b.neighbours)
        await lan.close()

    run(scenario())
