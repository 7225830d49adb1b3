"""``sessions``: who was connected with whom, and what they agreed on."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.spark.tables.messages import transport
from zenwire.spark.tables.place import LINK, SEEN
from zenwire.spark.tables.words import enum_name
from zenwire.wire.transport import InitAck
from zenwire.wire.values import CloseReason, Resolution

__all__ = ["handshakes", "sessions"]

_NAMES: Final = frozenset({"INIT", "OPEN", "CLOSE"})
_COLUMNS: Final = (*SEEN, "message", "fields", "reason")


def _said(path: str, kind: str) -> Column:
    return F.try_variant_get("fields", f"$.{path}", kind)


def handshakes(source: DataFrame) -> DataFrame:
    """What INIT, OPEN and CLOSE of each connection said. Source: ``batches`` or ``messages``."""
    said = transport(source, _NAMES, _COLUMNS)
    variant = _said("variant", "string")

    def of(name: str, path: str, kind: str) -> Column:
        return F.max(F.when(variant == name, _said(path, kind)))

    def agreed(name: str, kind: str, default: object) -> Column:
        """A field of InitAck; what has its default is not in ``fields``."""
        column = F.coalesce(_said(name, kind), F.lit(default))
        return F.max(F.when(variant == InitAck.__name__, column))

    close = F.col("message") == "CLOSE"
    bits = agreed("resolution.frame_sn", "int", Resolution().frame_sn)
    moduli = [(n, Resolution.of(n).sn_modulus) for n in (8, 16, 32, 64)]
    grouped = said.groupBy(*LINK).agg(
        of("InitSyn", "zid", "string").alias("connector_zid"),
        of("InitSyn", "whatami", "string").alias("connector_mode"),
        of("InitAck", "zid", "string").alias("acceptor_zid"),
        of("InitAck", "whatami", "string").alias("acceptor_mode"),
        agreed("version", "int", None).alias("version"),
        agreed("batch_size", "int", 65_535).alias("batch_size"),
        bits.alias("frame_sn_bits"),
        agreed("resolution.request_id", "int", Resolution().request_id).alias("request_id_bits"),
        F.bool_or(F.when(variant == "InitAck", _has("qos") | _has("qos_link"))).alias("qos"),
        *[
            F.bool_or(F.when(variant == "InitAck", _has(name))).alias(name)
            for name in ("lowlatency", "compression", "shm", "auth", "multilink")
        ],
        agreed("patch", "int", 0).alias("patch"),
        of("OpenSyn", "lease", "bigint").alias("connector_lease"),
        of("OpenAck", "lease", "bigint").alias("acceptor_lease"),
        of("OpenSyn", "initial_sn", "bigint").alias("connector_sn"),
        of("OpenAck", "initial_sn", "bigint").alias("acceptor_sn"),
        F.max(F.when(variant == "InitSyn", F.col("side"))).alias("connector_side"),
        F.min(F.when(variant == "OpenAck", F.col("time"))).alias("opened"),
        F.min(F.when(close, F.col("time"))).alias("closed"),
        F.min_by(F.when(close, F.struct("side", "reason")), F.when(close, F.col("time"))).alias(
            "closing"
        ),
    )
    modulus = F.coalesce(
        *[F.when(F.col("frame_sn_bits") == n, F.lit(m).cast("bigint")) for n, m in moduli]
    )
    return grouped.withColumn("sn_modulus", modulus)


def _has(name: str) -> Column:
    """Whether an extension is there: not in ``fields`` if it is not."""
    return F.coalesce(_said(name, "string").isNotNull(), F.lit(False))


def sessions(batches: DataFrame, messages: DataFrame | None = None) -> DataFrame:
    """One row for each connection that Zenoh was spoken on, whether its start was captured or not.

    ``opened`` is when OpenAck came, null for a connection that was refused or begins before the
    capture. Times are nanoseconds, leases milliseconds. ``messages`` is used if it is there.
    """
    spoken = batches.where(F.col("bytes").isNotNull() & ~F.coalesce("scouting", F.lit(False)))
    higher = F.struct("source", "source_port") > F.struct("target", "target_port")
    ends = F.struct(
        *[
            F.when(higher, F.col(b)).otherwise(F.col(a)).alias(name)
            for name, a, b in (
                ("low", "source", "target"),
                ("low_port", "source_port", "target_port"),
                ("high", "target", "source"),
                ("high_port", "target_port", "source_port"),
            )
        ]
    )
    size = F.octet_length("bytes")
    seen = spoken.groupBy(*LINK).agg(
        F.min("link").alias("link"),
        F.min(ends).alias("ends"),
        F.min("first_time").alias("first_seen"),
        F.max("time").alias("last_seen"),
        F.count_if(~higher).alias("batches_0"),
        F.count_if(higher).alias("batches_1"),
        F.sum(F.when(~higher, size).otherwise(0)).alias("bytes_0"),
        F.sum(F.when(higher, size).otherwise(0)).alias("bytes_1"),
        F.max(
            F.when(F.col("direction").isNotNull(), higher == (F.col("direction") == "to_acceptor"))
        ).alias("higher_connects"),
    )
    said = handshakes(batches if messages is None else messages)
    joined = seen.join(said, list(LINK), "left")
    higher_connects = F.coalesce(F.col("connector_side") == 1, "higher_connects", F.lit(False))

    def end(name: str, other: str) -> tuple[Column, Column]:
        low, high = F.col(name), F.col(other)
        return (
            F.when(higher_connects, high).otherwise(low),
            F.when(higher_connects, low).otherwise(high),
        )

    addresses = end("ends.low", "ends.high")
    ports = end("ends.low_port", "ends.high_port")
    counts = end("batches_0", "batches_1")
    sizes = end("bytes_0", "bytes_1")
    by_connector = F.col("closing.side") == higher_connects.cast("int")
    return joined.select(
        *LINK,
        "link",
        *[
            column.alias(f"{who}_{what}")
            for what, pair in (
                ("address", addresses),
                ("port", ports),
                ("batches", counts),
                ("bytes", sizes),
            )
            for who, column in zip(("connector", "acceptor"), pair, strict=True)
        ],
        "connector_zid",
        "connector_mode",
        "acceptor_zid",
        "acceptor_mode",
        "version",
        "batch_size",
        "frame_sn_bits",
        "request_id_bits",
        "qos",
        "lowlatency",
        "compression",
        "shm",
        "auth",
        "multilink",
        "patch",
        "connector_lease",
        "acceptor_lease",
        "first_seen",
        "opened",
        "closed",
        F.when(by_connector, F.lit("connector"))
        .when(F.col("closing").isNotNull(), F.lit("acceptor"))
        .alias("closed_by"),
        enum_name(F.col("closing.reason"), CloseReason).alias("close_reason"),
        "last_seen",
    )
