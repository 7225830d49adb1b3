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
from tests.unit.sync.places import TIMEOUT, config, free_port, until

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
        assert [reply.ok.payload.to_string() for reply in session.get("q")] == ["x"]
        waiting = session.get("silent", timeout=TIMEOUT)
        process.kill()
        assert all(reply.ok is None for reply in waiting)
        until(lambda: not session.info.routers_zid())
    session.put("a", "local")
    assert subscriber.recv().payload.to_string() == "local"
    assert list(session.get("q", timeout=TIMEOUT)) == []
    with session, router(port):
        until(lambda: [reply.ok for reply in session.get("q")])
