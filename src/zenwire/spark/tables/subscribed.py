"""Gaps in the numbers of publishers, held against the subscriptions on the same link."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.pandas.types import to_arrow_schema

from zenwire.capture.conversation.subscriptions import GAP, NOT_SENT, Life, counts, may_match
from zenwire.spark.tables.declarations import declarations
from zenwire.spark.tables.place import LINK, SIDE
from zenwire.spark.tables.sessions import handshakes

__all__ = ["judged"]

_GAP: Final = ("key", "since", "time", "opened")
_LIFE: Final = ("key", "declared", "undeclared")


def judged(gaps: DataFrame, source: DataFrame) -> DataFrame:
    """``gaps`` with the ``kind`` and ``reason`` that ``counts`` decides on.

    ``gaps`` has a row for each gap of a publisher on one side of a connection: ``since`` is the
    time of the sample before it, ``time`` and ``key`` are those of the sample after it. Gaps are
    few, so one task takes those of a side with all subscriptions of the other side.
    """
    opened = handshakes(source).select(*LINK, F.col("opened").isNotNull().alias("opened"))
    found = gaps.join(F.broadcast(opened), list(LINK), "left")
    lives = declarations(source).where((F.col("kind") == "subscriber") & ~F.col("snapshot"))
    # The receiver subscribes. Both frames are made of one source: its columns need other names.
    side = (1 - F.col("side")).cast("tinyint").alias("side")
    of = [f"life_{name}" for name in SIDE]
    lives = lives.select(*LINK, side, *_LIFE).toDF(*of, *_LIFE)
    both = found.groupBy(*SIDE).cogroup(lives.groupBy(*of))
    judge = partial(_judged, to_arrow_schema(found.schema))
    return both.applyInArrow(judge, found.schema).drop("opened")


def _judged(schema: pa.Schema, gaps: pa.Table, lives: pa.Table) -> pa.Table:
    """The gaps of one side of a connection, and the subscriptions of the other side."""
    columns = [lives.column(name).to_pylist() for name in _LIFE]
    by_key: dict[str | None, list[Life]] = defaultdict(list)
    for life in map(Life, *columns):
        by_key[life.key].append(life)
    matching: dict[str | None, list[Life]] = {}
    told = []
    for key, since, until, opened in zip(
        *(gaps.column(name).to_pylist() for name in _GAP), strict=True
    ):
        if key not in matching:
            some = [mine for name, mine in by_key.items() if may_match(name, key)]
            matching[key] = [life for mine in some for life in mine]
        told.append(GAP if counts(matching[key], since, until, opened=bool(opened)) else NOT_SENT)
    for at, name in enumerate(("kind", "reason")):
        index = schema.get_field_index(name)
        column = pa.array([each[at] for each in told], pa.string())
        gaps = gaps.set_column(index, name, column)
    return gaps.cast(schema)
