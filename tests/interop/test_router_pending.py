"""Very many queries at a time through a router of ours, by sessions of the reference."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
import zenoh

from tests.interop.exchange import node_settings, opened
from tests.interop.routers import chain
from tests.unit.api.nodes import run, until
from zenwire import aio
from zenwire.node import open_node
from zenwire.routing import Limits

pytestmark = pytest.mark.interop

QUERIES = 10_000


class Asker:
    """Queries of a session of the reference, and the answers to them."""

    def __init__(self, session: zenoh.Session) -> None:
        self.replies: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.ended = 0
        self._session = session

    def ask(self, count: int) -> None:
        for number in range(count):
            # One that is not called indirectly needs no thread of its own.
            handler = zenoh.handlers.Callback(self._reply, drop=self._end, indirect=False)
            self._session.get(f"held/{number}", handler, timeout=120.0)

    def _reply(self, reply: zenoh.Reply) -> None:
        if reply.ok is not None:
            self.replies[str(reply.ok.key_expr)] += 1
        else:
            assert reply.err is not None
            self.errors[reply.err.payload.to_string()] += 1

    def _end(self) -> None:
        self.ended += 1


def answer(queries: list[zenoh.Query]) -> None:
    for query in queries:
        query.reply(query.key_expr, b"answer")
        query.drop()  # type: ignore[no-untyped-call] # its stubs have none
    queries.clear()


def test_ten_thousand_queries_at_a_time_are_all_answered() -> None:
    async def main() -> None:
        async with chain("Z") as net:
            asking, answering = await net.theirs("client", 0), await net.theirs("client", 0)
            held: list[zenoh.Query] = []
            await asyncio.to_thread(answering.declare_queryable, "held/*", held.append)
            asker = Asker(asking)
            await asyncio.to_thread(asker.ask, QUERIES)
            # Nothing is answered before all of them are under way.
            await until(lambda: len(held) + asker.ended >= QUERIES)
            assert (len(held), asker.ended) == (QUERIES, 0)
            await asyncio.to_thread(answer, held)
            await until(lambda: asker.ended == QUERIES)
            assert asker.errors == {}
            assert asker.replies == {f"held/{number}": 1 for number in range(QUERIES)}

    run(main())


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (Limits(pending_queries=10), "at most 10 pending queries of a session"),
        (Limits(pending_bytes=10_000), "at most 10000 bytes of pending queries of a session"),
    ],
)
def test_a_query_beyond_the_limit_is_answered_with_the_reason(limits: Limits, why: str) -> None:
    async def main() -> None:
        settings = node_settings("router", listen="tcp/127.0.0.1:0")
        config = aio.Config.from_dict(settings)
        node = await open_node(config, limits=limits)
        there = node_settings("client", connect=str(node.locators()[0]))
        async with aio.Session(node, config), opened(there) as asking, opened(there) as answering:
            held: list[zenoh.Query] = []
            await asyncio.to_thread(answering.declare_queryable, "held/*", held.append)
            asker = Asker(asking)
            await asyncio.to_thread(asker.ask, 100)
            await until(lambda: len(held) + asker.ended >= 100)
            assert held
            refused = asker.ended
            assert node.stats().routing.limit_pending_queries == refused >= 80
            [(text, count)] = asker.errors.items()
            assert (why in text, count) == (True, refused), text
            accepted = len(held)
            await asyncio.to_thread(answer, held)
            await until(lambda: asker.ended == 100)
            assert asker.replies.total() == accepted
            assert asker.errors.total() == refused

    run(main())
