"""The columnar reader: batches to rows, one compiled call for many batches.

``Scanner`` owns the arrays and uses them again for the next call, so what it gives is valid
until then; ``zenwire.columns.arrow`` copies it into Arrow record batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from zenwire.columns import kernels
from zenwire.columns.layout import BODY_SHIFT, MESSAGE_SHIFT, NETWORK, TRANSPORT, Layout
from zenwire.columns.program import compile_program
from zenwire.errors import DecodeError, Fault
from zenwire.wire.batch import BATCH_MAX, STREAM_PREFIX

__all__ = ["Bad", "Rows", "Scan", "Scanner", "Spans", "as_buffer", "split"]

ROWS: Final = 131_072
"""Rows of a table to begin with: a full batch always finds room in it."""

# Columns whose distance is a power of two all fall into the same set of a CPU cache.
_PADDING: Final = 16

Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]


class Spans(NamedTuple):
    """Where batches are in a buffer."""

    starts: Int32
    ends: Int32

    @classmethod
    def of_lengths(cls, lengths: npt.ArrayLike) -> Spans:
        """Batches back to back from the start of the buffer."""
        ends = np.cumsum(np.asarray(lengths, np.int64))
        if len(ends) and ends[-1] >= 2**31:
            raise ValueError("batches of 2 GiB or more: scan them in pieces")
        starts = np.concatenate([np.zeros(1, np.int64), ends])[:-1]
        return cls(starts.astype(np.int32), ends.astype(np.int32))

    @classmethod
    def of_offsets(cls, offsets: Int32) -> Spans:
        """The offsets of an Arrow binary array, one more than there are batches."""
        return cls(np.ascontiguousarray(offsets[:-1]), np.ascontiguousarray(offsets[1:]))


def as_buffer(data: bytes | bytearray | memoryview) -> Bytes:
    """The bytes as an array; they are not copied."""
    return np.frombuffer(data, np.uint8)


@dataclass(frozen=True, slots=True)
class Rows:
    """Messages as columns: ``count`` rows of the arrays are filled.

    ``int32[slot]`` and ``uint64[slot]`` are columns of ``layout``; a value counts only where its
    bit of ``present`` is set.
    """

    layout: Layout
    int32: Int32
    uint64: UInt64
    present: UInt64
    count: int

    @property
    def message(self) -> UInt64:
        """The id of each message."""
        return self.present[: self.count] >> np.uint64(MESSAGE_SHIFT)

    @property
    def body(self) -> UInt64:
        """The id of each message's innermost body, 0 where there is none."""
        return self.present[: self.count] >> np.uint64(BODY_SHIFT) & np.uint64(0xFF)

    def fixed(self, name: str) -> Int32:
        """A column that every row has."""
        return self.int32[self.layout.fixed.index(name), : self.count]


@dataclass(frozen=True, slots=True)
class Bad:
    """Batches that did not decode to their end, as columns."""

    batch: Int32
    fault: Int32
    offset: Int32
    message_at: Int32
    """Where the message starts that was being read."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What a call found in batches ``first`` up to, not including, ``stop``."""

    buffer: Bytes
    spans: Spans
    first: int
    stop: int
    network: Rows
    transport: Rows
    bad: Bad


class Scanner:
    """Reads batches. Not for use by two threads at once: make one for each."""

    def __init__(self, rows: int = ROWS) -> None:
        self._scan = kernels.ready(kernels.scan)
        self._program, self._entry = _compiled()
        self._faults = np.zeros(2, np.uint64)
        self._stack = np.zeros(kernels.STACK, np.uint64)
        self._allocate(max(rows, BATCH_MAX + 1))

    def _allocate(self, rows: int) -> None:
        stride = rows + _PADDING
        # Untouched memory costs nothing, so columns that no message has are free.
        self._int32 = np.empty((NETWORK.int32, stride), np.int32)
        self._uint64 = np.empty((NETWORK.uint64, stride), np.uint64)
        self._present = np.empty(rows, np.uint64)
        self._transport32 = np.empty((TRANSPORT.int32, stride), np.int32)
        self._transport64 = np.empty((TRANSPORT.uint64, stride), np.uint64)
        self._transport_present = np.empty(rows, np.uint64)
        self._bad = np.empty((4, 4096), np.int32)

    def scan(self, buffer: Bytes, spans: Spans, *, low_latency: bool = False) -> Iterator[Scan]:
        """The rows of all batches, in pieces that fit the arrays.

        Each piece is overwritten by the next. Faults are rows of ``Scan.bad``; nothing is raised
        for what is in the bytes. Raises ValueError for batches outside of the buffer.
        """
        starts, ends = spans
        if len(buffer) >= 2**31:
            raise ValueError("a buffer of 2 GiB or more: scan it in pieces")
        if len(starts) != len(ends):
            raise ValueError(f"{len(starts)} starts, {len(ends)} ends")
        first = 0
        while first < len(starts):
            state = np.array([first, 0, 0, 0, 0], np.uint64)
            self._scan(
                buffer,
                starts,
                ends,
                low_latency,
                self._program,
                self._entry,
                self._int32,
                self._uint64,
                self._present,
                self._transport32,
                self._transport64,
                self._transport_present,
                self._bad,
                self._faults,
                self._stack,
                state,
            )
            stop, rows, transport_rows, bad_rows, outside = state.tolist()
            if stop == first and outside:
                raise ValueError(f"batch {first} is outside of the buffer")
            if stop == first:
                self._allocate(int(ends[first] - starts[first]) + 1)
                continue
            yield Scan(
                buffer,
                spans,
                first,
                stop,
                Rows(NETWORK, self._int32, self._uint64, self._present, rows),
                Rows(
                    TRANSPORT,
                    self._transport32,
                    self._transport64,
                    self._transport_present,
                    transport_rows,
                ),
                Bad(*self._bad[:, :bad_rows]),
            )
            first = stop

    def scan_stream(
        self, buffer: Bytes, *, prefix: int = STREAM_PREFIX, low_latency: bool = False
    ) -> Iterator[Scan]:
        """The same for a stream, whose batches have their length before them.

        Raises DecodeError for a batch above the limit; a piece at the end is left alone.
        """
        spans, _ = split(buffer, prefix=prefix)
        return self.scan(buffer, spans, low_latency=low_latency)


def split(
    buffer: Bytes, *, start: int = 0, prefix: int = STREAM_PREFIX, limit: int = BATCH_MAX
) -> tuple[Spans, int]:
    """The whole batches of a stream, and where the rest begins.

    Raises DecodeError for a batch that is longer than ``limit``.
    """
    if prefix not in (2, 4):
        raise ValueError(f"a length has 2 or 4 bytes, not {prefix}")
    if not 0 <= start <= len(buffer):
        raise ValueError(f"{start} is outside of the buffer")
    state = np.array([start, 0], np.int64)
    starts: list[Int32] = []
    ends: list[Int32] = []
    size = min(len(buffer) // prefix + 1, 65_536)
    while True:
        some_starts = np.empty(size, np.int32)
        some_ends = np.empty(size, np.int32)
        n = kernels.split(
            buffer, int(state[0]), len(buffer), prefix, limit, some_starts, some_ends, state
        )
        starts.append(some_starts[:n])
        ends.append(some_ends[:n])
        if state[1]:
            raise DecodeError(Fault(int(state[1])), int(state[0]), "batch", "length above limit")
        if n < size:
            break
    if len(starts) == 1:
        return Spans(starts[0], ends[0]), int(state[0])
    return Spans(np.concatenate(starts), np.concatenate(ends)), int(state[0])


@cache
def _compiled() -> tuple[npt.NDArray[np.uint64], UInt64]:
    program = compile_program()
    rows = np.array(program.rows, np.uint64)
    return rows, np.array(program.transport + program.network, np.uint64)
