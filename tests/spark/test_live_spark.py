"""format("zenoh") in Spark: tables and streams over spools, restarts and kills."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.streaming.query import StreamingQuery

from tests.unit.spool.rows import samples
from zenwire.columns.samples import SAMPLES
from zenwire.spark.live.views import with_values
from zenwire.spark.tables import words
from zenwire.spool import Retention, Settings, Spool, Writer

FEW = Settings(segment_bytes=20_000, sync_interval=3600.0)


def fill(path: Path, start: int, rows: int, **said: Any) -> None:
    """Batches of 100, synced one by one."""
    with Writer.open(path, Settings(segment_bytes=20_000, sync_interval=3600.0, **said)) as writer:
        for first in range(start, start + rows, 100):
            writer.append(samples(range(first, min(first + 100, start + rows))))
            writer.flush()


def rich() -> pa.RecordBatch:
    """Every kind of value that a sample has, and null where it may."""
    chance = random.Random(8)
    rows: list[dict[str, Any]] = []
    for i in range(200):
        delete = i % 9 == 0
        stamped = i % 3 != 0
        sourced = i % 4 != 0
        rows.append(
            {
                "key": f"fleet/{i % 7}/speed",
                "kind": int(delete),
                "payload": b"" if delete else chance.choice([chance.randbytes(i), b'{"a": 1}']),
                "encoding": None if delete else chance.choice([0, 4, 5, 8, 52, 60, 900, 65535]),
                "encoding_schema": chance.choice([None, b"", b"u32", "ü".encode()]),
                "timestamp": chance.randrange(-(1 << 63), 1 << 63) if stamped else None,
                "timestamp_id": chance.randbytes(16) if stamped else None,
                "source_zid": chance.randbytes(4) if sourced else None,
                "source_eid": chance.randrange(1 << 32) if sourced else None,
                "source_sn": chance.randrange(1 << 32) if sourced else None,
                "attachment": chance.choice([None, b"", b"more"]),
                "qos": chance.randrange(64),
                "reliable": bool(i % 2),
                "time": 1_800_000_000_000_000_000 + i * 1000,
            }
        )
    return pa.RecordBatch.from_pylist(rows, schema=SAMPLES)


def read(spark: SparkSession, *paths: Path, **options: str) -> DataFrame:
    spools = json.dumps([str(path) for path in paths])
    return spark.read.format("zenoh").option("spool", spools).options(**options).load()


def test_columns_are_those_of_captures(spark: SparkSession, tmp_path: Path) -> None:
    """Names, types and values as the same numbers of the wire have in ``samples``."""
    with Writer.open(tmp_path / "s") as writer:
        writer.append(rich())
    raw = (
        pa.Table.from_batches([rich()])
        .append_column("deserialized", pa.nulls(200, pa.string()))
        .append_column("shm", pa.nulls(200, pa.bool_()))
    )
    body = F.when(F.col("kind") == 0, "PUT").otherwise("DEL")
    same = spark.createDataFrame(raw).select(
        "time", words.received_at(), "key", words.kind(body).alias("kind"), *words.value()
    )
    json = F.to_json("value").alias("value")
    live = with_values(read(spark, tmp_path / "s"))
    assert live.columns[6:9] == ["payload", "text", "value"]
    for name, kind in live.dtypes:
        if name not in ("spool", "offset"):
            assert (name, kind) in same.dtypes
    names = [name for name in live.columns if name in same.columns]
    plain = [json if name == "value" else F.col(name) for name in names]
    found = live.orderBy("offset").select("spool", "offset", *plain).toArrow()
    expected = same.orderBy("time").select(*plain).toArrow()
    assert found["value"].null_count < 200
    assert found["text"].null_count < 200
    for name in names:
        if name != "received_at":
            assert found[name].to_pylist() == expected[name].to_pylist(), name
    micros = found["received_at"].cast(pa.int64()).to_pylist()
    assert micros == [time // 1000 for time in found["time"].to_pylist()]
    assert found["offset"].to_pylist() == list(range(200))
    assert set(found["spool"].to_pylist()) == {"s"}


@pytest.mark.parametrize("pushed", ["true", "false"])
def test_conditions_of_one_scan_do_not_touch_another(
    spark: SparkSession, tmp_path: Path, pushed: str
) -> None:
    fill(tmp_path / "s", 0, 1000)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", pushed)
    try:
        frame = read(spark, tmp_path / "s", minPartitions="3")
        both = frame.where("offset < 10").unionByName(frame.where("time >= 900")).count()
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert both == 110


def test_ranges_keys_and_times_of_several_spools(spark: SparkSession, tmp_path: Path) -> None:
    for name in "ab":
        with Writer.open(tmp_path / name, FEW) as writer:
            for first in range(0, 300, 100):
                keys = [f"{name}/{i % 5}" for i in range(100)]
                writer.append(samples(range(first, first + 100), key=keys))
                writer.flush()
    starts = json.dumps({"a": {"0": 50}, "b": {"0": -2}})
    ends = json.dumps({"a": 120, "b": {"0": -1}})
    some = read(
        spark,
        tmp_path / "a",
        tmp_path / "b",
        startingOffsets=starts,
        endingOffsets=ends,
        keyexpr="*/1,a/2",
        columns="spool,offset,key",
    )
    found = sorted(map(tuple, some.collect()))
    assert found == [
        *[("a", i, f"a/{i % 5}") for i in range(50, 120) if i % 5 in (1, 2)],
        *[("b", i, f"b/{i % 5}") for i in range(300) if i % 5 == 1],
    ]
    # Times of these rows are nanoseconds: all are of the first microsecond.
    assert read(spark, tmp_path / "a", startingTimestamp="1").count() == 0


class Query:
    """A stream to Parquet, read to its end by each call, and started again for it."""

    def __init__(self, spark: SparkSession, folder: Path, *spools: Path, **options: str) -> None:
        self._spark = spark
        self._folder = folder
        self._options = {"spool": ",".join(map(str, spools)), "startingOffsets": "earliest"}
        self._options |= options

    def start(self) -> StreamingQuery:
        return (
            self._spark.readStream.format("zenoh")
            .options(**self._options)
            .load()
            .select("spool", "offset", "payload")
            .writeStream.format("parquet")
            .option("checkpointLocation", str(self._folder / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(self._folder / "table"))
        )

    def run(self) -> list[int]:
        """Rows of each micro-batch."""
        query = self.start()
        query.awaitTermination()
        return [p.numInputRows for p in query.recentProgress if p.numInputRows]

    def rows(self) -> list[tuple[str, int, int]]:
        return rows_of(self._spark, self._folder / "table")


def rows_of(spark: SparkSession, table: Path) -> list[tuple[str, int, int]]:
    found: list[Row] = spark.read.parquet(str(table)).collect()
    return sorted((r.spool, r.offset, int.from_bytes(r.payload[:8], "little")) for r in found)


def test_a_stream_that_is_started_again(spark: SparkSession, tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    query = Query(spark, tmp_path, *paths, maxRecordsPerTrigger="250", reader="test")
    for path in paths:
        fill(path, 0, 300)
    assert query.run() == [250, 250, 100]
    for path in paths:
        fill(path, 300, 50)
    assert query.run() == [100]
    assert query.run() == []
    assert query.rows() == [(name, i, i) for name in "ab" for i in range(350)]
    # Retention knows what was read, up to the last commit.
    assert Spool.open(paths[0]).readers()[0].position >= 250


def test_rows_that_are_gone_stop_a_stream_unless_told(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "s"
    fill(path, 0, 200)
    Query(spark, tmp_path, path).run()
    fill(path, 200, 400)
    fill(path, 600, 400, retention=Retention(bytes=1))
    earliest = Spool.open(path).samples.earliest()
    assert earliest > 200
    with pytest.raises(PySparkException, match=f"offset 200 is gone, .* {earliest}"):
        Query(spark, tmp_path, path).run()
    loose = Query(spark, tmp_path, path, failOnDataLoss="false")
    loose.run()
    assert loose.rows() == [("s", i, i) for i in [*range(200), *range(earliest, 1000)]]


RECORDER = """
import sys, time
from tests.unit.spool.rows import samples
from zenwire.spool import Settings, Writer

writer = Writer.open(sys.argv[1], Settings(sync_interval=0.01))
while True:
    first = writer.append(samples([])) or 0
    writer.append(samples(range(first, first + 50)))
    time.sleep(0.05)
"""

DRIVER = """
import os, sys
from pathlib import Path
from zenwire.spark.session import local_session

folder = Path(sys.argv[1])
spark = local_session("killed", cores=2, config={
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
})
gateway = spark.sparkContext._gateway.proc.pid
query = (
    spark.readStream.format("zenoh")
    .option("spool", str(folder / "s")).option("startingOffsets", "earliest")
    .option("maxRecordsPerTrigger", "100").option("reader", "killed")
    .load().select("spool", "offset", "payload")
    .writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    .start(str(folder / "table"))
)
print(gateway, flush=True)
query.awaitTermination()
"""


def batches_of(folder: Path) -> int:
    """Micro-batches that were begun."""
    return sum(p.name.isdigit() for p in (folder / "checkpoint" / "offsets").glob("*"))


@pytest.mark.long
def test_a_driver_that_is_killed_repeats_and_loses_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    """And a recorder that is killed beside it, whose rows the next one takes up."""
    path = tmp_path / "s"
    with (
        subprocess.Popen([sys.executable, "-c", RECORDER, str(path)]) as recorder,
        subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        ) as driver,
    ):
        try:
            assert driver.stdout is not None
            java = int(driver.stdout.readline())
            while batches_of(tmp_path) < 4:
                time.sleep(0.05)
            time.sleep(random.random())
            os.kill(java, signal.SIGKILL)
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
            recorder.kill()
    fill(path, _next(path), 70)
    query = Query(spark, tmp_path, path, reader="killed")
    query.run()
    end = Spool.open(path).samples.latest()
    assert query.rows() == [("s", i, i) for i in range(end)]


def _next(path: Path) -> int:
    with Writer.open(path) as writer:
        return writer.append(samples([])) or 0


def _workers(of: int) -> list[int]:
    """The Python processes below one of Java."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {of}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {of})


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_workers_that_are_killed_repeat_and_lose_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "s"
    fill(path, 0, 3000)
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    chance = random.Random(6)
    for _ in range(2):
        begun = batches_of(tmp_path)
        try:
            query = Query(spark, tmp_path, path, maxRecordsPerTrigger="100").start()
        except (PySparkException, Py4JError):
            continue
        while batches_of(tmp_path) < begun + 3 and query.isActive:
            time.sleep(0.01)
        time.sleep(chance.random() / 5)
        for pid in _workers(gateway.proc.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(PySparkException):
            query.awaitTermination()
    whole = Query(spark, tmp_path, path)
    for _ in range(5):
        # Spark takes a worker for alive until it has tried to use it.
        with contextlib.suppress(PySparkException, Py4JError):
            whole.run()
            break
    assert whole.rows() == [("s", i, i) for i in range(3000)]
