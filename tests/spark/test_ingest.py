"""``zenwire ingest``: from spools to a lake, exactly once, whatever is killed in between."""

from __future__ import annotations

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
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.unit.ingest.traffic import samples
from zenwire.spark.ingest import Pipeline, Status
from zenwire.spark.ingest.names import range_of
from zenwire.spark.write_layout import TableError
from zenwire.spool import Spool, Writer
from zenwire.web.report import open_source, render
from zenwire.web.report.source import tables_of
from zenwire.web.report.summary import summarise

DAY = 24 * 3600 * 10**9


def fill(path: Path, first: int, count: int, **said: Any) -> None:
    with Writer.open(path) as writer:
        for at in range(first, first + count, 100):
            writer.append(samples(at, min(100, first + count - at), **said))
            writer.flush()


def ingest(spark: SparkSession, lake: Path, *spools: Path, **said: Any) -> Status:
    with Pipeline(spark, spools, lake, **said) as pipeline:
        pipeline.start(once=True)
        pipeline.wait()
        return pipeline.status()


def rows(spark: SparkSession, lake: Path, *columns: str) -> list[tuple[Any, ...]]:
    found = spark.read.parquet(str(lake / "samples")).select(*columns).collect()
    return sorted(map(tuple, found))


def check(spark: SparkSession, lake: Path, *spools: Path) -> None:
    """Every row once; ``latest`` and ``key_stats`` are those of all rows."""
    spark.catalog.clearCache()
    truth = []
    for path in spools:
        log = Spool.open(path).samples
        read = log.read(0, log.latest())
        truth += [
            (path.name, found.first + i, row["key"], row["payload"], row["time"])
            for found in read
            for i, row in enumerate(found.batch.to_pylist())
        ]
    found = rows(spark, lake, "spool", "offset", "key", "payload", "time")
    assert [(s, o, k, bytes(p), t) for s, o, k, p, t in found] == sorted(truth)

    last = {key: max(t for *_, k, _, t in truth if k == key) for key in {r[2] for r in truth}}
    latest = spark.read.parquet(str(lake / "latest")).select("key", "last_time").collect()
    assert sorted(map(tuple, latest)) == sorted(last.items())

    windows: dict[tuple[str, int], list[int]] = {}
    for _, _, key, payload, at in truth:
        sums = windows.setdefault((key, at // (10 * 10**9) * 10), [0, 0])
        sums[0] += 1
        sums[1] += len(payload)
    stats = spark.read.parquet(str(lake / "key_stats"))
    told = stats.selectExpr("key", "unix_seconds(window.start)", "messages", "bytes").collect()
    assert sorted(map(tuple, told)) == sorted((*k, *v) for k, v in windows.items())


def test_rows_and_their_views_are_in_the_tables_once(spark: SparkSession, tmp_path: Path) -> None:
    a, b, lake = tmp_path / "a", tmp_path / "b", tmp_path / "lake"
    fill(a, 0, 900)
    fill(b, 0, 300, spool="b")
    status = ingest(spark, lake, a, b, records=700)
    assert (status.rows, status.losses, status.faults, status.lag_rows) == (1200, 0, 0, 0)
    with Writer.open(a) as writer:
        writer.lose("link", "two frames", count=2)
        bad = samples(900, 7).to_pylist()
        bad[0] |= {"payload": b"{", "encoding": 5, "kind": 0, "encoding_schema": None}
        bad[2] |= {"payload": b"\xff"}
        # A new field in JSON, a key that is no name of a file, and one that goes on and on.
        bad[6] |= {"payload": b'{"new": [1, {"x": null}]}', "key": "odd\x00 %=\u00fc/'*\"/x"}
        bad[5] |= {"key": "long/" + "e" * 400}
        writer.append(pa.RecordBatch.from_pylist(bad, schema=samples(0, 1).schema))
    status = ingest(spark, lake, a, b)
    assert (status.rows, status.losses, status.lost, status.faults) == (1207, 1, 2, 2)
    check(spark, lake, a, b)

    table = spark.read.parquet(str(lake / "samples"))
    assert dict(table.dtypes)["value"] == "variant"
    views = table.where("spool = 'a' and offset < 6").orderBy("offset")
    found = views.selectExpr("text", "to_json(value)").collect()
    assert [r[0] for r in found] == ['{"i": 0, "what": "lost"}', "text 1", None, None, None, None]
    assert [json.loads(r[1] or "null") for r in found] == [
        {"i": 0, "what": "lost"},
        None,
        {"i": 2},
        [1.5, 3],
        {"linear": {"x": 4, "y": 0, "z": 0}, "angular": {"x": 0, "y": 0, "z": 1}},
        None,
    ]
    faults = [r[0] for r in table.where("value_fault is not null").select("value_fault").collect()]
    assert sorted(fault.partition(":")[0] for fault in faults) == [
        "application/cbor",
        "application/json",
    ]
    new = table.where("value:new[0]::int = 1").count()
    assert new == 1
    lost = spark.read.parquet(str(lake / "losses")).select("kind", "count").collect()
    assert [tuple(r) for r in lost] == [("link", 2)]

    # Gaps and latency, whatever micro-batches there were: 105 ms between rows of a key.
    stats = spark.read.parquet(str(lake / "key_stats")).where("key = 'fleet/a0/pose'")
    for row in stats.orderBy("window.start").collect():
        assert all(abs(gap - 0.105) < 0.0012 for gap in row["gap"])
        assert all(0.00099 < late < 0.0031 for late in row["latency"])

    # And the page, of this lake.
    source = open_source([str(lake)])
    assert source.kind == "lake"
    with tables_of(spark, source) as tables:
        summary = summarise(source, tables)
    assert summary.keys is not None
    assert summary.keys.samples == 1207
    assert summary.verdict.headline == "Something was lost"
    page = render(summary)
    assert 'id="keys"' in page
    assert 'id="topology"' not in page
    assert "is not in this directory" not in page


@pytest.mark.long
def test_small_files_become_few(spark: SparkSession, tmp_path: Path) -> None:
    """Those of a day that is over, and of hours of ``key_stats``; late rows still find theirs."""
    path, lake = tmp_path / "s", tmp_path / "lake"
    how = {"records": 150, "prefix_chunks": 1}
    fill(path, 0, 300, step=500_000_000)
    ingest(spark, lake, path, **how)
    (first,) = (lake / "samples").glob("*/*")
    # Two micro-batches, and each has rows with views and rows without.
    assert len(list(first.iterdir())) == 4
    # The next day, a row every five minutes.
    fill(path, 300, 20, step=DAY // 300)
    ingest(spark, lake, path, **how)
    (name,) = [file.name for file in first.iterdir()]
    assert range_of(name) == (0, 1)
    (day,) = [
        folder for folder in (lake / "key_stats").iterdir() if first.parent.name == folder.name
    ]
    assert sorted(file.stem for file in day.iterdir()) == ["h11m59", "h12"]
    check(spark, lake, path)
    # A spool that comes late, whose windows are in a file of an hour.
    late = tmp_path / "late"
    fill(late, 0, 50, spool="late", step=1_000_000_000)
    ingest(spark, lake, path, late, **how)
    assert sorted(file.stem for file in day.iterdir()) == ["h11m59", "h12"]
    check(spark, lake, path, late)


@pytest.mark.long
def test_columns_that_older_files_have_not(spark: SparkSession, tmp_path: Path) -> None:
    path, lake = tmp_path / "s", tmp_path / "lake"
    fill(path, 0, 200)
    ingest(spark, lake, path, prefix_chunks=1)
    files = [file for table in ("samples", "latest") for file in (lake / table).rglob("*.parquet")]
    for number, file in enumerate(files):
        frame = spark.read.parquet(str(file)).drop("value_fault", "express")
        frame.coalesce(1).write.parquet(str(tmp_path / str(number)))
        (older,) = (tmp_path / str(number)).glob("*.parquet")
        older.replace(file)
    fill(path, 200, 100)
    ingest(spark, lake, path, prefix_chunks=1)
    check(spark, lake, path)
    merged = spark.read.option("mergeSchema", "true").parquet(str(lake / "samples"))
    assert merged.where("express is null").count() == 200


def test_a_lake_whose_checkpoint_is_gone_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path, lake = tmp_path / "s", tmp_path / "lake"
    fill(path, 0, 10)
    ingest(spark, lake, path)
    (lake / ".zenwire/samples/checkpoint").rename(tmp_path / "away")
    with pytest.raises(TableError, match="is gone, which says how far samples has come"):
        ingest(spark, lake, path)


DRIVER = """
import sys
from zenwire.spark.session import local_session
from zenwire.spark.ingest import Pipeline

spark = local_session("killed", master="local[2,4]", config={
    "spark.driver.memory": "1g",
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
})
print(spark.sparkContext._gateway.proc.pid, flush=True)
with Pipeline(spark, [sys.argv[1]], sys.argv[2], records=int(sys.argv[3])) as pipeline:
    pipeline.start(interval=0)
    pipeline.wait()
"""


def committed(lake: Path) -> int:
    state = lake / ".zenwire/samples/state.json"
    try:
        return int(json.loads(state.read_text())["batch"])
    except OSError:
        return -1


@pytest.mark.long
@pytest.mark.parametrize("times", [1, 5])
def test_a_driver_that_is_killed(spark: SparkSession, tmp_path: Path, times: int) -> None:
    """Java and Python die in the middle of a micro-batch; the command ends what they began."""
    path, lake = tmp_path / "s", tmp_path / "lake"
    fill(path, 0, 2000 * times + 2000, step=200_000_000)
    chance = random.Random(11)
    for _ in range(times):
        begin = committed(lake)
        with subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(path), str(lake), "400"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        ) as driver:
            try:
                assert driver.stdout is not None
                java = int(driver.stdout.readline())
                while committed(lake) < begin + 1 and driver.poll() is None:
                    time.sleep(0.02)
                time.sleep(2 * chance.random())
                os.kill(java, signal.SIGKILL)
            finally:
                os.killpg(driver.pid, signal.SIGKILL)
    assert 0 <= committed(lake) < 5 * times + 4
    quick = "spark.driver.defaultJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    arguments = ["--spool", str(path), "--lake", str(lake), "--once", "--json", "--cores", "2"]
    done = subprocess.run(
        [sys.executable, "-m", "zenwire", "ingest", *arguments, "--conf", quick],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert said[-1]["rows"] == 2000 * times + 2000
    assert said[-1]["lag_rows"] == 0
    check(spark, lake, path)
    # Nothing half-made is left, and every file can be read.
    assert not list((lake / ".zenwire").rglob("*.parquet"))
    for file in lake.rglob("*.parquet"):
        pq.read_metadata(file)
