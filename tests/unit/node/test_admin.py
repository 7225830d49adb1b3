"""The admin space: a little at a time, with limits, and nothing where nobody asks."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import pytest

from tests.ports import free_port
from tests.unit.api.nodes import config, run, until
from zenwire import __version__, aio
from zenwire.errors import ConfigError
from zenwire.node.admin import space
from zenwire.node.admin.keys import KEYS_MAX, KeyStep, key_counts
from zenwire.node.config.interceptors import Flow
from zenwire.node.filters import Filters
from zenwire.routing.declarations import Kind
from zenwire.wire.data import Del, Err, Put, Query, Reply
from zenwire.wire.declare import DeclareFinal
from zenwire.wire.encoding import Encoding
from zenwire.wire.network import Declare, NetworkMessage, Push, Request, Response
from zenwire.wire.structs import QueryBody, Timestamp
from zenwire.wire.values import WireExpr, ZenohId

ADMIN: Any = {"adminspace": {"enabled": True}}
KEY = WireExpr(0, "demo/x")


async def ask(session: aio.Session, selector: str) -> dict[str, Any]:
    replies = await session.get(selector, timeout=20)
    found = {}
    async for reply in replies:
        assert reply.ok is not None
        found[str(reply.ok.key_expr)] = reply.ok.payload.to_bytes()
    return found


def filters_of(*keys: str) -> aio.Config:
    return config("router", stats={"filters": [{"key": key} for key in keys]})


def test_a_session_asks_its_own_node() -> None:
    async def main() -> None:
        async with aio.open(config("router", listen=free_port(), **ADMIN)) as session:
            root = f"@/{session.info.zid()}/router"
            found = await ask(session, f"{root}/**")
            value = json.loads(found[root])
            assert value["zid"] == str(session.info.zid())
            assert value["sessions"] == []
            assert value["version"] == f"zenwire {__version__}"
            assert b"# EOF" in gzip.decompress(found[f"{root}/metrics"])
            assert json.loads(found[f"{root}/stats"])["tap"] is None

    run(main())


def test_without_it_nothing_is_declared_and_nothing_is_counted() -> None:
    async def main() -> None:
        async with aio.open(config("router", listen=free_port())) as session:
            node = session._core.node
            assert node.admin is None
            assert node.key_stats == {}
            assert node.filters is None
            assert node.ingress == {}
            declarations = node.tables._core.declarations
            assert not any(True for face in declarations.faces() for _ in declarations.held(face))

    run(main())


def test_very_many_keys_come_a_little_at_a_time() -> None:
    many = 1_000

    async def main() -> None:
        port = free_port()
        async with (
            aio.open(config("router", listen=port, **ADMIN)) as router,
            aio.open(config("client", connect=port)) as client,
            aio.open(config("client", connect=port)) as asker,
        ):
            for n in range(many):
                await client.declare_subscriber(f"k/{n}", aio.Callback(lambda _: None))
            root = f"@/{router.info.zid()}/router"
            turns = 0

            async def count() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            counting = asyncio.create_task(count())
            overview = router._core.node.tables.overview
            await until(lambda: len(list(overview.declared(Kind.SUBSCRIBER))) > many)
            turns = 0
            found = await ask(asker, f"{root}/subscriber/k/*")
            counting.cancel()
            assert len(found) == many
            # Others have had their turn at least with every so many answers.
            assert turns > 5
            assert list(await ask(asker, f"{root}/subscriber/k/17")) == [f"{root}/subscriber/k/17"]

    run(main())


def test_who_does_not_read_the_answers_gets_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "PATIENCE", 0.01)
    monkeypatch.setattr(space, "_SLICE", -1.0)

    async def main() -> None:
        async with aio.open(config("router", listen=free_port(), **ADMIN)) as session:
            admin = session._core.node.admin
            assert admin is not None
            node, never = session._core.node, asyncio.get_running_loop().create_future()

            class Full:
                """The same node, but for one who asks and does not read."""

                done = never

                def __getattr__(self, name: str) -> Any:
                    return getattr(node, name)

                def settle(self) -> list[Any]:
                    return [*node.settle(), self]

            for n in range(2 * space._STRIDE):
                await session.declare_subscriber(f"k/{n}", aio.Callback(lambda _: None))
            monkeypatch.setattr(admin, "_node", Full())
            got = await ask(session, f"@/{session.info.zid()}/router/**")
            assert len(got) < 2 * space._STRIDE
            assert admin.refused["unread"] >= 1

    run(main())


def test_more_keys_than_can_be_counted_are_refused() -> None:
    Filters.of(filters_of(*(f"k/{n}" for n in range(KEYS_MAX))).settings)
    with pytest.raises(ConfigError, match=r"stats/filters: 257 keys"):
        Filters.of(filters_of(*(f"k/{n}" for n in range(KEYS_MAX + 1))).settings)


def test_each_kind_of_message_is_counted_by_key() -> None:
    counts = key_counts(filters_of("demo/*", "demo/**", "other").settings)
    step = KeyStep(counts, Flow.INGRESS, now_ns=lambda: 12_000_000_000)
    stamped = Timestamp(time=10 << 32, id=ZenohId(b"\1"))
    asked = Query(body=QueryBody(encoding=Encoding(), payload=b"123"))
    messages: list[NetworkMessage] = [
        Push(key=KEY, body=Put(payload=b"12345", timestamp=stamped)),
        Push(key=KEY, body=Put(payload=b"1")),
        Push(key=KEY, body=Del()),
        Request(request_id=1, key=KEY, body=asked),
        Response(request_id=1, key=KEY, body=Reply(body=Put(payload=b"12"))),
        Response(request_id=1, key=KEY, body=Err(payload=b"1234")),
        Declare(body=DeclareFinal()),
    ]
    for message in messages:
        assert step(message, None, "demo/x", True, 0.0) is message
    assert step(messages[0], None, None, True, 0.0) is messages[0]
    told = counts["demo/**"].told()
    assert told == counts["demo/*"].told()
    assert told["tx"] == {}
    numbers = {name: (its["messages"], its["bytes"]) for name, its in told["rx"].items()}
    assert numbers == {
        "put": (2, 6),
        "del": (1, 0),
        "query": (1, 3),
        "reply": (1, 2),
        "reply_err": (1, 4),
    }
    assert told["rx"]["put"]["age_mean_s"] == told["rx"]["put"]["age_max_s"] == 2.0
    assert told["rx"]["del"]["age_mean_s"] is None
    assert counts["other"].told() == {"rx": {}, "tx": {}}
    named = counts["demo/*"].named()
    assert named["rx_z_put_pl_bytes"] == {"admin": 0, "user": 6}
    assert named["tx_z_query_msgs"] == {"admin": 0, "user": 0}
