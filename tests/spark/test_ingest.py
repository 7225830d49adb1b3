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

from tests.unit.lake.test_ingest import check, fill
from tests.unit.lake.traffic import samples
from zenwire.lake.errors import LakeError
from zenwire.lake.lake import Lake
from zenwire.spark.ingest import Pipeline, Status
from zenwire.spark.lake import table, values
from zenwire.spool import Spool, Writer
from zenwire.web.report import open_source, render
from zenwire.web.report.source import tables_of
from zenwire.web.report.summary import summarise


def ingest(spark: SparkSession, lake: Path | str, *spools: Path, **said: Any) -> Status:
    with Pipeline(spark, spools, lake, **said) as pipeline:
        pipeline.start(once=True)
        pipeline.wait()
        return pipeline.status()


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_rows_and_their_values_are_in_the_tables_once(
    spark: SparkSession, tmp_path: Path, format: str
) -> None:
    a, b, lake = tmp_path / "a", tmp_path / "b", tmp_path / "lake"
    fill(a, 0, 900)
    fill(b, 0, 300, spool="b")
    status = ingest(spark, lake, a, b, records=700, format=format)
    assert (status.rows, status.losses, status.faults, status.lag_rows) == (1200, 0, 0, 0)
    with Writer.open(a) as writer:
        writer.lose("link", "two frames", count=2)
        bad = samples(900, 7).to_pylist()
        bad[2] |= {"payload": b"\xff"}
        # A new field in JSON, a key that is no file name, a long one, and a custom encoding.
        bad[6] |= {"payload": b'{"new": [1, {"x": null}]}', "key": "odd\x00 %=\u00fc/'*\"/x"}
        bad[5] |= {"key": "long/" + "e" * 400}
        bad[1] |= {"encoding": 65535, "encoding_schema": b"my/custom;schema-1"}
        writer.append(pa.RecordBatch.from_pylist(bad, schema=samples(0, 1).schema))
    status = ingest(spark, lake, a, b, format=format)
    assert (status.rows, status.losses, status.lost, status.faults) == (1207, 1, 2, 1)
    check(lake, a, b)

    rows = table(spark, lake, "samples")
    found = values(rows.where("spool = 'a' and offset < 6")).orderBy("offset")
    told = [r[0] for r in found.selectExpr("to_json(value)").collect()]
    assert [json.loads(text or "null") for text in told] == [
        {"i": 0, "what": "lost"},
        None,
        {"i": 2},
        [1.5, 3],
        {"linear": {"x": 4, "y": 0, "z": 0}, "angular": {"x": 0, "y": 0, "z": 1}},
        None,
    ]
    (fault,) = rows.where("value_fault is not null").select("value_fault").collect()
    assert fault[0].startswith("application/cbor")
    (custom,) = rows.where("offset = 901").select("encoding", "encoding_schema").collect()
    assert tuple(custom) == ("my/custom", "schema-1")
    assert values(rows).where("value:new[0]::int = 1").count() == 1
    lost = table(spark, lake, "losses").select("kind", "count").collect()
    assert [tuple(r) for r in lost] == [("link", 2)]

    # Gaps and latency, whatever micro-batches there were: 105 ms between rows of a key.
    stats = table(spark, lake, "key_stats").where("key = 'fleet/a0/pose'")
    for row in stats.orderBy("window_start").collect():
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


def test_a_lake_of_another_format_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path, lake = tmp_path / "s", tmp_path / "lake"
    fill(path, 0, 10)
    Lake(lake)
    with pytest.raises(LakeError, match="has tables of format delta"):
        ingest(spark, lake, path, format="iceberg")
    (tmp_path / "old" / "samples").mkdir(parents=True)
    with pytest.raises(LakeError, match="plain Parquet"):
        ingest(spark, tmp_path / "old", path)


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


def committed(lake: Path, spool: Path) -> int:
    """End of the rows that the table has."""
    return Lake(lake)["samples"].offset(Spool.open(spool).id) or 0


@pytest.mark.long
@pytest.mark.parametrize("times", [1, 5])
def test_a_driver_that_is_killed(spark: SparkSession, tmp_path: Path, times: int) -> None:
    """Java and Python die in the middle of a micro-batch; the command ends what they began."""
    path, lake = tmp_path / "s", tmp_path / "lake"
    fill(path, 0, 2000 * times + 2000, step=200_000_000)
    chance = random.Random(11)
    for _ in range(times):
        begin = committed(lake, path)
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
                while committed(lake, path) <= begin and driver.poll() is None:
                    time.sleep(0.02)
                time.sleep(2 * chance.random())
                os.kill(java, signal.SIGKILL)
            finally:
                os.killpg(driver.pid, signal.SIGKILL)
    assert 0 < committed(lake, path) <= 2000 * times + 2000
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
    check(lake, path)
    for file in Lake(lake)["samples"].files():
        assert pq.read_metadata(lake / "samples" / file.path).num_rows == file.rows
