"""A client with very many wildcard subscribers: other clients do not pay for them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.hostile.peers import TIMEOUT, Peer, config, until
from tests.unit.cli.test_router import running
from zenwire import aio
from zenwire.wire.declare import DeclareSubscriber
from zenwire.wire.network import Declare
from zenwire.wire.values import WhatAmI, WireExpr

BLOCK = aio.CongestionControl.BLOCK
PATTERNS = 60_000
PUTS = 50
MOST = 5.0
"""Milliseconds of CPU for one sample; a comparison with all patterns takes four times as long."""


def cpu(pid: int) -> float:
    """Milliseconds that a process has used, all of its threads together."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6


@asynccontextmanager
async def client(port: int) -> AsyncIterator[Peer]:
    """A client of the router that says what a test wants."""
    peer = Peer(*await asyncio.open_connection("127.0.0.1", port))
    peer.whatami = WhatAmI.CLIENT
    try:
        yield await peer.open(lease=600_000)
    finally:
        await peer.close()


def subscriber(number: int, key: str) -> Declare:
    return Declare(body=DeclareSubscriber(id=number, key=WireExpr(0, key)))


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="needs Linux")
def test_the_first_sample_on_a_new_key_is_cheap() -> None:
    async def scenario(pid: int, locator: str) -> None:
        settings = config("client", connect={"endpoints": [locator]})
        heard: list[str] = []
        async with (
            aio.open(settings) as publisher,
            aio.open(settings) as friend,
            friend.declare_subscriber("**", lambda sample: heard.append(str(sample.key_expr))),
            client(int(locator.rpartition(":")[2])) as greedy,
        ):
            keys = [f"fresh/$*{n}/x" for n in range(PATTERNS)]
            greedy.flood(subscriber(n, key) for n, key in enumerate([*keys, "the/end"]))
            await greedy.drain()
            # A sample for the last subscriber shows that the router has heard of all of them.
            while "the/end" not in repr(greedy.heard):
                await publisher.put("the/end", b"", congestion_control=BLOCK)
                await greedy.hear()
            heard.clear()
            before = cpu(pid)
            for number in range(PUTS):
                key = f"fresh/sensor-{number:04x}w/x"
                await publisher.put(key, b"", congestion_control=BLOCK)
                await until(lambda: key in heard)  # noqa: B023 # called in this turn of the loop
            assert (cpu(pid) - before) / PUTS < MOST

    with running("-l", "tcp/127.0.0.1:0") as (process, line):
        found = re.search(r"tcp/127\.0\.0\.1:\d+", line)
        assert found is not None, line
        asyncio.run(asyncio.wait_for(scenario(process.pid, found[0]), 4 * TIMEOUT))
