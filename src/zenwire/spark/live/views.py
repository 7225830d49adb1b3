"""Payloads as text and as values, for samples of spools."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.spark.tables.words import payload_views
from zenwire.wire.encoding import ENCODINGS

__all__ = ["with_values"]


def with_values(samples: DataFrame) -> DataFrame:
    """The same rows with ``text`` and ``value`` behind ``payload``, as ``samples`` of captures has.

    ``text`` where the encoding is text and the bytes are UTF-8, ``value`` (VARIANT) where it is
    JSON. What is ``zenoh/serialized`` has no value here: ``functions.deserialize`` takes its type.
    """
    number = F.array_position(F.array(*map(F.lit, ENCODINGS)), F.col("encoding")) - 1
    numbered = samples.withColumns(
        {
            "encoding_name": F.col("encoding"),
            "encoding": number,
            "deserialized": F.lit(None).cast("string"),
        }
    )
    made: list[Column] = []
    for name in samples.columns:
        made.append(F.col("encoding_name").alias(name) if name == "encoding" else F.col(name))
        if name == "payload":
            made += payload_views()
    return numbered.select(*made)
