"""A simulated fleet, recorded and ingested by Spark; then a few questions in SQL (``make demo``).

Everything is on this machine: real sessions over TCP on the loopback interface, a recorder, Spark
in this process. The tables are in demo-lake/ afterwards, with a page to look at.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import shutil
import signal
import socket
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from zenwire import aio
from zenwire.errors import ZError
from zenwire.record import Recorder
from zenwire.spark.session import spark_session
from zenwire.spool import Spool, Writer
from zenwire.web.report import open_source, render
from zenwire.web.report.source import tables_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zenwire.spark.ingest import Pipeline

Tell = Callable[[str], None]
HERE = Path(__file__).parent
ROBOTS = 3
WIDEST = 48
"""Characters of a column of an answer."""
# The compiler that starts fast: this Spark lives for a minute.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

QUESTIONS = (
    (
        "How often, and how late? (the busiest keys)",
        """
        SELECT key, sum(messages) AS messages, round(max(rate), 1) AS `highest rate, 1/s`,
               round(1000 * max(gap[2]), 1) AS `gap p99, ms`,
               round(1000 * max(latency[2]), 1) AS `latency p99, ms`
        FROM key_stats GROUP BY key ORDER BY messages DESC, key LIMIT 5
        """,
    ),
    (
        "What is the newest of each robot?",
        """
        SELECT split_part(key, '/', 2) AS robot,
               max(CASE WHEN key LIKE '%/battery' THEN payload::string END) AS `battery, %`,
               max(CASE WHEN key LIKE '%/pose' THEN concat(
                   round(value:[0]::double, 2), ', ', round(value:[1]::double, 2)) END) AS `x, y`,
               max(CASE WHEN key LIKE '%/events' THEN value:event::string END) AS `last event`
        FROM latest WHERE key LIKE 'fleet/robot%' GROUP BY robot ORDER BY robot
        """,
    ),
    (
        "What happened? (JSON payloads, by a field of theirs)",
        """
        SELECT value:event::string AS event, count(*) AS times,
               round(avg(value:battery::double), 1) AS `battery on average, %`
        FROM samples WHERE key LIKE '%/events' GROUP BY event ORDER BY times DESC, event
        """,
    ),
    (
        "Who was alive when?",
        """
        SELECT split_part(key, '/', 2) AS robot, date_format(received_at, 'HH:mm:ss.SSS') AS at,
               CASE kind WHEN 'PUT' THEN 'came' ELSE 'went' END AS what
        FROM samples WHERE key LIKE '%/alive' ORDER BY received_ns, key
        """,
    ),
    (
        "What was lost?",
        """
        SELECT kind, reason, count(*) AS times, sum(count) AS samples
        FROM losses GROUP BY kind, reason ORDER BY times DESC LIMIT 5
        """,
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="of traffic (default: 20)")
    parser.add_argument("--lake", type=Path, default=Path("demo-lake"), help="default: demo-lake")
    args = parser.parse_args()
    # That a session ended is told below, in words.
    logging.getLogger("zenwire").setLevel(logging.ERROR)
    try:
        return asyncio.run(demo(args.lake.resolve(), args.seconds))
    except KeyboardInterrupt:
        return 130
    except (ZError, OSError) as e:
        print(f"demo: {e}", file=sys.stderr)
        return 1


async def demo(lake: Path, seconds: float) -> int:
    begin = time.monotonic()

    def tell(text: str) -> None:
        print(f"[{time.monotonic() - begin:5.1f} s] {text}", flush=True)

    _make_room(lake)
    spool, page = lake / "spool", lake / "report.html"
    # One writes the spool, the other reads it as it grows.
    writer = Writer.open(spool, program="demo")
    recorded = threading.Event()
    tell("starting Spark in this process")
    tables = asyncio.create_task(asyncio.to_thread(make_tables, lake, page, recorded, tell))
    try:
        await record(writer, spool, seconds, tell)
    finally:
        await asyncio.to_thread(writer.close)
        recorded.set()
        await tables
    tell("done")
    print(f"\nThe tables:  {lake}\nThe report:  {page}")
    print(f"By hand:     zenwire ingest --spool {spool} --lake {lake} --once")
    return 0


def _make_room(lake: Path) -> None:
    """A lake of a former run goes. Raises ZError for a directory that is something else."""
    if lake.exists() and not (lake / ".zenwire").is_dir() and any(lake.iterdir()):
        raise ZError(f"{lake} is there, and no lake of a demo: give another --lake")
    shutil.rmtree(lake, ignore_errors=True)
    (lake / ".zenwire").mkdir(parents=True)


async def record(writer: Writer, spool: Path, seconds: float, tell: Tell) -> None:
    """The recorder listens, and a fleet connects to it. One robot is killed, and comes back."""
    port = free_port()
    config = aio.Config.from_dict(
        {
            "mode": "peer",
            "listen": {"endpoints": [f"tcp/127.0.0.1:{port}"]},
            "scouting": {"multicast": {"enabled": False}},
            "timestamping": {"enabled": True},
        }
    )
    robots: list[asyncio.subprocess.Process] = []
    try:
        async with aio.open(config) as session:
            recorder = Recorder(
                session, writer, ["fleet/**"], liveliness=["fleet/*/alive"], spool=spool
            )
            async with recorder:
                tell(f"recording fleet/** from tcp/127.0.0.1:{port} to {spool}")
                robots.append(await fleet(port, 1, ROBOTS - 1, seconds))
                robots.append(await fleet(port, ROBOTS, 1, seconds))
                await until_connected(recorder, ROBOTS)
                tell(f"{ROBOTS} robots publish poses at 100 Hz, battery, events and images")
                for part in range(4):
                    await asyncio.sleep(seconds / 4)
                    status = recorder.status()
                    tell(
                        f"recorded {status.rows:,} samples, {status.bytes / 1e6:.1f} MB, from "
                        f"{status.neighbours} sessions"
                    )
                    if part == 1:
                        robots[-1].send_signal(signal.SIGKILL)
                        await robots[-1].wait()
                        tell(f"robot{ROBOTS} was killed (SIGKILL)")
                    elif part == 2:
                        robots.append(await fleet(port, ROBOTS, 1, seconds))
                        await until_connected(recorder, ROBOTS)
                        tell(f"robot{ROBOTS} is back")
                await ask_robots(session, tell)
    finally:
        for robot in robots:
            if robot.returncode is None:
                robot.terminate()
            await robot.wait()


async def until_connected(recorder: Recorder, sessions: int) -> None:
    ends = time.monotonic() + 60
    while recorder.status().neighbours < sessions:
        if time.monotonic() > ends:
            raise ZError("the robots do not connect: are connections on 127.0.0.1 allowed?")
        await asyncio.sleep(0.1)


async def ask_robots(session: aio.Session, tell: Tell) -> None:
    """A query, which goes to the robots and not to the tables."""
    replies = await session.get(
        "fleet/*/status", timeout=5.0, consolidation=aio.ConsolidationMode.NONE
    )
    answers = [str(reply.ok.payload) async for reply in replies if reply.ok is not None]
    tell(f"a query for fleet/*/status: {', '.join(sorted(answers))}")


async def fleet(port: int, first: int, robots: int, seconds: float) -> asyncio.subprocess.Process:
    """Robots in a process of their own."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        str(HERE / "fleet.py"),
        *["-m", "peer", "-e", f"tcp/127.0.0.1:{port}"],
        *["--first", str(first), "--robots", str(robots), "--seconds", str(3 * seconds + 30)],
    )


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


# Spark's part.


def make_tables(lake: Path, page: Path, recorded: threading.Event, tell: Tell) -> None:
    """Until everything that was recorded is in the tables; then what they say."""
    config = {"spark.driver.defaultJavaOptions": JAVA, "spark.driver.memory": "1g"}
    with spark_session("zenwire demo", master="local[*,4]", config=config) as spark:
        # These need Spark, which is there now.
        from zenwire.spark.ingest import Pipeline  # noqa: PLC0415

        with Pipeline(spark, [lake / "spool"], lake) as pipeline:
            tell("Spark is there; it takes up what is recorded every few seconds")
            pipeline.start(interval=3.0)
            follow(pipeline, Spool.open(lake / "spool"), recorded, tell)
        ask(spark, lake)
        print()
        report(spark, lake, page)


def follow(pipeline: Pipeline, spool: Spool, recorded: threading.Event, tell: Tell) -> None:
    said = 0.0
    while True:
        # Looked at before the rows are: what is recorded then is all there will be.
        over = recorded.is_set()
        pipeline.wait(0.5)
        status = pipeline.status()
        rows, losses = spool.samples.latest(), spool.losses.latest()
        done = over and status.rows >= rows and status.losses >= losses
        if done or time.monotonic() - said > 5:
            said = time.monotonic()
            tell(f"tables have {status.rows:,} of {rows:,} samples, and {losses:,} losses")
        if done:
            return


def ask(spark: SparkSession, lake: Path) -> None:
    from zenwire.spark.lake import table, values, views  # noqa: PLC0415 - where Spark is

    views(spark, lake)
    for name in ("samples", "latest"):
        values(table(spark, lake, name)).createOrReplaceTempView(name)
    for question, query in QUESTIONS:
        print(f"\n{question}")
        found = spark.sql(query).toArrow()
        rows = [[shown(value) for value in row.values()] for row in found.to_pylist()]
        print_table(found.column_names, rows)


def shown(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else str(value)


def print_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if not rows:
        print("  nothing")
        return
    columns = list(zip(names, *rows, strict=True))
    widths = [min(max(map(len, column)), WIDEST) for column in columns]
    for line in ([*names], *rows):
        # A long text goes on below itself.
        cells = [textwrap.wrap(cell, WIDEST) or [""] for cell in line]
        for parts in zip_longest(*cells, fillvalue=""):
            told = [f"{part:<{width}}" for part, width in zip(parts, widths, strict=True)]
            print(("  " + "  ".join(told)).rstrip())


def report(spark: SparkSession, lake: Path, page: Path) -> None:
    """What ``zenwire report`` does."""
    from zenwire.web.report.summary import summarise  # noqa: PLC0415 - where Spark is

    source = open_source([str(lake)])
    with tables_of(spark, source) as tables:
        page.write_text(render(summarise(source, tables)), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
