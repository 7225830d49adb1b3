"""``samples`` of a lake: what ``format("zenoh")`` gives, with views of the payload.

``text`` is there where the encoding is text, ``value`` (VARIANT) for JSON, CBOR, ``zenoh/serialized``
whose schema names the type, and ROS 2 messages in CDR whose type the schema or the key names;
``value_fault`` says why there is none although the encoding has one. ``day`` and ``prefix`` are where
a row is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.pandas.functions import arrow_udf

from zenwire.spark.payloads.messages import Definitions
from zenwire.spark.payloads.values import CBOR, CDR, SERIALIZED, VALUES, values
from zenwire.spark.schema import type_of
from zenwire.spark.tables.words import JSON_NAMES, TEXT_NAMES

__all__ = [
    "NEW",
    "OTHER",
    "PLACE",
    "PREFIXES_MAX",
    "PREFIX_MAX",
    "name_of",
    "plain",
    "samples",
]

PLACE: Final = ("day", "prefix")
PREFIXES_MAX: Final = 1000
"""Directories of a day. Publishers choose their keys, and a directory for each of a million would
help nobody: keys with further prefixes are in ``OTHER`` together."""
OTHER: Final = "~other"
NEW: Final = "~new"
"""Where rows of prefixes wait that are not known yet, until it was seen how many those are."""
_DAY: Final = 86_400_000_000_000
PREFIX_MAX: Final = 70
"""Bytes. A name of a file has 255, and a slash becomes three of them."""
_ROS: Final = r"/(\w+::\w+::dds_::\w+_)(?:/|$)"
"""Where rmw_zenoh writes the type of a topic into its key."""


def samples(
    source: DataFrame, *, chunks: int, known: Sequence[str], definitions: Definitions
) -> DataFrame:
    """Rows of the source, with their views and place. ``known`` are prefixes that are there."""
    text = F.col("payload").cast("string")
    is_json = F.col("encoding").isin(JSON_NAMES)
    is_text = F.col("encoding").isin(TEXT_NAMES) & F.is_valid_utf8(text)
    named = source.select(
        "*", _encoding().alias("_kind"), _type().alias("_type"), F.when(is_text, text).alias("text")
    )
    of_python = F.col("_kind").isin(CBOR, CDR, SERIALIZED)
    # A UDF gets every row: those that are not for it go as nulls, which cost next to nothing.
    read = _reader(definitions)(
        F.when(of_python, F.col("_kind")),
        F.when(of_python, F.col("_type")),
        F.when(of_python, F.col("payload")),
    )
    json = F.when(is_json, F.col("text")).otherwise(F.col("_read.json"))
    day = F.date_from_unix_date(F.floor(F.col("time") / F.lit(_DAY)).cast("int"))
    valued = named.select("*", read.alias("_read")).select(
        "*", F.try_parse_json(json).alias("value")
    )
    no_json = is_json & F.col("value").isNull() & (F.col("kind") == "PUT")
    too_much = F.col("_read.json").isNotNull() & F.col("value").isNull()
    fault = (
        F.when(no_json, F.concat("encoding", F.lit(": is no JSON, or too large")))
        .when(too_much, F.concat("_kind", F.lit(": too large for a VARIANT")))
        .otherwise(F.col("_read.fault"))
    )
    return valued.select(
        *source.columns,
        "text",
        "value",
        fault.alias("value_fault"),
        day.cast("string").alias("day"),
        _prefix(chunks, known).alias("prefix"),
    )


def _encoding() -> Column:
    """That of the bytes: topics of ROS 2 name none."""
    of_ros = F.col("key").contains("::dds_::") & (F.col("encoding") == "zenoh/bytes")
    return F.when(of_ros, F.lit(CDR)).otherwise(F.col("encoding"))


def _type() -> Column:
    in_key = F.when(
        F.col("key").contains("::dds_::"), F.nullif(F.regexp_extract("key", _ROS, 1), F.lit(""))
    )
    return F.coalesce(F.nullif("schema", F.lit("")), in_key)


def _prefix(chunks: int, known: Sequence[str]) -> Column:
    name, new = name_of(chunks), F.lit(NEW if len(known) < PREFIXES_MAX else OTHER)
    return F.when(name.isin(list(known)), name).otherwise(new) if known else new


def name_of(chunks: int) -> Column:
    """The first chunks of the key, as a name of a directory that any file system takes."""
    first = F.substring_index("key", "/", chunks)
    ascii_only = F.regexp_replace(first, "[^ -~]", "_")
    short = F.concat(F.left(ascii_only, F.lit(40)), F.lit("~"), F.left(F.md5(first), F.lit(12)))
    return F.when(F.octet_length(ascii_only) > PREFIX_MAX, short).otherwise(ascii_only)


def _reader(definitions: Definitions) -> Callable[..., Column]:
    def read(encodings: pa.Array, schemas: pa.Array, payloads: pa.Array) -> pa.Array:
        return values(encodings, schemas, payloads, definitions)

    udf: Callable[..., Column] = arrow_udf(read, type_of(VALUES))  # type: ignore[call-overload] # its stubs want the type of function named
    return udf


def plain(frame: DataFrame) -> DataFrame:
    """VARIANT as JSON text, for formats that cannot hold it yet."""
    kinds = {field.name: field.dataType.typeName() for field in frame.schema}
    return frame.withColumns(
        {name: F.to_json(name) for name, kind in kinds.items() if kind == "variant"}
    )
