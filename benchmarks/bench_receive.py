"""Receiving: ``zenwire.aio`` against eclipse-zenoh for Python, both as peers on this machine.

"saturated" is a sender that sends the same encoded batches to both, as fast as they are taken;
"published" is eclipse-zenoh's publisher, which is slower than that. "arrow" is what comes as record
batches: ours by a columnar subscriber, theirs by a callback that appends the key and the payload
and makes a record batch of 4096; ours has all columns of samples, unless it says which. "callback"
is a callback that counts. "cpu" compares the time that the receiver's process was at work. The
median of all turns is shown.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec

from benchmarks.bench_session import END, free_port
from benchmarks.report import Result, Skipped, progress, rate

__all__ = ["run"]

SIZES = {"8 B": 8, "100 B": 100, "1 KiB": 1024}
ARROW_GOALS = {"8 B": 40.0, "100 B": 25.0, "1 KiB": 4.0}
CALLBACK_GOAL = 1.0
CPU_GOAL = 20.0
FIRST = 3.0
"""Seconds of a turn that does not count."""

Turn = tuple[float, float]
"""Seconds for a row, and seconds of CPU for a row."""


@contextmanager
def child(role: str, port: int, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A process, once it is ready; it ends with the block."""
    command = [sys.executable, "-m", "benchmarks.receive_child", role, str(port), *more]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            _answer(process)
            yield process
            assert process.stdin is not None
            process.stdin.close()
            process.wait(END)
        finally:
            process.kill()


def _answer(process: subprocess.Popen[str]) -> list[float]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("a process of the benchmark has failed")
    found: list[float] = json.loads(line)
    return found


def _measure(receiver: subprocess.Popen[str], seconds: float) -> Turn:
    assert receiver.stdin is not None
    receiver.stdin.write(f"{seconds}\n")
    receiver.stdin.flush()
    rows, wall, cpu = _answer(receiver)
    # Of those who have just begun, nothing need be there yet.
    return (wall / rows, cpu / rows) if rows else (float("inf"), float("inf"))


def run(quick: bool) -> list[Result]:
    if find_spec("zenoh") is None:
        raise Skipped("zenoh is not installed")
    turns, warm, window = (1, 1.0, 1.0) if quick else (5, 0.6, 1.0)
    results: list[Result] = []
    contenders = (
        "ours-arrow",
        "ours-key-payload",
        "theirs-arrow",
        "ours-callback",
        "theirs-callback",
    )
    for sender, names in (("saturate", contenders), ("publish", contenders)):
        for case, size in SIZES.items():
            if quick and case != "8 B":
                continue
            progress(f"receive: {sender}, {case} (load {os.getloadavg()[0]:.1f})")
            taken: dict[str, list[Turn]] = {name: [] for name in names}
            with ExitStack() as stack:
                ports = {name: free_port() for name in names}
                receivers = {
                    name: stack.enter_context(child(name, port)) for name, port in ports.items()
                }
                for name in ("ours-callback",) if quick else names:
                    # What is loaded when it pays is loaded then.
                    with child(sender, ports[name], "--size", str(size)):
                        _measure(receivers[name], FIRST)
                for turn in range(turns):
                    # Whoever comes first in a turn comes last in the next.
                    for name in names if turn % 2 else reversed(names):
                        with child(sender, ports[name], "--size", str(size)):
                            _measure(receivers[name], warm)
                            turn_of = _measure(receivers[name], window)
                            if turn_of[0] == float("inf"):
                                raise RuntimeError(f"{name} has received nothing")
                            taken[name].append(turn_of)
            results += _results(sender, case, taken)
    return results


def _results(sender: str, case: str, taken: dict[str, list[Turn]]) -> Iterator[Result]:
    saturated = sender == "saturate"
    way = "saturated" if saturated else "published"
    goal = ARROW_GOALS[case] if saturated else None
    yield _result(f"{way} arrow {case}", "all columns", taken, "arrow", "ours-arrow", goal)
    yield _result(f"{way} arrow {case}", "key, payload", taken, "arrow", "ours-key-payload", goal)
    if saturated:
        yield _result(
            f"{way} callback {case}", "callback", taken, "callback", "ours-callback", CALLBACK_GOAL
        )
        return
    for kind, ours, least in (
        ("arrow", "ours-arrow", CPU_GOAL),
        ("callback", "ours-callback", None),
    ):
        yield _result(f"{way} {kind} {case} cpu", kind, taken, kind, ours, least, which=1)


def _result(  # noqa: PLR0917
    case: str,
    what: str,
    taken: dict[str, list[Turn]],
    kind: str,
    ours: str,
    goal: float | None,
    which: int = 0,
) -> Result:
    values = [[turn[which] for turn in taken[name]] for name in (ours, f"theirs-{kind}")]
    mine, others = map(statistics.median, values)
    best = [rate(min(some)) for some in values]
    cpu = [
        1e9 * statistics.median(turn[1] for turn in taken[name])
        for name in (ours, f"theirs-{kind}")
    ]
    note = f"best turn {best[0]} against {best[1]}; {cpu[0]:.0f} ns of CPU against {cpu[1]:.0f}"
    return Result(
        "receive", case, f"zenwire.aio, {what}", mine, "row", "eclipse-zenoh", others, goal, note
    )
