"""The router: ours against eclipse-zenoh in router mode, each in a process of its own.

"forward" is from one client to another, saturated by a sender of batches that were encoded before;
both routers add a timestamp to each message. "cpu" compares the time that the router's process was
at work for a message. "to 10" and "to 100" have so many subscribers, each with a session, and count
what all of them get. "declare" is a subscriber on a key of its own, with so many there in the end,
and the growth of the router's process for each; "route" is the first message on a key, for which one
of those has to be found. "query" asks 1 or 10 queryables and waits for all replies; those who ask and
answer are eclipse-zenoh's, with both routers. The median of all turns is shown.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec

from benchmarks.bench_session import END, free_port
from benchmarks.report import Result, Skipped, lines, progress, rate

__all__ = ["run"]

SIDES = ("ours", "theirs")
SIZES = {"8 B": 8, "100 B": 100, "1 KiB": 1024}
GOALS = {"8 B": 5.0, "100 B": 5.0, "1 KiB": 2.0}
CPU_GOAL = 5.0
FAN_OUT = (10, 100)
WARM = 4.0
"""Seconds that do not count, until what is loaded when it pays is loaded."""
KEYS = 50_000
"""That both routers get."""
MILLION = 1_000_000
"""That ours gets."""
ROUTED = 20_000


@dataclass(frozen=True, slots=True)
class Child:
    """A process that answers lines."""

    process: subprocess.Popen[str]

    def ask(self, line: str = "") -> list[float]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
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
def child(role: str, port: int, **more: int) -> Iterator[Child]:
    """A process, once it is ready; it ends with the block."""
    command = [sys.executable, "-m", "benchmarks.router_child", role, str(port)]
    for name, value in more.items():
        command += [f"--{name}", str(value)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            made = Child(process)
            made.answer()
            yield made
            assert process.stdin is not None
            process.stdin.close()
            # Theirs takes longer than that to forget a hundred thousand keys.
            with suppress(subprocess.TimeoutExpired):
                process.wait(END)
        finally:
            process.kill()


def run(quick: bool) -> list[Result]:
    if find_spec("zenoh") is None:
        raise Skipped("zenoh is not installed")
    turns, window = (1, 1.0) if quick else (3, 1.0)
    return [*_told(_all(quick, turns, window))]


def _all(quick: bool, turns: int, window: float) -> Iterator[Result]:
    for case, size in SIZES.items():
        if not quick or case == "8 B":
            yield from _forward(case, size, 1, turns, window, GOALS[case])
    for subscribers in FAN_OUT:
        if not quick or subscribers == FAN_OUT[0]:
            yield from _forward(f"100 B to {subscribers}", 100, subscribers, turns, window, None)
    yield from _keys(KEYS // 10 if quick else KEYS, None if quick else MILLION)
    for queryables in (1, 10):
        yield from _queries(queryables, turns)


def _told(results: Iterable[Result]) -> Iterator[Result]:
    """Whoever waits some minutes sees each as it comes."""
    for one in results:
        row = lines([one])[-1]
        progress(f"{row}  {one.note}".rstrip())
        yield one


Turn = tuple[float, float]
"""Seconds for a message, and seconds of CPU of the router for a message."""


def _forward(  # noqa: PLR0917
    case: str, size: int, subscribers: int, turns: int, window: float, goal: float | None
) -> Iterator[Result]:
    progress(f"router: forward {case} (load {os.getloadavg()[0]:.1f})")
    taken: dict[str, list[Turn]] = {side: [] for side in SIDES}
    with ExitStack() as stack:
        routers, sinks, ports = {}, {}, {}
        for side in SIDES:
            ports[side] = free_port()
            routers[side] = stack.enter_context(child(side, ports[side]))
            sinks[side] = stack.enter_context(
                child("subscribers", ports[side], sessions=subscribers)
            )
        for turn in range(-1, turns):
            # Whoever comes first in a turn comes last in the next.
            for side in SIDES if turn % 2 else reversed(SIDES):
                with child("saturate", ports[side], size=size):
                    time.sleep(WARM if turn < 0 else 0.5)
                    found = _measure(routers[side], sinks[side], 0.1 if turn < 0 else window)
                    if turn >= 0:
                        taken[side].append(found)
    yield _compared(f"forward {case}", taken, 0, goal)
    yield _compared(f"forward {case} cpu", taken, 1, CPU_GOAL if goal else None)


def _measure(router: Child, sink: Child, window: float) -> Turn:
    (before, start), (work, _) = sink.ask(), router.ask()
    time.sleep(window)
    (after, stop), (worked, _) = sink.ask(), router.ask()
    count = after - before
    return ((stop - start) / count, (worked - work) / count) if count else (float("inf"),) * 2


def _compared(case: str, taken: dict[str, list[Turn]], which: int, goal: float | None) -> Result:
    mine, others = ([turn[which] for turn in taken[side]] for side in SIDES)
    note = f"best turn {rate(min(mine))} against {rate(min(others))}" if which == 0 else ""
    return Result(
        "router",
        case,
        "zenwire router",
        statistics.median(mine),
        "message",
        "eclipse-zenoh",
        statistics.median(others),
        goal,
        note,
    )


def _keys(both: int, most: int | None) -> Iterator[Result]:
    found: dict[str, dict[str, float]] = {}
    for side in SIDES:
        progress(f"router: {both:,} keys, {side} (load {os.getloadavg()[0]:.1f})")
        found[side] = _declared(side, both)
    ours, theirs = (found[side] for side in SIDES)
    note = f"{ours['memory']:.0f} bytes for a key against {theirs['memory']:.0f}"
    for what, said in (("declare", note), ("route", "")):
        yield Result(
            "router",
            f"{what} {both:,}",
            "zenwire router",
            ours[what],
            "key",
            "eclipse-zenoh",
            theirs[what],
            note=said,
        )
    if most is not None:
        progress(f"router: {most:,} keys, ours (load {os.getloadavg()[0]:.1f})")
        alone = _declared("ours", most)
        note = f"{alone['memory']:.0f} bytes for a key; all of it took {alone['seconds']:.0f} s"
        for what, said in (("declare", note), ("route", "")):
            yield Result("router", f"{what} {most:,}", "zenwire router", alone[what], note=said)


def _declared(side: str, count: int) -> dict[str, float]:
    """What one key takes, in seconds and bytes."""
    port, begun = free_port(), time.perf_counter()
    with child(side, port) as router, child("declare", port) as clients:
        # What is loaded when it pays is not the keys'.
        clients.ask("declare 1000")
        clients.ask("publish 1000")
        time.sleep(WARM)
        clients.ask("publish 1000")
        _, before = router.ask()
        (seconds,) = clients.ask(f"declare {count}")
        _, after = router.ask()
        routing = min(clients.ask(f"publish {min(ROUTED, count)}")[0] for _ in range(2))
    return {
        "declare": seconds / count,
        "memory": (after - before) / count,
        "route": routing / min(ROUTED, count),
        "seconds": time.perf_counter() - begun,
    }


def _queries(queryables: int, turns: int) -> Iterator[Result]:
    progress(f"router: queries to {queryables} (load {os.getloadavg()[0]:.1f})")
    taken: dict[str, list[Turn]] = {side: [] for side in SIDES}
    asked = 200
    with ExitStack() as stack:
        routers, clients = {}, {}
        for side in SIDES:
            port = free_port()
            routers[side] = stack.enter_context(child(side, port))
            stack.enter_context(child("queryables", port, sessions=queryables))
            clients[side] = stack.enter_context(child("get", port))
            clients[side].ask(f"{asked}")
        for turn in range(turns):
            for side in SIDES if turn % 2 else reversed(SIDES):
                work, _ = routers[side].ask()
                replies, seconds = clients[side].ask(f"{asked}")
                worked, _ = routers[side].ask()
                if replies != asked * queryables:
                    raise RuntimeError(f"{side}: {replies} replies of {asked * queryables}")
                taken[side].append((seconds / asked, (worked - work) / asked))
    for which, name in ((0, f"query {queryables}"), (1, f"query {queryables} cpu")):
        yield _compared(name, taken, which, None)
