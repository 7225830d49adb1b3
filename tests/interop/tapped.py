"""eclipse-zenoh's clients through ``zenwire router --tap``."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ports import free_port

zenoh = pytest.importorskip("zenoh")

LIMIT = 60.0
PART = 10
"""Samples of each part of ``come_and_go``."""


def client(where: str) -> Any:
    settings = {
        "mode": "client",
        "connect": {"endpoints": [where]},
        "scouting": {"multicast": {"enabled": False}},
    }
    return zenoh.open(zenoh.Config.from_json5(json.dumps(settings)))


def until(true: Callable[[], bool]) -> None:
    ends = time.monotonic() + LIMIT
    while not true():
        assert time.monotonic() < ends, "it did not come"
        time.sleep(0.02)


def tap(path: Path, talk: Callable[[str], None]) -> None:
    """Let a router write its tap to ``path`` while ``talk`` runs against its endpoint."""
    where = f"tcp/127.0.0.1:{free_port()}"
    command = ["router", "--tap", str(path), "-l", where, "--no-multicast-scouting"]
    with subprocess.Popen(
        [sys.executable, "-m", "zenwire", *command], stderr=subprocess.PIPE, text=True
    ) as router:
        try:
            assert router.stderr is not None
            assert "listens on" in router.stderr.readline()
            talk(where)
            router.send_signal(signal.SIGTERM)
            said = router.communicate(timeout=LIMIT)[1]
        finally:
            router.kill()
    assert "packets are missing" not in said
    assert router.returncode == 0


def come_and_go(where: str) -> None:
    """Number samples while a subscriber comes, goes and comes back.

    The first 2 * PART numbers are sent, but for three, which are lost. The next 2 * PART are put
    while nobody has subscribed, the last PART while the subscriber is back.
    """
    got: list[str] = []
    with client(where) as here, client(where) as there:
        block = zenoh.CongestionControl.BLOCK
        publisher = here.declare_publisher("tap/number", congestion_control=block)

        def put(*numbers: int) -> None:
            for sn in numbers:
                publisher.put("x", source_info=zenoh.SourceInfo(publisher.id, sn))

        def is_matched() -> bool:
            return bool(publisher.matching_status.matching)

        subscriber = there.declare_subscriber("tap/**", lambda s: got.append(str(s.key_expr)))
        until(is_matched)
        put(*range(PART), *range(PART + 3, 2 * PART))
        until(lambda: len(got) == 2 * PART - 3)
        subscriber.undeclare()
        until(lambda: not is_matched())
        put(*range(2 * PART, 4 * PART))
        subscriber = there.declare_subscriber("tap/**", lambda s: got.append(str(s.key_expr)))
        until(is_matched)
        put(*range(4 * PART, 5 * PART))
        until(lambda: len(got) == 3 * PART - 3)
