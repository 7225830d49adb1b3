"""One Spark session for all tests of this directory."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pyspark = pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession  # noqa: E402 - only where Spark is installed

Row = dict[str, Any]
CAPTURES = Path(__file__).parents[1] / "captures"

_LONG = {"test_write.py"}
"""Minutes each: every table, in every format. `make test-long` runs them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)
            if item.path.name in _LONG:
                item.add_marker(pytest.mark.long)
            # Spark leaves sockets to the garbage collector.
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(
                pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
            )


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    home = tmp_path_factory.mktemp("spark")
    quiet = home / "log4j2.properties"
    quiet.write_text("rootLogger.level = off\n")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    java = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dlog4j2.configurationFile={quiet}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.extraJavaOptions", java)
            .config("spark.driver.memory", "2g")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.warehouse.dir", str(home / "warehouse"))
            .config("spark.sql.codegen.wholeStage", "false")
            .config("spark.python.unix.domain.socket.enabled", "true")
            .getOrCreate()
        )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def batches(spark: SparkSession) -> DataFrame:
    """Every capture there is. Read once: many tables are made from it."""
    frame = spark.read.format("zenoh.capture").load(str(CAPTURES / "*.pcap")).persist()
    assert frame.count() > 0
    return frame


@pytest.fixture(scope="session")
def messages(batches: DataFrame) -> DataFrame:
    """Their messages, for the tables that take both."""
    from zenwire.spark import tables

    return tables.messages(batches).persist()


@pytest.fixture(scope="session")
def samples(messages: DataFrame) -> list[Row]:
    """But for the 60,000 of one capture, which Spark is better at."""
    from zenwire.spark import tables

    some = tables.samples(messages).where("capture not like '%thousands%'")
    return rows_of(some.drop("value"))


@pytest.fixture(scope="session")
def queries(messages: DataFrame) -> list[Row]:
    from zenwire.spark import tables

    return rows_of(tables.queries(messages))


@pytest.fixture(scope="session")
def declarations(messages: DataFrame) -> list[Row]:
    from zenwire.spark import tables

    return rows_of(tables.declarations(messages))


@pytest.fixture(scope="session")
def sessions(batches: DataFrame, messages: DataFrame) -> list[Row]:
    from zenwire.spark import tables

    found: list[Row] = tables.sessions(batches, messages).toArrow().to_pylist()
    return sorted(found, key=lambda row: (row["capture"], row["first_seen"]))


def rows_of(frame: DataFrame) -> list[Row]:
    """In the order in which they stand in their captures."""
    rows: list[Row] = frame.toArrow().to_pylist()
    return sorted(rows, key=lambda row: (row["sequence"], row["offset"]))
