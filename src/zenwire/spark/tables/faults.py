"""What no message could be made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenwire.columns import Scan, arrow
from zenwire.errors import DecodeError, Fault
from zenwire.spark.tables.input import CONTEXT, INPUT, BadBlock, true
from zenwire.wire import decode
from zenwire.wire.define import spec_of
from zenwire.wire.transport import Close

__all__ = ["MALFORMED", "Malformed"]

MALFORMED: Final = pa.schema(
    [
        *CONTEXT,
        pa.field("layer", pa.string()),
        pa.field("fault", pa.string()),
        pa.field("offset", pa.int32()),
        pa.field("message_offset", pa.int32()),
        pa.field("bytes", pa.binary()),
    ]
)
"""``bytes`` are those from ``message_offset`` on: what gave no rows."""

_CLOSE: Final = spec_of(Close).id


@dataclass(frozen=True)
class Malformed:
    """Takes scans, and gives what they could not read with the bytes."""

    @property
    def schema(self) -> pa.Schema:
        return MALFORMED

    def to_plain(self) -> None:
        """There is one of it."""

    def of(self, rows: pa.RecordBatch, scan: Scan) -> Iterator[pa.RecordBatch]:
        found = arrow.malformed(scan)
        if found.num_rows:
            yield _malformed(rows, scan, found)
        yield from _void(rows, scan)

    def of_bad_blocks(self, blocks: list[BadBlock]) -> Iterator[pa.RecordBatch]:
        """Those that did not expand."""
        if not blocks:
            return
        rows = pa.RecordBatch.from_pylist([dict(bad.row) for bad in blocks], INPUT)
        yield _faults(
            rows.select(CONTEXT.names),
            "transport",
            [bad.error.fault for bad in blocks],
            (
                pa.array([bad.error.offset for bad in blocks], pa.int32()),
                pa.array([0] * len(blocks), pa.int32()),
            ),
            rows.column("bytes"),
        )

    def of_scouting(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Datagrams that are no scouting message."""
        return _malformed_scouting(batch)


def _malformed(rows: pa.RecordBatch, scan: Scan, found: pa.RecordBatch) -> pa.RecordBatch:
    which = found.column("batch")
    starts = scan.bad.message_at
    ends = scan.spans.ends[scan.bad.batch]
    rest = [scan.buffer[a:b].tobytes() for a, b in zip(starts, ends, strict=True)]
    context = rows.take(which)
    at = context.column("at")
    layer = pc.if_else(pc.is_valid(at), "network", "transport")
    return _faults(
        context.select(CONTEXT.names),
        layer,
        [Fault(code) for code in found.column("fault").to_pylist()],
        (found.column("offset"), found.column("message_offset")),
        pa.array(rest, pa.binary()),
    )


def _void(rows: pa.RecordBatch, scan: Scan) -> Iterator[pa.RecordBatch]:
    """What follows a CLOSE in its batch. Nodes do not read it; here it is not lost."""
    closes = np.flatnonzero(scan.transport.message == _CLOSE)
    if not len(closes):
        return
    which = scan.transport.fixed("batch")[closes]
    starts, ends = scan.transport.fixed("end")[closes], scan.spans.ends[which]
    more = starts < ends
    which, starts, ends = which[more], starts[more], ends[more]
    if not len(which):
        return
    at = pa.array(starts - scan.spans.starts[which])
    rest = [scan.buffer[a:b].tobytes() for a, b in zip(starts, ends, strict=True)]
    context = rows.take(pa.array(which)).select(CONTEXT.names)
    trailing = [Fault.TRAILING] * len(which)
    yield _faults(context, "transport", trailing, (at, at), pa.array(rest, pa.binary()))


def _malformed_scouting(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    rows = batch.filter(true(batch.column("scouting")))
    wrong, faults, offsets = [], [], []
    for i, data in enumerate(rows.column("bytes").to_pylist()):
        try:
            decode(data, "scouting")
        except DecodeError as e:
            wrong.append(i)
            faults.append(e.fault)
            offsets.append(e.offset)
    if wrong:
        rows = rows.take(pa.array(wrong))
        zeros = pa.array([0] * len(wrong), pa.int32())
        at = pa.array(offsets, pa.int32())
        context = rows.select(CONTEXT.names)
        yield _faults(context, "scouting", faults, (at, zeros), rows.column("bytes"))


def _faults(
    context: pa.RecordBatch,
    layer: str | pa.Array,
    faults: list[Fault],
    places: tuple[pa.Array, pa.Array],
    data: pa.Array,
) -> pa.RecordBatch:
    layers = pa.repeat(pa.scalar(layer), len(faults)) if isinstance(layer, str) else layer
    names = pa.array([fault.name.lower() for fault in faults], pa.string())
    arrays = [*context.columns, layers, names, *places, data]
    return pa.RecordBatch.from_arrays(arrays, schema=MALFORMED)
