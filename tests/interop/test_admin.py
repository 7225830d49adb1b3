"""The admin space of ours beside the reference's, in the same situation: the same keys and values."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import zenoh

from tests.interop.exchange import node_settings, opened
from tests.interop.routers import AnySession, Net, chain
from tests.ports import free_port
from tests.unit.api.nodes import run, until
from zenwire import aio

pytestmark = pytest.mark.interop

ADMIN = {"adminspace": {"enabled": True, "permissions": {"read": True, "write": True}}}
METADATA = {"metadata": {"name": "a place", "rooms": [1, 2]}}
GOSSIP = {"scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": True}, "delay": 0}}


def zid(session: AnySession) -> str:
    return str(session.info.zid() if isinstance(session, aio.Session) else session.zid())


def normal(text: str, names: dict[str, str]) -> str:
    """Without what differs from run to run: ids, ports, versions, and who stands where."""
    for id_, name in names.items():
        text = text.replace(id_, name)
    text = re.sub(r"(127\.0\.0\.1):\d+", r"\1:port", text)
    text = re.sub(r'"version":"[^"]*"', '"version":"V"', text)
    text = re.sub(r'label = "\d+\.\d+"', 'label = "length"', text)
    return text.replace('shm":true', 'shm":false')


def sorted_json(text: str) -> Any:
    def ordered(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: ordered(value[name]) for name in sorted(value)}
        if isinstance(value, list):
            return sorted(map(ordered, value), key=json.dumps)
        return value

    return ordered(json.loads(text))


async def ask(session: zenoh.Session, selector: str) -> dict[str, tuple[str, bytes]]:
    def get() -> dict[str, tuple[str, bytes]]:
        found = {}
        for reply in session.get(selector, timeout=10):
            assert reply.ok is not None
            assert str(reply.ok.key_expr) not in found
            found[str(reply.ok.key_expr)] = str(reply.ok.encoding), reply.ok.payload.to_bytes()
        return found

    return await asyncio.to_thread(get)


async def shown(session: zenoh.Session, selector: str, names: dict[str, str]) -> dict[str, Any]:
    """All answers, by key, in a form in which two nodes can be compared."""
    values: dict[str, Any] = {}
    for key, (encoding, payload) in (await ask(session, selector)).items():
        name = normal(key, names)
        if "/stats" in name:
            continue
        if encoding == "application/json":
            values[name] = encoding, sorted_json(normal(payload.decode(), names))
        elif "gzip" in encoding:
            # What is counted differs; that it can be read, and what it begins with, does not.
            lines = gzip.decompress(payload).decode().splitlines()
            values[name] = encoding, [lines[1].split()[2:], lines[2].split("{")[0]]
        else:
            values[name] = encoding, sorted(normal(payload.decode(), names).splitlines())
    return values


@asynccontextmanager
async def situation(kind: str) -> AsyncIterator[tuple[Net, zenoh.Session, dict[str, str]]]:
    """A router in question, another one, a peer and a client with declarations, and who asks."""
    async with chain(kind + "E", **ADMIN, **METADATA, **GOSSIP) as net:
        client = await net.theirs("client", 0)
        peer = await net.theirs("peer", 0, **ADMIN, **GOSSIP)
        asker = await net.theirs("client", 0)
        own, far = net.routers
        names = {zid(own): "OWN", zid(far): "FAR", zid(client): "CLIENT"}
        names |= {zid(peer): "PEER", zid(asker): "ASKER"}
        kept: list[Any] = []

        def answer(query: zenoh.Query) -> None:
            query.drop()  # type: ignore[no-untyped-call] # the reference has no type for it

        kept += [client.declare_subscriber("demo/a/**"), client.declare_queryable("demo/q", answer)]
        kept += [client.liveliness().declare_token("live/a"), client.declare_publisher("demo/p")]
        kept += [peer.declare_publisher("demo/a/x"), peer.declare_querier("demo/q")]
        kept += [peer.declare_subscriber("peer/s"), peer.declare_subscriber("demo/a/**")]
        assert isinstance(far, zenoh.Session)
        kept += [far.declare_subscriber("far/s"), far.liveliness().declare_token("far/t")]
        kept += [far.declare_queryable("far/q", answer, complete=True)]
        if isinstance(own, aio.Session):
            kept += [await own.declare_subscriber("own/s"), await own.declare_publisher("own/p")]
            kept += [await own.declare_querier("own/q")]
        else:
            kept += [own.declare_subscriber("own/s"), own.declare_publisher("own/p")]
            kept += [own.declare_querier("own/q")]
        # A router of the reference that is asked while declarations come may stop for good: it
        # waits, with its tables in hand, for who waits for its tables.
        await asyncio.sleep(1)
        # The last thing that each of them has declared is there.
        for last in ("subscriber/demo/a/**", "token/far/t", "querier/demo/q", "queryable/far/q"):
            await until_answered(asker, f"@/{zid(own)}/router/{last}")
        await until_answered(asker, f"@/{zid(own)}/router/route/successor/**")
        await until_answered(asker, f"@/{zid(far)}/router/subscriber/demo/a/**")
        yield net, asker, names
        del kept


async def until_answered(session: zenoh.Session, selector: str) -> None:
    async with asyncio.timeout(20):
        while not await ask(session, selector):  # noqa: ASYNC110 # there is no event for it
            await asyncio.sleep(0.05)


SELECTORS = [
    "@/OWN/router/**",
    "@/OWN/router",
    "@/*/router/subscriber/demo/**",
    "@/OWN/router/*/demo/**",
    "@/OWN/router/queryable/demo/q",
    "@/OWN/router/linkstate/*",
    "@/OWN/router/route/successor/src/FAR/dst/*",
    "@/OWN/router/plugins/**",
    "@/OWN/router/config/**",
    "@/OWN/peer/**",
]


def test_a_router_answers_as_the_reference_does() -> None:
    async def main() -> None:
        found = {}
        for kind in "EZ":
            async with situation(kind) as (_, asker, names):
                ids = {name: id_ for id_, name in names.items()}
                for selector in SELECTORS:
                    asked = selector.replace("OWN", ids["OWN"]).replace("FAR", ids["FAR"])
                    found[kind, selector] = await shown(asker, asked, names)
        for selector in SELECTORS:
            assert found["Z", selector] == found["E", selector], selector
        assert len(found["Z", SELECTORS[0]]) > 15
        assert found["Z", "@/OWN/router"]

    run(main())


@pytest.mark.parametrize("mode", ["peer", "client"])
def test_a_peer_and_a_client_answer_as_the_reference_does(mode: str) -> None:
    async def main() -> None:
        found = {}
        for kind in "EZ":
            async with chain("E", **GOSSIP) as net:
                asker, other = await net.theirs("client", 0), await net.theirs("client", 0)
                kept: list[Any] = [other.declare_subscriber("other/s")]
                node: AnySession
                if kind == "Z":
                    node = ours = await net.ours(mode, 0, **ADMIN, **METADATA, **GOSSIP)
                    kept += [await ours.declare_subscriber("own/s")]
                    kept += [await ours.declare_publisher("other/s")]
                    kept += [await ours.declare_querier("own/q")]
                    kept += [await ours.liveliness().declare_token("own/t")]
                else:
                    node = theirs = await net.theirs(mode, 0, **ADMIN, **METADATA, **GOSSIP)
                    kept += [
                        theirs.declare_subscriber("own/s"),
                        theirs.declare_publisher("other/s"),
                    ]
                    kept += [theirs.declare_querier("own/q")]
                    kept += [theirs.liveliness().declare_token("own/t")]
                names = {zid(node): "OWN", zid(net.routers[0]): "ROUTER", zid(other): "OTHER"}
                await until_answered(asker, f"@/{zid(node)}/{mode}/token/own/t")
                await until_answered(asker, f"@/{zid(node)}/{mode}/subscriber/other/s")
                found[kind] = await shown(asker, f"@/{zid(node)}/{mode}/**", names)
                del kept
        assert found["Z"] == found["E"]
        assert len(found["Z"]) >= 6

    run(main())


def test_the_configuration_is_not_changed_by_writes_to_either() -> None:
    async def main() -> None:
        for kind in "EZ":
            async with chain(kind, **ADMIN, **METADATA) as net:
                asker, root = await net.theirs("client", 0), f"@/{zid(net.routers[0])}/router"
                before = await ask(asker, root)
                for path, value in (("metadata", "{}"), ("adminspace/permissions/read", "false")):
                    asker.put(f"{root}/config/{path}", value)
                    asker.delete(f"{root}/config/{path}")
                # What is asked after it is answered after it.
                assert json.loads((await ask(asker, root))[root][1]) == json.loads(before[root][1])
                router = net.routers[0]
                if isinstance(router, aio.Session):
                    await until(partial(refused_are, router, {"config": 4}))

    run(main())


def refused_are(router: aio.Session, expected: dict[str, int]) -> bool:
    admin = router._core.node.admin
    assert admin is not None
    return dict(admin.refused) == expected


def test_who_may_not_read_is_told_nothing_by_either() -> None:
    async def main() -> None:
        closed = {"adminspace": {"enabled": True, "permissions": {"read": False, "write": False}}}
        for kind in "EZ":
            async with chain(kind, **closed) as net:
                asker, root = await net.theirs("client", 0), f"@/{zid(net.routers[0])}/router"
                assert await ask(asker, f"{root}/**") == {}
                router = net.routers[0]
                if isinstance(router, aio.Session):
                    asker.put(f"{root}/config/metadata", "{}")
                    await until(partial(refused_are, router, {"read": 1, "write": 1}))

    run(main())


def test_it_is_not_there_unless_it_is_enabled() -> None:
    async def main() -> None:
        for kind in "EZ":
            async with chain(kind) as net:
                asker = await net.theirs("client", 0)
                assert await ask(asker, f"@/{zid(net.routers[0])}/router/**") == {}

    run(main())


def test_metrics_are_those_of_prometheus() -> None:
    async def main() -> None:
        async with chain("Z", **ADMIN, stats={"filters": [{"key": "demo/**"}]}) as net:
            asker, root = await net.theirs("client", 0), f"@/{zid(net.routers[0])}/router"
            asker.put("demo/x", b"12345")
            [(encoding, data)] = (await ask(asker, f"{root}/metrics?compression=false")).values()
            assert encoding == "application/openmetrics-text; version=1.0.0; charset=utf-8"
            text = data.decode()
            assert text.endswith("# EOF\n")
            names = {line.split("{")[0] for line in text.splitlines() if not line.startswith("#")}
            assert {"zenoh_build_info", "zenoh_transports_opened", "zenoh_rx_bytes_total"} <= names
            assert re.search(r'zenoh_rx_key_bytes_total{[^}]*key="demo/\*\*"[^}]*"put"} 5', text)
            [(_, bare)] = (
                await ask(asker, f"{root}/metrics?compression=false;descriptors=false")
            ).values()
            assert bare.decode().splitlines()[-1] == "# EOF"
            assert bare.count(b"#") == 1

    run(main())


def test_statistics_by_session_and_by_key() -> None:
    async def main() -> None:
        async with chain("Z", **ADMIN, stats={"filters": [{"key": "demo/**"}]}) as net:
            asker, root = await net.theirs("client", 0), f"@/{zid(net.routers[0])}/router"
            for size in (10, 20, 30):
                asker.put("demo/x", bytes(size))
                asker.put("elsewhere", bytes(size))
            found = {
                k: json.loads(v) for k, (_, v) in (await ask(asker, f"{root}/stats/**")).items()
            }
            own = found[f"{root}/stats/session/{zid(asker)}"]
            assert own["transport"]["rx_messages"] >= 7
            assert own["links"][0]["rtt_us"] >= 0
            assert own["waiting"] == 0
            assert own["dropped"] == {}
            numbers = found[f"{root}/stats/key/demo/**"]["rx"]["put"]
            assert (numbers["messages"], numbers["bytes"]) == (3, 60)
            whole = found[f"{root}/stats"]
            assert whole["sessions"] == 1
            assert whole["routing"]["unknown_scope"] == 0
            with_stats = json.loads((await ask(asker, f"{root}?_stats=true"))[root][1])
            assert with_stats["sessions"][0]["stats"]["rx_n_msgs"]["net"] >= 7
            [counted] = with_stats["stats_filtered"]
            assert counted["stats"]["rx_z_put_msgs"] == {"admin": 0, "user": 3}

    run(main())


def test_a_session_sees_its_neighbours_come_and_go_as_the_reference_does() -> None:
    """What it tells itself, and nobody else."""

    def of_link(text: str) -> str:
        return re.sub(r"/link/\d+", "/link/number", re.sub(r'"mtu":\d+', '"mtu":0', text))

    async def main() -> None:
        found = {}
        for kind in "EZ":
            async with chain("E") as net:
                port = free_port()
                listens = {"listen": {"endpoints": [f"tcp/127.0.0.1:{port}"]}}
                heard: list[tuple[str, str, str]] = []
                kept: list[Any] = []
                node: AnySession
                if kind == "Z":
                    node = ours = await net.ours("peer", 0, **listens)
                    names = {zid(ours): "OWN", zid(net.routers[0]): "ROUTER"}

                    def take(sample: aio.Sample, heard: Any = heard) -> None:
                        heard.append((sample.kind.name, str(sample.key_expr), str(sample.payload)))

                    await ours.declare_subscriber("@/*/session/**", aio.Callback(take))
                else:
                    node = theirs = await net.theirs("peer", 0, **listens)
                    names = {zid(theirs): "OWN", zid(net.routers[0]): "ROUTER"}

                    def hear(sample: zenoh.Sample, heard: Any = heard) -> None:
                        text = sample.payload.to_string()
                        heard.append(
                            (str(sample.kind).rpartition(".")[2], str(sample.key_expr), text)
                        )

                    kept.append(theirs.declare_subscriber("@/*/session/**", hear))
                await until_seen(node)
                settings = node_settings("peer", connect=f"tcp/127.0.0.1:{port}")
                async with opened(settings) as other:
                    names[zid(other)] = "OTHER"
                    await until(partial(at_least, heard, 2))
                await until(partial(at_least, heard, 4))
                told = [tuple(of_link(normal(text, names)) for text in one) for one in heard]
                found[kind] = [told, await own_space(node, names, of_link)]
                asker = await net.theirs("client", 0)
                assert await ask(asker, f"@/{zid(node)}/session/**") == {}
        assert found["Z"][1] == found["E"][1]
        assert len(found["Z"][1]) == 2
        kinds = [one[0] for one in found["Z"][0]]
        assert kinds == [one[0] for one in found["E"][0]] == ["PUT", "PUT", "DELETE", "DELETE"]
        for ours_said, theirs_said in zip(found["Z"][0], found["E"][0], strict=True):
            assert ours_said[1] == theirs_said[1]
            if ours_said[0] == "PUT":
                assert json.loads(ours_said[2]) == json.loads(theirs_said[2])

    run(main())


def at_least(found: list[Any], many: int) -> bool:
    return len(found) >= many


async def until_seen(node: AnySession) -> None:
    async with asyncio.timeout(20):
        while len(await own_space(node, {}, str)) < 2:  # noqa: ASYNC110 # there is no event for it
            await asyncio.sleep(0.05)


async def own_space(node: AnySession, names: dict[str, str], also: Any) -> dict[str, Any]:
    if isinstance(node, zenoh.Session):
        found = await ask(node, "@/*/session/**")
    else:
        replies = await node.get("@/*/session/**", timeout=10)
        oks = [reply.ok async for reply in replies if reply.ok is not None]
        found = {str(ok.key_expr): (str(ok.encoding), ok.payload.to_bytes()) for ok in oks}
    return {
        also(normal(key, names)): (encoding, json.loads(also(normal(payload.decode(), names))))
        for key, (encoding, payload) in found.items()
    }
