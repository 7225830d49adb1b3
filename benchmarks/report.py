"""What benchmarks give and how they measure: results, contenders in turn, and the table."""

from __future__ import annotations

import gc
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path
from typing import Any

__all__ = ["Result", "Skipped", "best_of", "lines", "machine", "progress", "record"]

REPEAT = 3


class Skipped(Exception):  # noqa: N818 # not an error: something optional is not installed
    """A benchmark cannot run here; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class Result:
    """One comparison: what ours takes, and what the other takes for the same."""

    benchmark: str
    case: str
    ours: str
    seconds: float
    """Of ours, for one ``unit``."""
    unit: str = "message"
    other: str = ""
    other_seconds: float | None = None
    goal: float | None = None
    """The least ratio that is good."""
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times as fast as the other: below 1 is slower."""
        return self.other_seconds / self.seconds if self.other_seconds else None

    @property
    def met(self) -> bool | None:
        return None if self.ratio is None or self.goal is None else self.ratio >= self.goal


def best_of(
    contenders: Mapping[str, Callable[[], object]], *, seconds: float, least: int = 5
) -> dict[str, float]:
    """The best time of each, all of them in turn, until ``seconds`` are over.

    The machine may be busy, and one second is not like the next: what is compared runs in the
    same seconds, equally often. In each turn a contender runs a few times, so that it finds its
    own data in the caches and not those of the one before.
    """
    best = dict.fromkeys(contenders, float("inf"))
    for run in contenders.values():
        run()  # what is done once: pages, caches, branch predictors
    enabled = gc.isenabled()
    gc.disable()
    try:
        turns = 0
        stop = time.perf_counter() + seconds
        while turns < least or time.perf_counter() < stop:
            for name, run in contenders.items():
                for _ in range(REPEAT):
                    start = time.perf_counter()
                    run()
                    best[name] = min(best[name], time.perf_counter() - start)
            turns += 1
    finally:
        if enabled:
            gc.enable()
    return best


def progress(text: str) -> None:
    """A line for who waits."""
    print(text, file=sys.stderr, flush=True)


def machine() -> dict[str, str]:
    """Where the numbers come from."""
    found = {
        "cpu": _cpu(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    for package in ("zenwire", "numpy", "numba", "pyarrow", "eclipse-zenoh"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def record(result: Result) -> dict[str, Any]:
    """The result for JSON."""
    return {**asdict(result), "ratio": result.ratio, "met": result.met}


def lines(results: Iterable[Result]) -> list[str]:
    """The results as a table, its columns aligned."""
    rows: list[tuple[str, ...]] = [
        ("", "case", "ours", "one takes", "per s", "against", "one takes", "ratio", "goal")
    ]
    for _, group in groupby(results, key=lambda r: r.benchmark):
        rows += [("",) * len(rows[0]), *map(_row, group)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = (0, 1, 2, 5)
    return [
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _row(r: Result) -> tuple[str, ...]:
    other = "" if r.other_seconds is None else duration(r.other_seconds)
    ratio = "" if r.ratio is None else times(r.ratio)
    goal = "" if r.goal is None else f"{r.goal:g} {'met' if r.met else 'missed'}"
    ours = duration(r.seconds)
    return (r.benchmark, r.case, r.ours, ours, rate(r.seconds), r.other, other, ratio, goal)


def times(ratio: float) -> str:
    """With as many digits as say something."""
    if ratio >= 100:
        return f"{ratio:,.0f}x"
    return f"{ratio:.1f}x" if ratio >= 10 else f"{ratio:.2f}x" if ratio >= 0.1 else f"{ratio:.2g}x"


def duration(seconds: float) -> str:
    """With a unit that suits it."""
    for factor, unit in ((1e9, "ns"), (1e6, "us"), (1e3, "ms")):
        if seconds * factor < 1000:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def rate(seconds: float) -> str:
    """How many in a second."""
    per_second = 1 / seconds
    for factor, unit in ((1e6, " M"), (1e3, " k")):
        if per_second >= factor:
            return f"{per_second / factor:.3g}{unit}"
    return f"{per_second:.3g}"
