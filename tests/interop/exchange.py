"""One session of ours and one of the reference that meet, and all they can say to each other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import zenoh

from tests.ports import free_port
from tests.unit.api.nodes import TIMEOUT, until, within
from tests.unit.api.reference import Taker
from zenwire import aio

__all__ = [
    "PATIENCE",
    "PATIENT",
    "ROLES",
    "WAYS",
    "Meet",
    "Settings",
    "ask_them",
    "exchange",
    "matching",
    "meet_by",
    "meeting",
    "node_settings",
    "opened",
    "publications",
    "queries",
    "said",
    "they_see_alive",
    "tokens",
]

Settings = dict[str, Any]

ROLES = ["router", "peer", "dialling peer", "client"]
"""What the reference is. We dial the first two, the others dial us."""

PATIENCE = {"wait_before_drop": 20_000_000, "max_wait_before_drop_fragments": 20_000_000}
PATIENT: Settings = {
    "transport": {"link": {"tx": {"queue": {"congestion_control": {"drop": PATIENCE}}}}}
}
"""By default what may be dropped waits for a millisecond: too short for a busy machine."""

_OURS = {"router": "client", "peer": "peer", "dialling peer": "peer", "client": "peer"}
_THEIRS = {"router": "router", "peer": "peer", "dialling peer": "peer", "client": "client"}
_BLOCK, _THEIR_BLOCK = aio.CongestionControl.BLOCK, zenoh.CongestionControl.BLOCK


def node_settings(
    mode: str, *, listen: str | None = None, connect: str | None = None, **more: Any
) -> Settings:
    """Of a node that finds nobody but whom it is told of, unless ``more`` says so."""
    scouting: Settings = {"multicast": {"enabled": False}, "gossip": {"enabled": False}}
    if mode == "router":
        # It would wait for half a second to be found.
        scouting["delay"] = 0
    return {
        "mode": mode,
        "scouting": scouting,
        "listen": {"endpoints": [listen] if listen else []},
        "connect": {"endpoints": [connect] if connect else []},
    } | more


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[zenoh.Session]:
    """A session of the reference. It opens in a thread: it may wait for our answers."""
    config = zenoh.Config.from_json5(json.dumps(settings))
    session = await asyncio.to_thread(zenoh.open, config)
    try:
        yield session
    finally:
        await asyncio.to_thread(session.close)


@asynccontextmanager
async def meeting(
    role: str,
    where: str | None = None,
    ours_has: Settings | None = None,
    theirs_has: Settings | None = None,
    our_where: str | None = None,
) -> AsyncIterator[tuple[aio.Session, zenoh.Session]]:
    """Two nodes that are connected over an endpoint, by default one of tcp.

    ``our_where`` is the same endpoint, if ours says it in another way.
    """
    place = where or f"tcp/127.0.0.1:{free_port()}"
    our_place = our_where or place
    mine, theirs_too = ours_has or {}, theirs_has or {}
    if role in {"router", "peer"}:
        async with opened(node_settings(_THEIRS[role], listen=place, **theirs_too)) as theirs:
            settings = node_settings(_OURS[role], connect=our_place, **mine)
            async with aio.open(aio.Config.from_dict(settings)) as ours:
                await until(ours.info.transports)
                yield ours, theirs
    else:
        settings = node_settings(_OURS[role], listen=our_place, **mine)
        async with aio.open(aio.Config.from_dict(settings)) as ours:
            their_settings = node_settings(_THEIRS[role], connect=place, **theirs_too)
            async with opened(their_settings) as theirs:
                await until(ours.info.transports)
                yield ours, theirs


WAYS = ["through a router", "peer", "dialling peer", "client"]
"""Two clients of a router of the reference, or one of the roles above."""

Meet = Callable[[], AbstractAsyncContextManager[tuple[aio.Session, zenoh.Session]]]


def meet_by(way: str, router: int) -> Meet:
    """How the two meet, in a test that does not care."""

    @asynccontextmanager
    async def through() -> AsyncIterator[tuple[aio.Session, zenoh.Session]]:
        where = f"tcp/127.0.0.1:{router}"
        settings = node_settings("client", connect=where, **PATIENT)
        async with opened(settings) as theirs, aio.open(aio.Config.from_dict(settings)) as ours:
            yield ours, theirs

    return through if way == WAYS[0] else lambda: meeting(way, None, PATIENT, PATIENT)


async def matching(one: Any) -> None:
    """Wait until a publisher or querier of either kind has somebody on the other side."""
    await until(lambda: one.matching_status.matching)


def said(reply: Any) -> str:
    """A reply of either kind in a few letters."""
    if reply.ok is None:
        return f"!{reply.err.payload.to_string()}"
    if str(reply.ok.kind) == "SampleKind.DELETE":
        return f"-{reply.ok.key_expr}"
    return f"{reply.ok.key_expr}={reply.ok.payload.to_string()}"


async def ask_them(asker: Any, *selector: Any, **how: Any) -> list[zenoh.Reply]:
    """All replies that a session or a querier of the reference gets."""
    replies: asyncio.Queue[zenoh.Reply | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def take(reply: zenoh.Reply | None) -> None:
        loop.call_soon_threadsafe(replies.put_nowait, reply)

    handler = zenoh.handlers.Callback(take, lambda: take(None))
    await asyncio.to_thread(lambda: asker.get(*selector, handler, **how))
    found = []
    while (reply := await within(replies.get())) is not None:
        found.append(reply)
    return found


async def publications(ours: aio.Session, theirs: zenoh.Session, payloads: list[bytes]) -> None:
    """Puts and a delete, both ways, with all that they carry."""
    wanted: list[bytes | None] = [*payloads, None]
    got: Taker[zenoh.Sample] = Taker()
    subscriber = theirs.declare_subscriber("x/to/*", got)
    async with ours.declare_publisher(
        "x/to/them",
        congestion_control=_BLOCK,
        priority=aio.Priority.INTERACTIVE_LOW,
        express=True,
    ) as publisher:
        await matching(publisher)
        stamp, source = ours.new_timestamp(), aio.SourceInfo(publisher.id, 7)
        how = {"attachment": "more", "timestamp": stamp, "source_info": source}
        for payload in payloads:
            await publisher.put(payload, encoding="my/own;schema", **how)  # type: ignore[arg-type]
        await publisher.delete(**how)  # type: ignore[arg-type]
        for want in wanted:
            sample = await got.get()
            assert str(sample.key_expr) == "x/to/them"
            kind = zenoh.SampleKind.DELETE if want is None else zenoh.SampleKind.PUT
            assert sample.kind == kind
            assert sample.payload.to_bytes() == (want or b"")
            assert sample.priority == zenoh.Priority.INTERACTIVE_LOW
            assert sample.congestion_control == _THEIR_BLOCK
            assert sample.express
            if want is not None:
                assert str(sample.encoding) == "my/own;schema"
            assert sample.attachment is not None
            assert sample.attachment.to_string() == "more"
            assert str(sample.timestamp) == str(stamp)
            assert sample.source_info is not None
            assert str(sample.source_info.source_id.zid) == str(ours.zid())
            assert sample.source_info.source_id.eid == publisher.id.eid
            assert sample.source_info.source_sn == 7
    subscriber.undeclare()  # type: ignore[no-untyped-call]

    async with ours.declare_subscriber("y/to/*") as mine:
        their = theirs.declare_publisher(
            "y/to/us",
            congestion_control=_THEIR_BLOCK,
            priority=zenoh.Priority.INTERACTIVE_LOW,
            express=True,
        )
        await matching(their)
        their_stamp = theirs.new_timestamp()

        def send() -> None:
            more = {
                "attachment": "more",
                "timestamp": their_stamp,
                "source_info": zenoh.SourceInfo(their.id, 8),
            }
            for payload in payloads:
                their.put(payload, encoding=zenoh.Encoding("my/own;schema"), **more)  # type: ignore[arg-type]
            their.delete(**more)  # type: ignore[arg-type]

        sending = asyncio.create_task(asyncio.to_thread(send))
        for want in wanted:
            received = await within(mine.recv())
            assert str(received.key_expr) == "y/to/us"
            our_kind = aio.SampleKind.DELETE if want is None else aio.SampleKind.PUT
            assert received.kind is our_kind
            assert received.payload == (want or b"")
            assert received.priority is aio.Priority.INTERACTIVE_LOW
            assert received.congestion_control is _BLOCK
            assert received.express
            if want is not None:
                assert received.encoding == "my/own;schema"
            assert received.attachment == "more"
            assert str(received.timestamp) == str(their_stamp)
            assert received.source_info is not None
            assert str(received.source_info.source_id.zid) == str(theirs.zid())
            assert received.source_info.source_id.eid == their.id.eid
            assert received.source_info.source_sn == 8
        await sending
        their.undeclare()  # type: ignore[no-untyped-call]
        assert mine.dropped == 0


async def queries(ours: aio.Session, theirs: zenoh.Session, large: bytes) -> None:
    """Who asks gets back what it sent, a delete and an error, both ways."""

    def their_answer(query: zenoh.Query) -> None:
        with query:
            assert query.payload is not None
            assert query.attachment is not None
            query.reply("q/1", query.payload, attachment=query.attachment)
            query.reply_del("q/2")
            query.reply_err("sorry")

    async def our_answer(query: aio.Query) -> None:
        assert query.payload is not None
        await query.reply("q/1", query.payload, attachment=query.attachment)
        await query.reply_del("q/2")
        await query.reply_err("sorry")

    their_queryable = theirs.declare_queryable("q/*", their_answer)
    async with ours.declare_querier("q/*") as querier:
        await matching(querier)
        replies = [reply async for reply in querier.get(payload=large, attachment="more")]
        _are_whole(replies, large)
    their_queryable.undeclare()  # type: ignore[no-untyped-call]

    async with ours.declare_queryable("q/*", our_answer):
        their_querier = theirs.declare_querier("q/*")
        await matching(their_querier)
        _are_whole(await ask_them(their_querier, payload=large, attachment="more"), large)
        their_querier.undeclare()  # type: ignore[no-untyped-call]


def _are_whole(replies: list[Any], large: bytes) -> None:
    assert len(replies) == 3
    values = {str(reply.ok.key_expr): reply.ok for reply in replies if reply.ok is not None}
    assert values["q/1"].payload.to_bytes() == large
    assert values["q/1"].attachment.to_string() == "more"
    assert str(values["q/2"].kind) == "SampleKind.DELETE"
    [error] = [reply.err for reply in replies if reply.ok is None]
    assert error.payload.to_string() == "sorry"


async def they_see_alive(theirs: zenoh.Session, key: str, wanted: list[str]) -> None:
    """Ask until they say so: now and then the reference ends such a query before its replies."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            found = await ask_them(theirs.liveliness(), key)
            if sorted(map(said, found)) == [f"{one}=" for one in wanted]:
                return


async def tokens(ours: aio.Session, theirs: zenoh.Session) -> None:
    """Tokens that are there, come and go, both ways."""
    token = theirs.liveliness().declare_token("t/theirs/1")
    async with ours.liveliness().declare_subscriber("t/theirs/*", history=True) as subscriber:
        assert str((await within(subscriber.recv())).key_expr) == "t/theirs/1"
        second = theirs.liveliness().declare_token("t/theirs/2")
        assert str((await within(subscriber.recv())).key_expr) == "t/theirs/2"
        alive = [said(reply) async for reply in ours.liveliness().get("t/theirs/*")]
        assert sorted(alive) == ["t/theirs/1=", "t/theirs/2="]
        for one in (token, second):
            one.undeclare()  # type: ignore[no-untyped-call]
            sample = await within(subscriber.recv())
            assert sample.kind is aio.SampleKind.DELETE

    got: Taker[zenoh.Sample] = Taker()
    heard: set[str] = set()

    async def they_hear(*wanted: str) -> None:
        # What came too late for a query, the reference gives to subscribers once more.
        while heard != set(wanted):
            sample = await got.get()
            came = sample.kind == zenoh.SampleKind.PUT
            (heard.add if came else heard.remove)(str(sample.key_expr))

    async with ours.liveliness().declare_token("t/ours/1"):
        their = theirs.liveliness().declare_subscriber("t/ours/*", got, history=True)
        await they_hear("t/ours/1")
        async with ours.liveliness().declare_token("t/ours/2"):
            await they_hear("t/ours/1", "t/ours/2")
            await they_see_alive(theirs, "t/ours/*", ["t/ours/1", "t/ours/2"])
        await they_hear("t/ours/1")
    await they_hear()
    their.undeclare()  # type: ignore[no-untyped-call]


async def exchange(ours: aio.Session, theirs: zenoh.Session, large: bytes) -> None:
    """All of it, with a payload that is cut into fragments or not."""
    await publications(ours, theirs, [b"", b"small", large])
    await queries(ours, theirs, large)
    await tokens(ours, theirs)
