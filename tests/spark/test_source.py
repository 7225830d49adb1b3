from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from tests import recorded
from tests.spark.conftest import CAPTURES
from tests.unit.capture import writer as w
from zenwire.capture import SCHEMA, read_capture
from zenwire.spark import tables
from zenwire.spark.relation import options_of
from zenwire.spark.schema import struct_of
from zenwire.spark.source import CaptureReader, CaptureSource, Ranges
from zenwire.wire import decode_batch
from zenwire.wire.network import Push
from zenwire.wire.transport import Fragment

BOOKS = ("overhead", "repeated")


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    """Without what there is one row of for each range."""
    found = frame.where(F.col("fault").isNull() | ~F.col("fault").isin(*BOOKS))
    return list(found.toArrow().to_pylist())


def in_order(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda row: (row["flow"], row["source_port"], row["sequence"]))


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
    for name, size in (("a", 10), ("b", 10), ("c", 100), ("d", 30)):
        (tmp_path / name).write_bytes(w.pcap([w.Packet(1, bytes(size))]))
    parts = CaptureReader([str(tmp_path)], 110).partitions()
    named = [
        [Path(some.capture).name for some in part.ranges]
        for part in parts
        if isinstance(part, Ranges)
    ]
    assert named == [["c"], ["a", "b"], ["d"]]


@pytest.fixture(scope="module")
def large(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, DataFrame]:
    """A session of 60 MB, in tasks of 16 MB."""
    packets = w.packets_of(CAPTURES / "fragmentation.pcap")
    later = []
    for turn in range(16):
        shifted = w.shift_sequences(packets, turn * 100_003)
        later += [w.Packet(p.time + turn * 10**11, p.data, p.original) for p in shifted]
    path = tmp_path_factory.mktemp("large") / "large.pcap"
    path.write_bytes(w.pcap(later))
    read = spark.read.format("zenoh.capture").option("maxPartitionBytes", str(1 << 24))
    return path, read.load(str(path))


def test_ranges_of_a_file_larger_than_the_window(large: tuple[Path, DataFrame]) -> None:
    path, read = large
    assert read.rdd.getNumPartitions() >= 3
    expected = pa.Table.from_batches(read_capture(path)).to_pylist()
    order = ("flow", "source_port", "connection", "sequence")
    found = read.where("fault is null").orderBy(*order).toArrow().to_pylist()
    expected = [row for row in expected if row["fault"] is None]
    assert found == sorted(expected, key=lambda row: [row[name] for name in order])
    total = read.select(
        F.sum(F.coalesce(F.octet_length("bytes"), F.lit(0))) + F.sum("skipped")
    ).first()
    assert total is not None
    assert total[0] == path.stat().st_size


@pytest.mark.long
def test_what_is_made_where_it_is_read_is_the_same(large: tuple[Path, DataFrame]) -> None:
    """Of all rows of the source at the source, and of rows that Spark has moved about."""
    read = large[1]
    moved = tables.spread(read, 5)
    assert options_of(read) is not None
    assert options_of(moved) is None
    for table in (tables.samples, tables.declarations, tables.malformed, tables.losses):
        made = [_digests(table(source)) for source in (read, moved)]
        assert made[0] == made[1], table.__name__
    # Messages in pieces, some of them in two ranges.
    assert tables.samples(read).count() == 16 * _samples_of("fragmentation")


def _digests(table: DataFrame) -> list[int]:
    plain = [name for name, kind in table.dtypes if kind != "variant"]
    return sorted(row[0] for row in table.select(F.xxhash64(*plain)).collect())


def _samples_of(name: str) -> int:
    """Of both links that a sample crosses, by the codec for objects."""
    found = 0
    for batch in recorded.batches(CAPTURES / f"{name}.pcap"):
        for message in decode_batch(batch.data):
            last = isinstance(message, Fragment) and not message.more
            found += isinstance(message, Push) or last
    return found


@pytest.mark.parametrize("pushed", ["true", "false"])
def test_conditions_of_one_scan_do_not_touch_another(
    spark: SparkSession, batches: DataFrame, pushed: str
) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", pushed)
    try:
        frame = spark.read.format("zenoh.capture").load(str(CAPTURES / "*.pcap"))
        found = frame.where("scouting").unionByName(frame.where("sequence = 1")).count()
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert found == batches.where("scouting").count() + batches.where("sequence = 1").count()


def test_files_of_a_rotation_are_one_capture(spark: SparkSession, tmp_path: Path) -> None:
    packets = w.packets_of(CAPTURES / "client_router_pubsub.pcap")
    # Names say nothing of their order.
    for number, name in enumerate(("b", "c", "a")):
        third = len(packets) // 3
        some = packets[number * third : (number + 1) * third if number < 2 else None]
        (tmp_path / f"{name}.pcap").write_bytes(w.pcap(some))
    load = spark.read.format("zenoh.capture").option("rotating", "true")
    found = rows(load.load(str(tmp_path)))
    assert {row["capture"] for row in found} == {str(tmp_path)}
    one = rows(spark.read.format("zenoh.capture").load(str(CAPTURES / "client_router_pubsub.pcap")))
    for row in (*found, *one):
        del row["capture"]
    assert in_order(found) == in_order(one)


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
