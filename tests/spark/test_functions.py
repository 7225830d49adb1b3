from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from zenwire.errors import KeyExprError
from zenwire.keyexpr import includes, intersects
from zenwire.spark import encoding_name, hlc_time, ke_includes, ke_intersects
from zenwire.wire.encoding import ENCODINGS, Encoding


def test_hlc_time(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(0x6AFA05EA7C787F40,), (0,), (None,)], "n bigint")
    found = [row[0] for row in frame.select(hlc_time("n")).collect()]
    assert [at and at.astimezone(UTC) for at in found] == [
        datetime(2026, 11, 15, 19, 20, 10, 486213, UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        None,
    ]


def test_hlc_time_of_the_last_second(spark: SparkSession) -> None:
    """A stamp above 2**63 is a negative bigint."""
    frame = spark.createDataFrame([(-1,)], "n bigint").select(hlc_time("n").cast("double"))
    assert frame.collect()[0][0] == pytest.approx(2**32, abs=1e-5)


def test_encoding_name(spark: SparkSession) -> None:
    numbers = [*range(len(ENCODINGS)), 53, 1023, 65_535]
    frame = spark.createDataFrame([(n,) for n in [*numbers, None]], "n int")
    found = [row[0] for row in frame.select(encoding_name("n")).collect()]
    assert found == [*(Encoding(n).name for n in numbers), None]


KEYS = ["a/b", "a/*", "a/**", "**", "a/@x", "@x/**", "b$*", "a//b", "", None]


def test_key_expressions(spark: SparkSession) -> None:
    pairs = [(a, b) for a in KEYS for b in KEYS]
    frame = spark.createDataFrame(pairs, "a string, b string")
    found = frame.select(
        "a", "b", ke_intersects("a", frame.b).alias("i"), ke_includes("a", frame.b).alias("c")
    ).collect()
    good = KEYS[:7]
    for row in found:
        if row.a in good and row.b in good:
            assert (row.i, row.c) == (intersects(row.a, row.b), includes(row.a, row.b)), row
        else:
            assert (row.i, row.c) == (None, None), row


def test_an_expression_on_the_right(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a/b",), ("b",)], "key string")
    assert [row.key for row in frame.where(ke_intersects("key", "a/**")).collect()] == ["a/b"]
    with pytest.raises(KeyExprError):
        ke_intersects("key", "a//b")
