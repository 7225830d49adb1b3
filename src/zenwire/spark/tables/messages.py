"""``messages`` and ``malformed``: what batches consist of, and what they should not."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.spark.schema import struct_of
from zenwire.spark.tables.faults import Malformed
from zenwire.spark.tables.keys import aliases, with_keys
from zenwire.spark.tables.place import scan, stitch
from zenwire.spark.tables.scan import MESSAGES, Selection
from zenwire.spark.tables.tasks import Stitching, Task

__all__ = ["is_messages", "malformed", "messages", "network", "transport"]


def messages(batches: DataFrame) -> DataFrame:
    """One row for every message of every layer.

    A message that came in pieces has a row besides those of its FRAGMENTs, at the place of the
    last one. ``fields`` is a VARIANT of everything that a message says, where columns do not.
    """
    names = (*MESSAGES.names, "key_id")
    found = _all_of(batches, Selection(names, network=None, transport=None, scouting=True))
    return with_keys(found, aliases(batches)).withColumn("fields", F.try_parse_json("fields"))


def network(source: DataFrame, names: frozenset[str], columns: tuple[str, ...]) -> DataFrame:
    """Network messages of some names with their keys; also those that came in pieces.

    ``source`` is ``batches``, of which only this much is decoded, or ``messages``.
    """
    if is_messages(source):
        chosen = (F.col("layer") == "network") & F.col("message").isin(*names)
        return source.where(chosen).select(*columns, "key", "key_fault")
    found = _all_of(source, Selection((*columns, "key_id"), network=names))
    return with_keys(found, aliases(source))


def transport(source: DataFrame, names: frozenset[str], columns: tuple[str, ...]) -> DataFrame:
    """Transport messages of some names, from ``batches`` or ``messages``."""
    if is_messages(source):
        chosen = (F.col("layer") == "transport") & F.col("message").isin(*names)
        return source.where(chosen).select(*columns)
    found = scan(source, Task(Selection(columns, transport=names)))
    if "fields" in columns:
        found = found.withColumn("fields", F.try_parse_json("fields"))
    return found


def is_messages(source: DataFrame) -> bool:
    """Whether it is the table ``messages``; else it is ``batches``."""
    return "layer" in source.columns


def _all_of(batches: DataFrame, rows: Selection | Malformed) -> DataFrame:
    """Of what is whole in a task, and of what came in pieces to several."""
    types = struct_of(rows.schema)
    over_tasks = stitch(batches).mapInArrow(Stitching(rows), types)
    return scan(batches, Task(rows)).unionByName(over_tasks)


def malformed(batches: DataFrame) -> DataFrame:
    """Bytes that did not decode, with fault and offset: of batches, and of messages in pieces.

    ``layer`` is transport for those of batches, and scouting; together with the ``length`` of the
    messages they are all bytes of a batch, after it was expanded. It is network for a message that
    was put together from FRAGMENTs, which are messages themselves. What follows a CLOSE is void to
    nodes, and ``trailing`` here.
    """
    return _all_of(batches, Malformed())
