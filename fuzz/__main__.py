"""``python -m fuzz``: random and broken input for every decoder.

Nothing but the documented error may come out, and memory must not grow. Exit code 1 says that
something else did: it is printed, and written to fuzz/findings in the form of fuzz/corpus, whose
files are run first. Move it there once it is fixed.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import sys
from pathlib import Path

from fuzz.engine import Finding, Report, Runner, corpus
from fuzz.targets import TARGETS

HERE = Path(__file__).parent


def main() -> int:
    args = _arguments()
    faulthandler.enable()
    targets = [TARGETS[name] for name in args.target or TARGETS]
    runner = Runner(targets, args.seed, HERE / "findings", _progress)
    _tell_death(HERE / "findings" / "running")
    runner.replay(corpus(HERE / "corpus"))
    if args.case is None:
        runner.run(args.seconds)
    else:
        for target in targets:
            print(runner.one(target, args.case).hex())
    _progress("")
    report = runner.report
    print(json.dumps(_plain(report), indent=2) if args.json else _text(report))
    return 1 if report.findings else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default: 60)")
    parser.add_argument(
        "--target", action="append", choices=TARGETS, metavar="NAME", help=", ".join(TARGETS)
    )
    parser.add_argument("--seed", type=int, default=0, help="chooses the inputs (default: 0)")
    parser.add_argument("--case", type=int, help="run one input of each target, by its number")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser.parse_args()


def _progress(line: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
    elif line:
        print(line, file=sys.stderr)


def _tell_death(running: Path) -> None:
    if running.exists():
        last = running.read_bytes().strip(b"\0 ").decode()
        print(f"the last run died in: python -m fuzz {last}", file=sys.stderr)


def _plain(report: Report) -> dict[str, object]:
    return {
        "seed": report.seed,
        "targets": {
            name: {
                "execs": stats.execs,
                "refused": stats.refused,
                "per_second": round(stats.per_second),
            }
            for name, stats in report.stats.items()
        },
        "grown_bytes": report.grown,
        "findings": [_finding(f) | {"hex": f.data.hex()} for f in report.findings],
        "repeated": report.repeated,
    }


def _finding(f: Finding) -> dict[str, object]:
    return {"target": f.target, "case": f.case, "error": f.error, "file": f.file}


def _text(report: Report) -> str:
    lines = [f"{'target':<26}{'execs':>10}{'per second':>12}{'refused':>10}"]
    for name, s in report.stats.items():
        refused = f"{s.refused / max(s.execs, 1):.0%}"
        lines.append(f"{name:<26}{s.execs:>10,}{s.per_second:>12,.0f}{refused:>10}")
    total = sum(s.execs for s in report.stats.values())
    grown = f"memory grew by {report.grown / 2**20:.1f} MiB"
    lines.append(f"{total:,} inputs, seed {report.seed}, {grown}")
    for f in report.findings:
        lines += ["", f"{f.target}, case {f.case} of seed {report.seed}: {f.error}", f.data.hex()]
    if report.findings:
        lines += ["", f"{len(report.findings)} findings, and {report.repeated} like them"]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
