"""Our peers and those of the reference, without a router; and what links can negotiate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import zenoh

from tests.unit.api.nodes import config, free_port, run, until
from tests.unit.api.reference import Taker, reference
from zenwire import aio

pytestmark = pytest.mark.interop


@asynccontextmanager
async def peers(
    dialling: str, ours_has: dict[str, Any] | None = None, **theirs_has: Any
) -> AsyncIterator[tuple[aio.Session, zenoh.Session]]:
    """Two peers, either of which dials."""
    port = free_port()
    mine = ours_has or {}
    if dialling == "ours":
        with reference("peer", listen=port, **theirs_has) as theirs:
            async with aio.open(config(connect=port, **mine)) as ours:
                yield ours, theirs
    else:
        async with aio.open(config(listen=port, **mine)) as ours:
            # It waits for our answers, which need the loop.
            opened = reference("peer", connect=port, **theirs_has)
            theirs = await asyncio.to_thread(opened.__enter__)
            try:
                yield ours, theirs
            finally:
                await asyncio.to_thread(opened.__exit__, None, None, None)


async def talk(ours: aio.Session, theirs: zenoh.Session, payload: bytes = b"x") -> None:
    """Publish and query, both ways."""
    got: Taker[zenoh.Sample] = Taker()
    theirs.declare_subscriber("a/*", got)
    block, their_block = aio.CongestionControl.BLOCK, zenoh.CongestionControl.BLOCK
    async with ours.declare_publisher("a/1", congestion_control=block) as publisher:
        await until(lambda: publisher.matching_status.matching)
        for n in range(3):
            await publisher.put(payload + bytes([n]))
        for n in range(3):
            assert (await got.get()).payload.to_bytes() == payload + bytes([n])
    async with ours.declare_subscriber("b/*") as subscriber:
        their = theirs.declare_publisher("b/1", congestion_control=their_block)
        await until(lambda: their.matching_status.matching)  # type: ignore[attr-defined]
        for n in range(3):
            await asyncio.to_thread(their.put, payload + bytes([n]))
        for n in range(3):
            assert (await subscriber.recv()).payload == payload + bytes([n])

    def answer(query: zenoh.Query) -> None:
        with query:
            query.reply("q/theirs", payload)

    async def our_answer(query: aio.Query) -> None:
        await query.reply("q/ours", payload)

    theirs.declare_queryable("q/theirs", answer)
    async with (
        ours.declare_queryable("q/ours", our_answer),
        ours.declare_querier("q/theirs") as querier,
    ):
        await until(lambda: querier.matching_status.matching)
        [reply] = [reply async for reply in querier.get()]
        assert reply.ok is not None
        assert reply.ok.payload == payload
        their_querier = theirs.declare_querier("q/ours")
        await until(lambda: their_querier.matching_status.matching)  # type: ignore[attr-defined]
        replies: Taker[zenoh.Reply] = Taker()
        their_querier.get(replies)
        their_reply = (await replies.get()).ok
        assert their_reply is not None
        assert their_reply.payload.to_bytes() == payload


@pytest.mark.parametrize("dialling", ["ours", "theirs"])
def test_peers(dialling: str) -> None:
    async def main() -> None:
        async with peers(dialling) as (ours, theirs):
            await until(ours.info.peers_zid)
            assert [str(zid) for zid in ours.info.peers_zid()] == [str(theirs.zid())]
            await talk(ours, theirs)
            async with ours.liveliness().declare_subscriber("t/*", history=True) as subscriber:
                token = theirs.liveliness().declare_token("t/theirs")
                assert str((await subscriber.recv()).key_expr) == "t/theirs"
                token.undeclare()  # type: ignore[no-untyped-call]
                assert (await subscriber.recv()).kind is aio.SampleKind.DELETE
            got: Taker[zenoh.Sample] = Taker()
            theirs.liveliness().declare_subscriber("t/*", got, history=True)
            async with ours.liveliness().declare_token("t/ours"):
                assert str((await got.get()).key_expr) == "t/ours"
            assert (await got.get()).kind == zenoh.SampleKind.DELETE

    run(main())


LARGE = b"compressible " * 20_000
LINKS: dict[str, dict[str, dict[str, Any]]] = {
    "compression": {"unicast": {"compression": {"enabled": True}}},
    "no qos": {"unicast": {"qos": {"enabled": False}}},
    "low latency": {"unicast": {"lowlatency": True, "qos": {"enabled": False}}},
    "small batches": {"link": {"tx": {"batch_size": 1_024}}},
}


@pytest.mark.parametrize("dialling", ["ours", "theirs"])
@pytest.mark.parametrize("name", list(LINKS))
def test_links_of_all_kinds(dialling: str, name: str) -> None:
    """Low latency has no fragments, so what it carries is small."""
    payload = LARGE[:30_000] if name == "low latency" else LARGE

    async def main() -> None:
        how = LINKS[name]
        theirs_has = {
            f"transport__{part}__{key}": value
            for part, values in how.items()
            for key, value in values.items()
        }
        async with peers(dialling, {"transport": how}, **theirs_has) as (ours, theirs):
            await talk(ours, theirs, payload)
            [transport] = ours.info.transports()
            assert transport.is_qos is (name in {"compression", "small batches"})

    run(main())


@pytest.mark.parametrize("dialling", ["ours", "theirs"])
def test_user_and_password(dialling: str, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("me:secret\nyou:hidden\n")
    dictionary = {"dictionary_file": str(users)}

    async def main() -> None:
        ours_auth = {"user": "me", "password": "secret", **dictionary}
        theirs_auth = {"user": "you", "password": "hidden", **dictionary}
        async with peers(
            dialling,
            {"transport": {"auth": {"usrpwd": ours_auth}}},
            transport__auth__usrpwd=theirs_auth,
        ) as (ours, theirs):
            await talk(ours, theirs)

    run(main())


def test_a_wrong_password_is_refused(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("me:secret\n")

    async def main() -> None:
        port = free_port()
        demanded = {"dictionary_file": str(users)}
        auth = {"auth": {"usrpwd": {"user": "me", "password": "wrong"}}}
        with (
            reference("router", listen=port, transport__auth__usrpwd=demanded),
            pytest.raises(aio.LinkError),
        ):
            await aio.open(config("client", connect=port, transport=auth))

    run(main())
