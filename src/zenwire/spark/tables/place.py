"""Where messages stand: the columns that name a connection and its directions, and their order."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.spark.schema import struct_of
from zenwire.spark.tables.scan import INPUT, Selection

__all__ = ["LANE", "LINK", "SEEN", "SIDE", "holding", "place", "scan", "side_id", "spread", "taken"]

LINK: Final = ("capture", "flow", "connection")
SIDE: Final = (*LINK, "side")
LANE: Final = (*SIDE, "reliable", "priority")
SEEN: Final = ("capture", "flow", "connection", "direction", "side", "time", "sequence", "offset")
"""Where a row of a table was seen."""

_CHUNK: Final = 6
"""2 to this many batches in a row go to one task."""


def place(sequence: Column | None = None, offset: Column | None = None) -> Column:
    """The order of messages of one direction: a batch has fewer than 65,536 bytes."""
    sequence = F.col("sequence") if sequence is None else sequence
    offset = F.col("offset") if offset is None else offset
    return F.shiftleft(sequence, 16) + offset


def side_id() -> Column:
    """One number for what ``SIDE`` says: 64 bits, so that two are never the same in practice."""
    return F.xxhash64(*SIDE)


def spread(batches: DataFrame, partitions: int | None = None) -> DataFrame:
    """The same batches over more tasks, in runs of 64: for a source that gives too few partitions.

    A large capture is read by many tasks as it is, and a table keeps the partitions of its source,
    so this is for files that cannot be split, such as compressed ones: it moves all bytes once.
    ``partitions`` is as many as Spark shuffles into if it is not said.
    """
    run = (*LINK, "source", "source_port", F.shiftright("sequence", _CHUNK))
    if partitions is None:
        return batches.repartition(*run)
    return batches.repartition(partitions, *run)


def holding(batches: DataFrame, flag: str) -> DataFrame:
    """The batches that have a ``fragments`` or ``declares`` flag; all, where none was written."""
    return batches.where(F.col(flag)) if flag in batches.columns else batches


def taken(batches: DataFrame) -> DataFrame:
    """The batches as a scan takes them."""
    higher = F.struct("source", "source_port") > F.struct("target", "target_port")
    known = batches.where(F.col("bytes").isNotNull()).withColumn("side", higher.cast("tinyint"))
    return known.withColumn("side_id", side_id()).select(
        *INPUT[:-4],
        F.lit(None).cast("int").alias("at"),
        F.lit(None).cast("bigint").alias("sn"),
        F.lit(None).cast("boolean").alias("reliable"),
        F.lit(None).cast("int").alias("priority"),
    )


def scan(batches: DataFrame, selection: Selection) -> DataFrame:
    """The chosen messages of what ``taken`` gave, in parallel over it."""
    return batches.select(*INPUT).mapInArrow(selection, struct_of(selection.schema))
