"""``queries`` and ``replies``: requests with what came back, matched by id on their connection."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.spark.functions import encoding_name
from zenwire.spark.tables.messages import network
from zenwire.spark.tables.place import LINK, SEEN
from zenwire.spark.tables.words import (
    VALUE_COLUMNS,
    enum_name,
    kind,
    qos,
    received_at,
    seconds,
    value,
)
from zenwire.wire.values import ConsolidationMode, QueryTarget

__all__ = ["queries", "replies"]

_REQUEST: Final = ("target", "budget", "timeout", "consolidation", "parameters")
_RESPONSE: Final = ("responder_zid", "responder_eid")
_COLUMNS: Final = (
    *SEEN,
    "message",
    "body",
    "key_scope",
    "key_suffix",
    "key_mapping",
    "request_id",
    *_REQUEST,
    *_RESPONSE,
    *VALUE_COLUMNS,
)
_NAMES: Final = frozenset({"REQUEST", "RESPONSE", "RESPONSE_FINAL"})
_TIMEOUT: Final = b"Timeout"
"""The error by which a router says that a queryable kept silent."""


def _exchanges(source: DataFrame) -> DataFrame:
    """Requests and responses; ``asked`` is where the request of each stands.

    An id may be used again, so a response belongs to the request that came last before it. They
    run in opposite directions: the time of capture is the order there is.
    """
    found = network(source, _NAMES, _COLUMNS)
    request = F.col("message") == "REQUEST"
    found = found.withColumn("querier", F.when(request, F.col("side")).otherwise(1 - F.col("side")))
    before = Window.partitionBy(*LINK, "querier", "request_id").orderBy(
        "time", (~request).cast("int"), "sequence", "offset"
    )
    asked = F.when(request, F.struct("time", "sequence", "offset", "key"))
    return found.withColumn("asked", F.last(asked, ignorenulls=True).over(before))


def replies(source: DataFrame) -> DataFrame:
    """One row for each reply and each error, on each link. Source: ``batches`` or ``messages``.

    ``kind`` is PUT, DELETE or ERR. ``query_sequence`` and ``query_offset`` are those of the row of
    ``queries`` with the same ``capture``, ``flow``, ``connection`` and ``request_id``, and null if
    the request was not captured. ``latency`` is in seconds.
    """
    return (
        _exchanges(source)
        .where(F.col("message") == "RESPONSE")
        .select(
            *SEEN,
            received_at(),
            "request_id",
            F.col("asked.sequence").alias("query_sequence"),
            F.col("asked.offset").alias("query_offset"),
            F.col("asked.key").alias("query_key"),
            seconds(F.col("time") - F.col("asked.time")).alias("latency"),
            "key",
            "key_fault",
            kind(F.col("body")).alias("kind"),
            *value(),
            "responder_zid",
            "responder_eid",
        )
    )


def queries(source: DataFrame) -> DataFrame:
    """One row for each request, on each link. Source: ``batches`` or ``messages``.

    ``outcome``: ``replied``, ``error`` (errors only), ``timeout``, ``empty`` (an end without
    replies) or ``unfinished`` (no end was captured). ``first_reply`` and ``latency`` are seconds
    from the request to the first reply or error and to the end.
    """
    found = _exchanges(source).where(F.col("asked").isNotNull())
    request = F.col("message") == "REQUEST"
    response = F.col("message") == "RESPONSE"
    error = response & (F.col("body") == "ERR")
    own = (*SEEN, "key", "key_fault", *_REQUEST, *VALUE_COLUMNS)
    after = F.col("time") - F.col("asked.time")
    grouped = found.groupBy(*LINK, "querier", "request_id", "asked.sequence", "asked.offset").agg(
        F.first(F.when(request, F.struct(*own)), ignorenulls=True).alias("q"),
        F.count_if(response & ~error).alias("replies"),
        F.count_if(error).alias("errors"),
        F.count_if(error & (F.col("payload") == F.lit(_TIMEOUT))).alias("timeouts"),
        F.min(F.when(response, after)).alias("first_reply"),
        F.min(F.when(F.col("message") == "RESPONSE_FINAL", after)).alias("final"),
    )
    outcome = (
        F.when(F.col("replies") > 0, "replied")
        .when(F.col("timeouts") > 0, "timeout")
        .when(F.col("errors") > 0, "error")
        .when(F.col("final").isNotNull(), "empty")
        .otherwise("unfinished")
    )
    outcome = F.when(F.col("final").isNull() & (F.col("timeouts") == 0), "unfinished").otherwise(
        outcome
    )
    told = grouped.select(
        "q.*",
        "request_id",
        "replies",
        "errors",
        outcome.alias("outcome"),
        seconds(F.col("first_reply")).alias("first_reply"),
        seconds(F.col("final")).alias("latency"),
    )
    body = F.col("payload").isNotNull()
    return told.select(
        *SEEN,
        received_at(),
        "key",
        "key_fault",
        F.coalesce("parameters", F.lit("")).alias("parameters"),
        enum_name(F.col("target"), QueryTarget).alias("target"),
        enum_name(F.col("consolidation"), ConsolidationMode).alias("consolidation"),
        "budget",
        "timeout",
        "payload",
        F.when(body, encoding_name("encoding")).alias("encoding"),
        F.col("encoding_schema").cast("string").alias("schema"),
        "attachment",
        "source_zid",
        "source_eid",
        "source_sn",
        *qos(),
        "request_id",
        "outcome",
        "replies",
        "errors",
        "first_reply",
        "latency",
    )
