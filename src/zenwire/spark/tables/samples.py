"""``samples``: every PUT and DELETE that was pushed, and what is made of them."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.spark.tables.messages import network
from zenwire.spark.tables.place import LINK, SEEN
from zenwire.spark.tables.words import VALUE_COLUMNS, kind, received_at, value

__all__ = ["key_stats", "latest", "samples"]

_KEY: Final = ("key_scope", "key_suffix", "key_mapping")
_COLUMNS: Final = (*SEEN, "body", *_KEY, *VALUE_COLUMNS)
_PERCENTILES: Final = (0.5, 0.9, 0.99)


def samples(source: DataFrame) -> DataFrame:
    """One row for each PUSH, on each link it crossed. ``source`` is ``batches`` or ``messages``.

    In order of ``sequence`` and ``offset`` within ``capture``, ``flow``, ``connection`` and
    ``side``. A ``key`` that cannot be known is null, and ``key_fault`` says why.
    """
    pushed = network(source, frozenset({"PUSH"}), _COLUMNS)
    return pushed.select(
        *SEEN, received_at(), "key", "key_fault", kind(F.col("body")).alias("kind"), *value()
    )


def _stamped() -> Column:
    """HLC time or, for what nobody stamped (deletions, mostly), when it was seen."""
    return F.coalesce("timestamp", "received_at")


def latest(found: DataFrame) -> DataFrame:
    """The newest sample of each key of ``samples``; a DELETE is the newest of a key that is gone."""
    # Where it was seen decides between copies of one sample on several links.
    seen = [F.col(name).desc() for name in ("time", *LINK, "side", "sequence", "offset")]
    newest = Window.partitionBy("key").orderBy(
        _stamped().desc(), F.col("ntp64").desc(), F.col("clock_id").desc(), *seen
    )
    known = found.where(F.col("key").isNotNull())
    return known.withColumn("rank", F.row_number().over(newest)).where("rank = 1").drop("rank")


def key_stats(found: DataFrame, window: str = "10 seconds") -> DataFrame:
    """Of ``samples``, per key, link and time: messages, bytes, rate, gaps and latency.

    A gap is the time since the sample before on that key and link, latency that from the HLC
    timestamp to the capture, both in seconds and as percentiles 50, 90 and 99.
    """
    link = (*LINK, "direction", "side", "key")
    before = F.lag("time").over(Window.partitionBy(*link).orderBy("sequence", "offset"))
    timed = found.where(F.col("key").isNotNull()).select(
        *link,
        "received_at",
        F.coalesce(F.octet_length("payload"), F.lit(0)).alias("size"),
        (F.try_subtract(F.col("time"), before) / 1e9).alias("gap"),
        (F.unix_micros("received_at") - F.unix_micros("timestamp")).alias("late"),
    )
    span = F.window("received_at", window)
    percentiles = F.array(*map(F.lit, _PERCENTILES))
    grouped = timed.groupBy(*link, span.alias("window")).agg(
        F.count("*").alias("messages"),
        F.sum("size").alias("bytes"),
        F.percentile_approx("gap", percentiles).alias("gap"),
        F.percentile_approx(F.col("late") / 1e6, percentiles).alias("latency"),
    )
    length = F.unix_micros("window.end") - F.unix_micros("window.start")
    return grouped.withColumn("rate", F.col("messages") / (length / 1e6))
