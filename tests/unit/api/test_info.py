"""What a session knows of others beyond eclipse-zenoh's words: agreements and declarations."""

from __future__ import annotations

import pytest

from tests.ports import free_port
from tests.unit.api.nodes import config, run, until
from zenwire import aio


@pytest.mark.parametrize("mode", ["peer", "client"])
def test_what_was_agreed_and_declared(mode: str) -> None:
    async def main() -> None:
        port = free_port()
        async with (
            aio.open(config(listen=port)) as theirs,
            theirs.declare_subscriber("their/sub"),
            theirs.declare_queryable("their/**"),
            theirs.liveliness().declare_token("their/token"),
            aio.open(config(mode, connect=port)) as ours,
            ours.declare_subscriber("our/sub"),
            # A client is told what it asks for.
            ours.declare_publisher("**"),
            ours.declare_querier("**"),
            ours.liveliness().declare_subscriber("**", history=True),
        ):
            await until(lambda: len(ours.info.declared()) == 3)
            assert {(one.kind, one.key) for one in ours.info.declared()} == {
                ("subscriber", "their/sub"),
                ("queryable", "their/**"),
                ("token", "their/token"),
            }
            assert {one.zid for one in ours.info.declared()} == {theirs.zid()}
            await until(lambda: ("subscriber", "our/sub") in _told(theirs))
            [neighbour] = ours.info.stats().neighbours
            assert neighbour.peer.zid == neighbour.zid
            assert neighbour.peer.qos
            assert neighbour.peer.lease == 10.0
        assert not ours.info.declared()

    run(main())


def _told(session: aio.Session) -> set[tuple[str, str]]:
    return {(one.kind, one.key) for one in session.info.declared()}
