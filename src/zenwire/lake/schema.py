"""The tables of a lake, column by column: type, unit and meaning, the same in every format.

``docs/lake.md`` shows these definitions; ``make check`` compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa

__all__ = [
    "BINS",
    "INSTANT",
    "KEY_STATS",
    "LATEST",
    "LOSSES",
    "PERCENTILES",
    "SAMPLES",
    "TABLES",
    "Column",
    "Table",
]

INSTANT: Final = pa.timestamp("us", "UTC")
BINS: Final = pa.list_(
    pa.field("element", pa.struct([pa.field("bin", pa.int32()), pa.field("n", pa.int64())]))
)
PERCENTILES: Final = pa.list_(pa.field("element", pa.float64()))


@dataclass(frozen=True, slots=True)
class Column:
    """One column. ``unit`` is empty for text, flags and identifiers."""

    name: str
    type: pa.DataType
    meaning: str
    unit: str = ""
    nullable: bool = True


@dataclass(frozen=True)
class Table:
    """One table. ``partition_by`` names columns that are directories, not columns of the files.

    ``order_by`` is the sort order of its files. Empty: arrival order, until compaction.
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()

    @cached_property
    def schema(self) -> pa.Schema:
        """All columns. Partition columns come last."""
        return pa.schema([pa.field(c.name, c.type, c.nullable) for c in self.columns])

    @cached_property
    def file_schema(self) -> pa.Schema:
        """The columns that its Parquet files have."""
        return pa.schema([f for f in self.schema if f.name not in self.partition_by])


_WHERE: Final = (
    Column("spool", pa.string(), "Name of the spool that the row comes from.", nullable=False),
    Column("spool_id", pa.string(), "Identity of that spool.", nullable=False),
    Column("offset", pa.int64(), "Position of the row in its spool.", "rows", nullable=False),
)
_VALUE: Final = (
    Column("kind", pa.string(), "`PUT` or `DELETE`.", nullable=False),
    Column("payload", pa.binary(), "Payload as it was sent.", nullable=False),
    Column("encoding", pa.string(), "Encoding without its schema, as the publisher wrote it."),
    Column("encoding_schema", pa.string(), "Schema of the encoding: the text behind its `;`."),
    Column(
        "value",
        pa.string(),
        "Payload as JSON text, for encodings that SQL cannot read: CBOR, CDR, `zenoh/serialized`.",
    ),
    Column("value_fault", pa.string(), "Why the payload does not match its encoding."),
    Column("timestamp", INSTANT, "HLC timestamp of the publisher or of the first router."),
    Column("ntp64", pa.int64(), "The same timestamp as it was sent, NTP64.", "2^-32 s"),
    Column("clock_id", pa.string(), "Id of the clock that made the timestamp, as zenoh prints it."),
    Column("source_zid", pa.string(), "Session id of the publisher, as zenoh prints it."),
    Column("source_eid", pa.int64(), "Entity id of the publisher in its session."),
    Column("source_sn", pa.int64(), "Sequence number that the publisher gave.", "messages"),
    Column("priority", pa.string(), "Priority, for example `DATA`.", nullable=False),
    Column("congestion_control", pa.string(), "`DROP`, `BLOCK` or `BLOCK_FIRST`.", nullable=False),
    Column("express", pa.bool_(), "Sent without waiting for a batch.", nullable=False),
    Column("reliability", pa.string(), "`RELIABLE` or `BEST_EFFORT`.", nullable=False),
    Column("attachment", pa.binary(), "Attachment as it was sent."),
)
_RECEIVED: Final = (
    Column("received_at", INSTANT, "When the recorder received it.", nullable=False),
    Column("received_ns", pa.int64(), "The same in full precision.", "ns since 1970", False),
)
_KEY: Final = Column("key", pa.string(), "Key expression of the sample.", nullable=False)

SAMPLES: Final = Table(
    "samples",
    "Every recorded sample, once.",
    (
        *_WHERE,
        *_RECEIVED,
        _KEY,
        *_VALUE,
        Column("day", pa.string(), "UTC day of `received_at`, for example 2026-03-01."),
    ),
    partition_by=("day",),
)
LATEST: Final = Table(
    "latest",
    "The newest sample of each key by its timestamp. A `DELETE` is the newest of a deleted key.",
    (
        _KEY,
        *_WHERE,
        *_RECEIVED,
        *_VALUE,
        Column("last_received_ns", pa.int64(), "Newest `received_ns` of the key.", "ns since 1970"),
    ),
    order_by=("key",),
)
KEY_STATS: Final = Table(
    "key_stats",
    "Message counts, sizes, gaps and latency of each key in windows of ten seconds.",
    (
        _KEY,
        Column("window_start", INSTANT, "Start of the window.", nullable=False),
        Column("window_end", INSTANT, "End of the window.", nullable=False),
        Column("messages", pa.int64(), "Samples received.", "messages", False),
        Column("bytes", pa.int64(), "Payload bytes received.", "bytes", False),
        Column("rate", pa.float64(), "`messages` by the length of the window.", "1/s", False),
        Column("gap", PERCENTILES, "Time since the previous sample: percentiles 50, 90, 99.", "s"),
        Column("latency", PERCENTILES, "`received_at` - `timestamp`: percentiles 50, 90, 99.", "s"),
        Column("gap_bins", BINS, "Histogram of `gap`. Bins can be added across windows."),
        Column("latency_bins", BINS, "Histogram of `latency`. Bins can be added across windows."),
    ),
    order_by=("window_start", "key"),
)
LOSSES: Final = Table(
    "losses",
    "Samples that are known to be missing, and why.",
    (
        _WHERE[0],
        _WHERE[1],
        Column("number", pa.int64(), "Position of the row in the spool's log of losses.", "rows"),
        Column("kind", pa.string(), "What lost them, for example `overflow` or `source`."),
        Column("reason", pa.string(), "Cause in words."),
        Column("offset", pa.int64(), "Offset of the first sample behind the loss.", "rows"),
        Column("count", pa.int64(), "Lost samples. Null where it is not known.", "messages"),
        Column("bytes", pa.int64(), "Their bytes. Null where it is not known.", "bytes"),
        Column("source_zid", pa.string(), "Session id of the publisher, as zenoh prints it."),
        Column("source_eid", pa.int64(), "Entity id of the publisher in its session."),
        Column("from_sn", pa.int64(), "First missing sequence number.", "messages"),
        Column("to_sn", pa.int64(), "Last missing sequence number.", "messages"),
        Column("noticed_at", INSTANT, "When the loss was first noticed."),
        Column("until", INSTANT, "When it was last noticed."),
    ),
)
TABLES: Final = {table.name: table for table in (SAMPLES, LATEST, KEY_STATS, LOSSES)}
