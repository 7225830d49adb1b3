"""``df.write.format("zenoh")`` and ``df.writeStream.format("zenoh")``: rows become publications.

At least once: a task that is tried again publishes its rows again. Each has a source id and number
that are the same then: the id is made of ``sourceId``, the query and its micro-batch, the entity is
the partition, the number that of the row. A receiver that has seen them has seen the row.

Options: ``connect`` (endpoints with commas), any ``zenoh.<config/path>``, ``key`` for rows that have
none, ``priority``, ``congestionControl`` (block, if it is not said), ``express``, ``sourceId``,
``waitForSubscribers`` (seconds), ``failOnDataLoss``.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from zenwire.errors import Timeout, ZError
from zenwire.keyexpr import validate
from zenwire.spark.live.publications import table_of
from zenwire.wire.values import CongestionControl, Priority, QoS

if TYPE_CHECKING:
    from zenwire.sync.session import Session

__all__ = ["BatchSink", "Published", "SinkOptions", "StreamSink"]

_KNOWN: Final = (
    "checkpointLocation",
    "congestionControl",
    "connect",
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
    """What a query was told. ``config`` are paths of a configuration, and JSON5."""

    connect: tuple[str, ...]
    config: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    qos: QoS = field(default_factory=QoS)
    source_id: str = ""
    wait: float | None = None
    fail_on_data_loss: bool = True

    @classmethod
    def of(cls, said: Mapping[str, str]) -> SinkOptions:
        """Raises ValueError."""
        known = {name.lower() for name in _KNOWN}
        config: dict[str, str] = {}
        for name, value in said.items():
            if name.lower().startswith("zenoh."):
                config[name[len("zenoh.") :]] = value
            elif name.lower() not in known:
                raise ValueError(
                    f"format zenoh has no option {name} to write with; it has "
                    f"{', '.join(_KNOWN)} and zenoh.<config/path>"
                )
        connect = tuple(part.strip() for part in said.get("connect", "").split(",") if part.strip())
        if not connect and not config:
            raise ValueError('where to publish: option("connect", "tcp/192.0.2.1:7447")')
        key = said.get("key") or said.get("path")
        if key is not None:
            validate(key)
        wait = said.get("waitForSubscribers")
        return cls(
            connect,
            config,
            key,
            QoS.of(
                _of(Priority, said, "priority", Priority.DATA),
                _of(CongestionControl, said, "congestionControl", CongestionControl.BLOCK),
                _flag(said, "express", default=False),
            ),
            said.get("sourceId", ""),
            None if wait is None else float(wait),
            _flag(said, "failOnDataLoss", default=True),
        )


def _of(words: Any, said: Mapping[str, str], name: str, default: Any) -> Any:  # an enumeration
    text = said.get(name)
    if text is None:
        return default
    found = words.__members__.get(text.upper())
    if found is None:
        raise ValueError(f"{name} is one of {', '.join(words.__members__)}, not {text!r}")
    return found


def _flag(said: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = said.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise ValueError(f"{name} is true or false, not {text!r}")
    return text == "true"


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
    source = source_of(run)
    count = sent = dropped = 0
    session: Session | None = None
    waited: set[str] = set()
    try:
        for batch in rows:
            if not batch.num_rows:
                continue
            # Opened after the fork, and only where there is something to send.
            session = session or _open(options)
            table = table_of(
                batch,
                key=options.key,
                qos=options.qos,
                source=source,
                partition=partition,
                first=count,
            )
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

    config = zenwire.Config()
    config.insert_json5("mode", '"client"')
    if options.connect:
        config.insert_json5("connect/endpoints", json.dumps(options.connect))
    for path, value in options.config.items():
        config.insert_json5(path, value if _is_json(value) else json.dumps(value))
    return zenwire.open(config)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return text.lstrip().startswith(("{", "[", "'"))
    return True


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
