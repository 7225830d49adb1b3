from __future__ import annotations

import asyncio
import socket
from typing import TypeAlias

import pytest

from tests.ports import free_port
from tests.unit.links.ends import TIMEOUT
from zenwire.links import EndpointError, LinkError, Multicast, open_multicast, parse_endpoint
from zenwire.links.interfaces import interfaces
from zenwire.links.multicast import is_multicast
from zenwire.wire.locator import Locator

Found: TypeAlias = "asyncio.Queue[tuple[bytes, Locator]]"
LOOPBACK = next(interface.name for interface in interfaces() if interface.loopback)


async def member(where: str, ifaces: list[str] | None = None) -> tuple[Multicast, Found]:
    found: Found = asyncio.Queue()
    joined = await open_multicast(
        parse_endpoint(where), lambda data, source: found.put_nowait((data, source)), ifaces=ifaces
    )
    return joined, found


def with_ipv6() -> str:
    """Loopback of Linux has no route for groups of IPv6. ff01:: leaves no interface anyway."""
    for interface in interfaces():
        if interface.multicast and any(a.version == 6 for a in interface.addresses):
            return interface.name
    pytest.skip("no interface can do multicast with IPv6")


@pytest.mark.parametrize("group", ["224.0.0.224", "[ff01::224]"])
def test_members_hear_each_other_and_can_answer_one(group: str) -> None:
    iface = with_ipv6() if "[" in group else LOOPBACK

    async def scenario() -> None:
        where = f"udp/{group}:{free_port(socket.SOCK_DGRAM)}#iface={iface}"
        one, ones = await member(where)
        two, twos = await member(where)
        three, threes = await member(where)
        async with asyncio.timeout(TIMEOUT):
            one.send(b"who is there?")
            data, source = await twos.get()
            assert (data, source) == (b"who is there?", one.sources[0])
            assert await threes.get() == (data, source)
            two.send_to(b"me", source)
            assert await ones.get() == (b"me", two.sources[0])
            three.send(b"end")
            assert (await ones.get())[0] == b"end"
            assert (await twos.get())[0] == b"end"
        # Neither its own nor what was for another.
        assert threes.empty()
        assert ones.empty()
        for each in (one, two, three):
            assert each.facts.interfaces == (iface,)
            assert each.errors == 0
            await each.close()

    asyncio.run(scenario())


def test_other_groups_are_heard_only_when_joined() -> None:
    async def scenario() -> None:
        port = free_port(socket.SOCK_DGRAM)
        narrow, narrows = await member(f"udp/224.0.0.231:{port}#iface={LOOPBACK}")
        wide, wides = await member(f"udp/224.0.0.231:{port}#iface={LOOPBACK};join=224.0.0.232")
        other, _ = await member(f"udp/224.0.0.232:{port}#iface={LOOPBACK}")
        async with asyncio.timeout(TIMEOUT):
            other.send(b"elsewhere")
            assert (await wides.get())[0] == b"elsewhere"
            wide.send(b"here")
            assert (await narrows.get())[0] == b"here"
        assert narrows.empty()
        for each in (narrow, wide, other):
            await each.close()

    asyncio.run(scenario())


def test_interfaces_by_name_address_or_all() -> None:
    async def scenario() -> None:
        where = f"udp/224.0.0.224:{free_port(socket.SOCK_DGRAM)}"
        by_address, _ = await member(where, ["127.0.0.1"])
        assert by_address.facts.interfaces == (LOOPBACK,)
        assert [str(source).rpartition(":")[0] for source in by_address.sources] == [
            "udp/127.0.0.1"
        ]
        both, _ = await member(where, [LOOPBACK, "127.0.0.1"])
        assert len(both.sources) == 2
        auto, _ = await member(where)
        assert auto.sources
        for each in (by_address, both, auto):
            await each.close()
        with pytest.raises(
            LinkError, match=f"there is no interface 'nope'; there are .*{LOOPBACK}"
        ):
            await member(where, ["nope"])

    asyncio.run(scenario())


def test_ttl_and_size_are_bounded() -> None:
    async def scenario() -> None:
        joined, _ = await member(
            f"udp/224.0.0.224:{free_port(socket.SOCK_DGRAM)}#iface={LOOPBACK};ttl=7"
        )
        (datagrams,) = joined._speaks.values()
        assert datagrams._transport is not None
        sock = datagrams._transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL) == 7
        with pytest.raises(LinkError, match="do not fit"):
            joined.send(bytes(65_488))
        await joined.close()

    asyncio.run(scenario())


def test_what_is_no_group_is_refused() -> None:
    with pytest.raises(EndpointError, match="no multicast group"):
        asyncio.run(member("udp/127.0.0.1:7446"))


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("udp/224.0.0.224:7446", True),
        ("udp/[ff02::1]:1", True),
        ("udp/127.0.0.1:1", False),
        ("udp/name:1", False),
        ("tcp/224.0.0.224:1", False),
    ],
)
def test_is_multicast(text: str, group: bool) -> None:
    assert is_multicast(Locator.parse(text)) is group
