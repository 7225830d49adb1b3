"""``latest``: the newest sample of each key by its HLC timestamp, and when one was last received.

A DELETE is the newest of a key that is gone. ``last_time`` is in nanoseconds since 1970. Keys are
in ``BUCKETS`` files by their hash, so that one file holds a key, and what a micro-batch does not
touch stays as it is.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

__all__ = ["BUCKETS", "bucket", "latest"]

BUCKETS: Final = 8


def bucket() -> Column:
    """Which file a key is in."""
    return F.pmod(F.xxhash64("key"), F.lit(BUCKETS)).cast("int")


def latest(batch: DataFrame, before: DataFrame | None) -> DataFrame:
    """Of the rows of ``samples``, and of the table as it was."""
    columns = batch.columns
    rows = batch.withColumn("last_time", F.col("time"))
    if before is not None:
        rows = rows.unionByName(before.select(*columns, "last_time"))
    # Where it came from decides between samples that nobody stamped.
    order = F.struct(
        F.coalesce("timestamp", "received_at").alias("at"),
        "ntp64",
        "clock_id",
        "time",
        "spool",
        "offset",
    )
    newest = rows.groupBy("key").agg(
        F.max_by(F.struct(*[name for name in columns if name != "key"]), order).alias("row"),
        F.max("last_time").alias("last_time"),
    )
    return newest.select(
        *[name if name == "key" else F.col(f"row.{name}").alias(name) for name in columns],
        "last_time",
    )
