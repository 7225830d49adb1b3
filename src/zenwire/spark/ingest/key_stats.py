"""``key_stats`` of a lake: per key and 10 seconds, messages, bytes, rate, gaps and latency.

A micro-batch adds to windows that are there, so the table has what can be added: counts, and for
gaps and latency how many fell into which bin. Bins are 2 % wide, so that a percentile is right
within 1 % of its value, whatever micro-batches the rows came in; sums of windows give those of an
hour or a day. ``of_bin`` is the value of a bin, as Spark's ``percentile(value, part, n)`` wants it.

A gap is the time since the sample before on that key, in the order in which they were received,
latency that from the HLC timestamp to the recorder, both in seconds; ``gap`` and ``latency`` are
percentiles 50, 90 and 99.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

__all__ = [
    "BASE",
    "FIRST",
    "GAP",
    "LATE",
    "MESSAGE",
    "PLACE",
    "SCHEMA",
    "SEEN",
    "SPAN",
    "WIDTH",
    "WINDOW",
    "key_stats",
    "of_bin",
    "unit",
]

PLACE: Final = ("day", "unit")
BASE: Final = 1e-6
"""Seconds: what is shorter is 0."""
WIDTH: Final = 1.02
SPAN: Final = 10
"""Seconds."""
SCHEMA: Final = (
    "key string, window struct<start: timestamp, end: timestamp>, messages bigint, bytes bigint, "
    "rate double, gap array<double>, latency array<double>, "
    "gap_bins array<struct<bin: int, n: bigint>>, latency_bins array<struct<bin: int, n: bigint>>"
)
"""The columns, as DDL."""
_PARTS: Final = "array<struct<what: int, bin: int, n: bigint, bytes: bigint>>"
MESSAGE, GAP, LATE = 0, 1, 2
"""What is counted."""
_ROW, SEEN, WINDOW, FIRST = 0, 1, 2, 3
"""What a row is: a sample; when a key was seen; counts of a window; a sample of a piece that was
counted there but for the gap before it."""
_PERCENTILES: Final = (0.5, 0.9, 0.99)


def _bin(seconds: Column) -> Column:
    ratio = F.ceil(F.log(F.abs(seconds) / BASE) / math.log(WIDTH))
    return F.when(F.abs(seconds) <= BASE, 0).otherwise(F.signum(seconds) * ratio).cast("int")


def of_bin(number: Column) -> Column:
    """Seconds: the middle of a bin."""
    value = F.lit(BASE) * F.pow(F.lit(WIDTH), F.abs(number) - 0.5)
    return F.when(number == 0, F.lit(0.0)).otherwise(F.signum(number.cast("double")) * value)


def unit(window: Column, whole: Sequence[tuple[str, str]]) -> list[Column]:
    """Day and file of a window: those of a minute together, or of an hour that is ``whole``."""
    day = F.date_format(window, "yyyy-MM-dd")
    hour = F.concat(F.lit("h"), F.date_format(window, "HH"))
    minute = F.concat(hour, F.lit("m"), F.date_format(window, "mm"))
    if whole:
        there = F.concat_ws("/", day, hour).isin([f"{d}/{h}" for d, h in whole])
        minute = F.when(there, hour).otherwise(minute)
    return [day.alias("day"), minute.alias("unit")]


def key_stats(
    batch: DataFrame | None,
    latest: DataFrame | None,
    before: DataFrame | None,
    pieces: DataFrame | None = None,
) -> DataFrame:
    """The windows of a micro-batch, with what was in them ``before``; ``latest`` as before it.

    Its rows are in ``batch``, or in ``pieces`` as `zenwire.spark.ingest.pieces` makes them, or some
    here and some there. Rows, windows and keys that were seen go through one exchange together, by
    key: everything after it stays where it is.
    """
    none, zero = F.lit(None), F.lit(0).cast("bigint")
    late = F.unix_micros("received_at") - F.unix_micros("timestamp")
    found: list[DataFrame] = []
    if batch is not None:
        found.append(
            batch.select(
                "key",
                F.lit(_ROW).alias("kind"),
                "time",
                "spool",
                "offset",
                F.coalesce(F.octet_length("payload"), F.lit(0)).cast("bigint").alias("size"),
                late.alias("late"),
                none.cast("timestamp").alias("start"),
                none.cast(_PARTS).alias("parts"),
            )
        )
    if pieces is not None:
        found.append(
            pieces.select(
                "key",
                "kind",
                "time",
                "spool",
                "offset",
                zero.alias("size"),
                none.cast("bigint").alias("late"),
                "start",
                "parts",
            )
        )
    if latest is not None:
        found.append(
            latest.select(
                "key",
                F.lit(SEEN),
                "last_time",
                F.lit(""),
                zero,
                zero,
                zero,
                none.cast("timestamp"),
                none.cast(_PARTS),
            )
        )
    if before is not None:
        found.append(
            before.select(
                "key", F.lit(WINDOW), zero, F.lit(""), zero, zero, zero, "window.start", _parts()
            )
        )
    rows = reduce(DataFrame.unionAll, found)
    ordered = Window.partitionBy("key", F.col("kind") == WINDOW).orderBy("time", "spool", "offset")
    # A clock that went back makes no gap.
    gap = F.greatest(F.col("time") - F.lag("time").over(ordered), F.lit(0)) / 1e9
    seconds = F.floor(F.col("time") / F.lit(SPAN * 10**9)) * SPAN
    made = F.array(
        _part(MESSAGE, F.lit(0), F.lit(1), F.col("size")),
        _part(GAP, _bin(F.col("gap")), F.lit(1), F.lit(0)),
        _part(LATE, _bin(F.col("late") / 1e6), F.lit(1), F.lit(0)),
    )
    made = F.when(F.col("kind") == FIRST, F.slice(made, GAP + 1, 1)).otherwise(made)
    timed = rows.repartition("key").select("*", gap.alias("gap")).where(F.col("kind") != SEEN)
    parts = timed.select(
        "key",
        F.coalesce("start", F.timestamp_seconds(seconds)).alias("start"),
        F.inline(F.coalesce("parts", made)),
    )
    return _windows(parts.where(F.col("bin").isNotNull()))


def _part(what: int, number: Column, n: Column, size: Column) -> Column:
    return F.struct(
        F.lit(what).alias("what"),
        number.cast("int").alias("bin"),
        n.cast("bigint").alias("n"),
        size.cast("bigint").alias("bytes"),
    )


def _parts() -> Column:
    """What a window was made of."""

    def spread(what: int, bins: str) -> Column:
        return F.transform(bins, lambda one: _part(what, one["bin"], one["n"], F.lit(0)))

    whole = F.array(_part(MESSAGE, F.lit(0), F.col("messages"), F.col("bytes")))
    return F.concat(whole, spread(GAP, "gap_bins"), spread(LATE, "latency_bins"))


def _windows(parts: DataFrame) -> DataFrame:
    summed = parts.groupBy("key", "start", "what", "bin").agg(
        F.sum("n").alias("n"), F.sum("bytes").alias("bytes")
    )

    def bins(what: int) -> Column:
        some = F.when(F.col("what") == what, F.struct("bin", "n"))
        return F.array_sort(F.collect_list(some))

    def percentiles(what: int) -> Column:
        some = F.when(F.col("what") == what, of_bin(F.col("bin")))
        return F.percentile(some, list(_PERCENTILES), F.col("n"))

    windows = summed.groupBy("key", "start").agg(
        F.sum(F.when(F.col("what") == MESSAGE, F.col("n"))).alias("messages"),
        F.sum("bytes").alias("bytes"),
        percentiles(GAP).alias("gap"),
        percentiles(LATE).alias("latency"),
        bins(GAP).alias("gap_bins"),
        bins(LATE).alias("latency_bins"),
    )
    end = F.timestamp_micros(F.unix_micros("start") + F.lit(SPAN * 1_000_000))
    return windows.select(
        "key",
        F.struct(F.col("start"), end.alias("end")).alias("window"),
        "messages",
        "bytes",
        (F.col("messages") / F.lit(float(SPAN))).alias("rate"),
        "gap",
        "latency",
        "gap_bins",
        "latency_bins",
    )
