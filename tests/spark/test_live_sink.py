"""Rows as publications: words back to numbers, and what a subscriber of the reference gets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import CaseInsensitiveDict

from tests.ports import free_port
from tests.spark.test_live_spark import rich
from tests.unit.spool.rows import samples
from zenwire.spark.live.columns import COLUMNS, sample_rows, struct
from zenwire.spark.live.publications import Numbering, check, table_of
from zenwire.spark.live.sink import SinkOptions, source_of
from zenwire.spool import Writer
from zenwire.wire.values import CongestionControl, Priority, QoS

zenoh = pytest.importorskip("zenoh")

ZID = bytes(range(1, 17))


def made(rows: pa.RecordBatch, **said: Any) -> pa.Table:
    how: dict[str, Any] = {"key": None, "qos": QoS(), "numbering": Numbering(ZID, 3)}
    return table_of(rows, **(how | said))


def test_words_become_the_numbers_that_they_were() -> None:
    before = rich()
    check(struct("samples", COLUMNS), has_key=False)
    after = made(sample_rows("s", 0, before, COLUMNS, None))
    for name in ("key", "kind", "payload", "timestamp", "timestamp_id", "attachment", "reliable"):
        assert after[name].to_pylist() == before[name].to_pylist(), name
    for row, (found, true) in enumerate(
        zip(after["qos"].to_pylist(), before["qos"].to_pylist(), strict=True)
    ):
        a, b = QoS(found), QoS(true)
        assert (a.priority, a.congestion_control, a.express) == (
            b.priority,
            b.congestion_control,
            b.express,
        ), row
    assert after["encoding"].to_pylist() == before["encoding"].to_pylist()
    for found, true, kind in zip(
        after["encoding_schema"].to_pylist(),
        before["encoding_schema"].to_pylist(),
        before["kind"].to_pylist(),
        strict=True,
    ):
        # A DELETE has none; an empty one is not sent.
        assert found == (None if kind else true or None)
    assert set(after["source_zid"].to_pylist()) == {ZID}


def test_numbers_are_in_order_in_each_lane_and_the_same_again() -> None:
    rows = sample_rows("s", 0, rich(), COLUMNS, None)
    one, two = Numbering(ZID, 3), Numbering(ZID, 3)
    parts = [made(rows.slice(first, 60), numbering=one) for first in range(0, 200, 60)]
    both = pa.concat_tables(parts), made(rows, numbering=two)
    names = ["source_eid", "source_sn", "qos", "reliable"]
    assert both[0].select(names).equals(both[1].select(names))
    lanes: dict[int, list[tuple[int, int, bool]]] = {}
    for eid, sn, qos, reliable in zip(*(both[1][name].to_pylist() for name in names), strict=True):
        lanes.setdefault(eid, []).append((sn, qos & 7, reliable))
    assert len(lanes) > 10
    for eid, found in lanes.items():
        # What the network keeps in order, and nothing else.
        assert [sn for sn, _, _ in found] == list(range(len(found)))
        assert len({(priority, reliable) for _, priority, reliable in found}) == 1
        assert eid & 0xFFFFFF == 3
        default = found[0][1:] == (Priority.DATA, True)
        assert (eid == 3) == default


def test_a_timestamp_without_a_clock_is_of_ours_and_comes_back() -> None:
    micros = [0, 1, 1_800_000_000_123_457, None, 999_999]
    times = pa.array(micros, pa.timestamp("us", "UTC"))
    rows = pa.record_batch({"payload": pa.array(["x"] * 5), "timestamp": times})
    table = made(rows, key="a/b")
    again = samples(range(5)).set_column(5, "timestamp", table["timestamp"].combine_chunks())
    found = sample_rows("s", 0, again, ("timestamp",), None)
    assert found["timestamp"].cast(pa.int64()).to_pylist() == micros
    assert table["timestamp_id"].to_pylist() == [ZID, ZID, ZID, None, ZID]
    assert table["key"].to_pylist() == ["a/b"] * 5


@pytest.mark.parametrize(
    ("column", "value"),
    [("kind", "PATCH"), ("priority", "HIGH"), ("congestion_control", "x"), ("reliability", "")],
)
def test_words_that_the_protocol_does_not_have(column: str, value: str) -> None:
    rows = pa.record_batch({"key": ["a"], "payload": [b""], column: [value]})
    with pytest.raises(ValueError, match=f"{column} is one of"):
        made(rows)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({}, "where to publish"),
        ({"connect": "tcp/1.2.3.4:5", "topic": "a"}, "a column key"),
        ({"connect": "tcp/1.2.3.4:5", "colour": "a"}, "no option colour"),
        ({"connect": "tcp/1.2.3.4:5", "waitForSubscribers": "soon"}, "number of seconds"),
        ({"zenoh.transport/link/tx/leese": "1"}, "did you mean 'lease'"),
        ({"zenoh.connect/endpoints": "[1]"}, "endpoint"),
        ({"connect": "tcp/x:1", "priority": "high"}, "priority is one of"),
        ({"connect": "tcp/x:1", "key": "a//b"}, "key expression"),
        ({"connect": "tcp/x:1", "express": "yes"}, "true or false"),
    ],
)
def test_options_that_are_refused(said: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        SinkOptions.of(CaseInsensitiveDict(said))


def test_options_that_are_taken() -> None:
    found = SinkOptions.of(
        CaseInsensitiveDict(
            {
                "connect": "tcp/a:1, tcp/b:1",
                "zenoh.transport/link/tx/lease": "5000",
                "priority": "real_time",
            }
        )
    )
    assert found.session.connect == ("tcp/a:1", "tcp/b:1")
    config = found.session.made()
    assert config.get_json("transport/link/tx/lease") == "5000"
    assert config.get_json("mode") == '"client"'
    assert found.qos.priority is Priority.REAL_TIME
    assert found.qos.congestion_control is CongestionControl.BLOCK


def test_ids_are_those_of_the_run() -> None:
    assert source_of("a") == source_of("a") != source_of("b")
    assert len(source_of("a")) == 16
    assert all(source_of(str(i))[-1] for i in range(300))


# In Spark, to a router of the reference.


class Router:
    """A router of the reference, and everything that it was sent."""

    def __init__(self) -> None:
        self.endpoint = f"tcp/127.0.0.1:{free_port()}"
        config = zenoh.Config()
        for path, value in (
            ("mode", '"router"'),
            ("listen/endpoints", f'["{self.endpoint}"]'),
            ("scouting/multicast/enabled", "false"),
        ):
            config.insert_json5(path, value)
        self.session = zenoh.open(config)
        self.got: list[Any] = []
        self._more = threading.Condition()
        self._subscriber = self.session.declare_subscriber("sink/**", self._on)

    def _on(self, sample: Any) -> None:
        with self._more:
            self.got.append(sample)
            self._more.notify_all()

    def wait(self, count: int) -> list[Any]:
        with self._more:
            assert self._more.wait_for(lambda: len(self.got) >= count, 60)
            found, self.got = self.got, []
        return found


@pytest.fixture(scope="module")
def router() -> Iterator[Router]:
    found = Router()
    yield found
    found.session.close()


def ids(got: list[Any]) -> list[tuple[str, int, int]]:
    sources = [(s.source_info.source_id, s.source_info.source_sn) for s in got]
    return sorted((str(source.zid), source.eid, sn) for source, sn in sources)


@pytest.mark.interop
def test_a_table_is_published_and_a_second_time_with_the_same_numbers(
    spark: SparkSession, router: Router
) -> None:
    rows = spark.sql(
        "select concat('sink/', id % 3) key, cast(id as string) payload, "
        "if(id % 10 = 9, 'application/json', null) encoding, cast('m' as binary) attachment, "
        "timestamp_micros(1700000000000000 + id) timestamp, 'DATA_HIGH' priority, "
        "true express from range(0, 500, 1, 3)"
    )
    write = rows.write.format("zenoh").mode("append")
    write = write.option("connect", router.endpoint).option("sourceId", "test")
    for _ in range(2):
        write.option("waitForSubscribers", "30").save()
    got = router.wait(1000)
    first, second = got[:500], got[500:]
    assert ids(first) == ids(second)
    assert len({*ids(first)}) == 500
    assert len({s.source_info.source_id.eid & 0xFFFFFF for s in first}) == 3
    assert sorted(int(s.payload.to_string()) for s in first) == list(range(500))
    for s in first:
        number = int(s.payload.to_string())
        assert str(s.key_expr) == f"sink/{number % 3}"
        assert str(s.encoding) == ("application/json" if number % 10 == 9 else "zenoh/bytes")
        assert s.attachment.to_bytes() == b"m"
        assert (s.priority, s.express) == (zenoh.Priority.DATA_HIGH, True)
        assert s.congestion_control == zenoh.CongestionControl.BLOCK
        assert s.timestamp.get_time().microsecond == number


@pytest.mark.interop
def test_a_stream_from_a_spool_is_published(
    spark: SparkSession, router: Router, tmp_path: Path
) -> None:
    with Writer.open(tmp_path / "s") as writer:
        writer.append(samples(range(300), key=[f"sink/{i % 7}" for i in range(300)]))
    stream = (
        spark.readStream.format("zenoh")
        .option("spool", str(tmp_path / "s"))
        .option("startingOffsets", "earliest")
        .option("maxRecordsPerTrigger", "100")
        .load()
    )
    query = (
        stream.writeStream.format("zenoh")
        .option("connect", router.endpoint)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    got = router.wait(300)
    numbers = [int.from_bytes(s.payload.to_bytes()[:8], "little") for s in got]
    assert sorted(numbers) == list(range(300))
    assert len({*ids(got)}) == 300
    # Each micro-batch has an id of its own.
    assert len({s.source_info.source_id.zid for s in got}) == 3


@pytest.mark.interop
def test_what_cannot_be_published_is_told(spark: SparkSession, router: Router) -> None:
    def written(query: str, **options: str) -> Callable[[], None]:
        rows = spark.sql(query)
        write = rows.write.format("zenoh").mode("append").option("connect", router.endpoint)
        return write.options(**options).save

    for save, why in (
        (written("select 'a' key, 1 payload"), "payload is binary or string, not int"),
        (written("select 'a' key"), "key and payload"),
        (written("select 'a' key, '' payload, 1 colour"), "cannot write colour"),
        (written("select '/a' key, '' payload"), "key expression"),
        (
            written("select 'nobody/here' key, '' payload", waitForSubscribers="0.2"),
            "a subscriber of nobody/here: nothing within 0.2 s",
        ),
    ):
        with pytest.raises(PySparkException, match=why):
            save()
