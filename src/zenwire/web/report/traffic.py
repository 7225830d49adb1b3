"""Messages, samples and queries: how many, how large, when, how fast."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.web.report.frames import Row, cut, cut_key, rows_of
from zenwire.web.report.model import (
    KINDS,
    LATENCY_BINS,
    Capture,
    Category,
    Key,
    Keys,
    Latency,
    MessageCount,
    Queries,
    Timeline,
    Top,
)

__all__ = ["accounts", "captures", "keys", "message_counts", "queries", "timeline"]

BINS: Final = 120
SPARK_BINS: Final = 32
CAPTURES: Final = 50
TOP: Final = 50

_KIND_OF: Final = {
    "PUSH": "samples",
    "REQUEST": "queries",
    "RESPONSE": "replies",
    "RESPONSE_FINAL": "replies",
    "DECLARE": "declarations",
    "INTEREST": "declarations",
    "OAM": "routing",
}


def _kind() -> Column:
    of_network = F.coalesce(
        *[F.when(F.col("message") == name, F.lit(kind)) for name, kind in _KIND_OF.items()],
        F.lit("routing"),
    )
    return F.when(F.col("layer") == "network", of_network).otherwise(F.col("layer"))


def _size() -> Column:
    """Each byte once: what a FRAGMENT carries is counted with the message it is of."""
    carried = F.when(F.col("message") == "FRAGMENT", F.coalesce("payload_bytes", F.lit(0)))
    return (F.col("length") - F.coalesce(carried, F.lit(0))).cast("bigint")


def captures(messages: DataFrame) -> Top[Capture]:
    """Files by their messages."""
    grouped = messages.groupBy("capture").agg(
        F.count("*").alias("messages"),
        F.sum(_size()).alias("bytes"),
        F.min("time").alias("first"),
        F.max("time").alias("last"),
    )
    first = rows_of(grouped.orderBy("capture").limit(CAPTURES))
    total = len(first) if len(first) < CAPTURES else grouped.count()
    found = [Capture(r["capture"], r["messages"], r["bytes"], r["first"], r["last"]) for r in first]
    return Top(found, total)


def accounts(found: DataFrame) -> list[Category]:
    """Where the bytes of the files went, most first."""
    grouped = found.groupBy("category").agg(
        F.sum("bytes").alias("bytes"),
        F.sum("rows").alias("rows"),
        F.sum("missing").alias("missing"),
    )
    rows = rows_of(grouped.orderBy(F.desc("bytes"), "category").limit(TOP))
    return [Category(r["category"], r["bytes"], r["rows"], r["missing"]) for r in rows]


def message_counts(messages: DataFrame) -> tuple[list[MessageCount], int | None, int | None]:
    """By name, most first; and the time of the first and the last message."""
    grouped = messages.groupBy("layer", "message", "body", _kind().alias("kind")).agg(
        F.count("*").alias("messages"),
        F.sum(_size()).alias("bytes"),
        F.min("time").alias("first"),
        F.max("time").alias("last"),
    )
    rows = rows_of(grouped)
    counts = [
        MessageCount(
            row["layer"], row["message"], row["body"], row["kind"], row["messages"], row["bytes"]
        )
        for row in rows
    ]
    counts.sort(key=lambda c: (-c.messages, c.layer, c.message, c.body or ""))
    start = min((row["first"] for row in rows), default=None)
    end = max((row["last"] for row in rows), default=None)
    return counts, start, end


def bin_width(span: int, most: int = BINS) -> int:
    """Nanoseconds: 1, 2 or 5 times a power of ten, so that no more than ``most`` fit the span."""
    width = 1000
    while True:
        for factor in (1, 2, 5):
            if span // (width * factor) < most:
                return width * factor
        width *= 10


def timeline(messages: DataFrame, start: int, end: int) -> Timeline:
    """Messages and bytes by kind and time."""
    width = bin_width(end - start)
    bins = (end - start) // width + 1
    which = F.floor((F.col("time") - F.lit(start)) / F.lit(width)).cast("int").alias("bin")
    grouped = messages.groupBy(which, _kind().alias("kind")).agg(
        F.count("*").alias("messages"), F.sum(_size()).alias("bytes")
    )
    rows = rows_of(grouped)
    present = {row["kind"] for row in rows}
    kinds = [kind for kind in KINDS if kind in present]
    counts = [[0] * bins for _ in kinds]
    sizes = [[0] * bins for _ in kinds]
    for row in rows:
        i, at = kinds.index(row["kind"]), min(row["bin"], bins - 1)
        counts[i][at] += row["messages"]
        sizes[i][at] += row["bytes"]
    return Timeline(start, width, bins, kinds, counts, sizes)


def keys(messages: DataFrame, start: int, end: int) -> Keys:
    """The keys with most samples, and how those were spread over time."""
    pushed = messages.where((F.col("layer") == "network") & (F.col("message") == "PUSH")).select(
        "key", "time", "body", F.coalesce("payload_bytes", F.lit(0)).alias("size")
    )
    grouped = pushed.groupBy("key").agg(
        F.count("*").alias("samples"),
        F.count_if(F.col("body") == "DEL").alias("deletes"),
        F.sum("size").alias("bytes"),
        F.min("time").alias("first"),
        F.max("time").alias("last"),
    )
    (total,) = rows_of(
        grouped.agg(
            F.count("*").alias("keys"),
            F.sum("samples").alias("samples"),
            F.sum("bytes").alias("bytes"),
        )
    )
    top = grouped.orderBy(F.desc("samples"), F.desc("bytes"), F.asc_nulls_last("key")).limit(TOP)
    width = (end - start) // SPARK_BINS + 1
    at = F.floor((F.col("time") - F.lit(start)) / F.lit(width)).cast("int")
    same = F.col("p.key").eqNullSafe(F.col("t.key"))
    spread = (
        pushed.alias("p")
        .join(F.broadcast(top.alias("t")), same)
        .groupBy(F.col("t.key"), at.alias("bin"))
        .agg(F.count("*").alias("n"))
        .groupBy("key")
        .agg(F.map_from_entries(F.collect_list(F.struct("bin", "n"))).alias("spark"))
    )
    told = top.alias("t").join(spread.alias("s"), F.col("t.key").eqNullSafe(F.col("s.key")), "left")
    rows = rows_of(
        told.select(*cut("t.key"), "samples", "deletes", "bytes", "first", "last", F.col("s.spark"))
    )
    found = [_key(row) for row in rows]
    found.sort(key=lambda k: (-k.samples, -k.bytes, k.key is None, k.key or ""))
    return Keys(total["samples"] or 0, total["bytes"] or 0, Top(found, total["keys"]))


def _key(row: Row) -> Key:
    spark = [0] * SPARK_BINS
    for at, n in row["spark"] or ():
        spark[min(at, SPARK_BINS - 1)] += n
    return Key(
        *cut_key(row),
        row["samples"],
        row["deletes"],
        row["bytes"],
        row["first"],
        row["last"],
        spark,
    )


def queries(found: DataFrame) -> Queries:
    """Outcomes, and latency by key: those with most queries."""
    rows = rows_of(found.groupBy("outcome").agg(F.count("*").alias("n")))
    outcomes = {row["outcome"]: row["n"] for row in sorted(rows, key=lambda r: -r["n"])}
    (overall,) = rows_of(found.agg(*_latency()))
    grouped = found.groupBy("key").agg(*_latency())
    top = grouped.orderBy(F.desc("queries"), F.asc_nulls_last("key")).limit(TOP)
    told = rows_of(top.select(*cut(), *[c for c in grouped.columns if c != "key"]))
    total = len(told) if len(told) < TOP else grouped.count()
    return Queries(
        outcomes,
        _latency_of(overall | {"key": None, "key_length": 0}),
        Top([_latency_of(row) for row in told], total),
    )


def _latency() -> list[Column]:
    # Three bins to a power of ten; what is below a microsecond or above the last bin is at the edge.
    at = F.floor(F.log10(F.greatest("latency", F.lit(1e-9))) * 3) + 18
    at = F.least(F.greatest(at, F.lit(0)), F.lit(LATENCY_BINS - 1))
    bins = [F.count_if(at == i) for i in range(LATENCY_BINS)]
    return [
        F.count("*").alias("queries"),
        F.count("latency").alias("finished"),
        F.sum("replies").alias("replies"),
        F.percentile_approx("latency", [0.5, 0.9, 0.99]).alias("percentiles"),
        F.max("latency").alias("longest"),
        F.array(*bins).alias("bins"),
    ]


def _latency_of(row: Row) -> Latency:
    p50, p90, p99 = row["percentiles"] or (None, None, None)
    return Latency(
        *cut_key(row),
        row["queries"],
        row["finished"],
        row["replies"] or 0,
        p50,
        p90,
        p99,
        row["longest"],
        row["bins"],
    )
