"""``accounts``: where the bytes of each capture went. They add up to the file."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

__all__ = ["LOSSLESS", "accounts"]

LOSSLESS: Final = (
    "overhead",
    "repeated",
    "not_zenoh",
    "packet_other_network",
    "packet_other_transport",
)
"""Categories by which no Zenoh is missing: headers and padding, what came twice, other traffic."""


def accounts(batches: DataFrame) -> DataFrame:
    """One row for each ``capture`` and ``category``: its ``bytes`` of the file, and its ``rows``.

    The category is ``batches`` for what the other tables are made of, and the fault for the rest:
    ``overhead`` are the headers of file, packets and streams, ``repeated`` is what came twice,
    ``not_zenoh``, ``packet_other_network`` (no IP) and ``packet_other_transport`` (neither TCP nor
    UDP) are other traffic; the rest is in ``losses`` too. The bytes of a capture add up to its
    size; if it is compressed, to that of what it expands to. ``missing`` are bytes that were sent
    but are not in the file, so far as that can be told.
    """
    category = F.coalesce("fault", F.lit("batches")).alias("category")
    size = F.coalesce(F.octet_length("bytes"), F.lit(0)).cast("bigint") + F.col("skipped")
    return batches.groupBy("capture", category).agg(
        F.sum(size).alias("bytes"), F.count("*").alias("rows"), F.sum("missing").alias("missing")
    )
