"""What a scan is given: rows of ``batches``, and how their bytes are wrapped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zenwire.columns import Scan, Scanner, Spans
from zenwire.errors import DecodeError
from zenwire.spark.tables.expand import expanded

__all__ = [
    "BATCH",
    "CONTEXT",
    "INPUT",
    "PLACE_BITS",
    "BadBlock",
    "mixed",
    "place_of",
    "prepared",
    "scans",
    "side_ids",
    "true",
]

CONTEXT: Final = pa.schema(
    [
        pa.field("capture", pa.string()),
        pa.field("flow", pa.int64()),
        pa.field("connection", pa.int32()),
        pa.field("direction", pa.string()),
        # 0 or 1, also where the direction is not known: whether the sender's address is the higher.
        pa.field("side", pa.int8()),
        pa.field("time", pa.int64()),
        pa.field("sequence", pa.int64()),
    ]
)
"""Where a message was seen: columns of its batch."""

BATCH: Final = (
    *("capture", "flow", "connection", "direction", "time", "sequence"),
    *("source", "source_port", "target", "target_port"),
    *("bytes", "scouting", "lowlatency", "compression"),
)
"""The columns of ``batches`` that are looked at."""

INPUT: Final = pa.schema(
    [
        *CONTEXT,
        # One number for capture, flow, connection and side: joins are faster by it.
        pa.field("side_id", pa.int64()),
        pa.field("bytes", pa.binary()),
        pa.field("scouting", pa.bool_()),
        pa.field("lowlatency", pa.bool_()),
        pa.field("compression", pa.bool_()),
        # Of the last FRAGMENT, where the bytes are a message that was put together; else null.
        pa.field("at", pa.int32()),
        pa.field("sn", pa.int64()),
        pa.field("reliable", pa.bool_()),
        pa.field("priority", pa.int32()),
    ]
)
"""The same as a scan takes it: batches, and messages that came in pieces."""

Int64 = npt.NDArray[np.int64]
N = TypeVar("N", int, Int64)

PLACE_BITS: Final = 16
"""Of an offset: a batch has fewer than 65,536 bytes."""


@dataclass(frozen=True)
class BadBlock:
    """A compressed batch that does not expand."""

    row: dict[str, object]
    error: DecodeError


@cache
def _scanner() -> Scanner:
    return Scanner()


def prepared(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of ``batches`` as ``INPUT``; those of faults have no bytes, and are left out."""
    if batch.column("bytes").null_count:
        batch = batch.filter(batch.column("bytes").is_valid())
    source, target = batch.column("source"), batch.column("target")
    ports = pc.greater(batch.column("source_port"), batch.column("target_port"))
    higher = pc.or_(pc.greater(source, target), pc.and_(pc.equal(source, target), ports))
    side = higher.cast(pa.int8())
    capture, flow, connection = (batch.column(name) for name in BATCH[:3])
    ids = side_ids(capture, flow, connection, side)
    known = {name: batch.column(name) for name in BATCH} | {"side": side, "side_id": ids}
    arrays = [
        known[field.name] if field.name in known else pa.nulls(batch.num_rows, field.type)
        for field in INPUT
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=INPUT)


def place_of(sequence: N, offset: N) -> N:
    """The order of messages of one direction."""
    return sequence << PLACE_BITS | offset


# Which connection and side, as one number.


def side_ids(capture: pa.Array, flow: pa.Array, connection: pa.Array, side: pa.Array) -> pa.Array:
    """64 bits for what those say: two are never the same in practice."""
    names = capture.dictionary_encode()
    each = np.array([_hash(name) for name in names.dictionary.to_pylist()] or [0], np.int64)
    mix = each[names.indices.to_numpy()]
    for column in (flow, connection, side):
        mix = mixed(mix, pc.fill_null(column, -1).to_numpy())
    return pa.array(mix)


def mixed(a: npt.ArrayLike, b: npt.ArrayLike) -> Int64:
    """Two numbers as one, in which every bit of both counts: the finisher of SplitMix64."""
    x = np.asarray(a, np.int64).view(np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)
    x = x ^ np.asarray(b).astype(np.int64).view(np.uint64)
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58_476D_1CE4_E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D0_49BB_1331_11EB)
    return (x ^ x >> np.uint64(31)).view(np.int64)


@cache
def _hash(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little", signed=True)


# From record batches to scans.


def scans(
    batch: pa.RecordBatch, bad_blocks: list[BadBlock] | None = None
) -> Iterator[tuple[pa.RecordBatch, Scan]]:
    """(rows, scan of their bytes), for each way in which batches are wrapped."""
    plain = pc.invert(true(batch.column("scouting")))
    lowlatency = pc.and_(plain, true(batch.column("lowlatency")))
    compressed = pc.and_(plain, true(batch.column("compression")))
    plain = pc.and_not(pc.and_not(plain, lowlatency), compressed)
    for mask, low_latency, expand in (
        (plain, False, False),
        (lowlatency, True, False),
        (compressed, False, True),
    ):
        if not pc.any(mask).as_py():
            continue
        rows = batch if pc.all(mask).as_py() else batch.filter(mask)
        if expand:
            rows = _expanded(rows, bad_blocks)
        buffer, spans = _spans_of(rows.column("bytes"))
        for scan in _scanner().scan(buffer, spans, low_latency=low_latency):
            yield rows, scan


def true(flags: pa.Array) -> pa.Array:
    """The flags, where they are known."""
    return pc.fill_null(flags, fill_value=False)


def _spans_of(data: pa.Array) -> tuple[npt.NDArray[np.uint8], Spans]:
    _, offsets, values = data.buffers()
    all_offsets = np.frombuffer(offsets, np.int32)[data.offset : data.offset + len(data) + 1]
    content = np.frombuffer(values, np.uint8) if values else np.zeros(0, np.uint8)
    return content, Spans.of_offsets(all_offsets.copy())


def _expanded(rows: pa.RecordBatch, bad_blocks: list[BadBlock] | None) -> pa.RecordBatch:
    contents, bad = expanded(rows.column("bytes"))
    if bad_blocks is not None:
        bad_blocks += [BadBlock(rows.slice(i, 1).to_pylist()[0], error) for i, error in bad]
    at = rows.schema.get_field_index("bytes")
    return rows.set_column(at, "bytes", contents)
