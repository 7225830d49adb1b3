from __future__ import annotations

import asyncio
import socket

import pytest

from zenwire.links import LinkError, parse_endpoint
from zenwire.links.endpoint import options_of
from zenwire.links.sockets import (
    SockAddr,
    expand,
    first_of,
    literal,
    make_socket,
    printed,
    resolve,
)
from zenwire.wire.locator import EndPoint


def test_literals_and_names_resolve() -> None:
    async def scenario() -> None:
        assert await resolve("x", "127.0.0.1:7", socket.SOCK_STREAM) == [("127.0.0.1", 7)]
        assert await resolve("x", "[::1]:7", socket.SOCK_DGRAM) == [("::1", 7, 0, 0)]
        found = await resolve("x", "localhost:7", socket.SOCK_STREAM)
        assert {place[0] for place in found} <= {"127.0.0.1", "::1"}
        assert found

    asyncio.run(scenario())


# None of these makes the resolver ask anyone.
@pytest.mark.parametrize("host", ["[fe80::1%nowhere]", "a" * 64 + ".test", "..", "a." * 200 + "a"])
def test_a_name_that_does_not_resolve_is_a_link_error(host: str) -> None:
    async def scenario() -> None:
        with pytest.raises(LinkError, match="looking up"):
            await resolve("tcp/x:1", f"{host}:1", socket.SOCK_STREAM)

    asyncio.run(scenario())


def test_addresses_are_tried_in_turn_and_a_slow_one_is_overtaken() -> None:
    async def scenario() -> None:
        tried: list[str] = []
        cancelled: list[str] = []
        won = socket.socket()

        async def attempt(place: SockAddr) -> socket.socket:
            tried.append(place[0])
            if place[0] == "refuses":
                raise ConnectionRefusedError(111, "Connection refused")
            if place[0] == "hangs":
                try:
                    await asyncio.Event().wait()
                finally:
                    cancelled.append(place[0])
            return won

        places: list[SockAddr] = [("refuses", 1), ("hangs", 2), ("works", 3), ("unused", 4)]
        assert await first_of("tcp/x:1", places, attempt) is won
        assert tried == ["refuses", "hangs", "works"]
        assert cancelled == ["hangs"]
        won.close()

    asyncio.run(scenario())


def test_two_that_succeed_at_once_leave_one_socket() -> None:
    async def scenario() -> None:
        made: list[socket.socket] = []
        go = asyncio.Event()

        async def attempt(place: SockAddr) -> socket.socket:
            if place[1] == 2:
                go.set()
            await go.wait()
            made.append(socket.socket())
            return made[-1]

        won = await first_of("tcp/x:1", [("a", 1), ("b", 2)], attempt)
        assert [sock.fileno() == -1 for sock in made if sock is not won] == [True]
        won.close()

    asyncio.run(scenario())


def test_when_all_fail_every_reason_is_told() -> None:
    async def scenario() -> None:
        async def attempt(place: SockAddr) -> socket.socket:
            raise OSError(place[1], f"reason {place[1]}")

        with pytest.raises(LinkError, match="a:1: reason 1; connecting to b:2: reason 2"):
            await first_of("tcp/x:1", [("a", 1), ("b", 2)], attempt)
        with pytest.raises(LinkError, match="no address"):
            await first_of("tcp/x:1", [], attempt)

    asyncio.run(scenario())


def test_options_reach_the_socket() -> None:
    options = options_of(parse_endpoint("tcp/h:1#so_sndbuf=20000;so_rcvbuf=30000;dscp=0x20"))
    with make_socket(("127.0.0.1", 0), socket.SOCK_STREAM, options) as sock:
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) >= 20_000
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) >= 30_000
        assert sock.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 0x20
        assert not sock.getblocking()
    with make_socket(("::1", 0, 0, 0), socket.SOCK_STREAM, options) as sock:
        assert sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS) == 0x20


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (("1.2.3.4", 5), "1.2.3.4:5"),
        (("::1", 5, 0, 0), "[::1]:5"),
        (("fe80::1", 5, 0, 3), "[fe80::1%3]:5"),
        (("fe80::1%eth0", 5, 0, 3), "[fe80::1%eth0]:5"),
    ],
)
def test_printed(place: SockAddr, text: str) -> None:
    assert printed(place) == text


def test_a_wildcard_is_announced_as_the_addresses_of_the_machine() -> None:
    def texts(address: str, *, loopback: bool = True, iface: str | None = None) -> list[str]:
        endpoint = EndPoint("tcp", address, "prio=1")
        return [str(found) for found in expand(endpoint, iface=iface, loopback=loopback)]

    four = texts("0.0.0.0:7")
    assert "tcp/127.0.0.1:7?prio=1" in four
    assert not any("[" in text for text in four)
    six = texts("[::]:7")
    assert "tcp/[::1]:7?prio=1" in six
    assert set(four) <= set(six)
    assert not any("fe80" in text for text in six)
    assert not any("127." in text or "::1]" in text for text in texts("[::]:7", loopback=False))
    assert texts("[::]:7", iface="no-such") == []
    assert texts("127.0.0.1:7", loopback=False) == []
    assert texts("localhost:7", loopback=False) == []
    assert texts("10.1.2.3:7", loopback=False) == ["tcp/10.1.2.3:7?prio=1"]


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ("127.0.0.1:7447", ("127.0.0.1", 7447)),
        ("0.0.0.0:0", ("0.0.0.0", 0)),
        ("127.1:1", None),
        ("127.0.0.01:1", None),
        ("127.0.0.1%lo:1", None),
        ("[::1]:1", None),
        ("localhost:1", None),
    ],
)
def test_an_address_of_ipv4_is_not_looked_up(where: str, place: tuple[str, int] | None) -> None:
    assert literal(where) == place
