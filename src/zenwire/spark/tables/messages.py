"""``messages`` and ``malformed``: what batches consist of, and what they should not."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.spark.schema import struct_of
from zenwire.spark.tables.faults import MALFORMED, malformed_rows
from zenwire.spark.tables.fragments import reassembled
from zenwire.spark.tables.keys import ALIAS_COLUMNS, aliases, with_keys
from zenwire.spark.tables.place import holding, scan, taken
from zenwire.spark.tables.scan import INPUT, MESSAGES, Selection
from zenwire.wire.define import spec_of
from zenwire.wire.network import Declare

__all__ = ["is_messages", "malformed", "messages", "network", "transport"]

_DECLARE: Final = frozenset({"DECLARE"})


def messages(batches: DataFrame) -> DataFrame:
    """One row for every message of every layer.

    A message that came in pieces has a row besides those of its FRAGMENTs, at the place of the
    last one. ``fields`` is a VARIANT of everything that a message says, where columns do not.
    """
    names = (*MESSAGES.names, "side_id")
    everything = Selection(names, network=None, transport=None, scouting=True)
    whole = Selection(names, network=None)
    found = scan(taken(batches), everything).unionByName(scan(reassembled(batches), whole))
    return with_keys(found, _aliases(batches)).withColumn("fields", F.try_parse_json("fields"))


def network(source: DataFrame, names: frozenset[str], columns: tuple[str, ...]) -> DataFrame:
    """Network messages of some names with their keys; also those that came in pieces.

    ``source`` is ``batches``, of which only this much is decoded, or ``messages``.
    """
    if is_messages(source):
        chosen = (F.col("layer") == "network") & F.col("message").isin(*names)
        return source.where(chosen).select(*columns, "key", "key_fault")
    selection = Selection((*columns, "side_id"), network=names)
    found = scan(taken(source), selection).unionByName(scan(reassembled(source), selection))
    return with_keys(found, _aliases(source))


def transport(source: DataFrame, names: frozenset[str], columns: tuple[str, ...]) -> DataFrame:
    """Transport messages of some names, from ``batches`` or ``messages``."""
    if is_messages(source):
        chosen = (F.col("layer") == "transport") & F.col("message").isin(*names)
        return source.where(chosen).select(*columns)
    found = scan(taken(source), Selection(columns, transport=names))
    if "fields" in columns:
        found = found.withColumn("fields", F.try_parse_json("fields"))
    return found


def is_messages(source: DataFrame) -> bool:
    """Whether it is the table ``messages``; else it is ``batches``."""
    return "layer" in source.columns


def _aliases(batches: DataFrame) -> DataFrame:
    """What ids stood for; a declaration may have come in pieces."""
    selection = Selection(ALIAS_COLUMNS, network=_DECLARE)
    whole = scan(taken(holding(batches, "declares")), selection)
    return aliases(whole.unionByName(scan(reassembled(batches, spec_of(Declare).id), selection)))


def malformed(batches: DataFrame) -> DataFrame:
    """Bytes that did not decode, with fault and offset: of batches, and of messages in pieces.

    ``layer`` is transport for those of batches, and scouting; together with the ``length`` of the
    messages they are all bytes of a batch, after it was expanded. It is network for a message that
    was put together from FRAGMENTs, which are messages themselves. What follows a CLOSE is void to
    nodes, and ``trailing`` here.
    """
    given = taken(batches).unionByName(reassembled(batches)).select(*INPUT)
    return given.mapInArrow(malformed_rows, struct_of(MALFORMED))
