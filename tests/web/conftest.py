"""One Spark session, and one report of real captures, for all tests of this directory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.web.damaged import damaged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from zenwire.web.report import Source, Summary

CAPTURES = Path(__file__).parents[1] / "captures"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents and "spark" in getattr(
            item, "fixturenames", ()
        ):
            item.add_marker(pytest.mark.slow)
            # Spark leaves sockets to the garbage collector.
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(
                pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
            )


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    pytest.importorskip("pyspark")
    from zenwire.spark.session import spark_session

    few = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "2g"}
    with spark_session("tests", cores=2, config=few) as session:
        yield session


@dataclass
class Made:
    """A report, with the tables it was made of."""

    source: Source
    tables: dict[str, DataFrame]
    summary: Summary


@pytest.fixture(scope="session")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """Queries, tokens and routers from one capture, losses and malformed input from another."""
    from zenwire.web.report import open_source, tables_of
    from zenwire.web.report.summary import summarise

    broken = tmp_path_factory.mktemp("web") / "damaged.pcap"
    damaged(CAPTURES / "client_router_pubsub.pcap", broken)
    source = open_source([str(CAPTURES / "three_routers.pcap"), str(broken)])
    with tables_of(spark, source) as tables:
        yield Made(source, tables, summarise(source, tables))
