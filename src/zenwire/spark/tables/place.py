"""Where messages stand: the columns that name a connection and its directions, and their order."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.spark.relation import SOURCE, options_of
from zenwire.spark.schema import struct_of
from zenwire.spark.tables.input import BATCH, PLACE_BITS
from zenwire.spark.tables.scan import Selection
from zenwire.spark.tables.tasks import Task

__all__ = ["LANE", "LINK", "SEEN", "SIDE", "lanes", "place", "scan", "spread", "stitch"]

LINK: Final = ("capture", "flow", "connection")
SIDE: Final = (*LINK, "side")
LANE: Final = (*SIDE, "reliable", "priority")
SEEN: Final = ("capture", "flow", "connection", "direction", "side", "time", "sequence", "offset")
"""Where a row of a table was seen."""

_CHUNK: Final = 6
"""2 to this many batches in a row go to one task."""


def place(sequence: Column | None = None, offset: Column | None = None) -> Column:
    """``place_of`` as a column."""
    sequence = F.col("sequence") if sequence is None else sequence
    offset = F.col("offset") if offset is None else offset
    return F.shiftleft(sequence, PLACE_BITS) + offset


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


def scan(batches: DataFrame, task: Task) -> DataFrame:
    """What a task makes of the batches, in parallel over them."""
    options = options_of(batches)
    if options is None:
        return batches.select(*BATCH).mapInArrow(task, struct_of(task.schema))
    read = batches.sparkSession.read.format(SOURCE).options(**options)
    return read.option("task", task.to_text()).load()


def stitch(batches: DataFrame) -> DataFrame:
    """What tasks left of messages in pieces, lane by lane and in order."""
    return lanes(scan(batches, Task(Selection(()), edges=True)))


def lanes(runs: DataFrame) -> DataFrame:
    """``runs`` as they are joined: by lane, in order, knowing whether it marks first pieces."""
    ordered = runs.repartition(*LINK).withColumn(
        "marked", F.bool_or("marked").over(Window.partitionBy(*LANE))
    )
    return ordered.sortWithinPartitions(*LANE, "first_place")
