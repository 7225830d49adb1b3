"""Nodes that filter: whichever way messages take, they pass the filters, or are counted there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from tests.ports import free_port
from tests.unit.api.nodes import config, until, within
from tests.unit.api.nodes import run as run_now
from tests.unit.node.nodes import Lan, Taker, put, run
from tests.unit.node.nodes import until as until_then
from zenwire import aio
from zenwire.errors import ConfigError
from zenwire.node import Node, plane
from zenwire.node.config.interceptors import AclMessage, Flow
from zenwire.node.filters import Filtered
from zenwire.node.filters.gate import Cause
from zenwire.node.filters.guarded import Guarded
from zenwire.node.neighbour import Neighbour

INGRESS, EGRESS = Flow.INGRESS, Flow.EGRESS
PUT = AclMessage.PUT


def denying(*messages: str, flow: str | None = None, subject: Any = None) -> dict[str, Any]:
    """Access control that has something against ``no/**``."""
    rule = {"id": "r", "messages": list(messages), "key_exprs": ["no/**"], "permission": "deny"}
    return {
        "access_control": {
            "enabled": True,
            "default_permission": "allow",
            "rules": [rule if flow is None else rule | {"flows": [flow]}],
            "subjects": [{"id": "s"} | (subject or {})],
            "policies": [{"rules": ["r"], "subjects": ["s"]}],
        }
    }


def refused(node: Node, cause: Cause, flow: Flow, message: AclMessage = PUT) -> int:
    return node.stats().filtered[Filtered(cause, flow, message)]


def test_whoever_filters_nothing_pays_nothing() -> None:
    async def scenario() -> None:
        lan = Lan()
        a = await lan.open(listen="memory/a")
        await lan.open("client", connect=["memory/a"])
        assert a.filters is None
        assert not a.ingress
        assert [type(one) for one in a.neighbours.values()] == [Neighbour]
        await lan.close()

    run(scenario())


def test_whom_nothing_concerns_is_not_filtered_either() -> None:
    async def scenario() -> None:
        lan = Lan()
        sized = {"messages": ["put"], "key_exprs": ["**"], "size_limit": 1, "flows": ["ingress"]}
        a = await lan.open(listen="memory/a", low_pass_filter=[sized | {"interfaces": ["eth99"]}])
        b = await lan.open(listen="memory/b", low_pass_filter=[sized])
        await lan.open("client", connect=["memory/a"])
        await lan.open("client", connect=["memory/b"])
        assert not a.ingress
        assert len(b.ingress) == 1
        assert {type(one) for node in (a, b) for one in node.neighbours.values()} == {Neighbour}
        await lan.close()

    run(scenario())


@pytest.mark.parametrize("flow", Flow)
def test_what_does_not_pass_is_counted_for_the_session_and_after_it(flow: Flow) -> None:
    async def scenario() -> None:
        lan = Lan()
        router = await lan.open("router", listen="memory/r", **denying("put", flow=flow.value))
        sender = await lan.open("client", connect=["memory/r"])
        taken = await lan.open("client", connect=["memory/r"])
        no, yes = Taker(taken, "no/*"), Taker(taken, "yes")
        await asyncio.sleep(1)
        for _ in range(3):
            put(sender, "no/a", b"x")
        put(sender, "yes", b"y")
        await until_then(lambda: bool(yes.payloads))
        assert no.payloads == []
        of = {one.zid: one.filtered.total() for one in router.stats().neighbours}
        concerned = sender if flow is INGRESS else taken
        assert of == {sender.zid: 0, taken.zid: 0} | {concerned.zid: 3}
        assert refused(router, Cause.ACCESS_CONTROL, flow) == 3
        await concerned.close()
        await until_then(lambda: len(router.neighbours) == 1)
        assert refused(router, Cause.ACCESS_CONTROL, flow) == 3
        assert len(router.ingress) == (flow is INGRESS)
        await lan.close()

    run(scenario())


@pytest.mark.parametrize("flow", Flow)
def test_a_query_that_does_not_pass_ends_at_once(flow: Flow) -> None:
    async def main() -> None:
        port = free_port()
        async with (
            aio.open(config("router", listen=port, **denying("query", flow=flow.value))) as router,
            aio.open(config("client", connect=port)) as asker,
            aio.open(config("client", connect=port)) as other,
            other.declare_queryable("**", lambda query: None),
        ):
            node = router.core.node
            # A timeout of a day would be noticed.
            assert [reply async for reply in asker.get("no/a", timeout=86_400)] == []
            assert refused(node, Cause.ACCESS_CONTROL, flow, AclMessage.QUERY) == 1

    run_now(main())


def test_who_is_denied_is_known_by_the_name_it_logged_in_with(tmp_path: Any) -> None:
    users = tmp_path / "users"
    users.write_text("alice:a\nbob:b\n")

    def auth(user: str) -> dict[str, Any]:
        return {"transport": {"auth": {"usrpwd": {"user": user, "password": user[0]}}}}

    async def scenario() -> None:
        lan = Lan()
        rules = denying("put", subject={"usernames": ["bob"]})
        listening = {"transport": {"auth": {"usrpwd": {"dictionary_file": str(users)}}}}
        router = await lan.open("router", listen="memory/r", **rules, **listening)
        alice = await lan.open("client", connect=["memory/r"], **auth("alice"))
        bob = await lan.open("client", connect=["memory/r"], **auth("bob"))
        taker = Taker(router, "no/*")
        put(bob, "no/a", b"bob")
        await asyncio.sleep(1)
        put(alice, "no/a", b"alice")
        await until_then(lambda: bool(taker.payloads))
        assert taker.payloads == [b"alice"]
        assert refused(router, Cause.ACCESS_CONTROL, INGRESS) == 1
        await lan.close()

    run(scenario())


def test_a_time_that_is_refused_does_not_move_the_clock() -> None:
    async def main() -> None:
        port = free_port()
        rules = denying("put", flow="ingress")
        async with (
            aio.open(config("router", listen=port, **rules)) as router,
            aio.open(config("client", connect=port)) as sender,
        ):
            node = router.core.node
            far = aio.Timestamp.parse_rfc3339(f"2100-01-01T00:00:00Z/{sender.zid()}")
            await sender.put("no/a", b"x", timestamp=far)
            await until(lambda: refused(node, Cause.ACCESS_CONTROL, INGRESS) == 1)
            assert node.late == 0
            await sender.put("yes", b"x", timestamp=far)
            await until(lambda: node.late == 1)

    run_now(main())


@asynccontextmanager
async def two(
    ours: Any = None, theirs: Any = None
) -> AsyncIterator[tuple[aio.Session, aio.Session]]:
    port = free_port()
    async with (
        aio.open(config(listen=port, **(theirs or {}))) as there,
        aio.open(config(connect=port, **(ours or {}))) as here,
    ):
        yield here, there


def test_publishers_have_no_shortcut() -> None:
    async def main() -> None:
        async with (
            two(ours=denying("put", flow="egress")) as (here, there),
            there.declare_subscriber("**") as subscriber,
            here.declare_publisher("no/a") as no,
            here.declare_publisher("yes") as yes,
        ):
            node = here.core.node
            [neighbour] = node.neighbours.values()
            assert isinstance(neighbour, Guarded)
            await until(lambda: no.matching_status.matching and yes.matching_status.matching)
            for _ in range(50):
                await no.put(b"x")
                await yes.put(b"y")
            got = [str((await within(subscriber.recv())).key_expr) for _ in range(50)]
            assert set(got) == {"yes"}
            assert refused(node, Cause.ACCESS_CONTROL, EGRESS) == 50

    run_now(main())


def test_tables_are_filtered_row_by_row() -> None:
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("numba")

    async def main() -> None:
        overwrite = {"messages": ["put"], "overwrite": {"priority": "real_time"}}
        settings = denying("put", flow="egress") | {"qos": {"network": [overwrite]}}
        async with (
            two(ours=settings) as (here, there),
            there.declare_subscriber("**") as subscriber,
        ):
            node = here.core.node
            async with here.declare_publisher("yes/0") as publisher:
                await until(lambda: publisher.matching_status.matching)
            keys = [("no" if at % 3 == 0 else "yes") + f"/{at}" for at in range(300)]
            table = pa.table({"key": keys, "payload": [key.encode() for key in keys]})
            written = await here.put_batch(table)
            assert (written.rows, written.sent, written.dropped) == (300, 200, 100)
            got = [await within(subscriber.recv()) for _ in range(200)]
            assert [str(one.key_expr) for one in got] == [key for key in keys if key[0] == "y"]
            assert {one.priority for one in got} == {aio.Priority.REAL_TIME}
            assert refused(node, Cause.ACCESS_CONTROL, EGRESS) == 100

    run_now(main())


ROWS = [("no/a", b"x"), ("yes", b"12345"), ("no/a", b"y"), ("yes", b"123456")] * 100


@pytest.mark.parametrize(
    ("mode", "flow"), [("peer", INGRESS), ("router", INGRESS), ("router", EGRESS)]
)
@pytest.mark.parametrize("fast", ["0", "all"])
def test_bursts_are_filtered_message_by_message(
    fast: str, mode: str, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a node that gets them, and of a router that passes them on."""
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("numba")
    monkeypatch.setenv(plane.VARIABLE, fast)
    bursts: list[Any] = []
    take = plane.Plane.take

    def watched(self: plane.Plane, face: Any, run: Any) -> None:
        bursts.append(run)
        take(self, face, run)

    monkeypatch.setattr(plane.Plane, "take", watched)
    sized = {"messages": ["put"], "key_exprs": ["yes"], "size_limit": 5, "flows": [flow.value]}
    settings = denying("put", flow=flow.value) | {"low_pass_filter": [sized]}

    async def main() -> None:
        port = free_port()
        async with AsyncExitStack() as stack:
            held = await stack.enter_async_context(aio.open(config(mode, listen=port, **settings)))
            here = await stack.enter_async_context(aio.open(config("client", connect=port)))
            taking = held
            if mode == "router":
                taking = await stack.enter_async_context(aio.open(config("client", connect=port)))
            channel: aio.FifoChannel[aio.Sample] = aio.FifoChannel(10_000)
            subscriber = await stack.enter_async_context(taking.declare_subscriber("**", channel))
            publisher = await stack.enter_async_context(here.declare_publisher("yes"))
            await until(lambda: publisher.matching_status.matching)
            keys, payloads = zip(*ROWS, ("yes", b"end"), strict=True)
            block = pa.array([8 | 5] * len(keys), pa.uint8())
            await here.put_batch(pa.table({"key": keys, "payload": payloads, "qos": block}))
            got = []
            while (sample := await within(subscriber.recv())).payload != b"end":
                got.append((str(sample.key_expr), sample.payload.to_bytes()))
            assert got == [("yes", b"12345")] * 100
            node = held.core.node
            assert refused(node, Cause.ACCESS_CONTROL, flow) == 200
            assert refused(node, Cause.LOW_PASS_FILTER, flow) == 100
            assert bool(bursts) is (fast == "all")

    run_now(main())


def test_a_wrong_configuration_opens_nothing() -> None:
    async def scenario() -> None:
        lan = Lan()
        auth = {
            "usrpwd": {"dictionary_file": "/nowhere/users"},
            "pubkey": {"known_keys_file": "/nowhere/keys"},
        }
        wrong: dict[str, Any] = {"access_control": {"enabled": True}, "transport": {"auth": auth}}
        with pytest.raises(ConfigError) as caught:
            await lan.open(listen="memory/a", **wrong)
        paths = [problem.path for problem in caught.value.problems]
        control = [f"access_control/{name}" for name in ("rules", "subjects", "policies")]
        assert paths == [
            "transport/auth/usrpwd/dictionary_file",
            "transport/auth/pubkey/known_keys_file",
            *control,
        ]
        # The place is still free.
        await lan.open(listen="memory/a")
        await lan.close()

    run(scenario())
