"""Key-expression ids to key expressions: a join with the declarations that were valid there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.spark.schema import struct_of
from zenwire.spark.tables.place import LINK, place
from zenwire.spark.tables.scan import CONTEXT

__all__ = ["ALIAS_COLUMNS", "aliases", "with_keys"]

ALIAS_COLUMNS: Final = (
    *CONTEXT.names,
    "offset",
    "message",
    "body",
    "expr_id",
    "key_scope",
    "key_suffix",
)

_ALIASES: Final = pa.schema(
    [
        pa.field("capture", pa.string()),
        pa.field("flow", pa.int64()),
        pa.field("connection", pa.int32()),
        pa.field("declarer", pa.int8()),
        pa.field("expr_id", pa.int32()),
        pa.field("alias", pa.string()),
        pa.field("from_place", pa.int64()),
        pa.field("until_place", pa.int64()),
        pa.field("from_time", pa.int64()),
        pa.field("until_time", pa.int64()),
    ]
)


def aliases(declares: DataFrame) -> DataFrame:
    """When each id of each direction stood for what. ``declares`` has ``ALIAS_COLUMNS``.

    A connection declares few ids, so one task reads them in their order.
    """
    said = declares.where(F.col("body").isin("D_KEYEXPR", "U_KEYEXPR"))
    return said.groupBy(*LINK).applyInArrow(_lives, struct_of(_ALIASES))


def _lives(said: pa.Table) -> pa.Table:
    rows = said.sort_by([(c, "ascending") for c in ("time", "side", "sequence", "offset")])
    return pa.Table.from_pylist(list(_follow(rows.to_pylist())), _ALIASES)


def _follow(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    live: dict[tuple[int, int], dict[str, Any]] = {}
    for row in rows:
        at = row["sequence"] << 16 | row["offset"]
        id_ = row["side"], row["expr_id"]
        if row["body"] == "U_KEYEXPR":
            gone = live.pop(id_, None)
            if gone is not None:
                yield gone | {"until_place": at, "until_time": row["time"]}
        elif id_ not in live:
            # A declaration of an id that is alive is ignored, as nodes do.
            alias = row["key_suffix"] or ""
            if row["key_scope"]:
                # There is no M flag: nodes look the scope up among their own ids.
                base = live.get((1 - row["side"], row["key_scope"]))
                alias = None if base is None or base["alias"] is None else base["alias"] + alias
            live[id_] = {
                **{name: row[name] for name in LINK},
                "declarer": row["side"],
                "expr_id": row["expr_id"],
                "alias": alias,
                "from_place": at,
                "from_time": row["time"],
                "until_place": None,
                "until_time": None,
            }
    yield from live.values()


def with_keys(messages: DataFrame, known: DataFrame) -> DataFrame:
    """``key``, and ``key_fault`` where a message has a scope that nothing is known about.

    The sender's ids are compared by place in the stream. For the receiver's, which were declared
    in the other direction, the time of capture is the only order there is.
    """
    m, a = messages.alias("m"), F.broadcast(known).alias("a")
    # D_KEYEXPR has no M flag.
    by_sender = F.coalesce("m.key_mapping", F.lit(False))
    at = place(F.col("m.sequence"), F.col("m.offset"))
    in_stream = (F.col("a.from_place") <= at) & (
        F.col("a.until_place").isNull() | (at < F.col("a.until_place"))
    )
    in_time = (F.col("a.from_time") <= F.col("m.time")) & (
        F.col("a.until_time").isNull() | (F.col("m.time") < F.col("a.until_time"))
    )
    declarer = F.when(by_sender, F.col("m.side")).otherwise(1 - F.col("m.side")).cast("tinyint")
    scoped = F.when(F.col("m.key_scope") > 0, F.col("m.key_scope"))
    same = [F.col(f"m.{name}") == F.col(f"a.{name}") for name in LINK]
    joined = m.join(
        a,
        [
            *same,
            declarer == F.col("a.declarer"),
            scoped == F.col("a.expr_id"),
            F.when(by_sender, in_stream).otherwise(in_time),
        ],
        "left",
    )
    suffix = F.coalesce("m.key_suffix", F.lit(""))
    key = (
        F.when(F.col("m.key_scope") == 0, suffix)
        .when(F.col("a.alias").isNotNull(), F.concat("a.alias", suffix))
        .alias("key")
    )
    whose = F.when(by_sender, F.lit("sender")).otherwise(F.lit("receiver"))
    unknown = F.concat(
        F.lit("scope "),
        F.col("m.key_scope").cast("string"),
        F.lit(" was not declared by the "),
        whose,
        F.lit(" in this capture"),
    )
    fault = F.when((F.col("m.key_scope") > 0) & F.col("a.alias").isNull(), unknown)
    return joined.select("m.*", key, fault.alias("key_fault"))
