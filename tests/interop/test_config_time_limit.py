"""``batching/time_limit``: messages of a busy link wait for others, and all arrive."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from tests.ports import free_port
from zenwire import aio
from zenwire.links.stream import StreamLink

zenoh = pytest.importorskip("zenoh")

pytestmark = pytest.mark.interop

TIMEOUT = 30.0
COUNT = 2_000
OFF = {"multicast": {"enabled": False}, "gossip": {"enabled": False}}


def _writes(limit: int, express: bool, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often our link is written to for so many puts, two in each round of the loop."""
    port = free_port()
    there = {"mode": "peer", "scouting": OFF, "listen": {"endpoints": [f"tcp/127.0.0.1:{port}"]}}
    here: dict[str, Any] = {
        "mode": "client",
        "scouting": OFF,
        "connect": {"endpoints": [f"tcp/127.0.0.1:{port}"]},
        "transport": {"link": {"tx": {"queue": {"batching": {"time_limit": limit}}}}},
    }
    other = zenoh.open(zenoh.Config.from_json5(json.dumps(there)))
    heard: list[bytes] = []
    done = threading.Event()

    def take(sample: Any) -> None:
        heard.append(sample.payload.to_bytes())
        if len(heard) == COUNT:
            done.set()

    subscriber = other.declare_subscriber("a", take)
    writes = 0
    write = StreamLink.write

    def counted(link: StreamLink, data: bytes) -> None:
        nonlocal writes
        writes += 1
        write(link, data)

    async def main() -> None:
        async with aio.open(aio.Config.from_dict(here)) as session:
            monkeypatch.setattr(StreamLink, "write", counted)
            for number in range(COUNT):
                await session.put("a", b"%d" % number, express=express)
                if number % 2:
                    await asyncio.sleep(0)
            monkeypatch.setattr(StreamLink, "write", write)
            # Nothing is closed yet: what waits goes out by itself.
            assert await asyncio.to_thread(done.wait, TIMEOUT)

    try:
        asyncio.run(main())
        subscriber.undeclare()
    finally:
        other.close()
    assert heard == [b"%d" % number for number in range(COUNT)]
    return writes


def test_messages_of_a_busy_link_wait_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = _writes(1, False, monkeypatch)
    held = _writes(100, False, monkeypatch)
    assert held < usual / 3
    assert _writes(100, True, monkeypatch) > held * 3
