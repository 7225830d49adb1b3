"""The live pipeline against what people write without it: both as peers on this machine.

The other is eclipse-zenoh's subscriber with a callback that appends key, payload and time to
lists, and PyArrow that makes a Parquet file of each 65,536 rows or 64 MiB. "spool" is what
``zenwire record`` has on disk and readable, "table" what ``zenwire ingest`` has in ``samples`` (with
``latest`` and ``key_stats``; Spark on the same cores). "saturated" is a sender of batches that were
encoded before, "published" are eclipse-zenoh's publishers (into the spool alone). Sixteen keys, payloads at random. "cpu"
compares seconds of CPU of all processes on the receiving side. "visible" is the time from a put to
the moment when its row can be read, median and 99th of a hundred.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from benchmarks.live_child import KEYS, sent
from benchmarks.live_ends import (
    PATIENCE,
    Receiver,
    Recorded,
    Sender,
    collecting,
    ingesting,
    recording,
    sending,
)
from benchmarks.processes import Watch, cpu
from benchmarks.report import Result, Skipped, lines, machine, progress, rate, times

__all__ = ["run"]

SIZES = {"8 B": 8, "100 B": 100, "10 kB": 10_000}
SPOOL_GOALS = {"8 B": 20.0, "100 B": 20.0}
TABLE_GOALS = {"8 B": 4.0, "100 B": 4.0}
CHECKED = 20_000
"""Rows that are compared before anything counts; of 10 kB a tenth."""
SECONDS = 4.0
"""That a turn is to take."""
TURNS = 3
PUBLISHED = ("8 B",)
"""Eclipse-zenoh's publishers are what limits that: one size is enough."""
GUESS = {
    "spool": {"8 B": 3e6, "100 B": 1e6, "10 kB": 2e4},
    "alternative": {"8 B": 1e5, "100 B": 1e5, "10 kB": 1e4},
}
"""Rows in a second, for the first turn; the others know better."""
TABLE_ROWS = {"8 B": 3e7, "100 B": 8e6, "10 kB": 6e4}
"""Of a turn into the table: a micro-batch takes seconds by itself, however many rows it has."""
TABLE_TURNS = 2
MINUTES_SHARE = 0.5
"""Of the rate that the table takes, for the long run."""


class Turn(NamedTuple):
    """Per row: seconds, and seconds of CPU."""

    seconds: float
    cpu: float


# Turns.


def _check(receiver: Receiver, size: int) -> None:
    """Raises RuntimeError unless it has what was sent, in that order."""
    rows = CHECKED if size < 1000 else CHECKED // 10
    with sending("saturate", receiver.port, size) as sender:
        sender.begin(rows)
        count = sender.sent()
        receiver.await_rows(count)
    receiver.finish()
    keys, payloads = zip(*sent(size, count), strict=True)
    found = receiver.table()
    # Rows of one key stay in order, those of several may not.
    for key in KEYS:
        mine = found.filter(pc.equal(found["key"], key))["payload"].to_pylist()
        wanted = [p for k, p in zip(keys, payloads, strict=True) if k == key]
        if mine != wanted:
            raise RuntimeError(f"{type(receiver).__name__}: rows of {key} are not those sent")
    if found.num_rows != count:
        raise RuntimeError(f"{type(receiver).__name__}: {found.num_rows} of {count} rows")


def _turn(receiver: Receiver, sender: Sender, rows: float) -> Turn:
    """From the first row that is sent to the last that is there."""
    rows_before, lost_before = receiver.rows(), receiver.lost()
    took = cpu(receiver.process.pid)
    start = time.perf_counter()
    sender.begin(rows)
    count = sender.sent()
    receiver.await_rows(rows_before + lost_before + count)
    receiver.finish()
    seconds = time.perf_counter() - start
    took = cpu(receiver.process.pid) - took
    kept = max(count - (receiver.lost() - lost_before), 1)
    return Turn(seconds / kept, took / kept)


def _turns(
    what: str, case: str, role: str, receivers: dict[str, Receiver], *, turns: int, seconds: float
) -> dict[str, list[Turn]]:
    """All of them in turn. The first turn of each does not count."""
    size = SIZES[case]
    taken: dict[str, list[Turn]] = {name: [] for name in receivers}
    rates = {name: GUESS[name][case] for name in receivers if name != "table"}
    table = TABLE_ROWS[case] * seconds / SECONDS
    with ExitStack() as stack:
        # A recorder asks whoever is new for what it has missed; that is no part of a turn.
        senders = {
            name: stack.enter_context(sending(role, receiver.port, size))
            for name, receiver in receivers.items()
        }
        for turn in range(turns + 1):
            names = list(receivers) if turn % 2 else list(reversed(receivers))
            for name in names:
                took = seconds if turn else min(seconds, 2.0)
                rows = table if name == "table" else max(rates[name] * took, 100)
                found = _turn(receivers[name], senders[name], rows)
                if name in rates:
                    rates[name] = 1 / found.seconds
                load = os.getloadavg()[0]
                progress(
                    f"live: {what} {case}, {role}: {name}: {1 / found.seconds:,.0f} rows/s, "
                    f"{1e6 * found.cpu:.2f} us of CPU (load {load:.1f})"
                )
                if turn:
                    taken[name].append(found)
    return taken


def _results(
    case: str, name: str, taken: dict[str, list[Turn]], goal: float | None, note: str
) -> Iterator[Result]:
    for at, label in enumerate(("", " cpu")):
        mine, others = (
            statistics.median(turn[at] for turn in taken[who]) for who in (name, "alternative")
        )
        best = [min(turn[at] for turn in taken[who]) for who in (name, "alternative")]
        said = f"best turn {rate(best[0])} against {rate(best[1])}; {note}" if not at else ""
        yield Result(
            "live",
            f"{case}{label}",
            f"into the {name}",
            mine,
            "row",
            "callback, PyArrow",
            others,
            None if at else goal,
            said,
        )


def _compare(
    what: str,
    case: str,
    *,
    ours: Callable[[Path], AbstractContextManager[Recorded]],
    turns: int,
    seconds: float,
    quick: bool,
) -> Iterator[Result]:
    """One of ours and the other, for each sender."""
    goals = SPOOL_GOALS if what == "spool" else TABLE_GOALS
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zenwire-live-")))
        mine = stack.enter_context(ours(folder))
        receivers: dict[str, Receiver] = {
            what: mine,
            "alternative": stack.enter_context(collecting(folder)),
        }
        progress(f"live: {what} {case}: are the rows the same?")
        for receiver in receivers.values():
            _check(receiver, SIZES[case])
        for role, way in (("saturate", "saturated"), ("publish", "published")):
            if role == "publish" and (quick or what == "table" or case not in PUBLISHED):
                continue
            with ExitStack() as watched:
                watches = {
                    name: watched.enter_context(Watch(receiver.process.pid))
                    for name, receiver in receivers.items()
                }
                taken = _turns(what, case, role, receivers, turns=turns, seconds=seconds)
            peaks = [watches[name].peak / 2**20 for name in (what, "alternative")]
            note = f"at most {peaks[0]:,.0f} MiB against {peaks[1]:,.0f}"
            lost = mine.lost()
            if lost:
                note += f"; {lost:,} rows lost, and told"
            goal = goals.get(case) if role == "saturate" else None
            for result in _results(f"{way} {case}", what, taken, goal, note):
                progress(f"live: {result.ours}, {result.case}: {_said(result)}")
                yield result


def _said(result: Result) -> str:
    """For who does not want to wait for the table."""
    ratio = f", {times(result.ratio)} as fast as {result.other}" if result.ratio else ""
    note = f"; {result.note}" if result.note else ""
    return f"{rate(result.seconds)}/s{ratio}{note}"


# From a put to its row.


def _visible(quick: bool, *, table: bool) -> Iterator[Result]:
    what = "table" if table else "spool"
    progress(f"live: from a put to its row in the {what}")
    count, each = (20 if quick else 200, 20.0) if table else (50 if quick else 500, 50.0)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zenwire-live-")))
        if table:
            receiver: Recorded = stack.enter_context(ingesting(folder, "--interval", "0.01"))
        else:
            receiver = stack.enter_context(recording(folder))
        _check(receiver, 8)
        begin = receiver.rows()
        with sending("stamp", receiver.port, 8) as sender:
            sender.begin(count, each)
            seen: list[tuple[int, float]] = []
            until = time.monotonic() + PATIENCE
            while begin + count > (seen[-1][0] if seen else 0):
                now_there, now = receiver.rows(), time.time()
                if not seen or now_there > seen[-1][0]:
                    seen.append((now_there, now))
                if time.monotonic() > until:
                    raise RuntimeError("rows do not come")
                time.sleep(0.001)
            sender.sent()
        stamps = np.frombuffer(
            b"".join(receiver.table()["payload"].slice(begin).to_pylist()), np.int64
        )
        ends, times = map(np.array, zip(*seen, strict=True))
        at = np.searchsorted(ends, begin + np.arange(count), side="right")
        late = times[at] - stamps / 1e9
    how = "as often as it can" if table else "synced every 200 ms"
    for share, label in ((50, "p50"), (99, "p99")):
        seconds = float(np.percentile(late, share))
        progress(f"live: visible in the {what}, {label}: {1e3 * seconds:,.0f} ms ({how})")
        yield Result("live", f"visible {label}", f"in the {what}", seconds, "put", note=how)


# Runs.


def run(quick: bool) -> list[Result]:
    return [*_run(quick, ("spool", "table", "latency"), list(SIZES))]


def _run(quick: bool, parts: tuple[str, ...], cases: list[str]) -> Iterator[Result]:
    if find_spec("zenoh") is None:
        raise Skipped("zenoh is not installed")
    with_spark = find_spec("pyspark") is not None and shutil.which("java") is not None
    turns, seconds = (1, 1.0) if quick else (TURNS, SECONDS)
    ours: dict[str, Callable[[Path], AbstractContextManager[Recorded]]]
    ours = {"spool": recording, "table": lambda folder: ingesting(folder, "--interval", "1")}
    for what in ("spool", "table"):
        if what not in parts or (what == "table" and not with_spark):
            continue
        for case in cases:
            if quick and case != "8 B":
                continue
            many = min(turns, TABLE_TURNS) if what == "table" else turns
            yield from _compare(
                what, case, ours=ours[what], turns=many, seconds=seconds, quick=quick
            )
    if "latency" in parts:
        yield from _visible(quick, table=False)
        if with_spark:
            yield from _visible(quick, table=True)


def _long(minutes: float, case: str) -> None:
    """Whether memory stays as it is: half of what the table takes, for so many minutes."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zenwire-live-")))
        receiver = stack.enter_context(ingesting(folder, "--interval", "1"))
        size = SIZES[case]
        _check(receiver, size)
        with sending("saturate", receiver.port, size) as sender:
            _turn(receiver, sender, TABLE_ROWS[case] / 2)
            steady = MINUTES_SHARE / _turn(receiver, sender, TABLE_ROWS[case] / 2).seconds
            progress(f"live: {steady:,.0f} rows/s of {case} for {minutes:g} minutes")
            begin = receiver.rows()
            with Watch(receiver.process.pid, 2.0) as watch:
                sender.begin(steady * minutes * 60, steady)
                ends = time.monotonic() + minutes * 60
                behind = []
                while (left := ends - time.monotonic()) > 0:
                    time.sleep(min(left, 15.0))
                    there = receiver.rows()
                    due = begin + steady * (minutes * 60 - max(ends - time.monotonic(), 0))
                    behind.append((due - there) / steady)
                    progress(
                        f"live: {there - begin:,} rows, {behind[-1]:.1f} s behind, "
                        f"{watch.seen[-1].bytes / 2**20:,.0f} MiB (load {os.getloadavg()[0]:.1f})"
                    )
            count = sender.sent()
            receiver.await_rows(begin + count)
        at = np.array([usage.at for usage in watch.seen])
        # What is loaded and compiled when it pays was paid for in the first fifth.
        late = at >= at[0] + (at[-1] - at[0]) / 5
        print(
            f"{count:,} rows of {case} in {minutes:g} minutes, {receiver.lost():,} lost; "
            f"at most {max(behind):.1f} s behind, at the end {behind[-1]:.1f}"
        )
        programs = dict.fromkeys(name for usage in watch.seen for name in usage.programs)
        seen = {name: [usage.programs.get(name, 0) for usage in watch.seen] for name in programs}
        for name, sizes in (seen | {"all": [usage.bytes for usage in watch.seen]}).items():
            mib = np.array(sizes) / 2**20
            slope = float(np.polyfit(at[late] - at[0], mib[late], 1)[0]) * 60
            print(
                f"memory of {name}: after the first fifth {mib[late][0]:,.0f} MiB and "
                f"{slope:+.2f} in a minute, last {mib[-1]:,.0f}, at most {mib.max():,.0f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bench_live",
        description="Parts of the live benchmark, and a long run that looks at memory.",
    )
    parser.add_argument("parts", nargs="*", metavar="part", help="spool, table, latency")
    parser.add_argument("--case", action="append", choices=SIZES, help="sizes of payloads")
    parser.add_argument("--minutes", type=float, help="a long run into the table instead")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    cases = args.case or list(SIZES)
    progress(", ".join(f"{name} {value}" for name, value in machine().items()))
    if args.minutes is not None:
        for case in args.case or ["8 B"]:
            _long(args.minutes, case)
        return
    parts = tuple(args.parts) or ("spool", "table", "latency")
    results = [*_run(args.quick, parts, cases)]
    print("\n".join(lines(results)))
    for r in results:
        if r.note:
            print(f"{r.case}: {r.ours}: {r.note}")


if __name__ == "__main__":
    main()
