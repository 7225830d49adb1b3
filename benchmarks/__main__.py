"""Runs benchmarks and prints one table: ``python -m benchmarks [names...] [--quick] [--json]``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from textwrap import indent

from benchmarks.report import Result, Skipped, lines, machine, progress, record

FIRST = (
    *("scan", "arrow", "write", "keyexpr", "startup", "session", "receive", "put", "router"),
    "spool",
)
"""The order in which they are shown; others follow."""

LONG = ("capture", "live")
"""Only if they are named: they take a quarter of an hour."""

OPTIONAL = ("numpy", "numba", "pyarrow", "zenoh")

LEGEND = """\
"one takes" is the time of one message (startup: of one process; keyexpr: of one question) in the
best of many turns (session: the median of all turns). "ratio" says how many times as fast ours is
as what it is held against, which ran in the same turns: above 1 is faster. Ratios carry over to
other machines, times do not.
What the numbers leave out is in benchmarks/README.md."""

Run = Callable[[bool], list[Result]]


def names() -> list[str]:
    """The benchmarks that there are: one for each ``bench_*.py``."""
    found = {path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")}
    return [name for name in FIRST if name in found] + sorted(found - set(FIRST))


def load(name: str) -> tuple[Run, str]:
    """What runs a benchmark, and what its numbers mean. Raises Skipped."""
    # bench_keyexpr has a report of its own; of_keyexpr makes results of its numbers.
    modules = [f"bench_{name}"] if name != "keyexpr" else ["of_keyexpr", "bench_keyexpr"]
    try:
        module = import_module(f"benchmarks.{modules[0]}")
        described = import_module(f"benchmarks.{modules[-1]}")
    except ImportError as e:
        if e.name not in OPTIONAL:
            raise
        raise Skipped(f"{e.name} is not installed") from None
    run: Run = module.run
    return run, (described.__doc__ or "").strip()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures speed against other ways to do the same, and prints ratios.",
        epilog="example: python -m benchmarks scan write --json",
    )
    known = names()
    parser.add_argument(
        "names",
        nargs="*",
        metavar="name",
        help=f"of {', '.join(known)}; all but {', '.join(LONG)} if none is named",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="half a minute, and rough numbers")
    args = parser.parse_args(argv)
    unknown = set(args.names) - set(known)
    if unknown:
        parser.error(f"no benchmark {min(unknown)!r}; there are {', '.join(known)}")

    start = time.perf_counter()
    results: list[Result] = []
    meanings: dict[str, str] = {}
    skipped: dict[str, str] = {}
    for name in args.names or [n for n in known if n not in LONG]:
        try:
            run, meanings[name] = load(name)
            results += run(args.quick)
        except Skipped as e:
            skipped[name] = str(e)
    if args.quick:
        # Streams are so short that what a call costs, whatever is in it, counts most.
        results = [replace(r, goal=None) for r in results]
    progress(f"{time.perf_counter() - start:.0f} s")
    if args.json:
        json.dump(
            {
                "machine": machine(),
                "quick": args.quick,
                "results": [record(r) for r in results],
                "skipped": skipped,
                "meaning": meanings,
            },
            sys.stdout,
            indent=2,
        )
        print()
    else:
        show(results, meanings, skipped)
    return 0


def show(results: list[Result], meanings: dict[str, str], skipped: dict[str, str]) -> None:
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    print()
    if results:
        print("\n".join(lines(results)))
        print()
        print(LEGEND)
    shown = {r.benchmark for r in results}
    for name, text in meanings.items():
        if name in shown:
            print(f"\n{name}:\n{indent(text, '  ')}")
    notes: dict[str, list[str]] = {}
    for r in results:
        if r.note:
            notes.setdefault(f"{r.benchmark}: {r.note}", []).append(r.case)
    for note, cases in notes.items():
        print(f"\n{note} ({', '.join(cases)})")
    for name, why in skipped.items():
        print(f"\n{name}: skipped: {why}")


if __name__ == "__main__":
    raise SystemExit(main())
