from __future__ import annotations

import asyncio
import socket
from contextlib import aclosing
from typing import Any

import pytest

from tests.ports import free_port
from tests.unit.node.nodes import Lan, run
from zenwire.links import LinkError, open_multicast
from zenwire.node import open_node, scout
from zenwire.node.config import Config
from zenwire.node.reach import Reach
from zenwire.node.scouting import Scouting
from zenwire.wire.locator import EndPoint, Locator
from zenwire.wire.objects import decode, encode
from zenwire.wire.scouting import Hello, Scout
from zenwire.wire.transport import VERSION
from zenwire.wire.values import WhatAmI, WhatAmIMatcher, ZenohId

SCOUTED: dict[str, Any] = {"multicast": {"enabled": True}}
GROUP = "224.0.0.224:7446"


class Ear:
    """Somebody in the group: what it hears, and when."""

    def __init__(self, lan: Lan) -> None:
        self.heard: list[tuple[float, Scout | Hello]] = []
        self.group = lan.network.join(GROUP, self._hear)

    def _hear(self, data: bytes, _source: Locator) -> None:
        now = asyncio.get_running_loop().time()
        self.heard.append((round(now, 1), decode(data, "scouting")))

    async def answer(self, asked: Scout) -> list[Hello]:
        self.heard.clear()
        self.group.send(encode(asked))
        await asyncio.sleep(0.5)
        return [message for _, message in self.heard if isinstance(message, Hello)]


def test_a_peer_asks_less_and_less_often() -> None:
    async def scenario() -> None:
        lan = Lan(latency=0.0)
        ear = Ear(lan)
        await lan.open(listen="memory/a", scouting=SCOUTED)
        await asyncio.sleep(40)
        scouts = [(when, message) for when, message in ear.heard if isinstance(message, Scout)]
        assert [when for when, _ in scouts] == [0, 1, 3, 7, 15, 23, 31, 39]
        assert scouts[0][1] == Scout(version=VERSION, what=WhatAmIMatcher(7))
        await lan.close()

    run(scenario())


def test_whoever_is_asked_for_answers_the_asker() -> None:
    async def scenario() -> None:
        lan = Lan()
        ear, other = Ear(lan), Ear(lan)
        quiet = {"multicast": {"enabled": True, "autoconnect": []}}
        node = await lan.open(listen="memory/a", scouting=quiet)
        client = await lan.open("client", connect=["memory/a"], scouting=quiet)
        other.heard.clear()
        here = (Locator("memory", "a"),)
        mine = Hello(version=VERSION, zid=node.zid, whatami=WhatAmI.PEER, locators=here)
        its = Hello(version=VERSION, zid=client.zid, whatami=WhatAmI.CLIENT)
        for what, answers in (
            (WhatAmIMatcher.PEER, [mine]),
            (WhatAmIMatcher.CLIENT, [its]),
            (WhatAmIMatcher.ROUTER, []),
            (WhatAmIMatcher.PEER | WhatAmIMatcher.CLIENT, [mine, its]),
        ):
            assert await ear.answer(Scout(version=VERSION, what=what)) == answers
        own = Scout(version=VERSION, what=WhatAmIMatcher.PEER, zid=node.zid)
        assert await ear.answer(own) == []
        assert not any(isinstance(message, Hello) for _, message in other.heard)
        await lan.close()

    run(scenario())


def test_one_that_does_not_listen_does_not_answer() -> None:
    async def scenario() -> None:
        lan = Lan()
        ear = Ear(lan)
        deaf = {"multicast": {"enabled": True, "listen": False, "autoconnect": []}}
        await lan.open(listen="memory/a", scouting=deaf)
        assert await ear.answer(Scout(version=VERSION, what=WhatAmIMatcher(7))) == []
        assert lan.network.members(GROUP) == [ear.group]
        await lan.close()

    run(scenario())


def test_what_is_no_scouting_message_is_counted() -> None:
    async def scenario() -> None:
        lan = Lan()
        ear = Ear(lan)
        node = await lan.open(listen="memory/a", scouting=SCOUTED)
        assert isinstance(node.scouting, Scouting)
        for data in (b"", b"\x00", b"\x02", b"\x22\x09\xff", bytes(100)):
            ear.group.send(data)
        await asyncio.sleep(1)
        assert node.scouting.malformed == 5
        await lan.close()

    run(scenario())


def test_scout_without_a_node() -> None:
    async def scenario() -> None:
        lan = Lan()
        a = await lan.open(listen="memory/a", scouting=SCOUTED)
        b = await lan.open(listen="memory/b", scouting=SCOUTED)
        found: list[ZenohId] = []
        async with aclosing(scout(config=Config(), network=lan.network)) as hellos:  # type: ignore[type-var] # it is a generator
            async for hello in hellos:
                found.append(hello.zid)
                if len(found) == 4:
                    break
        # Each answers every time it is asked.
        assert sorted(found, key=int) == sorted([a.zid, a.zid, b.zid, b.zid], key=int)
        assert len(lan.network.members(GROUP)) == 2
        await lan.close()

    run(scenario())


def test_loopback_locators_are_for_askers_on_loopback() -> None:
    """Over sockets: the group is on loopback, so an asker there is told."""

    async def scenario() -> None:
        heard: asyncio.Queue[bytes] = asyncio.Queue()
        group = await open_multicast(
            EndPoint.parse("udp/224.0.0.224:0"),
            lambda data, _source: heard.put_nowait(data),
            ifaces=["lo"],
        )
        address = group.group.address
        scouting = {"multicast": {"address": address, "interface": "lo"}, "delay": 0}
        config = {
            "mode": "peer",
            "listen": {"endpoints": ["tcp/127.0.0.1:0"]},
            "scouting": scouting,
        }
        node = await open_node(Config.from_dict(config))
        group.send(encode(Scout(version=VERSION, what=WhatAmIMatcher.PEER)))
        async with asyncio.timeout(20):
            while not isinstance(hello := decode(await heard.get(), "scouting"), Hello):
                pass
        assert list(hello.locators) == node.locators()
        assert node.locators(loopback=False) == []
        await node.close()
        await group.close()

    asyncio.run(scenario())


def _own_address() -> str:
    """An address of this machine that is not loopback. Nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as routed:
        try:
            routed.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has loopback only")
        return str(routed.getsockname()[0])


def _hello_from(source: str, port: int) -> Hello:
    """Ask the group on loopback, from an address of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.bind((source, 0))
        asking.settimeout(20)
        loopback = socket.inet_aton("127.0.0.1")
        asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, loopback)
        asking.sendto(
            encode(Scout(version=VERSION, what=WhatAmIMatcher.PEER)), ("224.0.0.224", port)
        )
        hello = decode(asking.recv(2_000), "scouting")
    assert isinstance(hello, Hello)
    return hello


def test_an_asker_elsewhere_is_told_of_loopback_if_there_is_nothing_else() -> None:
    """Over sockets: it may be on this machine, and ask by another of its addresses."""
    here = _own_address()

    async def scenario(listen: list[str]) -> list[str]:
        port = free_port(socket.SOCK_DGRAM)
        multicast = {"address": f"224.0.0.224:{port}", "interface": "lo", "autoconnect": []}
        config = {"listen": {"endpoints": listen}, "scouting": {"multicast": multicast}}
        node = await open_node(Config.from_dict(config))
        hello = await asyncio.to_thread(_hello_from, here, port)
        await node.close()
        return [locator.address.rpartition(":")[0] for locator in hello.locators]

    assert asyncio.run(scenario(["tcp/127.0.0.1:0"])) == ["127.0.0.1"]
    assert asyncio.run(scenario(["tcp/127.0.0.1:0", f"tcp/{here}:0"])) == [here]


def test_the_group_is_joined_with_the_configured_ttl(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a link does with it is shown in the tests of links."""

    async def scenario() -> None:
        found: list[int | None] = []

        async def join(_reach: Reach, *args: Any) -> Any:
            found.append(args[3])
            raise LinkError("udp", "nowhere to join")

        monkeypatch.setattr(Reach, "join", join)
        node = await Lan().open(scouting={"multicast": {"ttl": 7}, "delay": 0})
        await node.close()
        assert found == [7]

    run(scenario())


def test_an_interface_that_is_not_there_stops_a_client_only() -> None:
    async def scenario() -> None:
        scouting = {"multicast": {"interface": "nowhere0"}, "delay": 0}
        peer = await open_node(
            Config.from_dict({"listen": {"endpoints": ["tcp/127.0.0.1:0"]}, "scouting": scouting})
        )
        assert peer.scouting is None
        await peer.close()
        with pytest.raises(LinkError, match="nowhere0"):
            await open_node(Config.from_dict({"mode": "client", "scouting": scouting}))

    asyncio.run(scenario())
