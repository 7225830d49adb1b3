"""Options of ``CREATE TABLE ... USING zenoh OPTIONS (...)``.

Spark hands the options of such a table to its source once, when it asks for the columns, and
without them whenever the table is read or written to (seen with 4.3). It does keep the columns
with their metadata, so the options are kept there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import StructField, StructType

__all__ = ["NO_OPTIONS", "is_table", "keep_options", "options_with", "own_options"]

NO_OPTIONS: Final = (
    "Spark keeps no options of a table that was created with columns of its own, or AS SELECT: "
    "name them in the statement, as in SELECT * FROM t WITH (spool 'spools/fleet') or INSERT INTO "
    "t WITH (connect 'tcp/192.0.2.1:7447')"
)
_METADATA: Final = "zenwire.options"
_PREFIX: Final = "option."
_PROVIDER: Final = "provider"


def is_table(options: Mapping[str, str]) -> bool:
    """Return True if these are the properties of a table that is being created."""
    return _PROVIDER in options


def own_options(options: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options that were meant for the source, without a table's other properties."""
    if not is_table(options):
        return options
    own = {
        name.removeprefix(_PREFIX): value
        for name, value in options.items()
        if name.startswith(_PREFIX)
    }
    if options.get("path"):
        url = urlsplit(options["path"])
        own["path"] = unquote(url.path) if url.scheme == "file" else options["path"]
    return CaseInsensitiveDict(own)


def keep_options(columns: StructType, options: Mapping[str, str]) -> StructType:
    """Return the columns of a table with its options in the metadata of the first one."""
    first, *others = columns.fields
    metadata = {**(first.metadata or {}), _METADATA: json.dumps(dict(options))}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *others])


def options_with(columns: StructType, options: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options of a table, if the columns have some, with those of the statement."""
    for column in columns.fields:
        kept = (column.metadata or {}).get(_METADATA)
        if kept is not None:
            return CaseInsensitiveDict({**json.loads(kept), **options})
    return options
