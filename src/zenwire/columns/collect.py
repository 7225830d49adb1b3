"""Samples to Arrow record batches: rows of runs, or one by one, until there are enough of them.

What is collected is what `SAMPLES` has; columns that are not wanted are not made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zenwire.columns import kernels, kernels_receive
from zenwire.columns.layout import BODY_SHIFT, NETWORK, Form
from zenwire.columns.routes import Part
from zenwire.columns.samples import DELETE, PUT, SAMPLES
from zenwire.columns.scan import ROWS, Bytes, Int32, UInt64
from zenwire.columns.scan import Rows as Table
from zenwire.wire.data import Del, Put
from zenwire.wire.define import spec_of
from zenwire.wire.values import QoS

__all__ = ["BYTES_MAX", "Collector", "schema_of"]

BYTES_MAX: Final = 8 * 2**20
"""A batch with so many bytes of payloads, keys and the like is full, however few rows it has."""

_PADDING: Final = 64
_PUT, _DEL = (spec_of(cls).id for cls in (Put, Del))
_DEFAULTS: Final = {
    name: column.default or 0
    for name, column in NETWORK.columns.items()
    if name in {"qos", "encoding"}
}
"""What the message has if it does not say so."""

Sample = tuple[str, Put | Del, QoS, bool, int]
"""A sample by itself: key, body, QoS, reliability and time."""


def schema_of(columns: Iterable[str] | None) -> pa.Schema:
    """Those of `SAMPLES`, or some of them in the order they are asked for. Raises ValueError."""
    if columns is None:
        return SAMPLES
    names = list(columns)
    unknown = [name for name in names if name not in SAMPLES.names]
    if unknown or not names or len(set(names)) < len(names):
        what = f"{unknown[0]!r} is no column of samples" if unknown else "columns must differ"
        raise ValueError(f"{what}; there are {', '.join(SAMPLES.names)}")
    return pa.schema([SAMPLES.field(name) for name in names])


class _Bytes:
    """A column of bytes that grows: offsets, and what they point into."""

    __slots__ = ("_buffer", "_more", "_most", "_offsets_buffer", "data", "offsets", "used")

    def __init__(self) -> None:
        self._most = self._more = 4096
        self._buffer: pa.Buffer = None
        self._offsets_buffer: pa.Buffer = None
        self.used = 0

    def begin(self, rows: int) -> None:
        self._offsets_buffer = pa.allocate_buffer(4 * (rows + 1))
        self.offsets: Int32 = np.frombuffer(self._offsets_buffer, np.int32)
        self.offsets[0] = 0
        self.used = 0
        self._allocate(self._most)

    def _allocate(self, size: int) -> None:
        self._buffer = pa.allocate_buffer(size + _PADDING)
        self.data: Bytes = np.frombuffer(self._buffer, np.uint8)

    def room(self, more: int) -> None:
        """For so many bytes more."""
        self._more = max(self._more, more)
        size = self.used + more
        if size + _PADDING > len(self.data):
            old = self.data
            self._allocate(max(size, 2 * len(old)))
            self.data[: self.used] = old[: self.used]

    def append(self, values: list[bytes], at: int) -> None:
        """Whole values, from row ``at`` on."""
        joined = b"".join(values)
        self.room(len(joined))
        end = self.used + len(joined)
        self.data[self.used : end] = np.frombuffer(joined, np.uint8)
        ends = np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))
        self.offsets[at + 1 : at + 1 + len(values)] = ends + self.used
        self.used = end

    def empty(self, at: int, count: int) -> None:
        """Nothing, in so many rows."""
        self.offsets[at + 1 : at + 1 + count] = self.used

    def buffers(self, rows: int) -> list[pa.Buffer]:
        # The next batch is as large as this one, mostly; and there must be room to the end.
        self._most, self._more = self.used + max(self._more, self.used // 8), 4096
        return [_trimmed(self._offsets_buffer, 4 * (rows + 1)), _trimmed(self._buffer, self.used)]


class _Column(NamedTuple):
    """A column that a message may have or not, by the presence bit ``bit``."""

    name: str
    bit: int
    slot: int
    type: Any
    """Of NumPy, or None for bytes."""


def _optional(name: str) -> _Column:
    column = NETWORK.columns[name]
    if column.form is Form.SPAN:
        return _Column(name, column.bit, column.slot, None)
    if column.form is Form.UINT64:
        return _Column(name, column.bit, column.slot, np.uint64)
    return _Column(name, column.bit, column.slot, np.int64 if column.wide else np.int32)


_OPTIONAL: Final = {name: _optional(name) for name in SAMPLES.names if name in NETWORK.columns}
_VALUES: Final[dict[str, Callable[[Sample], Any]]] = {
    "encoding": lambda row: _encoding(row[1]),
    "encoding_schema": lambda row: row[1].encoding.schema if type(row[1]) is Put else None,
    "timestamp": lambda row: None if row[1].timestamp is None else row[1].timestamp.time,
    "timestamp_id": lambda row: None if row[1].timestamp is None else row[1].timestamp.id.raw,
    "source_zid": lambda row: None if row[1].source_info is None else row[1].source_info.zid.raw,
    "source_eid": lambda row: None if row[1].source_info is None else row[1].source_info.eid,
    "source_sn": lambda row: None if row[1].source_info is None else row[1].source_info.sn,
    "attachment": lambda row: row[1].attachment,
    "payload": lambda row: row[1].payload if type(row[1]) is Put else b"",
    "qos": lambda row: None if row[2].raw == _DEFAULTS["qos"] else row[2].raw,
}
"""What a sample has in a column, None if nothing."""


def _encoding(body: Put | Del) -> int | None:
    if type(body) is Del:
        return None
    encoding = body.encoding  # type: ignore[union-attr] # a Put
    if encoding.id == _DEFAULTS["encoding"] and encoding.schema is None:
        return None
    return int(encoding.id)


class Collector:
    """Collects up to ``limit`` rows of some columns of `SAMPLES`. `cut` gives them."""

    def __init__(self, limit: int, columns: Iterable[str] | None = None) -> None:
        self.schema = schema_of(columns)
        self.limit = limit
        wanted = set(self.schema.names)
        self._optional = [one for name, one in _OPTIONAL.items() if name in wanted]
        self._spans = {one.name: _Bytes() for one in self._optional if one.type is None}
        self._key = _Bytes() if "key" in wanted else None
        self._bytes = [*self._spans.values(), *([] if self._key is None else [self._key])]
        self._reliable = "reliable" in wanted
        self._time = "time" in wanted
        self._present: UInt64 = np.empty(limit, np.uint64)
        self._single: list[Sample] = []
        self._single_bytes = 0
        self._count = 0
        self._some = 0
        self._begun: dict[str, tuple[Any, npt.NDArray[Any]]] = {}

    def __len__(self) -> int:
        return self._count + len(self._single)

    @property
    def full(self) -> bool:
        """It is time to `cut`."""
        if len(self) >= self.limit or self._single_bytes >= BYTES_MAX:
            return True
        return self._count > 0 and any(one.used >= BYTES_MAX for one in self._bytes)

    @property
    def size(self) -> int:
        """Bytes of payloads, keys and the like so far."""
        return self._single_bytes + (sum(one.used for one in self._bytes) if self._count else 0)

    # One by one.

    def put(self, key: str, body: Put | Del, qos: QoS, reliable: bool, time: int) -> None:
        """A sample by itself. There must be room."""
        self._single.append((key, body, qos, reliable, time))
        self._single_bytes += len(key) + len(body.attachment or b"")
        if type(body) is Put:
            self._single_bytes += len(body.payload)

    def _settle(self) -> None:
        """Turn samples that came one by one into rows."""
        single, self._single = self._single, []
        if not single:
            return
        self._single_bytes = 0
        at, n = self._start(), len(single)
        present = [(_PUT if type(row[1]) is Put else _DEL) << BODY_SHIFT for row in single]
        # Whether it has a schema matters also where that is not wanted.
        with_schema = 1 << _OPTIONAL["encoding_schema"].bit
        schema = _VALUES["encoding_schema"]
        present = [
            word | with_schema if schema(row) is not None else word
            for word, row in zip(present, single, strict=True)
        ]
        for column in self._optional:
            value = _VALUES[column.name]
            values = [value(row) for row in single]
            for i, found in enumerate(values):
                if found is not None:
                    present[i] |= 1 << column.bit
            if column.type is None:
                self._span(column.name, at).append([found or b"" for found in values], at)
            else:
                out = self._numbers(column, at)
                out[at : at + n] = np.array([found or 0 for found in values], column.type)
        words = np.array(present, np.uint64)
        self._present[at : at + n] = words
        self._some |= int(np.bitwise_or.reduce(words))
        if self._key is not None:
            self._key.append([row[0].encode() for row in single], at)
        if self._reliable:
            self._array("reliable", np.uint8)[at : at + n] = [row[3] for row in single]
        if self._time:
            self._array("time", np.int64)[at : at + n] = [row[4] for row in single]
        self._count += n

    # Many at once.

    def room(self, part: Part) -> int:
        """How many rows of a part may be added."""
        return min(self.limit - len(self), max(1, BYTES_MAX // max(1, part.keys.longest)))

    def add(self, part: Part, rows: Int32, first: int, count: int, time: int) -> None:
        """Rows of a part: those in ``rows``, or ``count`` from ``first`` on if it is empty.

        There must be room.
        """
        self._settle()
        at, scan, table = self._start(), part.run.scan, part.run.scan.network
        some, _ = kernels_receive.words(table.present, rows, first, count, at, self._present)
        # All that these rows have is between the start of the first and the end of the last.
        most = _extent(table.int32, rows, first, count)
        for column in self._optional:
            there = some >> column.bit & 1
            if column.type is None:
                if there:
                    span = self._span(column.name, at)
                    span.room(most)
                    span.used = kernels_receive.spans(
                        scan.buffer,
                        table.int32[column.slot],
                        table.int32[column.slot + 1],
                        table.present,
                        1 << column.bit,
                        rows,
                        first,
                        count,
                        at,
                        span.used,
                        span.offsets,
                        span.data,
                    )
                elif column.name in self._begun:
                    self._spans[column.name].empty(at, count)
            elif there:
                self._copy(column, table, rows, first, count, at)
        self._some |= some
        if self._key is not None:
            keys, key = part.keys, self._key
            key.room(count * keys.longest)
            key.used = kernels_receive.texts(
                part.route,
                rows,
                first,
                count,
                keys.ends,
                keys.text,
                at,
                key.used,
                key.offsets,
                key.data,
            )
        if self._reliable:
            self._array("reliable", np.uint8)[at : at + count] = part.reliable
        if self._time:
            self._array("time", np.int64)[at : at + count] = time
        self._count += count

    def _copy(  # noqa: PLR0917
        self, column: _Column, table: Table, rows: Int32, first: int, count: int, at: int
    ) -> None:
        out = self._numbers(column, at)
        bit, slot = 1 << column.bit, column.slot
        if column.type is np.uint64:
            copy, source = kernels_receive.numbers64, table.uint64[slot]
        elif column.type is np.int64:
            copy, source = kernels_receive.numbers_wide, table.int32[slot]
        else:
            copy, source = kernels_receive.numbers, table.int32[slot]
        copy(source, table.present, bit, rows, first, count, at, out)

    # Arrays.

    def _start(self) -> int:
        """The row that comes next."""
        if not self._count and not self._begun:
            self._some = 0
            if self._key is not None:
                self._key.begin(self.limit)
        return self._count

    def _array(self, name: str, kind: Any) -> npt.NDArray[Any]:
        begun = self._begun.get(name)
        if begun is None:
            size = np.dtype(kind).itemsize
            buffer = pa.allocate_buffer(size * self.limit)
            begun = self._begun[name] = buffer, np.frombuffer(buffer, kind)
        return begun[1]

    def _numbers(self, column: _Column, at: int) -> npt.NDArray[Any]:
        new = column.name not in self._begun
        out = self._array(column.name, column.type)
        if new:
            out[:at] = 0
        return out

    def _span(self, name: str, at: int) -> _Bytes:
        span = self._spans[name]
        if name not in self._begun:
            self._begun[name] = None, self._present
            span.begin(self.limit)
            span.empty(0, at)
        return span

    # The batch.

    def cut(self) -> pa.RecordBatch | None:
        """What was collected; None if nothing was."""
        self._settle()
        n = self._count
        if not n:
            return None
        arrays = [self._made(field, n) for field in self.schema]
        self._count, self._begun = 0, {}
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _made(self, field: pa.Field, n: int) -> pa.Array:
        name, begun = field.name, self._begun.get(field.name)
        column = _OPTIONAL.get(name)
        if name == "key":
            assert self._key is not None
            return pa.Array.from_buffers(field.type, n, [None, *self._key.buffers(n)], null_count=0)
        if name == "kind":
            # Not by pa.array, which loads pandas.
            buffer = pa.allocate_buffer(n)
            kinds = np.frombuffer(buffer, np.uint8)
            kernels_receive.kinds(self._present, n, BODY_SHIFT, _DEL, DELETE, PUT, kinds)
            return pa.Array.from_buffers(field.type, n, [None, buffer], null_count=0)
        if name == "reliable":
            assert begun is not None
            bits = np.packbits(begun[1][:n], bitorder="little")
            return pa.Array.from_buffers(field.type, n, [None, pa.py_buffer(bits)], null_count=0)
        if name == "time":
            assert begun is not None
            return pa.Array.from_buffers(field.type, n, [None, _trimmed(begun[0], 8 * n)])
        assert column is not None
        if begun is None:
            return _nothing(field, n)
        validity, nulls = None, 0
        if field.nullable:
            validity, nulls = self._validity(column, n)
        if column.type is None:
            buffers = self._spans[name].buffers(n)
        else:
            buffers = [_trimmed(begun[0], n * np.dtype(column.type).itemsize)]
        return pa.Array.from_buffers(field.type, n, [validity, *buffers], null_count=nulls)

    def _validity(self, column: _Column, n: int) -> tuple[pa.Buffer, int]:
        """Which rows have the column: an explicit default is none, as objects do not tell it."""
        default = _DEFAULTS.get(column.name)
        if default is not None:
            values = self._begun[column.name][1]
            schema = 1 << _OPTIONAL["encoding_schema"].bit if column.name == "encoding" else 0
            kernels_receive.forget(self._present, n, 1 << column.bit, schema, values, default)
        bits = pa.allocate_buffer(n + 7 >> 3)
        zeros = kernels.bitmap(self._present, column.bit, n, np.frombuffer(bits, np.uint8))
        return bits, zeros


def _trimmed(buffer: pa.Buffer, size: int) -> pa.Buffer:
    """The first ``size`` bytes. A copy if most of the buffer is unused: batches may wait long."""
    if 2 * size >= buffer.size:
        return buffer.slice(0, size)
    return pa.py_buffer(buffer.slice(0, size).to_pybytes())


def _extent(table: Int32, rows: Int32, first: int, count: int) -> int:
    at, end = NETWORK.fixed.index("at"), NETWORK.fixed.index("end")
    start, last = (int(rows[0]), int(rows[-1])) if len(rows) else (first, first + count - 1)
    return int(table[end, last] - table[at, start])


def _nothing(field: pa.Field, n: int) -> pa.Array:
    """A column that no row has."""
    if not field.nullable:
        offsets = pa.py_buffer(bytes(4 * (n + 1)))
        return pa.Array.from_buffers(field.type, n, [None, offsets, pa.py_buffer(b"")])
    nulls = _NULLS.get(field.type)
    if nulls is None:
        nulls = _NULLS[field.type] = pa.nulls(ROWS, field.type)
    return nulls.slice(0, n) if n <= ROWS else pa.nulls(n, field.type)


_NULLS: Final[dict[pa.DataType, pa.Array]] = {}
