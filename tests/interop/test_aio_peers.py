"""Our peers and nodes of the reference, without a router: next to each other, and in between."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
import zenoh

from tests.interop.exchange import (
    ask_them,
    exchange,
    matching,
    meeting,
    node_settings,
    opened,
    said,
    they_see_alive,
)
from tests.ports import free_port
from tests.unit.api.nodes import run, until
from tests.unit.api.reference import Taker
from zenwire import aio

pytestmark = pytest.mark.interop

LARGE = bytes(range(256)) * 2_000


@pytest.mark.parametrize("role", ["peer", "dialling peer"])
def test_peers(role: str) -> None:
    async def main() -> None:
        async with meeting(role) as (ours, theirs):
            assert [str(zid) for zid in ours.info.peers_zid()] == [str(theirs.zid())]
            assert [str(zid) for zid in theirs.info.peers_zid()] == [str(ours.zid())]
            await exchange(ours, theirs, LARGE)

    run(main())


def test_peers_that_dial_each_other_have_one_session() -> None:
    async def main() -> None:
        here, there = (f"tcp/127.0.0.1:{free_port()}" for _ in range(2))
        mine = aio.Config.from_dict(node_settings("peer", listen=here, connect=there))
        async with AsyncExitStack() as stack:
            opening = opened(node_settings("peer", listen=there, connect=here))
            task = asyncio.create_task(opening.__aenter__())
            ours = await stack.enter_async_context(aio.open(mine))
            theirs = await task
            stack.push_async_exit(opening)
            await until(lambda: ours.info.transports() and theirs.info.transports())
            await exchange(ours, theirs, LARGE)
            assert [str(zid) for zid in ours.info.peers_zid()] == [str(theirs.zid())]
            assert [str(zid) for zid in theirs.info.peers_zid()] == [str(ours.zid())]

    run(main())


def test_their_clients_talk_through_our_peer() -> None:
    """Nobody but our node is between them."""

    def answer(query: zenoh.Query) -> None:
        with query:
            assert query.payload is not None
            query.reply("q", query.payload)

    async def main() -> None:
        where = f"tcp/127.0.0.1:{free_port()}"
        settings = node_settings("client", connect=where)
        async with (
            aio.open(aio.Config.from_dict(node_settings("peer", listen=where))) as ours,
            opened(settings) as one,
            opened(settings) as two,
        ):
            await until(lambda: len(ours.info.transports()) == 2)
            got: Taker[zenoh.Sample] = Taker()
            subscriber = two.declare_subscriber("a/*", got)
            publisher = one.declare_publisher(
                "a/1", congestion_control=zenoh.CongestionControl.BLOCK
            )
            await matching(publisher)
            await asyncio.to_thread(publisher.put, LARGE, attachment="more")
            sample = await got.get()
            assert sample.payload.to_bytes() == LARGE
            assert sample.attachment is not None
            assert sample.attachment.to_string() == "more"
            subscriber.undeclare()  # type: ignore[no-untyped-call]
            await until(lambda: not publisher.matching_status.matching)  # type: ignore[attr-defined]

            two.declare_queryable("q", answer)
            querier = one.declare_querier("q")
            await matching(querier)
            [reply] = await ask_them(querier, payload=LARGE)
            assert reply.ok is not None
            assert reply.ok.payload.to_bytes() == LARGE

            token = two.liveliness().declare_token("t/1")
            await they_see_alive(one, "t/*", ["t/1"])
            one.liveliness().declare_subscriber("t/*", got, history=True)
            while (await got.get()).kind != zenoh.SampleKind.PUT:
                pass
            token.undeclare()  # type: ignore[no-untyped-call]
            while (await got.get()).kind != zenoh.SampleKind.DELETE:
                pass
            assert [said(one) async for one in ours.liveliness().get("t/*")] == []

    run(main())
