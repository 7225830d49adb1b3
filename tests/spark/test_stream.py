"""A directory that a rotating capture is written to, read as a stream."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

from tests.spark.conftest import CAPTURES
from tests.unit.capture import writer as w
from zenwire.spark.source import Ranges
from zenwire.spark.stream import CaptureStream

BOOKS = ("overhead", "repeated")


def batches(frame: DataFrame) -> list[dict[str, Any]]:
    found = frame.where(F.col("bytes").isNotNull()).drop("capture")
    order = ("flow", "source_port", "connection", "sequence")
    return list(found.orderBy(*order).toArrow().to_pylist())


def whole(spark: SparkSession, name: str) -> list[dict[str, Any]]:
    return batches(spark.read.format("zenoh.capture").load(str(CAPTURES / f"{name}.pcap")))


class Query:
    """What is there so far, read to its end by each call, and started again for it."""

    def __init__(self, spark: SparkSession, folder: Path, **options: str) -> None:
        self._spark = spark
        self.input = folder / "captures"
        self._output = folder / "table"
        self._checkpoint = folder / "checkpoint"
        self._options = options
        self.input.mkdir()

    def run(self) -> None:
        stream = self._spark.readStream.format("zenoh.capture").options(**self._options)
        query = (
            stream.load(str(self.input))
            .writeStream.format("parquet")
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(availableNow=True)
            .start(str(self._output))
        )
        query.awaitTermination()

    def table(self) -> DataFrame:
        return self._spark.read.parquet(str(self._output))


def pieces(data: list[w.Packet], count: int, form: Callable[..., bytes]) -> list[bytes]:
    chance = random.Random(count)
    cuts = sorted(chance.sample(range(1, len(data)), count - 1))
    return [form(data[a:b]) for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@pytest.mark.parametrize(
    ("name", "form"), [("client_router_pubsub", w.pcap), ("udp", w.pcap), ("no_qos", w.pcapng)]
)
def test_files_that_come_and_grow(
    spark: SparkSession, tmp_path: Path, name: str, form: Callable[..., bytes]
) -> None:
    """Each run starts anew from Spark's checkpoint: no row twice, none lost."""
    chance = random.Random(name)
    query = Query(spark, tmp_path)
    for number, data in enumerate(pieces(w.packets_of(CAPTURES / f"{name}.pcap"), 3, form)):
        path = query.input / f"{number}.pcap"
        half = chance.randrange(len(data))
        path.write_bytes(data[:half])
        query.run()
        path.write_bytes(data)
        if number != 1:
            query.run()
    found = query.table()
    assert batches(found) == whole(spark, name)
    assert found.select("capture").distinct().count() == 1
    faults = found.where(F.col("fault").isNotNull() & ~F.col("fault").isin(*BOOKS))
    assert faults.count() == 0


def test_bytes_of_a_trigger(spark: SparkSession, tmp_path: Path) -> None:
    query = Query(spark, tmp_path, maxBytesPerTrigger="20000", maxPartitionBytes="7000")
    packets = w.packets_of(CAPTURES / "client_router_pubsub.pcap")
    size = 0
    for number, data in enumerate(pieces(packets, 3, w.pcap)):
        (query.input / f"{number}.pcap").write_bytes(data)
        size += len(data)
    query.run()
    found = query.table()
    assert batches(found) == whole(spark, "client_router_pubsub")
    total = found.select(
        F.sum(F.coalesce(F.octet_length("bytes"), F.lit(0))) + F.sum("skipped")
    ).first()
    assert total is not None
    assert total[0] == size
    # One row of the books for each micro-batch.
    assert found.where("fault = 'overhead'").count() >= size // 20_000


def test_a_cut_record_is_told_once_the_file_has_a_successor(
    spark: SparkSession, tmp_path: Path
) -> None:
    query = Query(spark, tmp_path)
    packets = w.packets_of(CAPTURES / "usrpwd.pcap")
    data = w.pcap(packets[:10])
    (query.input / "0.pcap").write_bytes(data[:-5])
    query.run()
    assert query.table().where("fault like 'file_%'").count() == 0
    (query.input / "1.pcap").write_bytes(w.pcap(packets[10:]))
    query.run()
    (fault,) = query.table().where("fault like 'file_%'").collect()
    assert (fault.fault, fault.missing) == ("file_truncated", 5)


def test_files_that_were_deleted(spark: SparkSession, tmp_path: Path) -> None:
    query = Query(spark, tmp_path)
    packets = w.packets_of(CAPTURES / "client_router_pubsub.pcap")
    parts = pieces(packets, 4, w.pcap)
    for number in (0, 1):
        (query.input / f"{number}.pcap").write_bytes(parts[number])
    query.run()
    before = {row["bytes"] for row in batches(query.table())}
    (query.input / "0.pcap").unlink()
    (query.input / "2.pcap").write_bytes(parts[2])
    query.run()
    assert query.table().where("fault = 'file_deleted'").count() == 1
    after = [row["bytes"] for row in batches(query.table())]
    assert before < set(after)
    for number in (1, 2):
        (query.input / f"{number}.pcap").unlink()
    (query.input / "3.pcap").write_bytes(parts[3])
    query.run()
    assert query.table().where("fault = 'file_deleted'").count() == 2
    true = {row["bytes"] for row in whole(spark, "client_router_pubsub")}
    assert set(after) < {row["bytes"] for row in batches(query.table())} <= true


# Planning, without Spark.


def read(stream: CaptureStream, start: dict[str, Any], end: dict[str, Any]) -> list[bytes]:
    found = []
    for part in stream.partitions(start, end):
        for rows in stream.read(part):
            found += [data for data in rows.column("bytes").to_pylist() if data is not None]
    return found


def test_a_running_stream_goes_on_where_it_was(tmp_path: Path) -> None:
    packets = w.packets_of(CAPTURES / "three_routers.pcap")
    data = w.pcap(packets)
    path = tmp_path / "x.pcap"
    path.write_bytes(data)
    running = CaptureStream(str(tmp_path), 0, 1 << 20)
    start = running.initialOffset()
    end = running.latestOffset(start, ReadAllAvailable())
    everything = sorted(read(running, start, end))
    path.write_bytes(data[:10])
    stream = CaptureStream(str(tmp_path), 0, 1 << 20)
    found: list[bytes] = []
    at = start
    assert stream.latestOffset(at, ReadAllAvailable()) == at
    for size in range(500, len(data) + 1500, 1500):
        path.write_bytes(data[:size])
        to = stream.latestOffset(at, ReadAllAvailable())
        found += read(stream, at, to)
        # One that has just been started plans the same.
        if size % 4 == 0:
            again = CaptureStream(str(tmp_path), 0, 1 << 20)
            assert read(again, at, to) == read(stream, at, to)
        at = to
    assert sorted(found) == everything
    assert stream.partitions(at, at) == []


def test_offsets_are_limited_by_bytes(tmp_path: Path) -> None:
    data = (CAPTURES / "usrpwd.pcap").read_bytes()
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(data)
    stream = CaptureStream(str(tmp_path), 1000, 1 << 20)
    assert stream.getDefaultReadLimit() == ReadMaxBytes(1000)
    at = stream.initialOffset()
    seen = []
    while (to := stream.latestOffset(at, ReadMaxBytes(1000))) != at:
        seen.append((Path(to["file"]).name, to["position"]))
        assert all(isinstance(part, Ranges) for part in stream.partitions(at, to))
        at = to
    assert [name for name, _ in seen] == sorted(name for name, _ in seen)
    assert ("b", len(data)) == seen[-1]
    assert len(seen) == -(-2 * len(data) // 1000)


def test_names_that_begin_with_a_dot_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".x.swp").write_bytes(b"nothing that is a capture")
    stream = CaptureStream(str(tmp_path), 0, 1 << 20)
    at = stream.initialOffset()
    assert stream.latestOffset(at, ReadAllAvailable()) == at
