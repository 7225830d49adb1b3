"""``declarations``: key expressions, subscribers, queryables and tokens, with their life span."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.spark.tables.messages import network, transport
from zenwire.spark.tables.place import LINK, SEEN, SIDE

__all__ = ["declarations"]

_COLUMNS: Final = (
    *SEEN,
    "message",
    "body",
    "key_scope",
    "key_suffix",
    "key_mapping",
    "expr_id",
    "entity_id",
    "interest_id",
    "node_id",
    "queryable_info",
)
_CLOSE: Final = (*LINK, "time", "message")


def declarations(source: DataFrame) -> DataFrame:
    """One row for each life of what was declared. Source: ``batches`` or ``messages``.

    ``kind`` is keyexpr, subscriber, queryable or token, ``id`` that of its kind and direction.
    What is declared again while it lives is one life, with ``declared`` of the first time and
    ``times`` of them; what was declared before the capture has no ``declared``. ``undeclared`` is
    null for what lives on, and ``ended_by`` says whether an undeclaration or CLOSE ended it. An
    answer to an interest that is not about the future (id 0) is never undeclared: ``snapshot``.
    Times are nanoseconds.
    """
    found = network(source, frozenset({"DECLARE"}), _COLUMNS).where(F.col("body") != "D_FINAL")
    gone = F.col("body").startswith("U_")
    found = (
        found.withColumn("kind", F.lower(F.substring("body", 3, 100)))
        .withColumn("id", F.coalesce("entity_id", F.col("expr_id").cast("bigint")))
        .withColumn("gone", gone)
    )
    # Routers declare everything with id 0 to each other: there, key and node tell things apart.
    zero = F.col("id") == 0
    found = (
        found.withColumn("snapshot", zero & F.col("interest_id").isNotNull())
        .withColumn("of_key", F.when(zero, F.col("key")))
        .withColumn("of_node", F.when(zero, F.col("node_id")))
        .withColumn("of_interest", F.when(zero, F.col("interest_id")))
    )
    thing = (*SIDE, "kind", "id", "of_key", "of_node", "of_interest")
    before = Window.partitionBy(*thing).orderBy("sequence", "offset")
    earlier = F.sum(F.col("gone").cast("int")).over(
        before.rowsBetween(Window.unboundedPreceding, -1)
    )
    found = found.withColumn("life", F.coalesce(earlier, F.lit(0)))
    place = F.struct("sequence", "offset")
    first = F.min_by(
        F.struct("time", "sequence", "offset", "key", "key_fault"), F.when(~F.col("gone"), place)
    )
    lives = found.groupBy(*thing, "direction", "life").agg(
        first.alias("first"),
        F.count_if(~F.col("gone")).alias("times"),
        F.max(F.when(F.col("gone"), F.col("time"))).alias("undeclared"),
        F.max("key").alias("any_key"),
        F.max("snapshot").alias("snapshot"),
        F.max("interest_id").alias("interest_id"),
        F.max("node_id").alias("node_id"),
        F.max_by("queryable_info", F.when(~F.col("gone"), place)).alias("info"),
        F.min(place).alias("place"),
    )
    closes = (
        transport(source, frozenset({"CLOSE"}), _CLOSE)
        .groupBy(*LINK)
        .agg(F.min("time").alias("close"))
    )
    told = lives.join(F.broadcast(closes), list(LINK), "left")
    lived = F.col("times") > 0
    closed = F.when(lived & ~F.col("snapshot"), F.col("close"))
    return told.select(
        *SIDE,
        "direction",
        F.col("place.sequence").alias("sequence"),
        F.col("place.offset").alias("offset"),
        "kind",
        "id",
        F.coalesce("first.key", F.when(F.col("any_key") != "", F.col("any_key"))).alias("key"),
        "first.key_fault",
        F.col("first.time").alias("declared"),
        F.coalesce("undeclared", closed).alias("undeclared"),
        F.when(F.col("undeclared").isNotNull(), F.lit("undeclared"))
        .when(closed.isNotNull(), F.lit("closed"))
        .alias("ended_by"),
        "times",
        "snapshot",
        "interest_id",
        "node_id",
        F.when(F.col("kind") == "queryable", F.col("info").bitwiseAND(F.lit(1)) == 1).alias(
            "complete"
        ),
        F.when(F.col("kind") == "queryable", F.shiftright("info", 8)).alias("distance"),
    )
