"""Sessions that declare without end, against a router that is a process of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.hostile.starving import Client, round_trips
from tests.ports import free_port

pytestmark = pytest.mark.slow

LIMIT = 60.0
"""Seconds that anything may take on a busy machine."""


@contextmanager
def router() -> Iterator[int]:
    """A router; its port."""
    port = free_port()
    where = ["-l", f"tcp/127.0.0.1:{port}", "--no-multicast-scouting", "-q"]
    process = subprocess.Popen([sys.executable, "-m", "zenwire", "router", *where])
    try:
        ends = time.monotonic() + LIMIT
        while True:
            try:
                Client(port).close()
                break
            except ConnectionRefusedError:
                assert time.monotonic() < ends
                time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def flooded(port: int, sessions: int) -> Iterator[subprocess.Popen[str]]:
    """So many sessions of another process declare and undeclare as fast as they can."""
    command = [sys.executable, "-m", "tests.hostile.starving", str(port), str(sessions)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("sessions", [1, 50])
def test_declarations_without_end_do_not_starve_others(sessions: int) -> None:
    with router() as port, flooded(port, sessions) as flood:
        times = sorted(round_trips(port, 4.0))
        began = time.monotonic()
        Client(port).close()
        handshake = time.monotonic() - began
        assert flood.poll() is None
        sent = int(flood.communicate("", LIMIT)[0])
    # It was a flood, and it was read.
    assert sent > 1_000_000
    # Of 50 sessions it was one of seconds, and handshakes took too long. A busy machine adds some.
    assert times[len(times) // 2] < 0.2
    assert times[-1] < 1.0
    assert handshake < 2.0
