"""Noise in datagrams: on a UDP listener, in a multicast group, and where nodes look for others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from tests.hostile.peers import TIMEOUT, Peer, Victim, allocated, attacked, put, until
from tests.ports import free_port
from zenwire.links.udp import PENDING_MAX
from zenwire.node.autoconnect import DIALS_MAX
from zenwire.node.scouting import ANSWERS_MAX
from zenwire.transport import Cause
from zenwire.wire.batch import encode_batch
from zenwire.wire.locator import Locator
from zenwire.wire.objects import decode, encode
from zenwire.wire.scouting import Hello, Scout
from zenwire.wire.transport import Frame, InitSyn, Join, LaneSn, OpenSyn
from zenwire.wire.values import WhatAmI, WhatAmIMatcher, ZenohId

LOOPBACK = socket.inet_aton("127.0.0.1")


@contextmanager
def sender() -> Iterator[socket.socket]:
    """A socket that speaks to groups on this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, LOOPBACK)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        sock.bind(("127.0.0.1", 0))
        sock.setblocking(False)
        yield sock


def zid(chaos: Random) -> ZenohId:
    return ZenohId(chaos.randbytes(15) + b"\1")


# UDP.


def test_random_datagrams_to_a_listener() -> None:
    port = free_port(socket.SOCK_DGRAM)

    async def scenario() -> None:
        chaos = Random(1)
        listen = ["tcp/127.0.0.1:0", f"udp/127.0.0.1:{port}"]
        hasty = {"unicast": {"accept_timeout": 200}}
        async with attacked(listen=listen, transport=hasty) as victim:
            adjacency = victim.node.adjacency
            with allocated() as peak:
                for number in range(300):
                    with sender() as sock:
                        size = chaos.choice([0, 1, 5, 60, 1_400, 60_000])
                        noise = chaos.randbytes(size)
                        if number % 3 == 0:
                            # The start of a handshake that nobody goes on with.
                            syn = InitSyn(version=9, zid=zid(chaos), whatami=WhatAmI.PEER)
                            noise = encode(syn)
                        sock.sendto(noise, ("127.0.0.1", port))
                    if number % 20 == 0:
                        await asyncio.sleep(0)
                        assert len(adjacency._carriers) <= 1 + PENDING_MAX
                assert peak() < 4_000_000
            await until(lambda: len(adjacency._carriers) == 1)
            stats = victim.stats
            assert set(stats.failures) <= {"invalid", "malformed", "timeout", "lost"}
            assert sum(stats.failures.values()) + stats.evicted > 0
            assert stats.endings == {}

    asyncio.run(scenario())


# A multicast group.


def join(chaos: Random, **fields: Any) -> bytes:
    chosen: dict[str, Any] = {
        "version": 9,
        "zid": zid(chaos),
        "whatami": WhatAmI.PEER,
        "lease": 10_000,
        "next_sn": LaneSn(reliable=5, best_effort=5),
        "patch": 1,
    }
    return encode(Join(**chosen | fields))


def in_group(victim: Victim) -> Any:
    (group,) = victim.node.groups.values()
    return group.machine


def test_random_datagrams_to_a_group() -> None:
    port = free_port(socket.SOCK_DGRAM)

    async def scenario() -> None:
        chaos = Random(2)
        listen = ["tcp/127.0.0.1:0", f"udp/224.0.0.225:{port}#iface=lo"]
        async with attacked(listen=listen) as victim:
            group = in_group(victim)
            with sender() as noisy, sender() as honest:
                good = join(chaos)
                for _ in range(500):
                    data = bytearray(good)
                    data[chaos.randrange(len(data))] = chaos.randrange(256)
                    noise = chaos.choice([chaos.randbytes(chaos.randrange(100)), bytes(data)])
                    noisy.sendto(noise, ("224.0.0.225", port))
                    await asyncio.sleep(0)
                    assert len(group.peers) <= 1
                # Somebody else is heard all the same.
                honest.sendto(join(chaos), ("224.0.0.225", port))
                frame = Frame(reliable=True, sn=5)
                honest.sendto(encode_batch([frame, put(b"good")]), ("224.0.0.225", port))
                await until(lambda: victim.payloads == [b"good"])
            assert not group.closed
            assert group.stats.dropped[Cause.UNKNOWN_SOURCE] > 0

    asyncio.run(scenario())


def test_a_handshake_in_a_group_means_nothing() -> None:
    port = free_port(socket.SOCK_DGRAM)

    async def scenario() -> None:
        chaos = Random(6)
        listen = ["tcp/127.0.0.1:0", f"udp/224.0.0.225:{port}#iface=lo"]
        async with attacked(listen=listen) as victim:
            group = in_group(victim)
            syn = InitSyn(version=9, zid=zid(chaos), whatami=WhatAmI.PEER)
            with sender() as stranger, sender() as member:
                stranger.sendto(encode(syn), ("224.0.0.225", port))
                member.sendto(join(chaos), ("224.0.0.225", port))
                member.sendto(encode(syn), ("224.0.0.225", port))
                open_ = OpenSyn(lease=1, initial_sn=1, cookie=b"x")
                member.sendto(encode(open_), ("224.0.0.225", port))
                await until(lambda: group.stats.rx_ignored == 2)
                assert group.stats.dropped == {Cause.UNKNOWN_SOURCE: 1}
                # Nobody is answered, and who is there stays.
                with pytest.raises(BlockingIOError):
                    stranger.recv(100)
                assert len(group.peers) == 1
            assert len(victim.node.neighbours) == 1
            assert victim.stats.failures == {}

    asyncio.run(scenario())


def test_joins_without_end() -> None:
    """From one address there is one node, and of addresses there are only so many."""
    port = free_port(socket.SOCK_DGRAM)

    async def scenario() -> None:
        chaos = Random(3)
        listen = ["tcp/127.0.0.1:0", f"udp/224.0.0.225:{port}#iface=lo"]
        few = {"multicast": {"max_sessions": 20}}
        async with attacked(listen=listen, transport=few) as victim:
            group = in_group(victim)
            with sender() as one, allocated() as peak:
                for _ in range(1_000):
                    one.sendto(join(chaos), ("224.0.0.225", port))
                    await asyncio.sleep(0)
                    assert len(group.peers) <= 1
                assert peak() < 4_000_000
            async with asyncio.timeout(TIMEOUT):
                while group.stats.dropped[Cause.UNKNOWN_SOURCE] < 40:
                    with sender() as sock:
                        sock.sendto(join(chaos, lease=2**40), ("224.0.0.225", port))
                    await asyncio.sleep(0)
                    assert len(group.peers) <= 20
            assert len(group.peers) == 20

    asyncio.run(scenario())


# Scouting.


def group_of_scouting() -> tuple[dict[str, Any], tuple[str, int]]:
    port = free_port(socket.SOCK_DGRAM)
    return (
        {"multicast": {"address": f"224.0.0.224:{port}", "interface": "lo"}},
        ("224.0.0.224", port),
    )


def test_noise_where_nodes_are_looked_for() -> None:
    scouting, group = group_of_scouting()

    async def scenario() -> None:
        chaos = Random(4)
        async with attacked(scouting=scouting) as victim:
            with sender() as sock:
                for size in range(100):
                    sock.sendto(b"\x1f" + chaos.randbytes(size), group)
                    await asyncio.sleep(0)
                sock.sendto(b"", group)
                await until(lambda: victim.stats.scouting_malformed == 101)
                sock.sendto(b"\x01\x09\x07", group)
                loop = asyncio.get_running_loop()
                data = await asyncio.wait_for(loop.sock_recv(sock, 2_048), TIMEOUT)
                hello = decode(data, "scouting")
                assert isinstance(hello, Hello)
                assert hello.zid == victim.node.zid

    asyncio.run(scenario())


def test_scouts_without_end_get_so_many_answers() -> None:
    """Whoever writes another's address into its SCOUT must not find an amplifier."""
    scouting, group = group_of_scouting()

    async def scenario() -> None:
        async with attacked(scouting=scouting) as victim:
            scout = encode(Scout(version=9, what=WhatAmIMatcher.PEER))
            with sender() as sock:
                asked = 0
                async with asyncio.timeout(TIMEOUT):
                    while victim.stats.unanswered < 100:
                        sock.sendto(scout, group)
                        asked += 1
                        await asyncio.sleep(0)
                answers: list[bytes] = []
                while True:
                    try:
                        answers.append(sock.recv(2_048))
                    except BlockingIOError:
                        break
                # One for each, and none is larger than what there is to tell.
                assert ANSWERS_MAX / 2 < len(answers) <= asked - 100
                assert max(map(len, answers)) < 100

    asyncio.run(scenario())


def test_hellos_without_end_lead_to_so_many_attempts() -> None:
    scouting, group = group_of_scouting()

    async def scenario() -> None:
        chaos = Random(5)
        with socket.socket() as deaf:
            # It takes connections, and says nothing.
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(1)
            where = Locator("tcp", f"127.0.0.1:{deaf.getsockname()[1]}")
            async with attacked(scouting=scouting) as victim:
                with sender() as sock, allocated() as peak:
                    async with asyncio.timeout(TIMEOUT):
                        while victim.stats.not_dialled < 100:
                            hello = Hello(
                                version=9, zid=zid(chaos), whatami=WhatAmI.PEER, locators=(where,)
                            )
                            sock.sendto(encode(hello), group)
                            await asyncio.sleep(0)
                            auto = victim.node.autoconnect
                            assert auto is not None
                            assert len(auto._dialling) <= DIALS_MAX
                    assert peak() < 16_000_000
                assert len(victim.node.neighbours) == 1

    asyncio.run(scenario())


def test_one_that_was_found_and_throws_us_out_is_not_dialled_without_end() -> None:
    scouting, group = group_of_scouting()
    patient = {"retry": {"period_init_ms": 60_000, "period_max_ms": 60_000}}

    async def scenario() -> None:
        links: list[Peer] = []
        name = zid(Random(7))

        async def welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            peer = Peer(reader, writer)
            links.append(peer)
            peer.zid = name
            await peer.accept()
            await peer.hear()
            await peer.close()

        server = await asyncio.start_server(welcome, "127.0.0.1", 0)
        where = Locator("tcp", f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
        async with server, attacked(scouting=scouting, connect=patient) as victim:
            hello = Hello(version=9, zid=name, whatami=WhatAmI.PEER, locators=(where,))
            with sender() as sock:
                sock.sendto(encode(hello), group)
            await until(lambda: victim.stats.endings == {"lost": 1})
            auto = victim.node.autoconnect
            assert auto is not None
            await until(lambda: name in auto._dialling)
            heard = victim.stats.neighbours[0].transport.rx_messages
            await until(lambda: victim.stats.neighbours[0].transport.rx_messages > heard + 30)
            assert len(links) == 1

    asyncio.run(scenario())
