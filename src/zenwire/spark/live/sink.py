"""``df.write.format("zenoh")`` and ``df.writeStream.format("zenoh")``: rows become publications.

At least once: a task that is tried again publishes its rows again. Each has a source id and number
that are the same then: the id is made of ``sourceId``, the query and its micro-batch, the entity of
the partition and the lane, the number is that of the row there. A receiver that has seen them has
seen the row.

Options: ``connect``, ``listen``, ``mode``, any ``zenoh.<config/path>``, ``key`` for rows that have
none, ``priority``, ``congestionControl`` (block, if it is not said), ``express``, ``sourceId``,
``waitForSubscribers`` (seconds), ``failOnDataLoss``.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from zenwire.errors import Timeout, ZError
from zenwire.keyexpr import validate
from zenwire.spark.live.publications import Numbering, table_of
from zenwire.spark.live.refused import refuse
from zenwire.spark.live.said import flag, known, seconds, word
from zenwire.spark.live.session import SESSION_OPTIONS, SessionOptions
from zenwire.wire.values import CongestionControl, Priority, QoS

if TYPE_CHECKING:
    from zenwire.sync.session import Session

__all__ = ["BatchSink", "Published", "SinkOptions", "StreamSink"]

_KNOWN: Final = (
    *SESSION_OPTIONS,
    "checkpointLocation",
    "congestionControl",
    "express",
    "failOnDataLoss",
    "key",
    "path",
    "priority",
    "sourceId",
    "waitForSubscribers",
)
_POLL: Final = 0.02
_BATCH_ID: Final = "streaming.sql.batchId"
_QUERY_ID: Final = "sql.streaming.queryId"


@dataclass(frozen=True)
class SinkOptions:
    """What a query was told."""

    session: SessionOptions
    key: str | None = None
    qos: QoS = field(default_factory=QoS)
    source_id: str = ""
    wait: float | None = None
    fail_on_data_loss: bool = True

    @classmethod
    def of(cls, said: Mapping[str, str]) -> SinkOptions:
        """Raises ValueError."""
        refuse(said)
        known(said, _KNOWN, "a sink of format zenoh")
        session = SessionOptions.of(said)
        if not session:
            raise ValueError('where to publish: option("connect", "tcp/192.0.2.1:7447")')
        key = said.get("key") or said.get("path")
        if key is not None:
            validate(key)
        return cls(
            session,
            key,
            QoS.of(
                word(said, "priority", Priority.__members__, Priority.DATA),
                word(
                    said,
                    "congestionControl",
                    CongestionControl.__members__,
                    CongestionControl.BLOCK,
                ),
                flag(said, "express", default=False),
            ),
            said.get("sourceId", ""),
            seconds(said, "waitForSubscribers"),
            flag(said, "failOnDataLoss", default=True),
        )


@dataclass
class Published(WriterCommitMessage):
    """What became of the rows of a task; those that nobody wants are in neither number."""

    rows: int
    sent: int
    dropped: int


class BatchSink(DataSourceArrowWriter):
    """A table, once. Without ``sourceId`` each write has ids of its own."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._run = options.source_id or uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Published:
        return _publish(iterator, self._options, self._run)


class StreamSink(DataSourceStreamArrowWriter):
    """A stream. A micro-batch that is done again has the same ids."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Published:
        context = TaskContext.get()
        assert context is not None
        query, batch = (context.getLocalProperty(name) for name in (_QUERY_ID, _BATCH_ID))
        return _publish(iterator, self._options, f"{self._options.source_id}/{query}/{batch}")

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Nothing is left to do: rows were sent by the tasks."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """What was sent was sent; it comes again with the same numbers."""


def source_of(run: str) -> bytes:
    """The source id of one run: 16 bytes that are a ZenohID, which does not end with a zero."""
    found = bytearray(hashlib.blake2b(run.encode(), digest_size=16).digest())
    found[-1] |= 1
    return bytes(found)


def _publish(rows: Iterator[pa.RecordBatch], options: SinkOptions, run: str) -> Published:
    """What a task does. Raises ZError, ValueError."""
    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    numbering = Numbering(source_of(run), partition)
    count = sent = dropped = 0
    session: Session | None = None
    waited: set[str] = set()
    try:
        for batch in rows:
            if not batch.num_rows:
                continue
            # Opened after the fork, and only where there is something to send.
            session = session or _open(options)
            table = table_of(batch, key=options.key, qos=options.qos, numbering=numbering)
            if options.wait is not None:
                _wait(session, table, waited, options.wait)
            written = session.put_batch(table)
            count += written.rows
            sent, dropped = sent + written.sent, dropped + written.dropped
            if dropped and options.fail_on_data_loss:
                raise ZError(f"{dropped} of {count} rows could not be sent: the link was lost")
    finally:
        if session is not None:
            session.close()
    return Published(count, sent, dropped)


def _open(options: SinkOptions) -> Session:
    import zenwire  # noqa: PLC0415 - in tasks alone

    return zenwire.open(options.session.made())


def _wait(session: Session, table: pa.Table, waited: set[str], seconds: float) -> None:
    """Until somebody subscribes to each key. Raises Timeout."""
    until = time.monotonic() + seconds
    for key in table.column("key").unique().to_pylist():
        if key in waited:
            continue
        with session.declare_publisher(key) as publisher:
            while not publisher.matching_status.matching:
                if time.monotonic() > until:
                    raise Timeout(f"a subscriber of {key}", seconds, "is it connected?")
                time.sleep(_POLL)
        waited.add(key)
