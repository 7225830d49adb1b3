from __future__ import annotations

import asyncio
import contextlib
import socket
from dataclasses import dataclass

import pytest

from tests.unit.links.ends import TIMEOUT, End, Ends, listening
from zenwire.links import Link, LinkError, connect, listen
from zenwire.links.stream import StreamLink


def test_port_0_becomes_a_port_and_options_are_set() -> None:
    async def scenario() -> None:
        async with listening("tcp/127.0.0.1:0#so_sndbuf=20000") as (listener, there):
            _, _, port = listener.endpoint.address.rpartition(":")
            assert int(port) > 0
            assert listener.endpoint.config == "so_sndbuf=20000"
            here = Ends()
            link = await connect(
                f"{listener.endpoint.locator}#bind=127.0.0.1:0;dscp=8", here.attach
            )
            assert isinstance(link, StreamLink)
            sock = link.transport.get_extra_info("socket")
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
            assert sock.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 8
            assert link.facts.streamed
            assert link.facts.reliable
            assert 0 < link.facts.mtu < 65_535
            assert (await there.get()).link.interfaces == link.interfaces != ()
            await here.close()

    asyncio.run(scenario())


def test_a_wildcard_of_ipv6_takes_ipv4_too() -> None:
    async def scenario() -> None:
        async with listening("tcp/[::]:0") as (listener, there):
            port = listener.endpoint.address.rpartition(":")[2]
            here = Ends()
            await connect(f"tcp/127.0.0.1:{port}", here.attach)
            await connect(f"tcp/[::1]:{port}", here.attach)
            first, second = await there.get(0), await there.get(1)
            assert {str(first.link.src), str(second.link.src)} == {
                f"tcp/[::ffff:127.0.0.1]:{port}",
                f"tcp/[::1]:{port}",
            }
            assert first.link.interfaces == second.link.interfaces
            await here.close()

    asyncio.run(scenario())


def test_a_name_with_several_addresses_finds_the_one_that_listens() -> None:
    async def scenario() -> None:
        async with listening("tcp/127.0.0.1:0") as (listener, there):
            port = listener.endpoint.address.rpartition(":")[2]
            here = Ends()
            await connect(f"tcp/localhost:{port}", here.attach)
            await there.get()
            await here.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("tcp/127.0.0.1:{used}#bind=[::1]:0", "differ in their IP version"),
        ("tcp/224.0.0.1:7", "no address to connect to"),
        ("tcp/127.0.0.1:{free}", "nothing listens there"),
        ("tcp/127.0.0.1:{free}#iface=no-such-iface", ""),
        ("tcp/[fe80::1%nowhere]:1", "cannot be resolved"),
    ],
)
def test_what_cannot_be_connected_says_why(endpoint: str, said: str) -> None:
    async def scenario() -> None:
        async with listening("tcp/127.0.0.1:0") as (listener, _):
            used = listener.endpoint.address.rpartition(":")[2]
            with socket.socket() as unheard:
                unheard.bind(("127.0.0.1", 0))
                free = unheard.getsockname()[1]
                where = endpoint.format(used=used, free=free)
                with pytest.raises(LinkError) as e:
                    await connect(where, Ends().attach)
        assert said in str(e.value)
        assert str(e.value).startswith(where)

    asyncio.run(scenario())


def test_a_place_that_is_taken_says_so() -> None:
    async def scenario() -> None:
        async with listening("tcp/127.0.0.1:0") as (listener, _):
            with pytest.raises(LinkError, match="another program listens there"):
                await listen(listener.endpoint, Ends().attach)
        with pytest.raises(LinkError, match="no interface of this machine"):
            await listen("tcp/203.0.113.9:0", Ends().attach)

    asyncio.run(scenario())


def test_connecting_has_a_limit_in_time() -> None:
    async def scenario() -> None:
        # A backlog that is full, and nobody who accepts.
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(0)
            deaf.setblocking(False)
            port = deaf.getsockname()[1]
            fillers = [socket.socket() for _ in range(4)]
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(("127.0.0.1", port))
            try:
                with pytest.raises(LinkError, match=r"longer than 0\.2 s"):
                    await connect(f"tcp/127.0.0.1:{port}", Ends().attach, timeout=0.2)
            finally:
                for filler in fillers:
                    filler.close()

    asyncio.run(scenario())


def test_who_connects_while_a_listener_closes_is_not_left_waiting() -> None:
    async def scenario() -> None:
        errors: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, said: errors.append(said))
        listener = await listen("tcp/127.0.0.1:0", Ends().attach)
        await asyncio.sleep(0.01)
        host, _, port = listener.endpoint.address.rpartition(":")
        # In the way of the loop, so that it finds the connection and the end at once.
        with socket.create_connection((host, int(port))) as sock:
            await listener.close()
            sock.settimeout(TIMEOUT)
            with contextlib.suppress(ConnectionResetError):
                assert sock.recv(1) == b""
        assert not errors

    asyncio.run(scenario())


@dataclass
class Hasty(End):
    """Speaks as soon as it is attached."""

    words: bytes = b""

    def __post_init__(self) -> None:
        self.link.write(self.words[:1])
        self.link.write(self.words[1:])


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
@pytest.mark.parametrize("size", [10, 20_000_000])
def test_first_words_are_out_before_asyncio_has_the_socket(host: str, size: int) -> None:
    async def scenario() -> None:
        async with listening("tcp/[::]:0") as (listener, there):
            port = listener.endpoint.address.rpartition(":")[2]
            words = bytes(range(250)) * (size // 250) + b"end"
            ends: list[Hasty] = []

            def attach(link: Link) -> Hasty:
                ends.append(Hasty(link, words=words))
                return ends[0]

            link = await connect(f"tcp/{host}:{port}", attach)
            link.write(b".")
            end = await there.get()
            assert await end.size(len(words) + 1) == words + b"."
            assert link.bytes_out == len(words) + 1
            assert str(link.dst).endswith(f":{port}")
            assert str(link.src) == str(end.link.dst).replace("[::ffff:127.0.0.1]", "127.0.0.1")
            assert link.interfaces == end.link.interfaces != ()
            end.link.write(b"back")
            assert await ends[0].size(4) == b"back"
            link.close()
            assert await ends[0].end() is None

    asyncio.run(scenario())


def test_who_is_turned_away_while_it_is_attached_hears_of_the_end() -> None:
    async def scenario() -> None:
        async with listening("tcp/127.0.0.1:0") as (listener, _):
            ends: list[End] = []

            def attach(link: Link) -> End:
                ends.append(End(link))
                link.abort()
                link.write(b"nothing")
                return ends[0]

            link = await connect(listener.endpoint.locator, attach)
            assert await ends[0].end() is None
            assert link.bytes_out == 0

    asyncio.run(scenario())


def test_an_attach_that_raises_leaves_no_socket() -> None:
    async def scenario() -> None:
        async with listening("tcp/127.0.0.1:0") as (listener, there):

            def attach(_link: Link) -> End:
                raise LinkError("here", "not today")

            with pytest.raises(LinkError, match="not today"):
                await connect(listener.endpoint.locator, attach)
            assert await (await there.get()).end() is None

    asyncio.run(scenario())
