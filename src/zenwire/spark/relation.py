"""Batches that are the source itself: what is made of them can be made where they are read.

Rows that Python reads and Python decodes would else go through the JVM in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

__all__ = ["SOURCE", "options_of"]

SOURCE: Final = "zenoh.capture"
_RELATION: Final = "DataSourceV2Relation"


def options_of(batches: DataFrame) -> Mapping[str, str] | None:
    """What the source was loaded with, if this is all that it gives, and nothing but that.

    None where that is not known: rows were chosen or changed, or it is a stream, or Spark Connect.
    """
    try:
        # A plan is no public thing. Where it cannot be looked at, the long way is right too.
        plan = batches._jdf.queryExecution().analyzed()  # noqa: SLF001 - there is no other
    except (AttributeError, PySparkException):
        return None
    if plan.nodeName() != _RELATION or plan.table().name() != SOURCE:
        return None
    options = plan.options()
    found = {name: options.get(name) for name in options.keySet()}
    # A table of SQL has its options elsewhere.
    return found if "path" in found or "paths" in found else None
