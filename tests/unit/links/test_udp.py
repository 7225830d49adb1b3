from __future__ import annotations

import asyncio
import socket

import pytest

from tests.unit.links.ends import End, Ends, listening, pair, until
from zenwire.links import Link, LinkError, connect, listen
from zenwire.links.udp import HELD_MAX, UDP_MTU


def test_peers_are_told_apart_by_address() -> None:
    async def scenario() -> None:
        async with listening("udp/127.0.0.1:0") as (listener, there):
            here = Ends()
            for index in range(3):
                link = await connect(listener.endpoint, here.attach)
                link.write(b"hello %d" % index)
                link.write(b"again %d" % index)
            for index in range(3):
                end = await there.get(index)
                await end.size(14)
                end.link.write(b"you are %d" % index)
                end.link.established()
            for index in range(3):
                assert await here[index].size(9) == b"you are %d" % index
            assert [end.pieces for end in (there[0], there[1], there[2])] == [
                [b"hello %d" % index, b"again %d" % index] for index in range(3)
            ]
            assert listener.counters.accepted == 3
            await here.close()

    asyncio.run(scenario())


def test_what_is_written_while_attaching_arrives() -> None:
    class Eager(Ends):
        def attach(self, link: Link) -> End:
            link.write(b"at once")
            return super().attach(link)

    async def scenario() -> None:
        async with listening("udp/127.0.0.1:0") as (listener, there):
            here = Eager()
            await connect(listener.endpoint, here.attach)
            assert await (await there.get()).size(7) == b"at once"
            await here.close()

    asyncio.run(scenario())


def test_a_datagram_has_a_largest_size() -> None:
    async def scenario() -> None:
        async with pair("udp/127.0.0.1:0") as (here, there, _):
            assert here.link.facts.mtu == UDP_MTU == 65_487
            here.link.write(bytes(UDP_MTU))
            assert len(await there.size(UDP_MTU)) == UDP_MTU
            with pytest.raises(LinkError, match="do not fit into a datagram"):
                here.link.write(bytes(UDP_MTU + 1))

    asyncio.run(scenario())


def test_a_paused_link_holds_a_few_and_counts_the_rest() -> None:
    async def scenario() -> None:
        async with pair("udp/127.0.0.1:0") as (here, there, _):
            there.link.pause()
            total = HELD_MAX + 10
            for index in range(total):
                here.link.write(bytes([index]))
                await asyncio.sleep(0)
            await until(lambda: there.link.dropped == 10)
            assert there.pieces == []
            there.link.resume()
            await there.size(HELD_MAX)
            assert bytes(there.data) == bytes(range(HELD_MAX))
            assert there.link.dropped == 10

    asyncio.run(scenario())


def test_a_link_that_was_closed_begins_anew() -> None:
    async def scenario() -> None:
        async with pair("udp/127.0.0.1:0") as (here, there, listener):
            there.link.close()
            assert await there.end() is None
            here.link.write(b"once more")
            await until(lambda: listener.counters.accepted == 2)
            assert there.pieces == []

    asyncio.run(scenario())


def test_a_wildcard_listener_knows_its_own_address() -> None:
    async def scenario() -> None:
        async with listening("udp/[::]:0") as (listener, there):
            port = listener.endpoint.address.rpartition(":")[2]
            here = Ends()
            for host in ("127.0.0.1", "[::1]"):
                link = await connect(f"udp/{host}:{port}", here.attach)
                link.write(b"x")
            links = [(await there.get(index)).link for index in range(2)]
            names = {name for link in links for name in link.facts.interfaces}
            assert names == set(here[0].link.facts.interfaces)
            for index in range(2):
                there[index].link.write(b"y")
                await here[index].size(1)
            await here.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("udp/224.0.0.1:7", "no unicast address"),
        ("udp/127.0.0.1:7#bind=[::1]:0", "differ in IP version"),
        ("udp/[fe80::1%nowhere]:7", "cannot be resolved"),
    ],
)
def test_what_cannot_be_connected_says_why(endpoint: str, said: str) -> None:
    with pytest.raises(LinkError, match=said):
        asyncio.run(connect(endpoint, Ends().attach))


def test_what_cannot_be_listened_on_says_why() -> None:
    async def scenario() -> None:
        with pytest.raises(LinkError, match="a multicast group has no listener"):
            await listen("udp/224.0.0.1:7", Ends().attach)
        with socket.socket(type=socket.SOCK_DGRAM) as other:
            other.bind(("127.0.0.1", 0))
            with pytest.raises(LinkError, match="another program listens there"):
                await listen(f"udp/127.0.0.1:{other.getsockname()[1]}", Ends().attach)

    asyncio.run(scenario())
