"""Lakes and spools, which recorders filled, in the columns that reports of captures read.

There is no wire in them: sessions, queries, declarations and malformed input are not known, and
their parts are left out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.spark.lake import table

__all__ = ["lake_tables", "spool_tables"]


def lake_tables(spark: SparkSession, path: str) -> dict[str, DataFrame]:
    """``messages`` of samples alone, ``losses``, and ``declarations`` of tokens alone."""
    samples, losses = (table(spark, path, name) for name in ("samples", "losses"))
    noticed = F.unix_micros("noticed_at") * 1000
    return _recorded(
        samples.withColumnRenamed("received_ns", "time"), losses.withColumn("time", noticed)
    )


def spool_tables(spark: SparkSession, paths: Sequence[str]) -> dict[str, DataFrame]:
    """The same of spools. A spool that is being written to is read up to its newest row."""
    read = spark.read.format("zenoh").option("spool", json.dumps(list(paths)))
    losses = read.option("table", "losses").load()
    source = F.lower(F.hex("source_zid"))
    return _recorded(
        read.option("table", "samples").load(), losses.withColumn("source_zid", source)
    )


def _recorded(samples: DataFrame, losses: DataFrame) -> dict[str, DataFrame]:
    return {
        "messages": _messages(samples),
        "declarations": _tokens(samples),
        "losses": _losses(losses),
    }


def _messages(samples: DataFrame) -> DataFrame:
    size = F.octet_length("payload").cast("bigint")
    return samples.select(
        F.col("spool").alias("capture"),
        F.lit("network").alias("layer"),
        F.lit("PUSH").alias("message"),
        F.when(F.col("kind") == "DELETE", "DEL").otherwise("PUT").alias("body"),
        "key",
        "time",
        size.alias("length"),
        size.alias("payload_bytes"),
    )


def _none(kind: str, name: str) -> Column:
    return F.lit(None).cast(kind).alias(name)


def _losses(losses: DataFrame) -> DataFrame:
    return losses.select(
        F.col("spool").alias("capture"),
        _none("bigint", "flow"),
        _none("int", "connection"),
        _none("string", "direction"),
        _none("int", "side"),
        _none("bigint", "sequence"),
        "offset",
        "time",
        "kind",
        "reason",
        _none("int", "priority"),
        _none("boolean", "reliable"),
        "source_zid",
        "source_eid",
        "from_sn",
        "to_sn",
        "count",
        F.coalesce("bytes", F.lit(0)).alias("missing"),
        F.lit(0).cast("bigint").alias("skipped"),
    )


def _tokens(samples: DataFrame) -> DataFrame:
    """Lives of keys that never have a payload: as tokens, each PUT begins one, DELETE ends it."""
    ordered = Window.partitionBy("key").orderBy("time", "spool", "offset")
    bare = (F.octet_length("payload") == 0) & F.col("timestamp").isNull()
    whole = Window.partitionBy("key")
    rows = samples.select("key", "kind", "time", "spool", "offset", bare.alias("bare"))
    lives = (
        rows.withColumn("token", F.bool_and("bare").over(whole))
        .where("token")
        .withColumn("ends", F.lead("time").over(ordered))
        .withColumn("ended", F.lead("kind").over(ordered))
        .where(F.col("kind") == "PUT")
    )
    gone = F.col("ended") == "DELETE"
    return lives.select(
        F.lit("token").alias("kind"),
        "key",
        F.lit(False).alias("snapshot"),
        F.col("time").alias("declared"),
        F.when(gone, F.col("ends")).alias("undeclared"),
        # Whether it said so, or its session ended, the recorder cannot tell.
        F.when(gone, F.lit("undeclared")).alias("ended_by"),
        F.col("spool").alias("capture"),
        _none("bigint", "flow"),
        _none("int", "connection"),
        _none("string", "direction"),
        _none("int", "side"),
        _none("bigint", "sequence"),
    )
