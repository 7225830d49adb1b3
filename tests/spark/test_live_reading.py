"""format("zenoh") in Spark with a network: live streams, selectors, and there and back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.streaming.query import StreamingQuery

from tests.spark.test_live_recorder import eventually, is_there, live, offset_of, publish
from tests.spark.test_live_sink import Router
from zenwire.spark.live.sink import source_of
from zenwire.spool import Spool

zenoh = pytest.importorskip("zenoh")
pytest.importorskip("zenoh.ext")


@pytest.fixture(scope="module")
def router() -> Iterator[Router]:
    found = Router()
    yield found
    found.session.close()


def recorder_of(spool: Path) -> int:
    """The process that writes it; 0 in the moment when it is written who that is."""
    text = (spool / "lock").read_text()
    return int(json.loads(text)["pid"]) if text.endswith("\n") else 0


class Live:
    """A query that records and writes a table; it can be started again."""

    def __init__(self, spark: SparkSession, router: Router, folder: Path, **more: str) -> None:
        self._spark = spark
        self._checkpoint = str(folder / "checkpoint")
        self.table = str(folder / "table")
        self.options = {
            "connect": router.endpoint,
            "keyexpr": "a/**,b/*",
            "exclude": "a/x",
            "checkpointLocation": self._checkpoint,
        } | more
        self.spool = folder / "checkpoint" / "spools" / "live"

    def start(self, **trigger: Any) -> StreamingQuery:
        stream = self._spark.readStream.format("zenoh").options(**self.options).load()
        write = stream.writeStream.format("parquet").option("checkpointLocation", self._checkpoint)
        return write.trigger(**(trigger or {"processingTime": "200 milliseconds"})).start(
            self.table
        )

    def rows(self) -> list[tuple[int, str, str]]:
        frame = self._spark.read.parquet(self.table)
        found = frame.selectExpr("offset", "key", "string(payload) payload").collect()
        return sorted((row.offset, row.key, row.payload) for row in found)

    def wait(self, query: StreamingQuery, offset: int) -> None:
        """Until so many rows are in the table."""
        eventually(lambda: self._done(query) >= offset)

    def _done(self, query: StreamingQuery) -> int:
        assert query.exception() is None
        progress = query.lastProgress
        if progress is None or not progress.sources[0].endOffset:
            return -1
        return int(json.loads(progress.sources[0].endOffset)["live"]["0"])


@pytest.mark.long
@pytest.mark.interop
def test_a_live_stream_that_is_started_again(
    spark: SparkSession, router: Router, tmp_path: Path
) -> None:
    live = Live(spark, router, tmp_path, maxRecordsPerTrigger="200")
    query = live.start()
    try:
        eventually(lambda: live.spool.joinpath("lock").exists())
        publish(router, range(500))
        router.session.put("a/x", "excluded")
        router.session.put("b/c", "500")
        router.session.put("c", "not asked for")
        live.wait(query, 501)
        progress = query.lastProgress
        assert progress is not None
        source = progress.sources[0]
        # How far behind it is: what the spool has, and what was read.
        assert json.loads(source.latestOffset)["live"]["0"] == 501
        assert source.numInputRows <= 200
        first = recorder_of(live.spool)
        assert is_there(first)
    finally:
        query.stop()
    eventually(lambda: not is_there(first))
    query = live.start()
    try:
        eventually(lambda: recorder_of(live.spool) not in (0, first))
        publish(router, range(501, 700))
        live.wait(query, 700)
        second = recorder_of(live.spool)
    finally:
        query.stop()
    keys = ["b/c" if i == 500 else "a/b" for i in range(700)]
    assert live.rows() == [(i, keys[i], str(i)) for i in range(700)]
    eventually(lambda: not is_there(second))
    # What was recorded is there for others.
    table = spark.read.format("zenoh").option("spool", str(live.spool)).load()
    assert table.count() == 700
    assert Spool.open(live.spool).readers()[0].name == "query"


@pytest.mark.long
@pytest.mark.interop
def test_two_queries_do_not_share_a_recorder(
    spark: SparkSession, router: Router, tmp_path: Path
) -> None:
    one = Live(spark, router, tmp_path / "1", spool=str(tmp_path / "s"))
    two = Live(spark, router, tmp_path / "2", spool=str(tmp_path / "s"))
    query = one.start()
    try:
        eventually((tmp_path / "s" / "lock").exists)
        other = two.start()
        with pytest.raises(StreamingQueryException, match="each query has a recorder of its own"):
            other.awaitTermination(180)
        assert query.isActive
    finally:
        query.stop()
    eventually(lambda: not is_there(recorder_of(tmp_path / "s")))


# Selectors.


class Store:
    """Answers queries on ``store/**``: numbers, errors, and on one key nothing at all."""

    def __init__(self, router: Router) -> None:
        self._stamp = router.session.new_timestamp
        self.asked: list[str] = []
        self._held: list[Any] = []
        self._queryable = router.session.declare_queryable("store/**", self._answer)

    def _answer(self, query: Any) -> None:
        self.asked.append(str(query.selector))
        with query:
            if str(query.key_expr) == "store/never":
                self._held.append(query)
                time.sleep(1)
                return
            for number in range(int(query.parameters.get("n") or "0")):
                key = f"store/{number % 10}"
                if number % 50 == 49:
                    query.reply_del(key, timestamp=self._stamp())
                else:
                    query.reply(
                        key,
                        str(number) + "x" * int(query.parameters.get("size") or "0"),
                        encoding="text/plain;utf-8",
                        attachment=b"att" if number % 2 else None,
                        timestamp=self._stamp() if number % 3 else None,
                    )
            for _ in range(int(query.parameters.get("errors") or "0")):
                query.reply_err("no such table", encoding="text/plain")

    def close(self) -> None:
        self._queryable.undeclare()


@pytest.fixture(scope="module")
def store(router: Router) -> Iterator[Store]:
    found = Store(router)
    yield found
    found.close()


def asked(spark: SparkSession, router: Router, *selectors: str, **more: str) -> DataFrame:
    said = selectors[0] if len(selectors) == 1 else json.dumps(selectors)
    read = spark.read.format("zenoh").option("connect", router.endpoint)
    return read.option("selector", said).options(**more).load()


@pytest.mark.interop
def test_replies_to_queries_are_rows(spark: SparkSession, router: Router, store: Store) -> None:
    one, two = "store/*?n=5000", "store/**?n=7;_time=[now(-1h)..]"
    frame = asked(spark, router, one, two)
    rows = frame.collect()
    assert sorted(store.asked[-2:]) == [two, one]
    first = sorted((r for r in rows if r.spool == one), key=lambda r: r.offset)
    assert [r.offset for r in first] == list(range(5000))
    assert len(rows) == 5007
    for number, row in enumerate(first):
        deleted = number % 50 == 49
        assert row.key == f"store/{number % 10}"
        assert row.kind == ("DELETE" if deleted else "PUT")
        if not deleted:
            assert bytes(row.payload) == str(number).encode()
            assert (row.encoding, row.schema) == ("text/plain", "utf-8")
            assert (row.attachment is None) == (number % 2 == 0)
            assert (row.timestamp is None) == (number % 3 == 0)
    # As a spool has them.
    assert frame.schema == spark.read.format("zenoh").option("spool", "x").load().schema


@pytest.mark.long
@pytest.mark.interop
def test_errors_and_silence_are_no_rows_but_told(
    spark: SparkSession, router: Router, store: Store
) -> None:
    selector = "store/*?n=20;errors=5"
    with pytest.raises(PySparkException, match=r"5 error replies: no such table, .*, \.\.\."):
        asked(spark, router, selector).count()
    assert asked(spark, router, selector, failOnDataLoss="false").count() == 20
    kinds = asked(spark, router, selector, includeErrors="true").groupBy("kind", "key").count()
    errors = {(row.key, row["count"]) for row in kinds.collect() if row.kind == "ERROR"}
    assert errors == {("store/*", 5)}
    with pytest.raises(PySparkException, match=r"1 error replies: Timeout"):
        asked(spark, router, "store/never", timeout="0.3").count()
    latest = asked(spark, router, "store/*?n=40", consolidation="latest")
    assert latest.count() == 10


# There and back.

ROWS = """
select
  concat('sink/back/', id % 7) key,
  if(id % 11 = 10, 'DELETE', 'PUT') kind,
  if(id % 11 = 10, x'', cast(repeat(string(id), int(id % 50)) as binary)) payload,
  if(id % 11 = 10, null, element_at(array('zenoh/bytes', 'text/plain', 'application/json'),
    int(id % 3) + 1)) encoding,
  if(id % 11 != 10 and id % 5 = 4, 'utf-8', null) schema,
  if(id % 2 = 0, cast(concat('att', id) as binary), null) attachment,
  timestamp_micros(1700000000000000 + id * 1001) timestamp,
  element_at(array('REAL_TIME', 'INTERACTIVE_HIGH', 'INTERACTIVE_LOW', 'DATA_HIGH', 'DATA',
    'DATA_LOW', 'BACKGROUND'), int(id % 7) + 1) priority,
  'BLOCK' congestion_control,
  id % 3 = 1 express,
  if(id % 8 = 7, 'BEST_EFFORT', 'RELIABLE') reliability
from range(0, 1000, 1, 3)
"""


@pytest.mark.long
@pytest.mark.interop
def test_a_table_there_and_back(spark: SparkSession, router: Router, tmp_path: Path) -> None:
    """Published, received by the reference, recorded by us, and read: the same rows."""
    rows = spark.sql(ROWS)
    # What a network may drop when it is full comes alone.
    few = rows.limit(8).withColumn("congestion_control", F.lit("DROP"))
    few = few.union(few.withColumn("congestion_control", F.lit("BLOCK_FIRST"))).coalesce(1)
    stream = live(router, tmp_path, keyexpr="sink/back/*")
    try:
        assert offset_of(stream) == 0
        for frame, name in ((rows, "back"), (few, "few")):
            write = frame.write.format("zenoh").mode("append").option("connect", router.endpoint)
            write.option("sourceId", name).option("waitForSubscribers", "30").save()
        got = router.wait(1016)
        eventually(lambda: offset_of(stream) == 1016)
    finally:
        stream.stop()
    spool = str(tmp_path / "spools" / "live")
    table = spark.read.format("zenoh").option("spool", spool).load()
    names = rows.columns
    found = sorted(map(tuple, table.select(names).collect()), key=repr)
    assert found == sorted(map(tuple, rows.union(few).collect()), key=repr)
    # None of them is missed, though they came by several lanes.
    losses = Spool.open(spool).losses
    found_missing = [part.batch for part in losses.read(0, losses.latest())]
    assert not [
        kind for part in found_missing for kind in part["kind"].to_pylist() if kind == "source"
    ]
    # The numbers of rows are the same wherever they went.
    numbers = table.select("source_zid", "source_eid", "source_sn", "key", "payload").collect()
    ours = {(bytes(r[0]), r[1], r[2]): (r[3], bytes(r[4])) for r in numbers}
    zids = {source_of("back"), source_of("few")}
    for sample in got:
        source = sample.source_info.source_id
        zid = bytes.fromhex(str(source.zid).zfill(32))[::-1]
        zids.discard(zid)
        there = ours.pop((zid, source.eid, sample.source_info.source_sn))
        assert there == (str(sample.key_expr), sample.payload.to_bytes())
    assert not ours
    assert not zids


@pytest.mark.interop
@pytest.mark.parametrize(
    "ends", [(30,), pytest.param((30, 30, 45), marks=pytest.mark.long)], ids=["once", "again"]
)
def test_what_others_still_have_is_available_now(
    spark: SparkSession, router: Router, tmp_path: Path, ends: tuple[int, ...]
) -> None:
    """A query that ends by itself takes what a publisher's cache has."""
    cache = zenoh.ext.CacheConfig(max_samples=100)
    publisher = zenoh.ext.declare_advanced_publisher(
        router.session,
        "b/cached",
        cache=cache,
        publisher_detection=True,
        sample_miss_detection=zenoh.ext.MissDetectionConfig(),
    )
    query = Live(spark, router, tmp_path)
    try:
        published = 0
        for expected in ends:
            for number in range(published, expected):
                publisher.put(str(number))
            published = expected
            running = query.start(availableNow=True)
            assert running.awaitTermination(300)
            assert [row[2] for row in query.rows()] == [str(i) for i in range(expected)]
    finally:
        publisher.undeclare()
    eventually(lambda: not is_there(recorder_of(query.spool)))


DRIVER = """
import json, sys
from zenwire.spark.session import local_session

options = json.loads(sys.argv[1])
spark = local_session("killed", cores=2, config={
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
})
print(spark.sparkContext._gateway.proc.pid, flush=True)
query = (
    spark.readStream.format("zenoh").options(**options).load()
    .writeStream.format("parquet").option("checkpointLocation", options["checkpointLocation"])
    .trigger(processingTime="100 milliseconds").start(sys.argv[2])
)
query.awaitTermination()
"""


@pytest.mark.long
@pytest.mark.interop
def test_a_driver_that_is_killed_takes_its_recorder_along(
    spark: SparkSession, router: Router, tmp_path: Path
) -> None:
    live = Live(spark, router, tmp_path, maxRecordsPerTrigger="50")
    command = [sys.executable, "-c", DRIVER, json.dumps(live.options), live.table]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as driver:
        try:
            assert driver.stdout is not None
            java = int(driver.stdout.readline())
            eventually((live.spool / "lock").exists)
            publish(router, range(1000))
            eventually(lambda: len(list(Path(live.table).glob("*.parquet"))) >= 3)
            first = recorder_of(live.spool)
            os.kill(java, signal.SIGKILL)
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
    eventually(lambda: not is_there(first))
    query = live.start()
    try:
        live.wait(query, 1000)
    finally:
        query.stop()
    assert live.rows() == [(i, "a/b", str(i)) for i in range(1000)]
