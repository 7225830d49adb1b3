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

from tests.ports import free_port
from tests.spark.conftest import CAPTURES
from tests.spark.digests import digests

HOST = "127.0.0.1"
NAMES = ("fragmentation", "udp", "three_routers", "compression", "peer_query_reply", "liveliness")
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

JOB = """
import json, sys
from pyspark.sql import SparkSession
from tests.spark.digests import digests
spark = (SparkSession.builder.master(sys.argv[1])
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.ui.enabled", "false").config("spark.executor.memory", "1g")
    .config("spark.driver.extraJavaOptions", sys.argv[3])
    .config("spark.executor.extraJavaOptions", sys.argv[3])
    .config("spark.sql.shuffle.partitions", "3").config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.adaptive.coalescePartitions.enabled", "false")
    .config("spark.scheduler.minRegisteredResourcesRatio", "1.0").getOrCreate())
# Several tasks, so that both workers have some; one file is read in ranges.
files = spark.read.format("zenoh.capture").option("maxPartitionBytes", "500000")
found = digests(files.load(json.loads(sys.argv[2])))
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
print("RESULT" + json.dumps([executors, found]))
spark.stop()
"""


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
    port = free_port()
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


@pytest.mark.long
def test_a_cluster_gives_the_same_tables(master: str, batches: DataFrame, tmp_path: Path) -> None:
    """Every table, every row, every column."""
    paths = [str(CAPTURES / f"{name}.pcap") for name in NAMES]
    # Another process: this one has a local session, and a process has one.
    done = subprocess.run(
        [sys.executable, "-c", JOB, master, json.dumps(paths), JAVA],
        env=os.environ
        | {
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "SPARK_LOCAL_IP": HOST,
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT"))
    executors, found = json.loads(line.removeprefix("RESULT"))
    assert executors == 2
    expected = digests(batches.where(F.col("capture").isin(paths)))
    assert found == expected
    empty = {name for name, (rows, _) in expected.items() if not rows}
    assert empty == {"losses", "malformed"}
