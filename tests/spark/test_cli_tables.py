"""``zenwire tables`` from the command line to files, with Spark."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped] # its stubs are another package
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from tests.spark.conftest import CAPTURES
from zenwire.cli import tables
from zenwire.cli.main import main
from zenwire.cli.progress import Progress
from zenwire.spark.session import (
    SparkUnavailableError,
    find_java,
    local_session,
    spark_session,
)


def run(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    code = main(["tables", *map(str, args)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_json_summary(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    given = [CAPTURES / "udp.pcap", "--out", tmp_path, "--tables", "samples,malformed", "--json"]
    code, out, err = run(capsys, *given)
    assert code == 0
    told = json.loads(out)
    assert told["tables"]["samples"]["rows"] == 80
    assert told["tables"]["malformed"]["rows"] == 0
    assert told["captures"] == [str((CAPTURES / "udp.pcap").resolve())]
    assert told["capture_bytes"] == (CAPTURES / "udp.pcap").stat().st_size
    assert told["accounts"]["batches"] == 215_258
    assert "1 file, 220.4 kB; starting Spark" in err
    assert [line.split()[2] for line in err.splitlines()[1:]] == [
        "batches", "samples", "malformed", "commit",
    ]  # fmt: skip
    # What it wrote, others can read without Spark.
    found = ds.dataset(tmp_path / "samples", partitioning="hive").to_table(columns=["key"])
    assert len(found) == 80
    _is_read_by_all(spark, tmp_path / "malformed")


def _is_read_by_all(spark: SparkSession, empty: Path) -> None:
    """A table without rows has the same columns, and its partition, for every reader."""
    columns = [*spark.read.parquet(str(empty)).columns]
    assert {"capture", "fault", "bytes", "capture_id"} <= {*columns}
    assert spark.read.parquet(str(empty)).count() == 0
    found = ds.dataset(empty, partitioning="hive").to_table()
    assert (len(found), found.column_names) == (0, columns)
    assert found.schema.field("capture_id").type == pa.string()
    frame = pd.read_parquet(empty)
    assert (len(frame), [*frame.columns]) == (0, columns)
    if importlib.util.find_spec("duckdb") is None:
        return
    duckdb = importlib.import_module("duckdb")
    told = duckdb.sql(f"SELECT * FROM read_parquet('{empty}/**/*.parquet', hive_partitioning=true)")
    assert ({*told.columns}, told.fetchall()) == ({*columns}, [])


def test_summary_for_people_and_wrong_names(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    given = [CAPTURES / "udp.pcap", "--out", tmp_path, "--tables"]
    assert run(capsys, *given, "samples")[0] == 0
    code, out, _ = run(capsys, *given, "samples")
    assert code == 0
    assert out.splitlines()[1].split()[:2] == ["samples", "80"]
    assert "80 samples" in out
    assert f"replaced: {(CAPTURES / 'udp.pcap').resolve()}" in out
    assert "MB/s" in out
    code, out, err = run(capsys, *given, "nonsense")
    assert (code, out) == (1, "")
    assert "no table nonsense; there are batches," in err


@pytest.mark.long
def test_examples_run(
    spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    shutil.copy(CAPTURES / "usrpwd.pcap", tmp_path / "capture.pcap")
    for name in ("captures", "rotated"):
        (tmp_path / name).mkdir()
        shutil.copy(CAPTURES / "usrpwd.pcap", tmp_path / name / "one.pcap")
    packed = tmp_path / "captures" / "two.pcapng.gz"
    subprocess.run(["gzip", "-k", "capture.pcap"], cwd=tmp_path, check=True)
    shutil.move(tmp_path / "capture.pcap.gz", packed)
    monkeypatch.chdir(tmp_path)
    for line in tables.EXAMPLES:
        words = shlex.split(line)
        code = main(words[1:])
        captured = capsys.readouterr()
        if "delta" in words and not _has_delta():
            assert code == 2
            assert "pip install 'zenwire[delta]'" in captured.err
        else:
            assert code == 0, captured.err
            assert captured.out


def _has_delta() -> bool:
    try:
        __import__("deltalake")
    except ImportError:
        return False
    return True


@pytest.mark.long
def test_a_process_of_its_own_is_quiet_and_leaves_nothing(tmp_path: Path) -> None:
    """An embedded Spark from start to end, with nothing but the summary on the outside."""
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    out = tmp_path / "out"
    arguments = ["tables", CAPTURES / "usrpwd.pcap", "--out", out, "--tables", "sessions", "--json"]
    result = subprocess.run(
        [sys.executable, "-m", "zenwire", *map(str, arguments), "--cores", "1"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=os.environ | {"TMPDIR": str(scratch)},
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["tables"]["sessions"]["rows"] == 2
    assert all(line.startswith("zenwire tables: ") for line in result.stderr.splitlines())
    assert not list(scratch.glob("zenwire-spark-*"))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal_follows_the_tasks(spark: SparkSession, tmp_path: Path) -> None:
    stream = Terminal()
    (tmp_path / ".zenwire-staging").mkdir()
    (tmp_path / ".zenwire-staging" / "x.parquet").write_bytes(bytes(2_000_000))
    with Progress(spark, tmp_path, 10_000_000, stream=stream) as progress:
        progress.step("batches")
        seen: list[str] = []
        slow = spark.range(0, 4, 1, 4).mapInArrow(_slowly, "id bigint")
        import threading

        thread = threading.Thread(target=slow.count)
        thread.start()
        while thread.is_alive():
            seen.append(progress.line())
            thread.join(0.05)
    assert any("/4 tasks" in line for line in seen)
    assert any(line.startswith("batches") and "of 10.0 MB" in line for line in seen)
    assert "2.0 MB written" in seen[-1]
    assert "\r" in stream.getvalue()


def _slowly(batches: Any) -> Any:
    import time

    for batch in batches:
        time.sleep(0.3)
        yield batch


# --- the session ----------------------------------------------------------------------------------


def test_an_active_session_is_used_and_left_running(spark: SparkSession) -> None:
    assert local_session("another") is spark
    with spark_session("another") as session:
        assert session is spark
    assert spark.range(3).count() == 3


def test_no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(SparkUnavailableError, match=r"Java 17 or newer: install one"):
        find_java()
    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    old.chmod(0o755)
    with pytest.raises(SparkUnavailableError, match=r"java is Java 1: install one"):
        find_java()


def test_java_is_found_where_setup_puts_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = tmp_path / "java" / "bin" / "java"
    own.parent.mkdir(parents=True)
    own.write_text("#!/bin/sh\necho 'openjdk version \"21.0.8\" 2025-07-15' >&2\n")
    own.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert find_java() == tmp_path / "java"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    assert find_java() == tmp_path / "java"
