"""The live pipeline on a real standalone cluster, and through a real Spark Connect server."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest

from tests.ports import free_port
from tests.spark.test_cluster import HOST, JAVA, _wait_for, master
from tests.spark.test_live_recorder import eventually, is_there
from tests.spark.test_live_sink import Router

pytest.importorskip("zenoh")

__all__ = ["master"]
"""The fixture."""

pytestmark = [pytest.mark.long, pytest.mark.interop]

ROWS = 2000

# Rows are published by the sink, recorded beside the query, and streamed into a table, twice: the
# second time by the same query started again. No Spark of this process, and nothing but DataFrames.
JOB = """
import json, sys, time
from pathlib import Path
from pyspark.sql import SparkSession

where, endpoint, folder, rows, java = sys.argv[1:]
builder = SparkSession.builder
if where.startswith("sc://"):
    builder = builder.remote(where)
else:
    for name, value in {
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false", "spark.executor.memory": "1g",
        "spark.driver.extraJavaOptions": java, "spark.executor.extraJavaOptions": java,
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    }.items():
        builder = builder.config(name, value)
    builder = builder.master(where)
spark = builder.getOrCreate()
checkpoint, table, rows = folder + "/checkpoint", folder + "/table", int(rows)
spool = Path(checkpoint) / "spools" / "live"

def start():
    return (
        spark.readStream.format("zenoh")
        .option("connect", endpoint).option("keyexpr", "sink/live/*")
        .option("checkpointLocation", checkpoint).option("minPartitions", "4").load()
        .writeStream.format("parquet").option("checkpointLocation", checkpoint)
        .trigger(processingTime="200 milliseconds").start(table)
    )

def done(query):
    progress = query.lastProgress
    if query.exception() is not None:
        raise query.exception()
    ends = progress and progress["sources"][0]["endOffset"]
    ends = json.loads(ends) if isinstance(ends, str) else ends
    return ends["live"]["0"] if ends else 0

def recorder():
    text = (spool / "lock").read_text() if (spool / "lock").exists() else ""
    return json.loads(text)["pid"] if text.endswith("\\n") else None

pids = [None]
for turn in range(2):
    query = start()
    while recorder() in pids:
        if query.exception() is not None:
            raise query.exception()
        time.sleep(0.05)
    pids.append(recorder())
    frame = spark.range(turn * rows, (turn + 1) * rows, 1, 4).selectExpr(
        "concat('sink/live/', id % 7) key", "string(id) payload", "'DATA_HIGH' priority")
    (frame.write.format("zenoh").mode("append").option("connect", endpoint)
        .option("sourceId", f"turn{turn}").option("waitForSubscribers", "60").save())
    while done(query) < (turn + 1) * rows:
        time.sleep(0.05)
    query.stop()
found = spark.read.parquet(table)
numbers = sorted(int(row[0]) for row in found.selectExpr("string(payload)").collect())
offsets = sorted(row[0] for row in found.select("offset").collect())
again = spark.read.format("zenoh").option("spool", str(spool)).load().count()
executors = 0
if not where.startswith("sc://"):
    executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
print("RESULT" + json.dumps([numbers, offsets, again, executors, pids[1:]]))
spark.stop()
"""


@pytest.fixture
def router() -> Iterator[Router]:
    found = Router()
    yield found
    found.session.close()


def run(where: str, router: Router, folder: Path) -> tuple[int, list[int]]:
    """Executors, and the processes that recorded."""
    done = subprocess.run(
        [sys.executable, "-c", JOB, where, router.endpoint, str(folder), str(ROWS), JAVA],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": HOST},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT"))
    found: list[Any] = json.loads(line.removeprefix("RESULT"))
    numbers, offsets, again, executors, pids = found
    assert numbers == list(range(2 * ROWS))
    assert offsets == list(range(2 * ROWS))
    assert again == 2 * ROWS
    # The reference got the same from the sink.
    assert sorted(int(s.payload.to_string()) for s in router.wait(2 * ROWS)) == numbers
    return executors, pids


def test_the_live_pipeline_on_a_cluster(master: str, router: Router, tmp_path: Path) -> None:
    executors, pids = run(master, router, tmp_path)
    assert executors == 2
    eventually(lambda: not any(map(is_there, pids)))


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    home, port = Path(pyspark.__file__).parent, free_port()
    settings = {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.driver.extraJavaOptions": JAVA,
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    command = [str(home / "bin/spark-submit"), "--master", "local[2]"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    log = (folder / "server.log").open("wb")
    server = subprocess.Popen(
        [*command, "spark-internal"],
        env=os.environ
        | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": HOST, "PYSPARK_PYTHON": sys.executable},
        stdout=log,
        stderr=log,
    )
    try:
        _wait_for(port)
        yield f"sc://{HOST}:{port}"
    finally:
        server.terminate()
        server.wait(30)
        log.close()


@pytest.mark.skipif(
    importlib.util.find_spec("grpc") is None, reason="Spark Connect needs grpcio and its kin"
)
def test_the_live_pipeline_through_connect(router: Router, tmp_path: Path) -> None:
    """The recorder is beside the server, and ends with the query, however the client ends."""
    with connect_server(tmp_path) as where:
        _, pids = run(where, router, tmp_path)
        eventually(lambda: not any(map(is_there, pids)))
