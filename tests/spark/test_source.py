from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.spark.conftest import CAPTURES
from zenwire.capture import SCHEMA, read_capture
from zenwire.spark.schema import struct_of
from zenwire.spark.source import CaptureReader, CaptureSource, Files


def test_the_rows_are_those_of_the_reader(spark: SparkSession, batches: DataFrame) -> None:
    path = str(CAPTURES / "udp.pcap")
    expected = pa.Table.from_batches(read_capture(path)).to_pylist()
    found = batches.where(batches.capture == path).toArrow().to_pylist()
    assert batches.schema == struct_of(SCHEMA)
    assert found == expected


def test_every_file_of_a_directory(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("usrpwd.pcap", "udp.pcap"):
        (tmp_path / name).write_bytes((CAPTURES / name).read_bytes())
    frame = spark.read.format("zenoh.capture").load(str(tmp_path))
    names = [Path(row.capture).name for row in frame.select("capture").distinct().collect()]
    assert sorted(names) == ["udp.pcap", "usrpwd.pcap"]


def test_several_paths_and_uris(spark: SparkSession) -> None:
    paths = [(CAPTURES / name).as_uri() for name in ("usrpwd.pcap", "udp.pcap")]
    frame = spark.read.format("zenoh.capture").load(paths)
    assert frame.select("capture").distinct().count() == 2


def test_small_files_share_tasks_and_large_ones_do_not(tmp_path: Path) -> None:
    for name, size in (("a", 10), ("b", 10), ("c", 100), ("d", 10)):
        (tmp_path / name).write_bytes(bytes(size))
    parts = CaptureReader([str(tmp_path)], 50).partitions()
    named = [[Path(p).name for p in part.paths] for part in parts if isinstance(part, Files)]
    assert named == [["a", "b"], ["c"], ["d"]]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file or directory"),
        (b"", "the file is empty"),
        (b"no capture" * 10, "neither pcap nor pcapng"),
    ],
)
def test_what_is_no_capture_is_said(
    spark: SparkSession, tmp_path: Path, content: bytes | None, reason: str
) -> None:
    path = tmp_path / "x.pcap"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PySparkException, match=reason):
        spark.read.format("zenoh.capture").load(str(path)).count()


def test_a_pattern_that_matches_nothing_is_said(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="no such file"):
        spark.read.format("zenoh.capture").load(f"{tmp_path}/*.pcap").count()


@pytest.mark.parametrize("size", ["0", "-1", "many", ""])
def test_a_partition_size_is_positive(size: str) -> None:
    source = CaptureSource({"path": "x", "maxPartitionBytes": size})
    with pytest.raises(ValueError, match="maxPartitionBytes"):
        source.reader(source.schema())


def test_a_path_is_needed() -> None:
    source = CaptureSource({})
    with pytest.raises(ValueError, match="needs a path"):
        source.reader(source.schema())
