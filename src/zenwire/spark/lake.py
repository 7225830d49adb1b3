"""Tables of a lake in Spark, by its own Parquet reader: no connector is needed.

    from zenwire.spark.lake import table

    table(spark, "lake", "samples").where("key like 'robot/7/%'").show()

A table is read as of one snapshot: commits that come later, and files that they remove, do not
change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql import types as t

from zenwire.lake.address import Address
from zenwire.lake.lake import Lake, format_of
from zenwire.lake.schema import INSTANT, TABLES
from zenwire.spark.schema import type_of
from zenwire.spark.tables.words import JSON_NAMES

__all__ = ["table", "values", "views"]

_PARTITION: Final = "day"


def table(
    spark: SparkSession,
    lake: str | Path,
    name: str,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """A table of a lake as of now. ``options`` are deltalake's storage options. Raises LakeError."""
    address = Address.of(lake, options)
    committed = Lake(address, format_of(address))[name]
    definition = TABLES[name]
    schema = t.StructType(
        [t.StructField(column.name, _type(column.type)) for column in definition.columns]
    )
    files = committed.files()
    if not files:
        return spark.createDataFrame([], schema)
    root = address.table(name)
    read = spark.read.schema(schema).option("basePath", root)
    return read.parquet(*[f"{root}/{file.path}" for file in files])


def views(spark: SparkSession, lake: str | Path, options: Mapping[str, str] | None = None) -> None:
    """Register every table of a lake as a temporary view of the same name."""
    for name in TABLES:
        table(spark, lake, name, options).createOrReplaceTempView(name)


def values(rows: DataFrame) -> DataFrame:
    """Rows of ``samples`` or ``latest`` with ``value`` as VARIANT, of JSON payloads too."""
    text = F.col("payload").cast("string")
    json = F.when(F.col("encoding").isin(JSON_NAMES), text).otherwise(F.col("value"))
    return rows.withColumn("value", F.try_parse_json(json))


def _type(kind: pa.DataType) -> t.DataType:
    return t.TimestampType() if kind == INSTANT else type_of(kind)
