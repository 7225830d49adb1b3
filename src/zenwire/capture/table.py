"""The ``batches`` table: batches and faults as Arrow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zenwire.capture import kernels as k
from zenwire.capture.datagrams import SCOUTING
from zenwire.capture.flows import Flow

__all__ = ["SCHEMA", "Rows", "fault_rows", "record_batch"]

SCHEMA: Final = pa.schema(
    [
        pa.field("capture", pa.string(), nullable=False),
        # The same for the same endpoints in every file; null where a fault is of no flow.
        pa.field("flow", pa.int64()),
        pa.field("link", pa.string()),
        pa.field("source", pa.string()),
        pa.field("source_port", pa.int32()),
        pa.field("target", pa.string()),
        pa.field("target_port", pa.int32()),
        # Counts the connections of a flow, which has a new one where ports are used again.
        pa.field("connection", pa.int32()),
        # to_acceptor, to_connector, or null where neither SYN nor INIT was captured.
        pa.field("direction", pa.string()),
        # Nanoseconds since 1970: the packet that completed it, and the one it began in.
        pa.field("time", pa.int64(), nullable=False),
        pa.field("first_time", pa.int64(), nullable=False),
        # Counts the batches of a connection and direction, from 0.
        pa.field("sequence", pa.int64()),
        # Of its length prefix in the stream; 0 for datagrams.
        pa.field("offset", pa.int64()),
        # Without the prefix, and not expanded. Null in the row of a fault.
        pa.field("bytes", pa.binary()),
        pa.field("scouting", pa.bool_()),
        pa.field("lowlatency", pa.bool_()),
        pa.field("compression", pa.bool_()),
        pa.field("fault", pa.string()),
        pa.field("skipped", pa.int64(), nullable=False),
        pa.field("missing", pa.int64(), nullable=False),
    ]
)

Int64 = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_TO_ACCEPTOR: Final = "to_acceptor"
_TO_CONNECTOR: Final = "to_connector"


class Rows(NamedTuple):
    """Batches over ``work``, as columns of equal length. Mode -1: how it is wrapped is unknown."""

    work: Bytes
    flow: Int64
    side: Int64
    connection: Int64
    opener: Int64
    sequence: Int64
    offset: Int64
    start: Int64
    end: Int64
    first_time: Int64
    time: Int64
    mode: Int64


class FaultRow(NamedTuple):
    """A fault, of a flow or of the file (flow -1)."""

    flow: int
    side: int
    connection: int
    opener: int
    fault: str
    offset: int
    skipped: int
    missing: int
    time: int


def record_batch(capture: str, flow_of: Callable[[int], Flow], rows: Rows) -> pa.RecordBatch:
    """One row for each batch; the bytes are copied."""
    n = len(rows.flow)
    which, inverse = np.unique(2 * rows.flow + rows.side, return_inverse=True)
    ends = [(flow_of(i // 2), i % 2) for i in which.tolist()]
    to = pa.array(inverse, pa.int32())
    mode = rows.mode & (SCOUTING - 1)
    unknown = rows.mode < 0
    scouting = ~unknown & (rows.mode >= SCOUTING)
    towards = np.where(rows.opener < 0, 2, (rows.opener != rows.side).astype(np.int64))
    directions = pa.array([_TO_ACCEPTOR, _TO_CONNECTOR, None])
    # Arrow would share the memory of arrays that are used again.
    columns = [
        pa.repeat(pa.scalar(capture), n),
        pa.array([flow.id for flow, _ in ends], pa.int64()).take(to),
        pa.array([flow.link for flow, _ in ends], pa.string()).take(to),
        pa.array([flow.sides[side].address for flow, side in ends], pa.string()).take(to),
        pa.array([flow.sides[side].port for flow, side in ends], pa.int32()).take(to),
        pa.array([flow.sides[1 - side].address for flow, side in ends], pa.string()).take(to),
        pa.array([flow.sides[1 - side].port for flow, side in ends], pa.int32()).take(to),
        pa.array(rows.connection.astype(np.int32)),
        directions.take(pa.array(towards)),
        pa.array(rows.time.copy()),
        pa.array(rows.first_time.copy()),
        pa.array(rows.sequence.copy()),
        pa.array(rows.offset.copy()),
        _binary(rows.work, rows.start, rows.end),
        pa.array(scouting),
        pa.array(mode == k.LOW_LATENCY, mask=unknown),
        pa.array(mode == k.COMPRESSED, mask=unknown),
        pa.nulls(n, pa.string()),
        pa.array(np.zeros(n, np.int64)),
        pa.array(np.zeros(n, np.int64)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _binary(work: Bytes, start: Int64, end: Int64) -> pa.Array:
    n = len(start)
    # Arrow's pool gives memory that was used before, which is faster than new pages.
    values = pa.allocate_buffer(int((end - start).sum()))
    offsets = pa.allocate_buffer(4 * (n + 1))
    k.ready(k.pack)(
        work,
        np.ascontiguousarray(start),
        np.ascontiguousarray(end),
        n,
        np.frombuffer(values, np.uint8),
        np.frombuffer(offsets, np.int32),
    )
    return pa.Array.from_buffers(pa.binary(), n, [None, offsets, values])


def fault_rows(
    capture: str, flow_of: Callable[[int], Flow], faults: Sequence[FaultRow]
) -> pa.RecordBatch:
    """One row for each fault, without bytes."""
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for fault in faults:
        row: dict[str, Any] = dict.fromkeys(SCHEMA.names)
        row |= {
            "capture": capture,
            "time": fault.time,
            "first_time": fault.time,
            "offset": fault.offset,
            "fault": fault.fault,
            "skipped": fault.skipped,
            "missing": fault.missing,
        }
        if fault.flow >= 0:
            flow = flow_of(fault.flow)
            source, target = flow.sides[fault.side], flow.sides[1 - fault.side]
            row |= {
                "flow": flow.id,
                "link": flow.link,
                "source": source.address,
                "source_port": source.port,
                "target": target.address,
                "target_port": target.port,
                "connection": fault.connection,
            }
            if fault.opener >= 0:
                row["direction"] = _TO_CONNECTOR if fault.opener != fault.side else _TO_ACCEPTOR
        for name, value in row.items():
            columns[name].append(value)
    return pa.RecordBatch.from_pydict(columns, schema=SCHEMA)
