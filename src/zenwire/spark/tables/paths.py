"""One query over several links: which REQUEST a node forwarded as which.

Every node gives the requests that it forwards ids of its own, so nothing on the wire says which
belong together. What says it is who asked whom, what was asked, and when.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.spark.schema import struct_of
from zenwire.spark.tables.place import LINK
from zenwire.spark.tables.sessions import handshakes

__all__ = ["paths", "request_key"]

_CONTENT: Final = (
    "key",
    "parameters",
    "consolidation",
    "payload",
    "encoding",
    "encoding_schema",
    "attachment",
    "source_zid",
    "source_eid",
    "source_sn",
)
"""What a node does not change. Key expressions are compared as text, not as ids."""
_DEFAULT_TIMEOUT: Final = 10_000
"""Milliseconds that a node waits for the end of a request that says nothing."""
_LONGEST_TIMEOUT: Final = 3_600_000
_FLUSH: Final = 1 << 16
"""Requests with the same content that are looked at together, if they overlap in time."""

_INPUT: Final = ("capture", "content", "time", "until", "request", "link", "asker", "asked")
_PATHS: Final = pa.schema(
    [
        pa.field("request", pa.int64()),
        pa.field("query_id", pa.int64()),
        pa.field("hop", pa.int32()),
    ]
)


def request_key(side: str, sequence: str, offset: str) -> Column:
    """One number for a REQUEST, from its place."""
    return F.xxhash64(*LINK, F.col(side).cast("tinyint"), sequence, offset)


def paths(requests: DataFrame, source: DataFrame) -> DataFrame:
    """``query_id`` and ``hop`` of each ``request``, both null where they cannot be known.

    ``requests`` has a row for each REQUEST, with ``final``, the time of its end, and ``request``.

    A node forwarded a request if it sent one with the same key, parameters, body, attachment,
    source and consolidation to somebody else of the same capture, after it got it and before it
    ended. ``query_id`` is then the same, and ``hop`` one more. It is 0 on the first link that the
    capture shows. Both are null if the key or the node that asks is unknown (no INIT captured), if
    several requests could be the one that was forwarded, if a node seems to forward one request
    twice on a link, and for what such a one is forwarded as. A node that asks exactly what
    it is also forwarding at that time cannot be told from one that only forwards.
    """
    who = handshakes(source).select(*LINK, "connector_zid", "acceptor_zid", "connector_side")
    known = requests.join(F.broadcast(who), list(LINK), "left")
    connects = F.col("side") == F.col("connector_side")
    connector, acceptor = F.col("connector_zid"), F.col("acceptor_zid")
    timeout = F.coalesce("timeout", F.lit(_DEFAULT_TIMEOUT)).cast("bigint")
    # It may say anything.
    timeout = F.greatest(F.lit(0), F.least(timeout, F.lit(_LONGEST_TIMEOUT)))
    last = F.try_add(F.col("time"), 1_000_000 * timeout)
    # Nulls are passed over by the hash, so it is told where they are.
    nulls = [F.col(name).isNull() for name in _CONTENT]
    content = F.when(F.col("key").isNotNull(), F.xxhash64(*_CONTENT, *nulls))
    asked = known.select(
        "capture",
        content.alias("content"),
        "time",
        F.coalesce("final", last, F.col("time")).alias("until"),
        "request",
        F.xxhash64(*LINK, "side").alias("link"),
        F.when(connects, connector).otherwise(acceptor).alias("asker"),
        F.when(connects, acceptor).otherwise(connector).alias("asked"),
    )
    together = asked.where(F.col("content").isNotNull() & F.col("asker").isNotNull())
    ordered = together.repartition("capture", "content").sortWithinPartitions(
        "capture", "content", "time", "link", "request"
    )
    return ordered.mapInArrow(_followed, struct_of(_PATHS))


@dataclass(eq=False, slots=True)
class _Request:
    time: int
    until: int
    request: int
    link: int
    asker: str
    asked: str
    parent: _Request | None = None
    doubtful: bool = False
    told: tuple[int, int] | None = None
    done: bool = False


def _followed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows come sorted by capture, content and time."""
    same: object = None
    follower = _Follower()
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in _INPUT]
        for capture, content, *rest in zip(*columns, strict=True):
            if (capture, content) != same:
                follower.flush()
                same = capture, content
                follower.forget()
            follower.add(_Request(*rest))
        yield follower.rows()
    follower.flush()
    yield follower.rows()


class _Follower:
    """Requests of one content, in order of time."""

    def __init__(self) -> None:
        self._open: list[_Request] = []
        self._moment: list[_Request] = []
        self._seen: list[_Request] = []
        self._forwards: dict[tuple[int, int], list[_Request]] = defaultdict(list)
        self._done: list[tuple[int, int | None, int | None]] = []

    def add(self, new: _Request) -> None:
        if self._moment and new.time > self._moment[0].time:
            self._match()
            self._open = [one for one in self._open if one.until >= new.time]
            if not self._open or len(self._seen) >= _FLUSH:
                self._tell()
        self._moment.append(new)

    def _match(self) -> None:
        """All of one time: what was forwarded may have the same time as what it is from."""
        self._open += self._moment
        for one in self._moment:
            possible = [
                other
                for other in self._open
                if other.asked == one.asker
                and other.asker != one.asked
                and other.link != one.link
                and other is not one
            ]
            if len(possible) == 1:
                one.parent = possible[0]
                self._forwards[one.parent.request, one.link].append(one)
            one.doubtful = len(possible) > 1
        self._seen += self._moment
        self._moment = []

    def _tell(self) -> None:
        for forwarded in self._forwards.values():
            if len(forwarded) > 1:
                for one in forwarded:
                    one.doubtful = True
        self._forwards.clear()
        for one in self._seen:
            _resolve(one)
            told = one.told or (None, None)
            self._done.append((one.request, *told))
        self._seen = []

    def flush(self) -> None:
        self._match()
        self._tell()

    def forget(self) -> None:
        self._open = []

    def rows(self) -> pa.RecordBatch:
        done, self._done = self._done, []
        columns: list[list[Any]] = [list(column) for column in zip(*done, strict=True)]
        return pa.RecordBatch.from_arrays(
            [pa.array(c, f.type) for c, f in zip(columns or [[], [], []], _PATHS, strict=True)],
            schema=_PATHS,
        )


def _resolve(one: _Request) -> None:
    """Up to the first link and back: chains may be long, or circles where times are equal."""
    chain = []
    at: _Request | None = one
    while at is not None and not at.done:
        at.done = True
        chain.append(at)
        at = None if at.doubtful else at.parent
    for link in reversed(chain):
        if link.doubtful:
            link.told = None
        elif link.parent is None:
            link.told = link.request, 0
        elif link.parent.told is not None:
            query, hop = link.parent.told
            link.told = query, hop + 1
