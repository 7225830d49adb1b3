"""A router that is killed under a program of the synchronous API."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import zenwire
from tests.interop.exchange import node_settings
from tests.ports import free_port
from tests.unit.api.reference import reference
from tests.unit.sync.places import TIMEOUT, config, said, until

pytestmark = pytest.mark.interop

ROUTER = """
import sys, zenoh
with zenoh.open(zenoh.Config.from_json5(sys.argv[1])) as session:
    queryable = session.declare_queryable("q", lambda query: query.reply("q", "x"))
    held = []
    silent = session.declare_queryable("silent", held.append)
    print("ready", flush=True)
    sys.stdin.read()
"""


@contextmanager
def router(port: int) -> Iterator[subprocess.Popen[str]]:
    settings = json.dumps(node_settings("router", listen=f"tcp/127.0.0.1:{port}"))
    process = subprocess.Popen(  # our own program
        [sys.executable, "-c", ROUTER, settings],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_router_that_is_killed() -> None:
    """Calls neither hang nor fail; queries end; and when there is a router again, all goes on."""
    port = free_port()
    with router(port) as process:
        session = zenwire.open(config("client", connect=port))
        subscriber = session.declare_subscriber("a")
        assert [said(reply) for reply in session.get("q") if reply.ok] == ["x"]
        waiting = session.get("silent", timeout=TIMEOUT)
        process.kill()
        assert all(reply.ok is None for reply in waiting)
        until(lambda: not session.info.routers_zid())
    session.put("a", "local")
    assert subscriber.recv().payload.to_string() == "local"
    assert list(session.get("q", timeout=TIMEOUT)) == []
    with session, router(port):
        until(lambda: [reply.ok for reply in session.get("q")])


def test_two_thousand_subscribers_at_a_router() -> None:
    """All are declared, and one message of theirs reaches each. More take a router long."""
    port = free_port()
    with (
        reference("router", listen=port, scouting__delay=0) as theirs,
        zenwire.open(config("client", connect=port)) as session,
    ):
        kept = [session.declare_subscriber(f"many/{number}") for number in range(2000)]
        last = theirs.declare_publisher("many/1999")
        until(lambda: last.matching_status.matching)  # type: ignore[attr-defined]
        theirs.put("many/*", "x")
        assert all(subscriber.recv().payload == "x" for subscriber in kept)
        last.put("y")
        assert kept[-1].recv().payload == "y"
        assert kept[0].try_recv() is None
