"""``zenwire tables``: captures to tables of Parquet, Delta or Iceberg."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zenwire.cli.captures import capture_files
from zenwire.cli.diagnostics import tell
from zenwire.cli.escaping import escape_lines, json_text

if TYPE_CHECKING:
    import argparse

    from zenwire.spark.write import Result

SUMMARY = (
    "turn captures into tables: samples, queries, sessions, losses and more, for Spark and all"
)
EXTRA = "spark"
EXAMPLES: tuple[str, ...] = (
    "zenwire tables capture.pcap --out tables",
    "zenwire tables 'captures/*.pcapng.gz' --out tables --tables samples,losses --json",
    "zenwire tables captures/ --out lake --format delta",
    "zenwire tables rotated/ --rotating --out tables",
)
FORMATS = ("parquet", "delta", "iceberg")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the input, and where and how the tables go."""
    parser.add_argument(
        "input",
        nargs="+",
        metavar="CAPTURE",
        help="pcap or pcapng files, plain or compressed, directories of them, or patterns",
    )
    parser.add_argument(
        "--out",
        required=True,
        metavar="DIR",
        help="where the tables are, a directory each; captures that are there are replaced, "
        "others are added",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="parquet",
        help="parquet (the default); delta and iceberg need an extra of the same name",
    )
    parser.add_argument(
        "--tables", metavar="NAME,...", help="only these; a wrong name lists them (default: all)"
    )
    parser.add_argument(
        "--rotating",
        action="store_true",
        help="the files continue one another, as tcpdump -C and -G write them: one capture",
    )
    parser.add_argument(
        "--master",
        metavar="URL",
        help="a Spark cluster that sees the files (default: this machine)",
    )
    parser.add_argument(
        "--cores", type=int, metavar="N", help="how many of this machine to use (default: all)"
    )
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark, such as spark.driver.memory=8g; may be given several times",
    )
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Write them. Exit code 2: the arguments say something that there is not."""
    config = dict(entry.partition("=")[::2] for entry in args.conf)
    if not all(config.values()):
        _say("--conf takes NAME=VALUE")
        return 2
    files, passed = capture_files(args.input)
    sources = files
    if args.rotating and [Path(name).is_dir() for name in args.input] == [True]:
        # The capture has the name of the directory then, whatever files come and go.
        sources = [Path(args.input[0])]
        if passed:
            _say(f"--rotating: {passed[0]} is no capture; a directory of captures alone is one")
            return 2
    _check_out(Path(args.out))
    for path in passed:
        _say(f"{path}: no capture, passed over")
    size = sum(path.stat().st_size for path in files)
    _say(f"{len(files):,} file{'s' * (len(files) != 1)}, {_bytes(size)}; starting Spark")
    from zenwire.spark.session import spark_session  # noqa: PLC0415 - slow, and needs the extra

    begin = time.monotonic()
    with spark_session(
        "zenwire tables", cores=args.cores, master=args.master, config=config
    ) as spark:
        from zenwire.cli.progress import Progress  # noqa: PLC0415 - where Spark is
        from zenwire.spark.write import write_tables  # noqa: PLC0415

        ready = time.monotonic()
        names = None if args.tables is None else args.tables.replace(",", " ").split()
        with Progress(spark, Path(args.out), size) as progress:
            result = write_tables(
                spark,
                sources,
                args.out,
                names=names,
                progress=progress.step,
                format=args.format,
                rotating=args.rotating,
            )
        done = time.monotonic()
    told = _told(result, args, size, (ready - begin, done - ready))
    print(json_text(told, ascii_only=True) if args.json else escape_lines(_summary(told)))
    return 0


def _say(text: str) -> None:
    tell("tables", text)


def _check_out(out: Path) -> None:
    """Now, not after Spark has started. Raises OSError."""
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(20, "--out is a directory, and this is none", str(out))
    there = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(13, "cannot be written to; give another --out", str(there))


# The JSON object, and the same for people.
Told = dict[str, Any]


def _told(
    result: Result, args: argparse.Namespace, size: int, seconds: tuple[float, float]
) -> Told:
    return {
        "out": str(Path(args.out).resolve()),
        "format": args.format,
        "captures": result.captures,
        "replaced": result.replaced,
        "completed_former_run": result.completed,
        "capture_bytes": size,
        "tables": {
            name: {"rows": made.rows, "bytes": made.bytes, "files": made.files}
            for name, made in result.tables.items()
        },
        "not_sent": result.not_sent,
        "accounts": result.accounts,
        "seconds": round(seconds[1], 3),
        "seconds_to_start_spark": round(seconds[0], 3),
        "megabytes_per_second": round(size / 1e6 / max(seconds[1], 1e-9), 3),
    }


def _summary(told: Told) -> str:
    lines = [f"{'table':<14}{'rows':>14}{'bytes':>12}{'files':>7}"]
    for name, made in told["tables"].items():
        lines.append(f"{name:<14}{made['rows']:>14,}{_bytes(made['bytes']):>12}{made['files']:>7,}")
    rows = {name: made["rows"] for name, made in told["tables"].items()}
    if told["not_sent"]:
        rows["losses"] -= told["not_sent"]
    found = [
        f"{rows[name]:,} {name}"
        for name in ("sessions", "samples", "queries", "losses", "malformed")
        if name in rows
    ]
    if told["not_sent"]:
        found.append(f"{told['not_sent']:,} gaps that were not sent here and are no losses")
    if found:
        lines += ["", ", ".join(found)]
    accounts = ", ".join(f"{name} {n:,}" for name, n in told["accounts"].items())
    lines.append(f"bytes of the captures: {accounts}")
    if told["replaced"]:
        lines.append(f"replaced: {', '.join(told['replaced'])}")
    if told["completed_former_run"]:
        lines.append("a former run that was ended while it moved its tables was completed first")
    lines.append(
        f"{_bytes(told['capture_bytes'])} in {told['seconds']:.1f} s, "
        f"{told['megabytes_per_second']:.1f} MB/s: {told['out']}"
    )
    return "\n".join(lines)


def _bytes(n: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000 or unit == "GB":
            return f"{n:,.0f} {unit}" if unit == "B" else f"{n:,.1f} {unit}"
        n /= 1000
    raise AssertionError
