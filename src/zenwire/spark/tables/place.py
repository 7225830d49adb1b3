"""Where messages stand: the columns that name a connection and its directions, and their order."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.spark.schema import struct_of
from zenwire.spark.tables.scan import INPUT, Selection

__all__ = ["LANE", "LINK", "SEEN", "SIDE", "place", "scan", "spread", "taken"]

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


def spread(batches: DataFrame) -> DataFrame:
    """The same as ``taken``, but over all tasks: one fat flow is not one task."""
    return taken(batches).repartition(*SIDE, F.shiftright("sequence", _CHUNK))


def taken(batches: DataFrame) -> DataFrame:
    """The batches as a scan takes them.

    For scans that give few rows: to move the bytes to other tasks would cost as much as those do.
    """
    higher = F.struct("source", "source_port") > F.struct("target", "target_port")
    known = batches.where(F.col("bytes").isNotNull()).withColumn("side", higher.cast("tinyint"))
    return known.select(
        *INPUT[:-4],
        F.lit(None).cast("int").alias("at"),
        F.lit(None).cast("bigint").alias("sn"),
        F.lit(None).cast("boolean").alias("reliable"),
        F.lit(None).cast("int").alias("priority"),
    )


def scan(batches: DataFrame, selection: Selection) -> DataFrame:
    """The chosen messages of what ``taken`` or ``spread`` gave, in parallel over it."""
    return batches.select(*INPUT).mapInArrow(selection, struct_of(selection.schema))
