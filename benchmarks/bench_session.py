"""Sessions: round trips, opening and memory of ``zenwire.aio`` against eclipse-zenoh for Python.

Two processes of a side talk over TCP on this machine: as two peers with one link, and as two
clients of eclipse-zenoh's router. "callback" is a put of 64 bytes, answered by the other side's
callback, whose put calls the callback that sends the next one; "recv" waits for the answer
instead. "get" and "querier" ask, and wait for one reply and the end. "p50" is the median of a
turn, "p99" its 99th percentile, and of all turns the median is shown. "open" is the time until a
session is connected, to that router. Rows through the router have no goal: for both sides most of
their time is that router's.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec

from benchmarks.report import Result, Skipped, duration, progress

__all__ = ["run"]

SIDES = ("ours", "theirs")
PINGS = ("callback", "recv")
QUERIES = ("get", "querier")
PING_GOAL = 1.43
"""In 0.7 times as long."""
SESSIONS = 50
"""How many sessions are opened to see what one takes."""
END = 30.0
"""Seconds for a process to end."""


@dataclass(frozen=True, slots=True)
class Child:
    """A process of one side, which does turns."""

    process: subprocess.Popen[str]

    def turn(self, what: str, count: int) -> list[float]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what} {count}\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> list[float]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a process of the benchmark has failed")
        found: list[float] = json.loads(line)
        return found


@contextmanager
def child(side: str, role: str, mode: str, *, listen: int = 0, connect: int = 0) -> Iterator[Child]:
    """A process, until it is ready; it ends with the block."""
    command = [sys.executable, "-m", "benchmarks.session_child", side, role, mode]
    command += ["--listen", str(listen)] if listen else []
    command += ["--connect", str(connect)] if connect else []
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            made = Child(process)
            made.answer()
            yield made
            assert process.stdin is not None
            process.stdin.close()
            process.wait(END)
        finally:
            process.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run(quick: bool) -> list[Result]:
    if find_spec("zenoh") is None:
        raise Skipped("zenoh is not installed")
    turns, count = (1, 100) if quick else (20, 500)
    results: list[Result] = []
    for topology in ("peers", "router"):
        with ExitStack() as stack:
            asking = {side: _pair(stack, side, topology) for side in SIDES}
            for kind in (*PINGS, *QUERIES):
                load = os.getloadavg()[0]
                progress(f"session: {topology}, {kind} (load {load:.1f})")
                goal = None if topology == "router" else PING_GOAL if kind in PINGS else 1.0
                taken = _measure(asking, kind, turns, count)
                results += _compare(f"{topology} {kind}", taken, goal)
    results += _opening(1 if quick else 9)
    return results


def _pair(stack: ExitStack, side: str, topology: str) -> Child:
    """Who asks, of two that are connected."""
    port = free_port()
    if topology == "peers":
        stack.enter_context(child(side, "answer", "peer", listen=port))
        return stack.enter_context(child(side, "ask", "peer", connect=port))
    stack.enter_context(child("theirs", "router", "router", listen=port))
    stack.enter_context(child(side, "answer", "client", connect=port))
    return stack.enter_context(child(side, "ask", "client", connect=port))


def _measure(
    asking: dict[str, Child], kind: str, turns: int, count: int
) -> dict[str, list[list[float]]]:
    """What each round trip of each turn took, the shortest first."""
    for one in asking.values():
        one.turn(kind, count // 4)
    taken: dict[str, list[list[float]]] = {side: [] for side in asking}
    for turn in range(turns):
        for side in _order(turn):
            taken[side].append(sorted(asking[side].turn(kind, count)))
    return taken


def _order(turn: int) -> Iterable[str]:
    """Whoever comes first in a turn comes second in the next."""
    return SIDES if turn % 2 else reversed(SIDES)


def _compare(
    case: str, taken: dict[str, list[list[float]]], goal: float | None
) -> Iterator[Result]:
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        values = {side: [turn[int(share * len(turn))] for turn in taken[side]] for side in SIDES}
        yield _result(f"{case} {name}", "round trip", values, goal)


def _result(
    case: str, unit: str, values: dict[str, list[float]], goal: float | None, note: str = ""
) -> Result:
    ours, theirs = (statistics.median(values[side]) for side in SIDES)
    best = [min(values[side]) for side in SIDES]
    text = f"best turn {duration(best[0])} against {duration(best[1])}"
    return Result(
        "session",
        case,
        "zenwire.aio",
        ours,
        unit,
        "eclipse-zenoh",
        theirs,
        goal,
        f"{text}; {note}" if note else text,
    )


def _opening(turns: int) -> Iterator[Result]:
    port = free_port()
    with child("theirs", "router", "router", listen=port):
        for mode in ("client", "peer"):
            progress(f"session: open, {mode}")
            with ExitStack() as stack:
                opening = {
                    side: stack.enter_context(child(side, "open", mode, connect=port))
                    for side in SIDES
                }
                for one in opening.values():
                    one.turn("open", 1)
                # A peer of eclipse-zenoh waits for half a second, however often it is asked; clients
                # are opened so quickly that many turns cost nothing.
                more, each = (8, 10) if mode == "client" else (1, 2)
                values: dict[str, list[float]] = {side: [] for side in SIDES}
                for turn in range(more * turns):
                    for side in _order(turn):
                        values[side].append(statistics.median(opening[side].turn("open", each)))
                sizes = [opening[side].turn("memory", SESSIONS)[0] / 1024 for side in SIDES]
            memory = f"an idle session takes {sizes[0]:.0f} KiB against {sizes[1]:.0f} KiB"
            yield _result(f"open a {mode}", "session", values, 1.0, memory)
