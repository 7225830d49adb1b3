"""Rows to Arrow record batches.

The types are those that Spark takes as they are: signed, no dictionaries, no views. An integer
of 64 bits keeps its bits, so one above 2**63 - 1 is negative. Offsets count from the start of
the batch that the row is from.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zenwire.columns import kernels
from zenwire.columns.layout import NETWORK, TRANSPORT, Column, Form, Layout
from zenwire.columns.scan import ROWS, Bools, Int32, Rows, Scan, UInt64

__all__ = ["MALFORMED", "malformed", "network", "schema", "transport"]

N = TypeVar("N", bound=np.generic)

_COMMON = (
    pa.field("batch", pa.int32(), nullable=False),
    pa.field("offset", pa.int32(), nullable=False),
    pa.field("length", pa.int32(), nullable=False),
    pa.field("message", pa.int8(), nullable=False),
)
_OF_FRAME = (
    pa.field("sn", pa.int64()),
    pa.field("reliable", pa.bool_()),
    pa.field("priority", pa.int32()),
)
_OF_BODY = (pa.field("body", pa.int8()), pa.field("body_offset", pa.int32()))

MALFORMED = pa.schema(
    [
        pa.field("batch", pa.int32(), nullable=False),
        pa.field("fault", pa.int8(), nullable=False),
        pa.field("offset", pa.int32(), nullable=False),
        pa.field("message_offset", pa.int32(), nullable=False),
    ]
)
"""``message_offset`` is where the message starts that was being read."""


@cache
def schema(layout: Layout) -> pa.Schema:
    """All columns of a table: what every row has, then what the definitions have."""
    common = _COMMON + (_OF_BODY + _OF_FRAME if layout is NETWORK else ())
    return pa.schema([*common, *(pa.field(c.name, _type(c)) for c in layout.columns.values())])


def _type(column: Column) -> pa.DataType:
    match column.form:
        case Form.BOOL:
            return pa.bool_()
        case Form.INT32:
            return pa.int64() if column.wide else pa.int32()
        case Form.UINT64:
            return pa.int64()
        case Form.SPAN:
            return pa.string() if column.text else pa.binary()


def network(scan: Scan, columns: Iterable[str] | None = None) -> pa.RecordBatch:
    """The network messages of a scan, one row each; ``columns`` chooses some of the schema."""
    return _batch(scan, scan.network, columns)


def transport(scan: Scan, columns: Iterable[str] | None = None) -> pa.RecordBatch:
    """The transport messages of a scan, one row each."""
    return _batch(scan, scan.transport, columns)


def malformed(scan: Scan) -> pa.RecordBatch:
    """The batches of a scan that did not decode to their end."""
    bad = scan.bad
    start = scan.spans.starts[bad.batch]
    arrays = [
        pa.array(bad.batch.copy()),
        pa.array(bad.fault.astype(np.int8)),
        pa.array(bad.offset - start),
        pa.array(bad.message_at - start),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=MALFORMED)


def _batch(scan: Scan, rows: Rows, columns: Iterable[str] | None) -> pa.RecordBatch:
    whole = schema(rows.layout)
    chosen = whole if columns is None else pa.schema([whole.field(name) for name in columns])
    table = _Table(scan, rows)
    return pa.RecordBatch.from_arrays([table.array(f) for f in chosen], schema=chosen)


class _Table:
    """Makes the arrays of one record batch; what several of them need is computed once."""

    def __init__(self, scan: Scan, rows: Rows) -> None:
        self.scan = scan
        self.rows = rows
        self.count = rows.count
        self.some, self.every = kernels.any_and_all(rows.present, rows.count)
        self._filled: tuple[UInt64, int, int] | None = None

    def array(self, field: pa.Field) -> pa.Array:
        column = self.rows.layout.columns.get(field.name)
        if column is not None:
            return self._column(column, field.type)
        match field.name:
            case "batch":
                return pa.array(self.batches)
            case "offset":
                return pa.array(self.rows.fixed("at") - self._starts)
            case "length":
                return pa.array(self.rows.fixed("end") - self.rows.fixed("at"))
            case "message":
                return pa.array(self.rows.message.astype(np.int8))
            case "body":
                return pa.array(self.rows.body.astype(np.int8), mask=self._without_body)
            case "body_offset":
                at = self.rows.fixed("body_at") - self._starts
                return pa.array(at, mask=self._without_body)
        return self._of_frame(field)

    @cached_property
    def batches(self) -> Int32:
        """The batch of each row."""
        if self.rows.layout is TRANSPORT:
            return self.rows.fixed("batch").copy()
        frame = self.rows.fixed("frame")
        batches = np.empty(self.count, np.int32)
        kernels.take32(self.scan.transport.fixed("batch"), frame, self.count, batches)
        np.copyto(batches, -1 - frame, where=frame < 0)
        return batches

    @cached_property
    def _starts(self) -> Int32:
        starts: Int32 = self.scan.spans.starts[self.batches]
        return starts

    @cached_property
    def _frames(self) -> tuple[_Table, pa.Array]:
        """The table of the FRAMEs, and which of them each row is in."""
        frame = self.rows.fixed("frame")
        return _Table(self.scan, self.scan.transport), pa.array(frame, mask=frame < 0)

    @property
    def _without_body(self) -> Bools:
        return self.rows.fixed("body_at") < 0

    def _of_frame(self, field: pa.Field) -> pa.Array:
        """A column of the FRAME that a network message is in; null in low latency."""
        frames, rows = self._frames
        return frames.array(schema(TRANSPORT).field(field.name)).take(rows)

    # --- columns of the definitions ----------------------------------------------------

    def _present(self, column: Column) -> tuple[UInt64, int, int]:
        """Presence words, the bits that some have, and those that all have.

        A default counts as present.
        """
        if column.default is None and column.form is not Form.BOOL:
            return self.rows.present, self.some, self.every
        if self._filled is None:
            words = _empty(self.count, np.uint64)[0]
            kernels.add_defaults(self.rows.present, _defaults(self.rows.layout), self.count, words)
            self._filled = words, *kernels.any_and_all(words, self.count)
        return self._filled

    def _column(self, column: Column, kind: pa.DataType) -> pa.Array:
        words, some, every = self._present(column)
        if not some >> column.bit & 1:
            return _nulls(self.count, kind)
        validity, nulls = None, 0
        if not every >> column.bit & 1:
            validity, nulls = self._bitmap(words, column)
        buffers = [validity, *self._values(column)]
        return pa.Array.from_buffers(kind, self.count, buffers, null_count=nulls)

    def _bitmap(self, words: UInt64, column: Column) -> tuple[pa.Buffer, int]:
        bits, buffer = _empty(self.count + 7 >> 3, np.uint8)
        zeros = kernels.bitmap(words, column.bit, self.count, bits)
        return buffer, zeros

    def _values(self, column: Column) -> list[pa.Buffer]:
        rows, n, slot = self.rows, self.count, column.slot
        if column.form is Form.BOOL:
            return [self._bitmap(rows.present, column)[0]]
        if column.form is Form.SPAN:
            return self._spans(column)
        if column.form is Form.UINT64:
            wide, buffer = _empty(n, np.uint64)
            kernels.values64(rows.uint64[slot], rows.present, column.bit, n, wide)
            return [buffer]
        default = column.default or 0
        out, buffer = _empty(n, np.int64 if column.wide else np.int32)
        if not self.some >> column.bit & 1:
            # Nobody has touched this column; its pages are not there, and reading is slow.
            out.fill(default)
        elif column.wide:
            kernels.values32_wide(rows.int32[slot], rows.present, column.bit, default, n, out)
        else:
            kernels.values32(rows.int32[slot], rows.present, column.bit, default, n, out)
        return [buffer]

    def _spans(self, column: Column) -> list[pa.Buffer]:
        rows, n, slot = self.rows, self.count, column.slot
        offsets, offsets_buffer = _empty(n + 1, np.int32)
        size = kernels.offsets32(rows.int32[slot + 1], rows.present, column.bit, n, offsets)
        data, buffer = _empty(size + 64, np.uint8)
        kernels.gather(self.scan.buffer, rows.int32[slot], offsets, n, data)
        return [offsets_buffer, buffer.slice(0, size)]


def _empty(count: int, kind: type[N]) -> tuple[npt.NDArray[N], pa.Buffer]:
    """An array, and the buffer that it fills.

    Arrow keeps freed memory; pages of new memory would cost more than what is written there.
    """
    buffer = pa.allocate_buffer(count * np.dtype(kind).itemsize)
    return np.frombuffer(buffer, kind), buffer


@cache
def _some_nulls(kind: pa.DataType) -> pa.Array:
    return pa.nulls(ROWS, kind)


def _nulls(count: int, kind: pa.DataType) -> pa.Array:
    """Nulls are shared where they can be: nobody writes into an array."""
    return _some_nulls(kind).slice(0, count) if count <= ROWS else pa.nulls(count, kind)


@cache
def _defaults(layout: Layout) -> UInt64:
    """For each message and body id, five bits each: the columns that have a default there."""
    words = np.zeros(32 * 32, np.uint64)
    for (message, body), bits in layout.defaults.items():
        words[message << 5 | body] = bits
    return words
