"""What happens to ``zenwire ingest``: it goes on, or says why not; and the tables stay whole."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.spark.kills import descendants
from tests.spark.test_ingest import ingest
from tests.unit.lake.test_ingest import check
from tests.unit.lake.traffic import START, samples
from zenwire.columns.samples import SAMPLES
from zenwire.lake.errors import LakeError
from zenwire.lake.lake import Lake
from zenwire.spark.ingest import Pipeline
from zenwire.spool import Settings, Writer
from zenwire.wire.encoding import ENCODINGS

YEAR = 365 * 24 * 3600 * 10**9


def row(key: str, payload: bytes, at: int, encoding: str = "zenoh/bytes") -> dict[str, Any]:
    said = dict.fromkeys(SAMPLES.names) | {"kind": 0, "reliable": True}
    return said | {
        "key": key,
        "payload": payload,
        "time": at,
        "encoding": ENCODINGS.index(encoding),
    }


def append(path: Path, rows: list[dict[str, Any]]) -> None:
    with Writer.open(path, Settings(overflow="wait")) as writer:
        writer.append(pa.RecordBatch.from_pylist(rows, schema=SAMPLES))


def test_clocks_that_jump_and_large_samples(spark: SparkSession, tmp_path: Path) -> None:
    path, lake = tmp_path / "s", tmp_path / "lake"
    large = b'"' + b"A" * 10_000_000 + b'"'
    jumps = (0, YEAR, -YEAR, -60 * YEAR, 0)
    rows = [row(f"k/{n % 3}/x", b"1", START + jumps[n // 10] + n) for n in range(50)]
    rows += [row("k/large/a", large, START + 50, "application/json")]
    append(path, [*rows, row("k/large/b", large, START + 51)])
    assert ingest(spark, lake, path).faults == 0
    check(lake, path)
    assert not list((lake / ".zenwire").rglob("*.arrow"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of 8 MiB, where one may be mounted."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = shutil.which("mount")
    done = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(path)], check=False
    )
    if not done or done.returncode:
        pytest.skip("no filesystem can be mounted here")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.mark.long
def test_a_full_disk(spark: SparkSession, tmp_path: Path, small_disk: Path) -> None:
    path, lake = tmp_path / "s", small_disk / "lake"
    chance = random.Random(3)
    append(path, [row("k/a/b", chance.randbytes(1000), START + n) for n in range(100)])
    ingest(spark, lake, path)
    append(path, [row("k/a/b", chance.randbytes(1 << 20), START + n) for n in range(10)])
    with pytest.raises(LakeError, match="No space left on device") as e:
        ingest(spark, lake, path)
    assert str(lake) in str(e.value)
    assert sum(file.rows for file in Lake(lake)["samples"].files()) == 100
    subprocess.run(["mount", "-o", "remount,size=60m", str(small_disk)], check=True)
    ingest(spark, lake, path)
    check(lake, path)


@pytest.mark.long
def test_a_spool_that_is_taken_away(spark: SparkSession, tmp_path: Path) -> None:
    path, away, lake = tmp_path / "s", tmp_path / "away", tmp_path / "lake"
    with Writer.open(path) as writer:
        writer.append(samples(0, 100))
    with Pipeline(spark, [path], lake) as pipeline:
        pipeline.start(interval=0)
        while not pipeline.status().rows:
            pipeline.wait(0.1)
        path.rename(away)
        with pytest.raises(LakeError, match="is no spool: it has no manifest") as e:
            pipeline.wait(60)
    assert str(path) in str(e.value)
    assert "the next run goes on from there" in str(e.value)
    assert not path.exists()
    away.rename(path)
    with Writer.open(path) as writer:
        writer.append(samples(100, 50))
    ingest(spark, lake, path)
    check(lake, path)


def runners() -> list[int]:
    """The processes that ask the source for offsets: Spark has one for each query, and no other."""
    name = b"python_streaming_source_runner"
    found = (int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline"))
    below = {*descendants(os.getpid())}
    return [pid for pid in found if pid in below and name in commandline(pid)]


def commandline(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


@pytest.mark.long
def test_spark_tries_again(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its Python is killed where it is not started again by itself."""
    path, lake = tmp_path / "s", tmp_path / "lake"
    with Writer.open(path) as writer:
        writer.append(samples(0, 100))
    with Pipeline(spark, [path], lake) as pipeline:
        pipeline.start(interval=0)
        while not pipeline.status().rows:
            pipeline.wait(0.1)
        for pid in runners():
            os.kill(pid, signal.SIGKILL)
        with Writer.open(path) as writer:
            writer.append(samples(100, 50))
        while pipeline.status().rows < 150:
            pipeline.wait(0.1)
        assert pipeline.status().restarts == 1
    assert "retry 1 of 5 in 1 s" in caplog.text
    check(lake, path)


@pytest.mark.long
def test_spark_tries_again_only_so_often(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zenwire.spark.ingest.pipeline._RETRIES", (0.1,))
    path, lake = tmp_path / "s", tmp_path / "lake"
    with Writer.open(path) as writer:
        writer.append(samples(0, 100))
    with Pipeline(spark, [path], lake) as pipeline:
        pipeline.start(interval=0)
        while not pipeline.status().rows:
            pipeline.wait(0.1)

        def kill_all() -> None:
            while True:
                for pid in runners():
                    os.kill(pid, signal.SIGKILL)
                pipeline.wait(0.2)

        with pytest.raises(LakeError, match="the next run goes on from there"):
            kill_all()
        assert pipeline.status().restarts == 1


# As a command, with the memory that it is given.

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class Memory(threading.Thread):
    """The most that a process and those below it had together, in bytes."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self.most = 0

    def run(self) -> None:
        while Path(f"/proc/{self._pid}/task").exists():
            self.most = max(self.most, self._now(self._pid))
            time.sleep(0.2)

    def _now(self, pid: int) -> int:
        found = 0
        try:
            found = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf(
                "SC_PAGE_SIZE"
            )
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                found += sum(map(self._now, map(int, task.read_text().split())))
        except (OSError, IndexError):
            pass
        return found


def command(path: Path, lake: Path, *more: str) -> tuple[dict[str, Any], int]:
    """What it said last, and its memory."""
    conf = {"spark.driver.memory": "1g", "spark.driver.defaultJavaOptions": QUICK}
    said = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    where = ["--spool", str(path), "--lake", str(lake), "--once", "--json", "--cores", "2"]
    with subprocess.Popen(
        [sys.executable, "-m", "zenwire", "ingest", *where, *said, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        memory = Memory(child.pid)
        memory.start()
        out, errors = child.communicate(timeout=1200)
        memory.join()
    assert child.returncode == 0, errors
    last: dict[str, Any] = json.loads(out.splitlines()[-1])
    return last, memory.most


def read(lake: Path, table: str, *columns: str) -> pa.Table:
    return DeltaTable(str(lake / table)).to_pyarrow_table(columns=[*columns])


@pytest.mark.long
def test_100_000_keys(tmp_path: Path) -> None:
    """In three micro-batches, in a gigabyte of heap."""
    path, lake = tmp_path / "s", tmp_path / "lake"
    for turn in range(3):
        append(path, [row(f"k/{n}/x", b"1", START + turn * 10**9) for n in range(100_000)])
    last, memory = command(path, lake, "--max-rows", "100000")
    assert (last["rows"], last["batch"], last["lag_rows"]) == (300_000, 2, 0)
    for table, count in (("samples", 300_000), ("latest", 100_000)):
        found = read(lake, table, "key")
        assert found.num_rows == count
        assert len(found.column("key").unique()) == 100_000
    stats = read(lake, "key_stats", "messages")
    assert sum(stats.column("messages").to_pylist()) == 300_000
    assert memory < 4 << 30


@pytest.mark.long
def test_samples_of_10_mb(tmp_path: Path) -> None:
    """Two gigabytes of them through one gigabyte of heap."""
    path, lake = tmp_path / "s", tmp_path / "lake"
    for turn in range(20):
        payload = random.Random(turn).randbytes(10_000_000)
        append(path, [row(f"camera/{n % 3}/image", payload, START + n) for n in range(10)])
    last, memory = command(path, lake)
    assert (last["rows"], last["lag_rows"]) == (200, 0)
    assert last["batch"] >= 1
    found = read(lake, "samples", "offset")
    assert sorted(found.column("offset").to_pylist()) == list(range(200))
    assert memory < 6 << 30
