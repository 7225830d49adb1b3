"""What the aggregations share: rows of a DataFrame, names of nodes, cut keys."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.web.report.model import KEY_LENGTH

__all__ = ["LINK", "Row", "cut", "cut_key", "ends", "named", "rows_of"]

LINK: Final = ("capture", "flow", "connection")
Row = dict[str, Any]
"""Of any column type."""


def rows_of(frame: DataFrame) -> list[Row]:
    """Bounded results only."""
    rows: list[Row] = frame.toArrow().to_pylist()
    return rows


def cut_key(row: Row) -> tuple[str | None, int]:
    """The beginning of a key that ``cut`` selected, and its length."""
    return row["key"], row["key_length"] or 0


def named(sessions: DataFrame) -> DataFrame:
    """``sessions`` with ``connector`` and ``acceptor``: an id or, where none is known, an address."""

    def who(side: str) -> Column:
        address = F.concat_ws(":", f"{side}_address", F.col(f"{side}_port").cast("string"))
        return F.coalesce(F.col(f"{side}_zid"), address).alias(side)

    return sessions.select("*", who("connector"), who("acceptor"))


def ends(rows: DataFrame, sessions: DataFrame | None) -> DataFrame:
    """Rows of a direction with ``sender`` and ``receiver``; empty where they are of no session."""
    if sessions is None:
        return rows.select("*", F.lit("").alias("sender"), F.lit("").alias("receiver"))
    names = named(sessions).select(*LINK, "connector", "acceptor")
    joined = rows.join(names, list(LINK), "left")
    # Where nobody knows who connected, `sessions` calls the lower address the connector.
    of_connector = F.coalesce(F.col("direction") == "to_acceptor", F.col("side") == 0)
    sender = F.when(of_connector, F.col("connector")).otherwise(F.col("acceptor"))
    receiver = F.when(of_connector, F.col("acceptor")).otherwise(F.col("connector"))
    return joined.select(
        *rows.columns,
        F.coalesce(sender, F.lit("")).alias("sender"),
        F.coalesce(receiver, F.lit("")).alias("receiver"),
    )


def cut(key: str = "key") -> list[Column]:
    """What comes to the driver of a key, which may be long."""
    return [F.substring(key, 1, KEY_LENGTH).alias("key"), F.length(key).alias("key_length")]
