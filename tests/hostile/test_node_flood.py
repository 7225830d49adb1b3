"""Floods of declarations, interests and queries: refused beyond named limits, and counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.hostile.peers import BLOCK, Peer, Victim, attacked, opened, put, until
from zenwire import aio
from zenwire.routing import Limits
from zenwire.wire.data import Put, Query, Reply
from zenwire.wire.declare import (
    DeclareFinal,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    UndeclareKeyExpr,
    UndeclareSubscriber,
    UndeclareToken,
)
from zenwire.wire.encoding import Encoding
from zenwire.wire.linkstate import OAM_LINKSTATE, LinkState, LinkStateList
from zenwire.wire.network import Declare, Interest, NetworkMessage, Oam, Request, Response
from zenwire.wire.objects import encode
from zenwire.wire.structs import QueryBody
from zenwire.wire.values import InterestMode, Mapping, WhatAmI, WireExpr, ZenohId


def declare(body: Any) -> Declare:
    return Declare(body=body, qos=BLOCK)


def alias(id: int, key: str) -> Declare:
    return declare(DeclareKeyExpr(expr_id=id, key=WireExpr(0, key)))


def subscriber(id: int, key: str) -> Declare:
    return declare(DeclareSubscriber(id=id, key=WireExpr(0, key)))


def queryable(id: int, key: str) -> Declare:
    return declare(DeclareQueryable(id=id, key=WireExpr(0, key)))


def token(id: int, key: str) -> Declare:
    return declare(DeclareToken(id=id, key=WireExpr(0, key)))


def interest(id: int, key: str | None = None, mode: InterestMode = InterestMode.FUTURE) -> Interest:
    expr = None if key is None else WireExpr(0, key)
    kinds: dict[str, Any] = {
        "subscribers": True,
        "queryables": True,
        "tokens": True,
        "keyexprs": True,
    }
    return Interest(id=id, mode=mode, key=expr, qos=BLOCK, **kinds)


def query(id: int, key: str = "silent", payload: bytes | None = None) -> Request:
    body = None if payload is None else QueryBody(encoding=Encoding(), payload=payload)
    return Request(request_id=id, key=WireExpr(0, key), body=Query(body=body), qos=BLOCK)


async def through(victim: Victim, peer: Peer) -> None:
    """All that a peer said has been heard."""
    peer.send(put(b"end"))
    await peer.drain()
    await until(lambda: b"end" in victim.payloads)


# What a face may declare. The names are those of the limits and counters of routing.


@dataclass(frozen=True)
class Flood:
    """Messages without end, the limit they meet, and what is counted of a thousand."""

    messages: Callable[[int], NetworkMessage]
    limits: Limits
    counter: str
    refused: int


def deep(number: int, depth: int = 2_000) -> str:
    return f"{number}/" + "/".join("d" * depth)


FLOODS = {
    "distinct key expressions as aliases": Flood(
        lambda n: alias(n + 1, f"flood/{n}"), Limits(aliases=100), "limit_aliases", 900
    ),
    "distinct subscribers": Flood(
        lambda n: subscriber(n, f"flood/{n}"), Limits(declarations=100), "limit_declarations", 900
    ),
    "one key under many ids": Flood(
        lambda n: subscriber(n, "flood"), Limits(declarations=100), "limit_declarations", 900
    ),
    "all kinds together": Flood(
        lambda n: (subscriber, queryable, token)[n % 3](n, f"flood/{n}"),
        Limits(declarations=100),
        "limit_declarations",
        900,
    ),
    "liveliness tokens": Flood(
        lambda n: token(n, f"flood/{n}"), Limits(declarations=100), "limit_declarations", 900
    ),
    "very long key expressions": Flood(
        lambda n: subscriber(n, f"{n}/" + "x" * 5_000), Limits(), "bad_key", 1_000
    ),
    "very long aliases": Flood(lambda n: alias(n + 1, "x" * 5_000), Limits(), "bad_key", 1_000),
    "aliases of aliases that are none": Flood(
        lambda n: declare(
            DeclareKeyExpr(expr_id=n + 1, key=WireExpr(60_000, "/x", Mapping.RECEIVER))
        ),
        Limits(),
        "unknown_scope",
        1_000,
    ),
    "deep key expressions": Flood(
        lambda n: subscriber(n, deep(n, 100)), Limits(chunks=10_100), "limit_declarations", 900
    ),
    "an id that moves to deeper keys": Flood(
        lambda n: subscriber(n % 100, "a" if n < 100 else deep(n, 99)),
        Limits(chunks=1_090),
        "limit_declarations",
        891,
    ),
    "deep interests": Flood(
        lambda n: interest(n, deep(n, 99)), Limits(chunks=4_000), "limit_interests", 990
    ),
    "interests": Flood(
        lambda n: interest(n, f"flood/{n}"), Limits(interests=100), "limit_interests", 900
    ),
    "an alias for two keys": Flood(
        lambda n: alias(1, f"flood/{n}"), Limits(), "alias_conflict", 999
    ),
    "undeclare of unknown ids": Flood(
        lambda n: declare(UndeclareSubscriber(id=n)), Limits(), "unknown_undeclare", 1_000
    ),
    "undeclare of unknown aliases": Flood(
        lambda n: declare(UndeclareKeyExpr(expr_id=n % 60_000)),
        Limits(),
        "unknown_undeclare",
        1_000,
    ),
    "undeclare of unknown tokens": Flood(
        lambda n: declare(UndeclareToken(id=n)), Limits(), "unknown_undeclare", 1_000
    ),
    "ends of interests that nobody has": Flood(
        lambda n: Declare(interest_id=n + 1, body=DeclareFinal(), qos=BLOCK),
        Limits(),
        "unknown_final",
        1_000,
    ),
    "queries that nobody answers": Flood(
        query, Limits(pending_queries=100), "limit_pending_queries", 900
    ),
    "queries of one id": Flood(lambda _: query(1), Limits(), "duplicate_request", 999),
    "queries that carry much": Flood(
        lambda n: query(n, payload=bytes(10_000)),
        Limits(pending_bytes=110_000),
        "limit_pending_queries",
        990,
    ),
    "answers to nothing": Flood(
        lambda n: Response(
            request_id=n, key=WireExpr(0, "x"), qos=BLOCK, body=Reply(body=Put(payload=b""))
        ),
        Limits(),
        "unknown_request",
        1_000,
    ),
    "nodes told by link state": Flood(
        lambda n: Oam(
            id=OAM_LINKSTATE,
            qos=BLOCK,
            body=encode(
                LinkStateList(
                    entries=(LinkState(psid=n, sn=1, zid=ZenohId(n.to_bytes(4, "big") + b"z")),)
                )
            ),
        ),
        Limits(nodes=100),
        "limit_nodes",
        900,
    ),
}


@pytest.mark.parametrize("text", FLOODS)
def test_a_flood_meets_its_limit(text: str) -> None:
    flood = FLOODS[text]

    async def scenario() -> None:
        async with attacked(limits=flood.limits) as victim:
            held: list[aio.Query] = []
            silent = victim.session.declare_queryable("silent", held.append)
            async with silent, opened(victim, "accepted") as peer:
                peer.flood(flood.messages(n) for n in range(1_000))
                await through(victim, peer)
                assert getattr(victim.stats.routing, flood.counter) == flood.refused
                # Refused is what was said, not who said it.
                assert victim.stats.endings == {}
                assert len(victim.node.neighbours) == 2
                await peer.close()
                await until(lambda: len(victim.node.neighbours) == 1)
                assert not victim.node.tables._core.queries._live

    asyncio.run(scenario())


def test_an_interest_that_is_repeated_is_passed_on_once() -> None:
    """A peer that never says that it told all is asked for its tokens, on behalf of clients."""

    async def scenario() -> None:
        async with attacked() as victim, opened(victim, "accepted"):
            client = await Peer.connect(victim)
            client.whatami = WhatAmI.CLIENT
            await client.open()
            asked = Interest(
                id=1, mode=InterestMode.CURRENT, tokens=True, key=WireExpr(0, "t/**"), qos=BLOCK
            )
            client.flood(asked for _ in range(1_000))
            await through(victim, client)
            assert victim.stats.routing.ignored_interest == 999
            assert len(victim.node.tables._core.upstream._deadlines) == 1

    asyncio.run(scenario())
