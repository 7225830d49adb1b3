"""``zenwire record``: what is published on keys, into a spool."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from zenwire.cli.diagnostics import unattended
from zenwire.cli.escaping import escape, json_text
from zenwire.cli.options import full_option, key_options, seconds, session_options
from zenwire.cli.running import FAILED, LOST, OK, note, run_command, say, session_of

if TYPE_CHECKING:
    import argparse

    from zenwire.record import Recorder, Status
    from zenwire.record.mcap import McapSink
    from zenwire.spool import Writer

SUMMARY = "record what is published on keys into a spool, for weeks if need be"
EXTRA = "fast"
EXAMPLES: tuple[str, ...] = (
    "zenwire record -k 'robot/**' --to spools/robots",
    "zenwire record -e tcp/10.0.0.1:7447 -k 'robot/**' --exclude 'robot/*/camera/**' --to spools/r",
    "zenwire record -k 'robot/**' --to spools/robots --keep-bytes 50G --keep-age 7d",
    "zenwire record -k 'robot/7/**' --duration 60 --format mcap --to robot7.mcap",
)

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_TIMES = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to record, where to, and how long it stays."""
    key_options(parser, "what to record", many=True)
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="KEYEXPR",
        help="keys not to record; may be given several times",
    )
    parser.add_argument(
        "--liveliness",
        action="append",
        default=[],
        metavar="KEYEXPR",
        help="tokens to record: PUT when a key becomes alive, DELETE when it is not any more",
    )
    parser.add_argument("--to", required=True, metavar="PLACE", help="a directory, or an MCAP file")
    parser.add_argument(
        "--format",
        choices=["spool", "mcap"],
        default="spool",
        help="spool (the default); mcap needs the extra of the same name",
    )
    parser.add_argument(
        "--duration", type=seconds, metavar="S", help="end after so many seconds (default: never)"
    )
    parser.add_argument(
        "--no-history",
        action="store_true",
        help="do not ask storages and publishers with a cache for what was missed",
    )
    parser.add_argument(
        "--sync-interval",
        type=seconds,
        metavar="S",
        help="what was received is on disk after so many seconds (default: 0.2)",
    )
    parser.add_argument(
        "--segment-bytes",
        type=_amount,
        metavar="N",
        help="size of a file of the spool, such as 128M (default: 128 MiB)",
    )
    parser.add_argument(
        "--keep-bytes",
        type=_amount,
        metavar="N",
        help="remove the oldest files beyond that, such as 50G",
    )
    parser.add_argument(
        "--keep-age", type=_span, metavar="T", help="remove files that are older, such as 7d"
    )
    parser.add_argument(
        "--drop-unread",
        action="store_true",
        help="let the two options above remove what a registered reader has not read yet",
    )
    full_option(parser)
    parser.add_argument(
        "--json", action="store_true", help="the status every second as a line of JSON on stdout"
    )
    session_options(parser)
    unattended(parser)


def _amount(text: str) -> int:
    import argparse  # noqa: PLC0415 - for its error alone

    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", text.strip().lower())
    if found is None or not float(found[1]):
        raise argparse.ArgumentTypeError(f"an amount such as 500M or 50G is expected, not {text!r}")
    return int(float(found[1]) * _UNITS[found[2]])


def _span(text: str) -> float:
    import argparse  # noqa: PLC0415 - for its error alone

    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip().lower())
    if found is None or not float(found[1]):
        raise argparse.ArgumentTypeError(f"a time such as 30m or 7d is expected, not {text!r}")
    return float(found[1]) * _TIMES[found[2]]


def run(args: argparse.Namespace) -> int:
    """Record. Exit code 1: nothing came, or nothing can be written; 3: something was lost."""
    return run_command(args, _main)


async def _main(args: argparse.Namespace) -> int:
    from zenwire.node.plane import load  # noqa: PLC0415 - slow to load
    from zenwire.record import Recorder  # noqa: PLC0415

    _warn_of_verbatim(args)
    # Before there is a session, which would stand still meanwhile.
    await asyncio.to_thread(load)
    sink = _sink(args)
    recorder: Recorder | None = None
    try:
        async with session_of(args) as session:
            recorder = Recorder(
                session,
                sink,
                args.key,
                exclude=args.exclude,
                liveliness=args.liveliness,
                spool=args.to if args.format == "spool" else None,
                history=not args.no_history,
            )
            async with recorder:
                note(args, f"recording {', '.join(recorder.keys)} to {args.to}")
                await _until_over(args, recorder)
    finally:
        # Also when it is told to end: everything that came is written.
        await asyncio.shield(asyncio.to_thread(sink.close))
        if recorder is not None:
            _tell(args, recorder.status())
    if recorder.failed is not None:
        raise recorder.failed
    status = recorder.status()
    if status.lost:
        return LOST
    return OK if status.rows or status.recovered else FAILED


def _warn_of_verbatim(args: argparse.Namespace) -> None:
    wild = [key for key in args.key if "**" in key.split("/") and "@" not in key]
    if wild and not any(key.startswith("@") for key in args.key):
        note(
            args,
            f"{wild[0]} does not cover keys with @ in them, such as @/**: name those with -k "
            "if you want them",
        )


def _sink(args: argparse.Namespace) -> Writer | McapSink:
    if args.format == "mcap":
        from zenwire.record.mcap import McapSink  # noqa: PLC0415 - an extra

        return McapSink(args.to)
    from zenwire.spool import Retention, Settings, Writer  # noqa: PLC0415 - slow to load

    retention = Retention(args.keep_age, args.keep_bytes, unread=args.drop_unread)
    settings = Settings(
        sync_interval=args.sync_interval,
        overflow="accept" if args.when_full == "wait" else "lose",
        retention=retention,
    )
    if args.segment_bytes is not None:
        settings = replace(settings, segment_bytes=args.segment_bytes)
    return Writer.open(args.to, settings, program="zenwire record")


async def _until_over(args: argparse.Namespace, recorder: Recorder) -> None:
    """Until the time is over, or nothing can be written any more; with a line now and then."""
    ends = None if args.duration is None else time.monotonic() + args.duration
    before, then = recorder.status(), time.monotonic()
    while ends is None or time.monotonic() < ends:
        wait = 1.0 if ends is None else min(1.0, max(ends - time.monotonic(), 0.01))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await recorder.over.wait()
                return
        status, now = recorder.status(), time.monotonic()
        rate = (status.rows - before.rows) / (now - then)
        _show(args, status, rate, (status.bytes - before.bytes) / (now - then))
        before, then = status, now


def _show(args: argparse.Namespace, status: Status, rows: float, size: float) -> None:
    if args.json:
        told = {**status._asdict(), "rows_per_s": rows, "bytes_per_s": size}
        print(json_text(told, ascii_only=True), flush=True)
    elif not args.quiet:
        import sys  # noqa: PLC0415 - only here

        trouble = f", {escape(status.trouble)}" if status.trouble else ""
        line = (
            f"{status.rows:,} rows, {rows:,.0f}/s, {size / 1e6:,.1f} MB/s, {status.lost:,} lost, "
            f"{status.neighbours} connected{trouble}"
        )
        if sys.stderr.isatty():
            print(f"\r\x1b[Kzenwire record: {line}", end="", file=sys.stderr, flush=True)
        elif status.trouble:
            say(args, line)


def _tell(args: argparse.Namespace, status: Status) -> None:
    import sys  # noqa: PLC0415 - only here

    if sys.stderr.isatty() and not args.quiet and not args.json:
        print(file=sys.stderr)
    recovered = f", {status.recovered:,} of them from histories" if status.recovered else ""
    lost = f"; {status.lost:,} lost, see losses" if status.lost else ""
    text = f"{status.synced:,} rows in {args.to}{recovered}{lost}"
    (say if status.lost else note)(args, text)
