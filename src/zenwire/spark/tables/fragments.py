"""FRAGMENTs to whole messages.

Pieces of a message have consecutive sequence numbers of one lane, and anything else in that lane
ends them. Which pieces belong together is found without their bytes; the bytes are then put
together message by message, not lane by lane.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.spark.tables.place import LANE, holding, place, scan, side_id, taken
from zenwire.spark.tables.scan import CONTEXT, Selection
from zenwire.wire.objects import ID_MASK
from zenwire.wire.values import Resolution

__all__ = ["chains", "reassembled"]

_LANE: Final = ("offset", "sn", "reliable", "priority")
_NARROW: Final = (*CONTEXT.names, *_LANE, "more", "first", "drop", "head")
_FRAGMENT: Final = frozenset({"FRAGMENT"})
_MODULI: Final = [Resolution.of(bits).sn_modulus for bits in (8, 16, 32, 64)]
"""Where sequence numbers begin again; which it is does not matter here."""
_OF_LAST: Final = ("time", "sequence")
_AT: Final = (*LANE, "sequence", "offset")


def chains(batches: DataFrame) -> DataFrame:
    """Every FRAGMENT, without its bytes: ``chain`` is the place of the first piece.

    ``complete`` says that the pieces from the first to the last are there, and ``starts`` is the
    header of the message.
    """
    pieces = _pieces(batches, _NARROW)
    lane = Window.partitionBy(*LANE).orderBy("sequence", "offset")
    next_sn = F.try_add(F.lag("sn").over(lane), F.lit(1))
    follows = (next_sn == F.col("sn")) | (next_sn.isin(_MODULI) & (F.col("sn") == 0))
    goes_on = follows & F.lag("more").over(lane) & ~F.col("first")
    begins = ~F.coalesce(goes_on, F.lit(False))
    numbered = pieces.withColumn("place", place()).withColumn("begins", begins)
    start = F.last(F.when(F.col("begins"), F.struct("place", "head")), ignorenulls=True).over(lane)
    numbered = numbered.withColumn("start", start).select(
        "*", F.col("start.place").alias("chain"), F.col("start.head").alias("starts")
    )
    chain = Window.partitionBy(*LANE, "chain")
    marked = F.bool_or(F.col("begins") & F.col("first")).over(chain)
    # An old sender marks no first piece, ever.
    unmarked = ~F.bool_or("first").over(Window.partitionBy(*LANE))
    ended = ~F.bool_and("more").over(chain)
    given_up = F.bool_or("drop").over(chain)
    return numbered.withColumn("complete", (marked | unmarked) & ended & ~given_up)


def _pieces(batches: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    return scan(taken(holding(batches, "fragments")), Selection(columns, transport=_FRAGMENT))


def reassembled(batches: DataFrame, message: int | None = None) -> DataFrame:
    """Whole messages as a scan takes them, each at the place of its last piece.

    ``message`` is the id of those that are wanted, if not all are.
    """
    whole = chains(batches).where("complete")
    if message is not None:
        whole = whole.where(F.col("starts").bitwiseAND(F.lit(ID_MASK)) == message)
    whole = whole.select(*_AT, "chain", "more")
    wanted = (*CONTEXT.names, *_LANE, "payload")
    pieces = _pieces(batches, wanted)
    last = F.struct("time", "sequence", "offset", "sn")
    put_together = (
        pieces.join(whole, list(_AT))
        .groupBy(*LANE, "chain", "direction")
        .agg(
            F.expr("listagg(payload, X'') WITHIN GROUP (ORDER BY sequence, offset)").alias("bytes"),
            F.max_by(last, place()).alias("last"),
        )
    )
    return put_together.select(
        *[F.col(f"last.{c}") if c in _OF_LAST else F.col(c) for c in CONTEXT.names],
        side_id().alias("side_id"),
        "bytes",
        F.lit(False).alias("scouting"),
        # What was in pieces is a bare message, as in low latency.
        F.lit(True).alias("lowlatency"),
        F.lit(False).alias("compression"),
        F.col("last.offset").alias("at"),
        F.col("last.sn").alias("sn"),
        "reliable",
        "priority",
    )
