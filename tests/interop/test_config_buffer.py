"""``transport/link/rx/buffer_size``: how much our link reads at once of what the reference sends."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

import zenwire
from tests.ports import free_port
from zenwire.links.stream import StreamLink

zenoh = pytest.importorskip("zenoh")

pytestmark = pytest.mark.interop

TIMEOUT = 30.0
OFF = {"multicast": {"enabled": False}, "gossip": {"enabled": False}}
PAYLOAD = bytes(range(256)) * (8 << 12)


@pytest.mark.parametrize(
    ("size", "most"), [(None, 2 << 20), (1, 64 << 10), (300_000, 300_000), (1 << 20, 1 << 20)]
)
def test_reads_are_as_large_as_configured(
    size: int | None, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered: list[int] = []
    get_buffer = StreamLink.get_buffer

    def noted(link: StreamLink, sizehint: int) -> memoryview:
        room = get_buffer(link, sizehint)
        offered.append(len(room))
        return room

    monkeypatch.setattr(StreamLink, "get_buffer", noted)
    port = free_port()
    here: dict[str, Any] = {
        "mode": "peer",
        "scouting": OFF,
        "listen": {"endpoints": [f"tcp/127.0.0.1:{port}"]},
    }
    if size is not None:
        here["transport"] = {"link": {"rx": {"buffer_size": size}}}
    there = {
        "mode": "client",
        "scouting": OFF,
        "connect": {"endpoints": [f"tcp/127.0.0.1:{port}"]},
    }
    heard: list[bytes] = []
    session = zenwire.open(zenwire.Config.from_json5(json.dumps(here)))
    other = zenoh.open(zenoh.Config.from_json5(json.dumps(there)))
    try:
        held = session.declare_subscriber("a", lambda s: heard.append(s.payload.to_bytes()))
        for _ in range(3):
            other.put("a", PAYLOAD, congestion_control=zenoh.CongestionControl.BLOCK)
        ends = time.monotonic() + TIMEOUT
        while len(heard) < 3 and time.monotonic() < ends:
            time.sleep(0.01)
        held.undeclare()
    finally:
        other.close()
        session.close()
    assert heard == [PAYLOAD] * 3
    assert max(offered) <= most
    if size is not None and size > 64 << 10:
        assert max(offered) > 64 << 10
