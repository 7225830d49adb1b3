"""``zenwire ingest``: spools, as they are written, into a lake of tables."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from zenwire.cli.diagnostics import unattended
from zenwire.cli.escaping import json_text
from zenwire.cli.options import count, full_option, seconds, session_options
from zenwire.cli.running import LOST, OK, Wrong, note, run_command, say, session_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Callable

    from zenwire.record import Recorder
    from zenwire.spark.ingest import Pipeline, Status

SUMMARY = "ingest spools into lake tables with Spark, each row exactly once"
EXTRA = "spark"
EXAMPLES: tuple[str, ...] = (
    "zenwire ingest --spool spools/robots --lake lake",
    "zenwire ingest --spool spools/a --spool spools/b --lake lake --once",
    "zenwire ingest -e tcp/10.0.0.1:7447 -k 'robot/**' --spool spools/robots --lake lake",
    "zenwire ingest --spool spools/robots --lake s3://bucket/lake --interval 60 --json",
)
FORMATS = ("delta", "iceberg")

T = TypeVar("T")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what goes in, where it goes, and how often."""
    parser.add_argument(
        "--spool",
        action="append",
        required=True,
        metavar="DIR",
        help="what zenwire record writes; may be given several times",
    )
    parser.add_argument(
        "--lake",
        required=True,
        metavar="DIR|URL",
        help="directory or object store (s3://, az://, gs://) of the tables samples, latest, "
        "key_stats and losses; created if missing",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="delta",
        help="table format; each needs the extra of the same name (default: delta)",
    )
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--once", action="store_true", help="what is in the spools now, and then end")
    when.add_argument(
        "--interval",
        type=seconds,
        default=10.0,
        metavar="S",
        help="seconds from one micro-batch to the next (default: 10)",
    )
    parser.add_argument(
        "--storage-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="option of the object store, such as AWS_ENDPOINT_URL=http://127.0.0.1:9000; "
        "environment variables of the same names work too",
    )
    parser.add_argument(
        "--max-rows",
        type=count,
        default=20_000_000,
        metavar="N",
        help="rows of one micro-batch at most (default: 20000000)",
    )
    parser.add_argument(
        "--cdr-types",
        action="append",
        default=[],
        metavar="FILE|DIR",
        help="definitions of ROS 2 messages, beside the common ones: .msg files, or a directory",
    )
    live = parser.add_argument_group("live: a recorder in the same process")
    live.add_argument(
        "-k",
        "--key",
        action="append",
        default=[],
        metavar="KEYEXPR",
        help="record this into the spool meanwhile; may be given several times",
    )
    live.add_argument(
        "--exclude", action="append", default=[], metavar="KEYEXPR", help="but not this"
    )
    live.add_argument(
        "--liveliness", action="append", default=[], metavar="KEYEXPR", help="tokens to record"
    )
    full_option(live)
    spark = parser.add_argument_group("Spark")
    spark.add_argument(
        "--master",
        metavar="URL",
        help="a Spark cluster that sees the directories (default: this machine)",
    )
    spark.add_argument(
        "--cores", type=count, metavar="N", help="how many of this machine to use (default: all)"
    )
    spark.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark, such as spark.driver.memory=8g; may be given several times",
    )
    parser.add_argument(
        "--json", action="store_true", help="the status every second as a line of JSON on stdout"
    )
    session_options(parser)
    unattended(parser)


def run(args: argparse.Namespace) -> int:
    """Ingest. Exit code 1: it cannot go on, in a line that says why; 3: something was lost."""
    return run_command(args, _main)


async def _main(args: argparse.Namespace) -> int:
    config = dict(entry.partition("=")[::2] for entry in args.conf)
    if not all(config.values()):
        raise Wrong("--conf takes NAME=VALUE")
    if not all(value for _, _, value in (o.partition("=") for o in args.storage_option)):
        raise Wrong("--storage-option takes NAME=VALUE")
    if args.key and (args.once or len(args.spool) > 1):
        raise Wrong("with -k there is one spool, and no --once")
    if not args.key and (args.connect or args.listen or args.liveliness or args.exclude):
        raise Wrong("what is to be recorded? say it with -k")
    _check(args)
    async with _recording(args) as recorder, _piping(args, config) as pipeline:
        before = await asyncio.to_thread(pipeline.status)
        note(args, f"{', '.join(args.spool)} into {args.lake}")
        try:
            await _whole(lambda: pipeline.start(once=args.once, interval=args.interval))
            await _until_over(args, pipeline, recorder)
        finally:
            # Also when it is told to end: not within a micro-batch.
            await _whole(pipeline.stop)
            after = pipeline.status()
            _tell(args, before, after)
    if recorder is not None and recorder.failed is not None:
        raise recorder.failed
    return LOST if after.losses > before.losses else OK


def _check(args: argparse.Namespace) -> None:
    """Now, not after Spark has started. Raises OSError, SpoolError."""
    if not args.key:
        from zenwire.spool import Spool  # noqa: PLC0415 - slow to load

        for path in args.spool:
            Spool.open(path)
    if "://" in args.lake:
        return
    lake = Path(args.lake)
    if lake.exists() and not lake.is_dir():
        raise NotADirectoryError(20, "--lake is a directory, and this is none", str(lake))
    there = next(path for path in (lake, *lake.absolute().parents) if path.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(13, "cannot be written to; give another --lake", str(there))


@contextlib.asynccontextmanager
async def _recording(args: argparse.Namespace) -> AsyncIterator[Recorder | None]:
    """A recorder beside Spark, if there is something to record."""
    if not args.key:
        yield None
        return
    from zenwire.node.plane import load  # noqa: PLC0415 - slow to load
    from zenwire.record import Recorder  # noqa: PLC0415
    from zenwire.spool import Settings, Writer  # noqa: PLC0415

    (spool,) = args.spool
    # Before there is a session, which would stand still meanwhile.
    await asyncio.to_thread(load)
    settings = Settings(overflow="accept" if args.when_full == "wait" else "lose")
    sink = Writer.open(spool, settings, program="zenwire ingest")
    try:
        async with session_of(args) as session:
            recorder = Recorder(
                session,
                sink,
                args.key,
                exclude=args.exclude,
                liveliness=args.liveliness,
                spool=spool,
            )
            async with recorder:
                note(args, f"recording {', '.join(recorder.keys)} to {spool}")
                yield recorder
    finally:
        await asyncio.shield(asyncio.to_thread(sink.close))


async def _whole(call: Callable[[], T]) -> T:
    """In a thread, to its end: also when it is told to end meanwhile."""
    running = asyncio.ensure_future(asyncio.to_thread(call))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


@contextlib.asynccontextmanager
async def _piping(args: argparse.Namespace, config: dict[str, str]) -> AsyncIterator[Pipeline]:
    """Spark and the pipeline, in threads: the network is not to wait for them."""
    note(args, "starting Spark")
    with contextlib.ExitStack() as stack:
        try:
            yield await _whole(lambda: _pipeline(args, config, stack))
        finally:
            await _whole(stack.pop_all().close)


_STANDING: Final = {
    # About 100 MB live in Java: rows are in the memory of Python's tasks. Its usual collector lets
    # the heap of a process that works without a pause grow by 60 MB a minute all the same.
    "spark.driver.defaultJavaOptions": "-XX:+UseSerialGC",
    # For a page that is not served, Spark would keep the plans of its last thousand queries.
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
}
"""For a pipeline that stands for weeks, on this machine alone."""


def _pipeline(
    args: argparse.Namespace, config: dict[str, str], stack: contextlib.ExitStack
) -> Pipeline:
    """Whatever comes into being here ends with the stack."""
    from zenwire.spark.session import spark_session  # noqa: PLC0415 - slow, and needs the extra

    # A task whose Python was killed is done again, here as on a cluster.
    cluster = args.master or os.environ.get("SPARK_MASTER")
    master = cluster or f"local[{args.cores or '*'},4]"
    settings = _STANDING | config if master.startswith("local") else config
    spark = stack.enter_context(spark_session("zenwire ingest", master=master, config=settings))
    from zenwire.lake.payloads.messages import load  # noqa: PLC0415
    from zenwire.spark.ingest import Pipeline  # noqa: PLC0415 - where Spark is

    lake = args.lake if "://" in args.lake else str(Path(args.lake).resolve())
    named = hashlib.sha256(lake.encode()).hexdigest()[:8]
    pipeline = Pipeline(
        spark,
        args.spool,
        lake,
        format=args.format,
        records=args.max_rows,
        reader=f"ingest-{named}",
        definitions=load(*args.cdr_types),
        storage_options=dict(o.partition("=")[::2] for o in args.storage_option),
    )
    return stack.enter_context(pipeline)


async def _until_over(
    args: argparse.Namespace, pipeline: Pipeline, recorder: Recorder | None
) -> None:
    """Until it has failed or, with ``--once``, is done; with a line now and then."""
    shown = time.monotonic()
    while True:
        # To its end: it may begin queries again, which must not be while they are stopped.
        ended = await _whole(lambda: pipeline.wait(0.5))
        if time.monotonic() - shown >= 1.0 or ended:
            shown = time.monotonic()
            _show(args, await asyncio.to_thread(pipeline.status), recorder)
        if ended or (recorder is not None and recorder.failed is not None):
            return


def _show(args: argparse.Namespace, status: Status, recorder: Recorder | None) -> None:
    if args.json:
        told = {**status._asdict()}
        if recorder is not None:
            told["recorder"] = recorder.status()._asdict()
        print(json_text(told, ascii_only=True), flush=True)
    elif not args.quiet and sys.stderr.isatty():
        faults = (
            f", {status.faults:,} payloads that do not match their encoding"
            if status.faults
            else ""
        )
        faults += f", {status.restarts} restarts of Spark's queries" if status.restarts else ""
        line = (
            f"{status.rows:,} rows, {status.rows_per_s:,.0f}/s, {status.lag_rows:,} rows and "
            f"{status.lag_seconds:.0f} s behind, {status.lost:,} lost{faults}, "
            f"last micro-batch {status.batch_seconds:.1f} s"
        )
        print(f"\r\x1b[Kzenwire ingest: {line}", end="", file=sys.stderr, flush=True)


def _tell(args: argparse.Namespace, before: Status, after: Status) -> None:
    if sys.stderr.isatty() and not args.quiet and not args.json:
        print(file=sys.stderr)
    new = after.losses - before.losses
    lost = f"; {new:,} losses, see the table" if new else ""
    text = f"{after.rows - before.rows:,} rows more, {after.rows:,} in {args.lake}{lost}"
    (say if new else note)(args, text)
