"""A number for each table: equal if all rows are, in all columns, in any order."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import VariantType

from zenwire.spark import tables

__all__ = ["digests"]


def digests(batches: DataFrame) -> dict[str, list[int | str]]:
    """Rows and digest of every table that is made of these batches."""
    found = tables.messages(batches).persist()
    samples = tables.samples(batches)
    every = {
        "batches": batches,
        "messages": found,
        "samples": samples,
        "latest": tables.latest(samples),
        "key_stats": tables.key_stats(samples),
        "sessions": tables.sessions(batches, found),
        "declarations": tables.declarations(found),
        "queries": tables.queries(found),
        "replies": tables.replies(found),
        "losses": tables.losses(batches, found),
        "malformed": tables.malformed(batches),
        "accounts": tables.accounts(batches),
    }
    return {name: _digest(frame) for name, frame in every.items()}


def _digest(frame: DataFrame) -> list[int | str]:
    def plain(name: str) -> Column:
        is_variant = isinstance(frame.schema[name].dataType, VariantType)
        return (F.to_json(F.col(name)) if is_variant else F.col(name)).alias(name)

    whole = F.to_json(F.struct(*[plain(name) for name in frame.columns]))
    row = frame.select(F.xxhash64(whole).cast("decimal(38, 0)").alias("hash")).agg(
        F.count("*").alias("rows"), F.sum("hash").cast("string").alias("sum")
    )
    (only,) = row.collect()
    return [only.rows, only["sum"]]
