"""``losses``: what should be there and is not. A gap is never silent."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.spark.schema import struct_of
from zenwire.spark.tables.accounts import LOSSLESS
from zenwire.spark.tables.messages import network, transport
from zenwire.spark.tables.place import LANE, LINK, SEEN, SIDE, place, stitch
from zenwire.spark.tables.sessions import handshakes
from zenwire.spark.tables.subscribed import judged
from zenwire.spark.tables.tasks import BROKEN, broken
from zenwire.wire.values import Resolution

__all__ = ["losses"]

_FRAMES: Final = frozenset({"FRAME", "FRAGMENT"})
_FRAME: Final = (*SEEN, "message", "sn", "reliable", "priority", "more")
_SOURCE: Final = ("source_zid", "source_eid", "source_sn")
_PUSH: Final = (*SEEN, "message", "body", "key_scope", "key_suffix", "key_mapping", *_SOURCE)
_SOURCE_MODULUS: Final = 1 << 32
_CHUNK: Final = 12
"""2 to this many batches of a lane are looked at by one task; then the edges between them."""


def losses(batches: DataFrame, messages: DataFrame | None = None) -> DataFrame:
    """One row for each gap. ``messages`` is used if it is there.

    ``kind``: ``sequence`` (numbers of a lane: ``reliable``, ``priority``), ``source`` (numbers that
    a publisher gives its samples), ``fragments`` (a message of which pieces are missing, or that
    the sender gave up, or that is too large) and ``capture`` (bytes that were ``missing`` or had to be ``skipped``;
    ``reason`` is the fault). Rows of the kind ``not_sent`` are no losses: numbers of a publisher
    that were not sent here, because no matching subscription was on that link (``judged``). ``from_sn`` to ``to_sn`` are the ``count`` numbers that did not come,
    or the pieces that did; ``time`` is when that was noticed. What ``accounts`` has besides, such
    as headers and other traffic, is no loss.

    The reference leaves out one number after the last piece of every message in pieces. That is no
    gap, unless the same sender once went on with the next number on that connection. What comes
    late is a gap where it should have been: nodes drop it.
    """
    source = batches if messages is None else messages
    found = _of_lanes(source)
    for more in (_of_sources(source), _of_fragments(batches), _of_capture(batches)):
        found = found.unionByName(more, allowMissingColumns=True)
    return found.select(
        *SEEN,
        "kind",
        "reason",
        "reliable",
        "priority",
        "source_zid",
        "source_eid",
        "from_sn",
        "to_sn",
        "count",
        F.coalesce("skipped", F.lit(0)).alias("skipped"),
        F.coalesce("missing", F.lit(0)).alias("missing"),
    )


def _step(sn: Column, before: Column, modulus: Column) -> Column:
    """How far on; null for numbers that no node has, whose difference is none."""
    return F.pmod(F.try_subtract(sn, before), modulus)


def _gaps(found: DataFrame, sn: Column, before: Column, modulus: Column, kind: str) -> DataFrame:
    """Rows whose number is further on than the next; one that goes back came late."""
    step = _step(sn, before, modulus)
    more = ("reliable", "priority", *_SOURCE[:2], "key", "since")
    return found.where((step > 1) & (step <= F.floor(modulus / 2))).select(
        *SEEN,
        *[name for name in more if name in found.columns],
        F.lit(kind).alias("kind"),
        F.lit("gap").alias("reason"),
        F.pmod(F.try_add(before, F.lit(1)), modulus).alias("from_sn"),
        F.pmod(F.try_subtract(sn, F.lit(1)), modulus).alias("to_sn"),
        (step - 1).alias("count"),
    )


def _of_lanes(source: DataFrame) -> DataFrame:
    frames = transport(source, _FRAMES, _FRAME).withColumn(
        "chunk", F.shiftright("sequence", _CHUNK)
    )
    ends = F.coalesce(~F.col("more"), F.lit(False)).alias("ends")
    frames = frames.withColumn("here", F.struct("sn", ends))
    inside = Window.partitionBy(*LANE, "chunk").orderBy("sequence", "offset")
    within = frames.withColumn("before", F.lag("here").over(inside))
    own = [name for name in SEEN if name not in SIDE]
    edges = frames.groupBy(*LANE, "chunk").agg(
        F.min_by(F.struct(*own, "sn"), place()).alias("first"),
        F.max_by("here", place()).alias("last"),
    )
    chunks = Window.partitionBy(*LANE).orderBy("chunk")
    between = edges.withColumn("before", F.lag("last").over(chunks)).select(
        *LANE, "chunk", "first.*", "before"
    )
    agreed = handshakes(source).select(
        *LINK, "sn_modulus", "connector_sn", "acceptor_sn", "connector_side"
    )
    known = within.where(F.col("before").isNotNull()).unionByName(between, allowMissingColumns=True)
    known = known.join(F.broadcast(agreed), list(LINK), "left")
    modulus = F.coalesce("sn_modulus", F.lit(Resolution().sn_modulus))
    initial = F.when(F.col("side") == F.col("connector_side"), F.col("connector_sn")).otherwise(
        F.col("acceptor_sn")
    )
    # Every lane begins with the number that OPEN said.
    before = F.coalesce("before.sn", F.try_subtract(initial, F.lit(1)))
    after_end = F.coalesce("before.ends", F.lit(False))
    step = _step(F.col("sn"), before, modulus)
    few = known.select("*", before.alias("last"), after_end.alias("after_end"), step.alias("step"))
    few = few.withColumn("modulus", modulus).where((F.col("step") > 1) | F.col("after_end"))
    counts_on = F.bool_or(F.col("after_end") & (F.col("step") == 1))
    few = few.withColumn("counts_on", counts_on.over(Window.partitionBy(*SIDE)))
    skips = F.col("after_end") & ~F.col("counts_on") & (F.col("step") > 1)
    last = F.when(skips, F.pmod(F.try_add(F.col("last"), F.lit(1)), F.col("modulus"))).otherwise(
        F.col("last")
    )
    return _gaps(few, F.col("sn"), last, F.col("modulus"), "sequence")


def _of_sources(source: DataFrame) -> DataFrame:
    pushed = network(source, frozenset({"PUSH"}), _PUSH).where(F.col("source_sn").isNotNull())
    numbered = Window.partitionBy(*SIDE, *_SOURCE[:2]).orderBy("sequence", "offset")
    found = pushed.withColumns(
        {
            "before": F.lag("source_sn").over(numbered),
            "since": F.lag("time").over(numbered),
        }
    )
    modulus = F.lit(_SOURCE_MODULUS).cast("bigint")
    gaps = _gaps(found, F.col("source_sn"), F.col("before"), modulus, "source")
    return judged(gaps, source).drop("key", "since")


def _of_fragments(batches: DataFrame) -> DataFrame:
    found = stitch(batches).mapInArrow(broken, struct_of(BROKEN))
    return found.select(
        *SEEN,
        "reliable",
        "priority",
        F.lit("fragments").alias("kind"),
        "reason",
        "from_sn",
        F.col("sn").alias("to_sn"),
        "count",
    )


def _of_capture(batches: DataFrame) -> DataFrame:
    higher = F.struct("source", "source_port") > F.struct("target", "target_port")
    lost = F.col("fault").isNotNull() & ~F.col("fault").isin(*LOSSLESS)
    return batches.where(lost).select(
        *LINK,
        "direction",
        higher.cast("tinyint").alias("side"),
        "time",
        "sequence",
        F.lit(None).cast("int").alias("offset"),
        F.lit("capture").alias("kind"),
        F.col("fault").alias("reason"),
        "skipped",
        "missing",
    )
