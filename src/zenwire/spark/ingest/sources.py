"""``format("zenoh")`` under a name of its own, for the query of ingest.

Spark keeps a map of environment variables with each source, and every query that begins puts its
own into it, without a lock. Two queries of one source that begin together can leave a map that is
larger than its content ("Illegal size 5 of collection, expected 6"), and from then on every
micro-batch of this source fails until the JVM ends.
"""

from __future__ import annotations

from zenwire.spark.live.source import ZenohSource

__all__ = ["IngestSource"]


class IngestSource(ZenohSource):
    """The spools of a pipeline, as ranges of offsets."""

    @classmethod
    def name(cls) -> str:
        return "zenoh.ingest"
