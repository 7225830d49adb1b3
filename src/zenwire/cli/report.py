"""``zenwire report``: captures, spools or tables, as one page to look at."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from zenwire.cli.diagnostics import tell
from zenwire.cli.escaping import escape_json

if TYPE_CHECKING:
    import argparse

    from zenwire.web.report import Source, Summary

SUMMARY = (
    "make one self-contained page of captures, spools or tables: who, what, how fast, what was lost"
)
EXTRA = "spark"
EXAMPLES: tuple[str, ...] = (
    "zenwire report drive.pcap --html report.html",
    "zenwire report captures/ --html report.html",
    "zenwire report tables/ --html report.html",
    "zenwire report spools/robots --html report.html",
    "zenwire report drive.pcap --json | jq .verdict",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the input, and where the report goes."""
    parser.add_argument(
        "input",
        nargs="+",
        metavar="CAPTURE|DIR",
        help="pcap or pcapng files, plain or compressed; a directory of them; spools of zenwire "
        "record; or one directory that zenwire tables or ingest wrote",
    )
    parser.add_argument(
        "--html", metavar="FILE", help="write the page; it needs nothing but a browser"
    )
    parser.add_argument(
        "--json", action="store_true", help="print what the page says as one JSON object"
    )


def run(args: argparse.Namespace) -> int:
    """Make it. Exit code 2: it is not said where it goes."""
    if not args.html and not args.json:
        tell("report", "say where it goes: --html report.html, or --json")
        return 2
    from zenwire.web.report import open_source, render, to_json  # noqa: PLC0415 - slow to load

    source = open_source(args.input)
    if args.html:
        _check_output(args.html)
    summary = _summary(source)
    if args.html:
        _write(args.html, render(summary))
        points = [text for text, _ in summary.verdict.points]
        tell("report", f"{args.html}: {summary.verdict.headline.lower()}", points)
    if args.json:
        print(escape_json(to_json(summary, indent=1)))
    return 0


def _summary(source: Source) -> Summary:
    from zenwire.spark.session import spark_session  # noqa: PLC0415 - only for this command

    with spark_session("zenwire report") as spark:
        from zenwire.web.report.source import tables_of  # noqa: PLC0415
        from zenwire.web.report.summary import summarise  # noqa: PLC0415 - where Spark is

        with tables_of(spark, source) as tables:
            return summarise(source, tables)


def _check_output(path: str) -> None:
    """Now, not after minutes of work. Raises OSError."""
    if Path(path).is_dir():
        raise IsADirectoryError(21, "is a directory", path)
    if Path(path).exists() and not os.access(path, os.W_OK):
        raise PermissionError(13, "cannot be written", path)
    with tempfile.TemporaryFile(dir=Path(path).absolute().parent):
        pass


def _write(path: str, page: str) -> None:
    """All of it or nothing: a page that was there stays until the new one is whole."""
    target = Path(path).absolute()
    if target.exists() and not target.is_file():  # a pipe, a device
        target.write_text(page, "utf-8")
        return
    part = target.with_name(f".{target.name}.part")
    try:
        part.write_text(page, "utf-8")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
