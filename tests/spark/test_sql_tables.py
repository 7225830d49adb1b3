"""``CREATE TABLE ... USING zenoh``: what Spark does not keep of a table, and what is said then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.spark.conftest import CAPTURES
from tests.spark.test_live_sink import Router
from tests.spark.test_live_spark import FEW
from tests.unit.spool.rows import samples
from zenwire.spark import tables
from zenwire.spool import Writer


@pytest.fixture
def names(spark: SparkSession) -> Iterator[list[str]]:
    """Tables that the test creates; they are dropped afterwards."""
    found: list[str] = []
    yield found
    for name in found:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def test_a_table_of_a_spool(spark: SparkSession, tmp_path: Path, names: list[str]) -> None:
    with Writer.open(tmp_path / "spool", FEW) as writer:
        writer.append(samples(range(10)))
    names.append("zenoh_spool")
    spark.sql(
        f"CREATE TABLE zenoh_spool USING zenoh OPTIONS (spool '{tmp_path / 'spool'}', "
        "startingOffsets '{\"spool\": {\"0\": 4}}') COMMENT 'a spool' TBLPROPERTIES ('by' = 'me')"
    )
    rows = spark.sql("SELECT offset FROM zenoh_spool ORDER BY offset").collect()
    assert [row.offset for row in rows] == [*range(4, 10)]
    # Those of a statement go over those of the table.
    count = "SELECT count(*) FROM zenoh_spool WITH (startingOffsets 'earliest')"
    assert spark.sql(count).collect()[0][0] == 10
    with pytest.raises(PySparkException, match="format zenoh has no option spol; did you mean sp"):
        spark.sql("CREATE TABLE zenoh_wrong USING zenoh OPTIONS (spol 'x')")


def test_a_table_of_captures(spark: SparkSession, names: list[str]) -> None:
    names.append("zenoh_capture")
    path = CAPTURES / "udp.pcap"
    spark.sql(f"CREATE TABLE zenoh_capture USING `zenoh.capture` OPTIONS (path '{path}')")
    assert tables.samples(spark.table("zenoh_capture")).count() == 80


def test_a_table_with_columns_of_its_own(spark: SparkSession, names: list[str]) -> None:
    names.append("zenoh_sink")
    spark.sql("CREATE TABLE zenoh_sink (key STRING, payload STRING) USING zenoh")
    for statement in ("INSERT INTO zenoh_sink VALUES ('a', 'b')", "SELECT * FROM zenoh_sink"):
        with pytest.raises(PySparkException, match=r"INSERT INTO t WITH \(connect 'tcp/192"):
            spark.sql(statement).collect()
    router = Router()
    try:
        spark.sql(
            f"INSERT INTO zenoh_sink WITH (connect '{router.endpoint}', waitForSubscribers '60') "
            "VALUES ('sink/sql', 'x')"
        )
        assert [str(sample.key_expr) for sample in router.wait(1)] == ["sink/sql"]
    finally:
        router.session.close()
