"""``queries`` and ``replies``: requests with what came back.

A response has the id of its request on that connection; over several links, ``paths`` says which
requests are one query.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.spark.functions import encoding_name
from zenwire.spark.tables.messages import network
from zenwire.spark.tables.paths import paths, request_key
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
    run in opposite directions: the time of capture is the order there is, and of equal times the
    request is the earlier. A late response to a former request of the same id is thus taken for
    one to the latter; the reference counts its ids up, so this needs 2**32 requests.
    """
    found = network(source, _NAMES, _COLUMNS)
    request = F.col("message") == "REQUEST"
    found = found.withColumn("querier", F.when(request, F.col("side")).otherwise(1 - F.col("side")))
    before = Window.partitionBy(*LINK, "querier", "request_id").orderBy(
        "time", (~request).cast("int"), "sequence", "offset"
    )
    asked = F.when(request, F.struct("time", "sequence", "offset", "key"))
    found = found.withColumn("asked", F.last(asked, ignorenulls=True).over(before))
    of_request = request_key("querier", "asked.sequence", "asked.offset")
    return found.withColumn("request", F.when(F.col("asked").isNotNull(), of_request))


def _requests(exchanges: DataFrame) -> DataFrame:
    """One row for each request, with what is known about its end: ``q``, ``final``, counts."""
    found = exchanges.where(F.col("asked").isNotNull())
    request = F.col("message") == "REQUEST"
    response = F.col("message") == "RESPONSE"
    error = response & (F.col("body") == "ERR")
    own = (*SEEN, "key", "key_fault", *_REQUEST, *VALUE_COLUMNS)
    after = F.try_subtract(F.col("time"), F.col("asked.time"))
    final = F.col("message") == "RESPONSE_FINAL"
    return found.groupBy(*LINK, "querier", "request_id", "asked.sequence", "asked.offset").agg(
        F.first("request").alias("request"),
        F.first(F.when(request, F.struct(*own)), ignorenulls=True).alias("q"),
        F.count_if(response & ~error).alias("replies"),
        F.count_if(error).alias("errors"),
        F.count_if(error & (F.col("payload") == F.lit(_TIMEOUT))).alias("timeouts"),
        F.min(F.when(response, after)).alias("first_reply"),
        F.min(F.when(final, after)).alias("latency"),
        F.min(F.when(final, F.col("time"))).alias("final"),
    )


def _paths(exchanges: DataFrame, source: DataFrame) -> DataFrame:
    asked = _requests(exchanges)
    return paths(asked.select("q.*", "request", "final"), source)


def replies(source: DataFrame) -> DataFrame:
    """One row for each reply and each error, on each link. Source: ``batches`` or ``messages``.

    ``kind`` is PUT, DELETE or ERR. ``query_sequence`` and ``query_offset`` are those of the row of
    ``queries`` with the same ``capture``, ``flow``, ``connection`` and ``request_id``, and null if
    the request was not captured. ``query_id`` and ``hop`` are those of that row. ``latency`` is in
    seconds. ``responder_zid`` and ``responder_eid`` say who answered, on every link.
    """
    found = _exchanges(source)
    answers = found.where(F.col("message") == "RESPONSE")
    return answers.join(_paths(found, source), ["request"], "left").select(
        *SEEN,
        received_at(),
        "query_id",
        "hop",
        "request_id",
        F.col("asked.sequence").alias("query_sequence"),
        F.col("asked.offset").alias("query_offset"),
        F.col("asked.key").alias("query_key"),
        seconds(F.try_subtract(F.col("time"), F.col("asked.time"))).alias("latency"),
        "key",
        "key_fault",
        kind(F.col("body")).alias("kind"),
        *value(),
        "responder_zid",
        "responder_eid",
    )


def queries(source: DataFrame) -> DataFrame:
    """One row for each request, on each link. Source: ``batches`` or ``messages``.

    ``outcome``: ``replied``, ``error`` (errors only), ``timeout``, ``empty`` (an end without
    replies) or ``unfinished`` (no end was captured). ``first_reply`` and ``latency`` are seconds
    from the request to the first reply or error and to the end. ``query_id`` is the same on all
    links that one query crossed, and ``hop`` says how many links lie between this one and the
    first that the capture shows; ``paths.paths`` says when they are null.
    """
    exchanges = _exchanges(source)
    outcome = (
        F.when(F.col("replies") > 0, "replied")
        .when(F.col("timeouts") > 0, "timeout")
        .when(F.col("errors") > 0, "error")
        .when(F.col("latency").isNotNull(), "empty")
        .otherwise("unfinished")
    )
    outcome = F.when(F.col("latency").isNull() & (F.col("timeouts") == 0), "unfinished").otherwise(
        outcome
    )
    asked = _requests(exchanges).join(_paths(exchanges, source), ["request"], "left")
    told = asked.select(
        "q.*",
        "query_id",
        "hop",
        "request_id",
        "replies",
        "errors",
        outcome.alias("outcome"),
        seconds(F.col("first_reply")).alias("first_reply"),
        seconds(F.col("latency")).alias("latency"),
    )
    body = F.col("payload").isNotNull()
    return told.select(
        *SEEN,
        received_at(),
        "query_id",
        "hop",
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
