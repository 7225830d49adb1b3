"""Queries between sessions of ours and of the reference, however they meet."""

from __future__ import annotations

import asyncio
import functools
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from subprocess import PIPE, Popen
from typing import Any

import pytest
import zenoh

from tests.interop.exchange import (
    PATIENCE,
    WAYS,
    Meet,
    Settings,
    ask_them,
    matching,
    meet_by,
    node_settings,
    opened,
    said,
    they_see_alive,
)
from tests.ports import free_port
from tests.unit.api.nodes import config, run, until, within
from tests.unit.api.reference import Taker, reference, router
from zenwire import aio

pytestmark = pytest.mark.interop

NONE = aio.ConsolidationMode.NONE

THEIRS = """
import sys, zenoh
session = zenoh.open(zenoh.Config.from_json5(sys.argv[1]))
held = []

def answer(query):
    query.reply(sys.argv[2], "so far")
    held.append(query)

queryable = session.declare_queryable(sys.argv[2], answer)
token = session.liveliness().declare_token(sys.argv[2])
print("ready", flush=True)
sys.stdin.read()
"""
OURS = """
import asyncio, json, sys
from zenwire import aio

async def main():
    async with aio.open(aio.Config.from_dict(json.loads(sys.argv[1]))) as session:
        queryable = await session.declare_queryable(sys.argv[2])
        token = await session.liveliness().declare_token(sys.argv[2])
        print("ready", flush=True)
        query = await queryable.recv()
        await query.reply(sys.argv[2], "so far")
        await asyncio.Event().wait()

asyncio.run(main())
"""
"""A token, and a queryable that says something but never all of it."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    patient = {"transport__link__tx__queue__congestion_control__drop": PATIENCE}
    with router(**patient) as port:
        yield port


@pytest.fixture(params=WAYS)
def both(request: pytest.FixtureRequest, port: int) -> Meet:
    return meet_by(request.param, port)


@asynccontextmanager
async def process(program: str, settings: Settings, key: str) -> AsyncIterator[Popen[str]]:
    """A node in a process of its own, which is killed in the end, if not before."""
    child = Popen(  # noqa: ASYNC220 # starting one takes no time
        [sys.executable, "-c", program, json.dumps(settings), key],
        stdin=PIPE,
        stdout=PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdin is not None
    try:
        line = await asyncio.to_thread(child.stdout.readline)
        assert line == "ready\n"
        yield child
    finally:
        child.kill()
        await asyncio.to_thread(child.wait)
        child.stdout.close()
        child.stdin.close()


async def all_of(replies: aio.Replies) -> list[str]:
    return [said(reply) async for reply in replies]


async def said_to_them(asker: Any, selector: str, **how: Any) -> list[str]:
    return [said(reply) for reply in await ask_them(asker, selector, **how)]


def test_all_that_a_query_and_its_reply_carry(both: Meet) -> None:
    async def main() -> None:
        async with both() as (ours, theirs):
            # They ask, we answer.
            async with ours.declare_queryable("rich/*") as queryable:
                their_querier = theirs.declare_querier("rich/1")
                await matching(their_querier)
                source = zenoh.SourceInfo(their_querier.id, 9)
                replies: Taker[zenoh.Reply] = Taker()
                their_querier.get(
                    replies,
                    parameters="a=b;flag",
                    payload="body",
                    encoding=zenoh.Encoding("my/own;schema"),
                    attachment="more",
                    source_info=source,
                )
                stamp = ours.new_timestamp()
                async with await queryable.recv() as query:
                    assert str(query.selector) == "rich/1?a=b;flag"
                    assert query.payload == "body"
                    assert query.encoding == "my/own;schema"
                    assert query.attachment == "more"
                    assert query.source_info is not None
                    assert str(query.source_info.source_id.zid) == str(theirs.zid())
                    assert query.source_info.source_sn == 9
                    await query.reply(
                        "rich/1", "yes", encoding="text/plain;x", attachment="too", timestamp=stamp
                    )
                reply = await replies.get()
                assert reply.ok is not None
                assert reply.ok.payload.to_string() == "yes"
                assert str(reply.ok.encoding) == "text/plain;x"
                assert reply.ok.attachment is not None
                assert reply.ok.attachment.to_string() == "too"
                assert str(reply.ok.timestamp) == str(stamp)
                assert reply.replier_id is not None
                assert str(reply.replier_id.zid) == str(ours.zid())
                assert reply.replier_id.eid == queryable.id.eid

            # We ask, they answer.
            seen: list[tuple[str, ...]] = []
            their_stamp = theirs.new_timestamp()

            def answer(query: zenoh.Query) -> None:
                with query:
                    assert query.payload is not None
                    assert query.attachment is not None
                    seen.append(
                        (
                            str(query.selector),
                            query.payload.to_string(),
                            str(query.encoding),
                            query.attachment.to_string(),
                            str(query.source_info and query.source_info.source_sn),
                        )
                    )
                    query.reply(
                        "back/1",
                        "yes",
                        encoding=zenoh.Encoding.APPLICATION_JSON,
                        attachment="too",
                        timestamp=their_stamp,
                    )

            their_queryable = theirs.declare_queryable("back/*", answer)
            async with ours.declare_querier("back/1") as querier:
                await matching(querier)
                get = querier.get(
                    parameters={"a": "b"},
                    payload="body",
                    encoding="my/own;schema",
                    attachment="more",
                    source_info=aio.SourceInfo(querier.id, 10),
                )
                [mine] = [one async for one in get]
                assert seen == [("back/1?a=b", "body", "my/own;schema", "more", "10")]
                assert mine.ok is not None
                assert mine.ok.payload == "yes"
                assert mine.ok.encoding == "application/json"
                assert mine.ok.attachment == "too"
                assert str(mine.ok.timestamp) == str(their_stamp)
                assert mine.replier_id is not None
                assert str(mine.replier_id.zid) == str(theirs.zid())
                assert mine.replier_id.eid == their_queryable.id.eid

    run(main())


OLD, NEW = "2026-01-01T00:00:00.000000000Z/33", "2026-01-01T00:00:01.000000000Z/33"
TARGETS = list(aio.QueryTarget)
MODES = list(aio.ConsolidationMode)


def _expected(target: aio.QueryTarget, mode: aio.ConsolidationMode) -> list[str]:
    """Of three queryables: complete ones that say twice, and one that is not complete."""
    once = mode in {aio.ConsolidationMode.AUTO, aio.ConsolidationMode.LATEST}
    complete = ["t/1=new"] if once else ["t/1=old", "t/1=new"]
    if target is aio.QueryTarget.BEST_MATCHING:
        return complete
    twice = complete * 2 if mode is aio.ConsolidationMode.NONE else complete
    return [*twice, "t/2=part"] if target is aio.QueryTarget.ALL else twice


@asynccontextmanager
async def askers(hub: str, port: int) -> AsyncIterator[tuple[aio.Session, zenoh.Session, int]]:
    """Two that ask, and the port of who passes it on: a router of theirs, or our asker itself."""
    if hub == "their router":
        async with meet_by(WAYS[0], port)() as (ours, theirs):
            yield ours, theirs, port
    else:
        own = free_port()
        async with (
            aio.open(config("peer", listen=own)) as ours,
            opened(node_settings("client", connect=f"tcp/127.0.0.1:{own}")) as theirs,
        ):
            yield ours, theirs, own


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize("hub", ["their router", "our peer"])
def test_targets_and_consolidation_as_the_reference_has_them(
    port: int, target: aio.QueryTarget, mode: aio.ConsolidationMode, hub: str
) -> None:
    texts = ("old", OLD), ("new", NEW)

    async def complete(query: aio.Query) -> None:
        for text, stamp in texts:
            await query.reply("t/1", text, timestamp=aio.Timestamp.parse_rfc3339(stamp))

    def their_complete(query: zenoh.Query) -> None:
        with query:
            for text, stamp in texts:
                query.reply("t/1", text, timestamp=zenoh.Timestamp.parse_rfc3339(stamp))

    async def part(query: aio.Query) -> None:
        await query.reply("t/2", "part")

    async def main() -> None:
        async with (
            askers(hub, port) as (ours, theirs, via),
            opened(node_settings("client", connect=f"tcp/127.0.0.1:{via}")) as their_other,
            aio.open(config("client", connect=via)) as one,
            aio.open(config("client", connect=via)) as two,
            one.declare_queryable("t/*", complete, complete=True),
            two.declare_queryable("t/2", part),
        ):
            their_other.declare_queryable("t/*", their_complete, complete=True)
            every = {"target": aio.QueryTarget.ALL, "consolidation": NONE}
            # Others have no event to wait for.
            while len(await all_of(ours.get("t/*", **every))) < 5:  # type: ignore[arg-type] # noqa: ASYNC110
                await asyncio.sleep(0.01)
            got = await all_of(ours.get("t/*", target=target, consolidation=mode))
            theirs_got = await said_to_them(
                theirs,
                "t/*",
                target=getattr(zenoh.QueryTarget, target.name),
                consolidation=getattr(zenoh.ConsolidationMode, mode.name),
            )
            if mode is aio.ConsolidationMode.MONOTONIC:
                # An equal time is news too, so what comes depends on who comes first.
                for found in (got, theirs_got):
                    values = [text for text in found if text.startswith("t/1")]
                    assert values == sorted(values, reverse=True)
                got, theirs_got = sorted(set(got)), sorted(set(theirs_got))
            assert sorted(got) == sorted(theirs_got) == sorted(_expected(target, mode))

    run(main())


def test_replies_have_the_qos_of_their_query(both: Meet) -> None:
    async def our_answer(query: aio.Query) -> None:
        await query.reply("qos/ours", "x")

    def their_answer(query: zenoh.Query) -> None:
        with query:
            query.reply("qos/theirs", "x")

    async def main() -> None:
        async with both() as (ours, theirs), ours.declare_queryable("qos/ours", our_answer):
            theirs.declare_queryable("qos/theirs", their_answer)
            await matching(theirs.declare_querier("qos/ours"))
            async with ours.declare_querier("qos/theirs") as querier:
                await matching(querier)
            for priority in aio.Priority:
                for congestion in aio.CongestionControl:
                    for express in (False, True):
                        get = ours.get(
                            "qos/theirs",
                            priority=priority,
                            congestion_control=congestion,
                            express=express,
                        )
                        [mine] = [one.ok async for one in get]
                        [their] = await ask_them(
                            theirs,
                            "qos/ours",
                            priority=getattr(zenoh.Priority, priority.name),
                            congestion_control=getattr(zenoh.CongestionControl, congestion.name),
                            express=express,
                        )
                        wanted = f"{priority} {congestion} {express}"
                        for sample in (mine, their.ok):
                            assert sample is not None
                            found = sample.priority, sample.congestion_control, sample.express
                            assert " ".join(map(str, found)) == wanted

    run(main())


def test_errors_deletes_and_keys_of_others(both: Meet) -> None:
    async def main() -> None:
        async with both() as (ours, theirs):

            async def answer(query: aio.Query) -> None:
                await query.reply("kinds/1", "put")
                await query.reply_del("kinds/2")
                await query.reply_err("sorry", encoding="text/plain")
                if query.accepts_replies() is aio.ReplyKeyExpr.ANY:
                    await query.reply("elsewhere", "put")

            async with ours.declare_queryable("kinds/*", answer):
                await matching(theirs.declare_querier("kinds/*"))
                expected = ["!sorry", "-kinds/2", "kinds/1=put"]
                assert sorted(await said_to_them(theirs, "kinds/*")) == expected
                free = zenoh.ReplyKeyExpr.ANY
                found = await said_to_them(theirs, "kinds/*", accept_replies=free)
                assert sorted(found) == sorted([*expected, "elsewhere=put"])

            def their_answer(query: zenoh.Query) -> None:
                with query:
                    query.reply("kinds/1", "put")
                    query.reply_del("kinds/2")
                    query.reply_err("sorry")
                    if query.accepts_replies() == zenoh.ReplyKeyExpr.ANY:
                        query.reply("elsewhere", "put")

            theirs.declare_queryable("kinds/*", their_answer)
            async with ours.declare_querier("kinds/*") as querier:
                await matching(querier)
            assert sorted(await all_of(ours.get("kinds/*"))) == expected
            found = await all_of(ours.get("kinds/*", accept_replies=aio.ReplyKeyExpr.ANY))
            assert sorted(found) == sorted([*expected, "elsewhere=put"])

    run(main())


def test_nobody_and_too_late(both: Meet) -> None:
    async def main() -> None:
        async with both() as (ours, theirs):
            assert await all_of(ours.get("nobody/**", timeout=20)) == []
            held: list[zenoh.Query] = []
            theirs.declare_queryable("late", held.append)
            async with ours.declare_querier("late", timeout=0.05) as querier:
                await matching(querier)
                # The router says it too, if it is the first to see it.
                assert set(await all_of(querier.get())) == {"!Timeout"}
            async with ours.declare_queryable("late/too") as queryable:
                await matching(theirs.declare_querier("late/too"))
                assert set(await said_to_them(theirs, "late/too", timeout=0.05)) == {"!Timeout"}
                with await queryable.recv() as query:
                    await query.reply("late/too", "x")
            for one in held:
                one.drop()  # type: ignore[no-untyped-call]

    run(main())


@asynccontextmanager
async def one_and_a_process(
    way: str, port: int, key: str, *, theirs_dies: bool
) -> AsyncIterator[tuple[Any, Popen[str]]]:
    """A session here, and a process of the other kind of node that they have in between."""
    router, own = f"tcp/127.0.0.1:{port}", f"tcp/127.0.0.1:{free_port()}"
    here, there = {
        "through a router": (
            node_settings("client", connect=router),
            node_settings("client", connect=router),
        ),
        "peer that listens": (
            node_settings("peer", connect=own),
            node_settings("peer", listen=own),
        ),
        "peer that dials": (node_settings("peer", listen=own), node_settings("peer", connect=own)),
        "client": (node_settings("peer", listen=own), node_settings("client", connect=own)),
    }[way]
    program = THEIRS if theirs_dies else OURS
    session: AbstractAsyncContextManager[Any]
    if theirs_dies:
        session = aio.open(aio.Config.from_dict(here))
    else:
        session = opened(here)
    if way == "peer that listens":
        async with process(program, there, key) as child, session as one:
            yield one, child
    else:
        async with session as one, process(program, there, key) as child:
            yield one, child


DYING = ["through a router", "peer that listens", "peer that dials", "client"]


@pytest.mark.parametrize("way", DYING)
def test_a_queryable_of_theirs_that_is_killed_ends_the_query(port: int, way: str) -> None:
    async def main() -> None:
        async with (
            one_and_a_process(way, port, "killed", theirs_dies=True) as (ours, child),
            ours.declare_querier("killed", timeout=25, consolidation=NONE) as querier,
        ):
            await matching(querier)
            replies = querier.get()
            assert said(await within(replies.recv())) == "killed=so far"
            assert not replies.finished
            child.kill()
            assert await all_of(replies) == []
            await until(lambda: not querier.matching_status.matching)

    run(main())


@pytest.mark.parametrize("way", DYING)
def test_a_queryable_of_ours_that_is_killed_ends_the_query(port: int, way: str) -> None:
    async def main() -> None:
        async with one_and_a_process(way, port, "killed", theirs_dies=False) as (theirs, child):
            querier = theirs.declare_querier(
                "killed", timeout=25, consolidation=zenoh.ConsolidationMode.NONE
            )
            await matching(querier)
            replies: Taker[zenoh.Reply] = Taker()
            ended = asyncio.Event()
            end = functools.partial(asyncio.get_running_loop().call_soon_threadsafe, ended.set)
            querier.get(zenoh.handlers.Callback(replies, end))
            assert said(await replies.get()) == "killed=so far"
            assert not ended.is_set()
            child.kill()
            await within(ended.wait())
            assert replies.empty()
            await until(lambda: not querier.matching_status.matching)

    run(main())


def test_many_replies(both: Meet) -> None:
    count = 3_000

    async def main() -> None:
        async with both() as (ours, theirs):

            async def answer(query: aio.Query) -> None:
                for n in range(count):
                    await query.reply(f"many/{n}", str(n))

            async with ours.declare_queryable("many/*", answer):
                await matching(theirs.declare_querier("many/*"))
                found = await said_to_them(
                    theirs, "many/*", consolidation=zenoh.ConsolidationMode.NONE
                )
                assert found == [f"many/{n}={n}" for n in range(count)]

            def their_answer(query: zenoh.Query) -> None:
                with query:
                    for n in range(count):
                        query.reply(f"many/{n}", str(n))

            theirs.declare_queryable("many/*", their_answer)
            async with ours.declare_querier("many/*") as querier:
                await matching(querier)
            replies = ours.get("many/*", consolidation=NONE)
            assert await all_of(replies) == [f"many/{n}={n}" for n in range(count)]
            assert replies.dropped == 0

    run(main())


def test_large_bodies_and_replies(both: Meet) -> None:
    large = bytes(range(256)) * 8_192

    async def main() -> None:
        async with both() as (ours, theirs):

            def echo(query: zenoh.Query) -> None:
                with query:
                    assert query.payload is not None
                    query.reply("echo", query.payload)

            theirs.declare_queryable("echo", echo)
            async with ours.declare_querier("echo") as querier:
                await matching(querier)
                [reply] = [reply async for reply in querier.get(payload=large)]
                assert reply.ok is not None
                assert reply.ok.payload == large

    run(main())


def test_liveliness_both_ways(both: Meet) -> None:
    async def main() -> None:
        async with both() as (ours, theirs):
            theirs_live, ours_live = theirs.liveliness(), ours.liveliness()

            # Their token, our subscribers.
            async with ours_live.declare_subscriber("live/**") as future:
                # The router has heard of it when it has answered what came later.
                assert await all_of(ours_live.get("live/*")) == []
                token = theirs_live.declare_token("live/1")
                sample = await future.recv()
                assert (str(sample.key_expr), sample.kind.name) == ("live/1", "PUT")
                assert await all_of(ours_live.get("live/*")) == ["live/1="]
                async with ours_live.declare_subscriber("live/1", history=True) as history:
                    assert str((await history.recv()).key_expr) == "live/1"
                token.undeclare()  # type: ignore[no-untyped-call]
                assert (await future.recv()).kind.name == "DELETE"
                assert await all_of(ours_live.get("live/*")) == []

            # Our token, their query and subscribers.
            mine = await ours_live.declare_token("live/2")
            assert await all_of(ours_live.get("live/*")) == ["live/2="]
            await they_see_alive(theirs, "live/*", ["live/2"])
            got: Taker[zenoh.Sample] = Taker()
            subscriber = theirs_live.declare_subscriber("live/**", got, history=True)
            theirs_sample = await got.get()
            assert str(theirs_sample.key_expr) == "live/2"
            await mine.undeclare()
            assert (await got.get()).kind == zenoh.SampleKind.DELETE
            subscriber.undeclare()  # type: ignore[no-untyped-call]

    run(main())


@pytest.mark.parametrize("way", DYING)
def test_a_killed_process_of_theirs_is_not_alive(port: int, way: str) -> None:
    async def main() -> None:
        async with (
            one_and_a_process(way, port, "dead/soon", theirs_dies=True) as (ours, child),
            ours.liveliness().declare_subscriber("dead/*", history=True) as subscriber,
        ):
            sample = await within(subscriber.recv())
            assert (str(sample.key_expr), sample.kind.name) == ("dead/soon", "PUT")
            child.kill()
            sample = await within(subscriber.recv())
            assert (str(sample.key_expr), sample.kind.name) == ("dead/soon", "DELETE")

    run(main())


@pytest.mark.parametrize("way", DYING)
def test_a_killed_process_of_ours_is_not_alive(port: int, way: str) -> None:
    async def main() -> None:
        async with one_and_a_process(way, port, "dead/soon", theirs_dies=False) as (theirs, child):
            got: Taker[zenoh.Sample] = Taker()
            theirs.liveliness().declare_subscriber("dead/*", got, history=True)
            sample = await got.get()
            assert (str(sample.key_expr), sample.kind) == ("dead/soon", zenoh.SampleKind.PUT)
            child.kill()
            sample = await got.get()
            assert (str(sample.key_expr), sample.kind) == ("dead/soon", zenoh.SampleKind.DELETE)

    run(main())


def test_a_closed_session_of_ours_is_not_alive(port: int) -> None:
    async def main() -> None:
        with reference("client", connect=port) as theirs:
            got: Taker[zenoh.Sample] = Taker()
            theirs.liveliness().declare_subscriber("ours/*", got, history=True)
            async with aio.open(config("client", connect=port)) as ours:
                await ours.liveliness().declare_token("ours/1")
                assert (await got.get()).kind == zenoh.SampleKind.PUT
            assert (await got.get()).kind == zenoh.SampleKind.DELETE

    run(main())
