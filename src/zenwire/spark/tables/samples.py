"""``samples``: every PUT and DELETE that was pushed, and what is made of them."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.spark.schema import struct_of
from zenwire.spark.tables.messages import network
from zenwire.spark.tables.place import LINK, SEEN
from zenwire.spark.tables.scan import Selection
from zenwire.spark.tables.words import VALUE_COLUMNS, kind, received_at, value

__all__ = ["key_stats", "latest", "samples"]

_KEY: Final = ("key_scope", "key_suffix", "key_mapping")
_COLUMNS: Final = (*SEEN, "body", *_KEY, *VALUE_COLUMNS)
_NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "received_at": ("time",),
    "key": (*_KEY, "sequence", "offset", "time"),
    "key_fault": (*_KEY, "sequence", "offset", "time"),
    "kind": ("body",),
    "text": ("payload", "encoding"),
    "value": ("payload", "encoding", "deserialized"),
    "schema": ("encoding_schema",),
    "ntp64": ("timestamp",),
    "clock_id": ("timestamp_id",),
    "congestion_control": ("qos",),
    "express": ("qos",),
    "priority": ("qos",),
    "reliability": ("reliable",),
}
"""What columns are made of, where it is not their own name."""
_PUSH: Final = frozenset({"PUSH"})
_PERCENTILES: Final = (0.5, 0.9, 0.99)


def samples(source: DataFrame, columns: tuple[str, ...] | None = None) -> DataFrame:
    """One row for each PUSH, on each link it crossed. ``source`` is ``batches`` or ``messages``.

    In order of ``sequence`` and ``offset`` within ``capture``, ``flow``, ``connection`` and
    ``side``. A ``key`` that cannot be known is null, and ``key_fault`` says why.

    ``columns`` are those that are wanted. From ``batches`` the others are then not even made,
    which Spark could not know if they were left out afterwards. Raises ValueError for one that
    is not there.
    """
    told = kind(F.col("body")).alias("kind")
    made: list[Column | str] = [*SEEN, received_at(), "key", "key_fault", told, *value()]
    if columns is None:
        return network(source, _PUSH, _COLUMNS).select(*made)
    needed = {part for name in ("key", *columns) for part in _NEEDS.get(name, (name,))}
    unknown = needed - set(_COLUMNS)
    if unknown:
        raise ValueError(f"samples has no column {', '.join(sorted(unknown))}")
    # Spark checks even what is not selected, so what was left out is there as null.
    present = tuple(name for name in _COLUMNS if name in needed)
    pushed = network(source, _PUSH, present)
    types = struct_of(Selection(_COLUMNS).schema)
    left_out = [name for name in _COLUMNS if name not in present]
    nulls = {name: F.lit(None).cast(types[name].dataType) for name in left_out}
    return pushed.withColumns(nulls).select(*made).select(*columns)


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
