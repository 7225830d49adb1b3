"""``format("zenoh")`` once for each query, under a name of its own.

Spark keeps a map of environment variables with each source, and every query that begins puts its
own into it, without a lock. Two that begin together can leave a map that is larger than what is in
it ("Illegal size 5 of collection, expected 6"), and from then on no micro-batch of this source goes
well until Java ends.
"""

from __future__ import annotations

from typing import Final

from zenwire.spark.live.source import ZenohSource

__all__ = ["SOURCES", "LossesSource", "SamplesSource"]


class SamplesSource(ZenohSource):
    """Of the query that writes ``samples``."""

    @classmethod
    def name(cls) -> str:
        return "zenoh.ingest.samples"


class LossesSource(ZenohSource):
    """Of the query that writes ``losses``."""

    @classmethod
    def name(cls) -> str:
        return "zenoh.ingest.losses"


SOURCES: Final[dict[str, type[ZenohSource]]] = {"samples": SamplesSource, "losses": LossesSource}
