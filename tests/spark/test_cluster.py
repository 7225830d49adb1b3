"""The same tables from a real standalone cluster: a master and two workers on loopback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from tests.spark.conftest import CAPTURES
from zenwire.spark import tables

HOST = "127.0.0.1"
WHERE = ("capture", "flow", "side", "sequence", "offset")
COLUMNS = (*WHERE, "time", "key", "kind", "priority", "ntp64", "clock_id", "express")

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

JOB = """
import json, sys
from pyspark.sql import SparkSession
from zenwire.spark import tables
spark = (SparkSession.builder.master(sys.argv[1])
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.ui.enabled", "false").config("spark.executor.memory", "1g")
    .config("spark.driver.extraJavaOptions", sys.argv[5])
    .config("spark.executor.extraJavaOptions", sys.argv[5])
    .config("spark.sql.shuffle.partitions", "2").config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.adaptive.coalescePartitions.enabled", "false")
    .config("spark.scheduler.minRegisteredResourcesRatio", "1.0").getOrCreate())
batches = spark.read.format("zenoh.capture").load(json.loads(sys.argv[2]))
columns, where = json.loads(sys.argv[3]), json.loads(sys.argv[4])
rows = tables.samples(batches).select(*columns).orderBy(*where).toArrow().to_pylist()
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
print("RESULT" + json.dumps([executors, rows]))
spark.stop()
"""


def _free_port() -> int:
    with socket.socket() as s:
        s.bind((HOST, 0))
        return int(s.getsockname()[1])


def _wait_for(port: int) -> None:
    for _ in range(200):
        with socket.socket() as s:
            if s.connect_ex((HOST, port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nobody listens on {port}")


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    home = Path(pyspark.__file__).parent
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_JAVA_OPTS": JAVA,
    }
    port = _free_port()
    url = f"spark://{HOST}:{port}"
    daemon = [str(home / "bin/spark-class"), "org.apache.spark.deploy"]
    commands = [
        ["master.Master", "--host", HOST, "--port", str(port), "--webui-port", "0"],
        *[["worker.Worker", "--host", HOST, "-c", "1", "-m", "1g", "--webui-port", "0", url]] * 2,
    ]
    running = []
    try:
        for name, *arguments in commands:
            running.append(
                subprocess.Popen(
                    [daemon[0], f"{daemon[1]}.{name}", *arguments],
                    env=environment,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
            _wait_for(port)
        yield url
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            process.wait(20)


def test_a_cluster_gives_the_same_tables(master: str, batches: DataFrame, tmp_path: Path) -> None:
    names = ("fragmentation", "udp")
    paths = [str(CAPTURES / f"{name}.pcap") for name in names]
    arguments = [master, *(json.dumps(value) for value in (paths, COLUMNS, WHERE)), JAVA]
    # Another process: this one has a local session, and a process has one.
    done = subprocess.run(
        [sys.executable, "-c", JOB, *arguments],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": HOST},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT"))
    executors, found = json.loads(line.removeprefix("RESULT"))
    assert executors == 2
    here = tables.samples(batches).where(F.col("capture").isin(paths))
    expected = here.select(*COLUMNS).orderBy(*WHERE).toArrow().to_pylist()
    assert len(found) == 2 * 12 + 80
    assert found == expected
