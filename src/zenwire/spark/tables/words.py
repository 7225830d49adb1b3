"""Numbers of the protocol as its words: columns that several tables share."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.spark.functions import encoding_name, hlc_time
from zenwire.wire.encoding import ENCODINGS
from zenwire.wire.values import QoS

__all__ = [
    "JSON_NAMES",
    "TEXT_NAMES",
    "VALUE_COLUMNS",
    "enum_name",
    "kind",
    "payload_views",
    "qos",
    "received_at",
    "seconds",
    "stamp",
    "value",
]

VALUE_COLUMNS: Final = (
    "payload",
    "encoding",
    "encoding_schema",
    "deserialized",
    "timestamp",
    "timestamp_id",
    "source_zid",
    "source_eid",
    "source_sn",
    "attachment",
    "shm",
    "qos",
    "reliable",
)
"""What a PUT, DEL or ERR has, as the scan names it."""

_JSON: Final = [i for i, name in enumerate(ENCODINGS) if name.endswith(("/json", "+json"))]
_TEXT: Final = [
    i
    for i, name in enumerate(ENCODINGS)
    if name.startswith("text/")
    or name.endswith(("/json", "+json", "/yaml", "/xml", "+xml", "/sql", "/jsonpath", "/jwt"))
    or name in ("zenoh/string", "application/openmetrics-text", "application/yang")
]
JSON_NAMES: Final = [ENCODINGS[i] for i in _JSON]
TEXT_NAMES: Final = [ENCODINGS[i] for i in _TEXT]
"""Encodings of JSON, and of text, JSON among them."""


def received_at() -> Column:
    """When the packet that completed the batch was captured; Spark has microseconds."""
    # Division of times in floating point would be off by one now and then.
    return F.timestamp_micros(F.expr("(time - pmod(time, 1000)) div 1000")).alias("received_at")


def seconds(nanoseconds: Column) -> Column:
    """A duration."""
    return nanoseconds / F.lit(1e9)


def kind(body: Column) -> Column:
    """What the API calls a body."""
    return F.when(body == "DEL", F.lit("DELETE")).otherwise(body)


def enum_name(number: Column, words: type[IntEnum]) -> Column:
    """The name of a value; null for a number that has none."""
    return F.coalesce(*[F.when(number == int(word), F.lit(word.name)) for word in words])


def _of_qos(get: Callable[[QoS], object]) -> Column:
    every = F.array(*[F.lit(get(QoS(raw))) for raw in range(64)])
    return F.get(every, F.col("qos").bitwiseAND(F.lit(63)))


def qos() -> list[Column]:
    """Priority, congestion control and express of the message, reliability of its FRAME."""
    return [
        _of_qos(lambda q: q.priority.name).alias("priority"),
        _of_qos(lambda q: q.congestion_control.name).alias("congestion_control"),
        _of_qos(lambda q: q.express).alias("express"),
        F.when(F.col("reliable"), F.lit("RELIABLE"))
        .when(~F.col("reliable"), F.lit("BEST_EFFORT"))
        .alias("reliability"),
    ]


def stamp() -> list[Column]:
    """The HLC timestamp as a time, as its 64 bits, and whose clock it is of."""
    return [
        hlc_time("timestamp").alias("timestamp"),
        F.col("timestamp").alias("ntp64"),
        F.col("timestamp_id").alias("clock_id"),
    ]


def value() -> list[Column]:
    """Payload, its views and encoding, timestamp, source, attachment: from ``VALUE_COLUMNS``."""
    return [
        F.col("payload"),
        *payload_views(),
        encoding_name("encoding").alias("encoding"),
        F.col("encoding_schema").cast("string").alias("schema"),
        *stamp(),
        F.col("source_zid"),
        F.col("source_eid"),
        F.col("source_sn"),
        *qos(),
        F.col("attachment"),
        F.col("shm"),
    ]


def payload_views() -> list[Column]:
    """``text`` where the encoding is text and the bytes are UTF-8, ``value`` where there is one.

    There is one for JSON, and for ``zenoh/serialized`` if the encoding's schema names the type.
    """
    number = F.col("encoding")
    text = F.col("payload").cast("string")
    is_text = number.isin(_TEXT) & F.is_valid_utf8(text)
    json = F.when(is_text & number.isin(_JSON), text).otherwise(F.col("deserialized"))
    return [F.when(is_text, text).alias("text"), F.try_parse_json(json).alias("value")]
