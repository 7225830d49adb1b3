"""Compressed batches of a record batch, expanded together by compiled code.

``zenwire.wire.lz4`` says the same for one block, and why one is wrong.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numba import types

from zenwire.columns.kernels import BYTES, INT32, INT32_OUT, OUT, kernel, ready
from zenwire.errors import DecodeError
from zenwire.wire import expand_batch
from zenwire.wire.batch import BATCH_MAX

__all__ = ["expanded"]

I = types.int64  # noqa: E741 - as the other kernels name it


def expanded(blocks: pa.Array) -> tuple[pa.Array, list[tuple[int, DecodeError]]]:
    """The contents, and which blocks are none and why; the content of those is empty."""
    n = len(blocks)
    _, buffer, values = blocks.buffers()
    at = np.frombuffer(buffer, np.int32)[blocks.offset : blocks.offset + n + 1]
    data = np.frombuffer(values, np.uint8) if values else np.zeros(0, np.uint8)
    sizes = np.empty(n, np.int32)
    ready(measure)(data, at, n, BATCH_MAX, sizes)
    bad = []
    for i in np.flatnonzero(sizes < 0).tolist():
        try:
            expand_batch(blocks[i].as_py())
        except DecodeError as e:
            bad.append((i, e))
    sizes[sizes < 0] = 0
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] >= 2**31:
        raise ValueError("batches of 2 GiB or more at once: lower arrow.maxRecordsPerBatch")
    out = np.empty(int(offsets[-1]), np.uint8)
    ends = offsets.astype(np.int32)
    ready(fill)(data, at, n, ends, out)
    content: list[pa.Buffer | None] = [None, pa.py_buffer(ends), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.binary(), n, content), bad


def _read_length(data, pos, end, value):  # type: ignore[no-untyped-def] # compiled
    """The length that goes on in more bytes, and where it ends; -1 if nowhere."""
    if value < 15:
        return value, pos
    while pos < end:
        byte = I(data[pos])
        pos += 1
        value += byte
        if byte < 255:
            return value, pos
    return I(-1), pos


def _measure(data, at, n, limit, sizes):  # type: ignore[no-untyped-def] # compiled
    """How large each block expands; -1 for one that is damaged or expands above the limit."""
    for i in range(n):
        pos, end = I(at[i]), I(at[i + 1])
        size = I(0)
        if pos < end and data[pos] == 0:
            size = end - pos - 1
            if size > limit:
                size = I(-1)
        elif pos < end and data[pos] == 1:
            pos += 1
            size = _walk(data, pos, end, limit)
        elif pos < end:
            size = I(-1)
        sizes[i] = size


def _walk_block(data, pos, end, limit):  # type: ignore[no-untyped-def] # compiled
    size = I(0)
    while pos < end:
        token = I(data[pos])
        literals, pos = _length(data, pos + 1, end, token >> 4)
        if literals < 0 or literals > end - pos or size + literals > limit:
            return I(-1)
        size += literals
        pos += literals
        if pos == end:
            return size
        if pos + 2 > end:
            return I(-1)
        offset = I(data[pos]) | I(data[pos + 1]) << 8
        match, pos = _length(data, pos + 2, end, token & 15)
        if match < 0 or offset < 1 or offset > size or size + match + 4 > limit:
            return I(-1)
        size += match + 4
    return I(-1)


def _fill(data, at, n, offsets, out):  # type: ignore[no-untyped-def] # compiled
    """Writes the blocks that were measured; nothing is checked again."""
    for i in range(n):
        pos, end = I(at[i]), I(at[i + 1])
        to, stop = I(offsets[i]), I(offsets[i + 1])
        if to == stop:
            continue
        stored = data[pos] == 0
        pos += 1
        if stored:
            out[to:stop] = data[pos:end]
            continue
        while True:
            token = I(data[pos])
            literals, pos = _length(data, pos + 1, end, token >> 4)
            out[to : to + literals] = data[pos : pos + literals]
            pos += literals
            to += literals
            if pos == end:
                break
            offset = I(data[pos]) | I(data[pos + 1]) << 8
            match, pos = _length(data, pos + 2, end, token & 15)
            # A match may run into what it is itself writing.
            for _ in range(match + 4):
                out[to] = out[to - offset]
                to += 1


_PAIR = types.UniTuple(I, 2)  # type: ignore[no-untyped-call] # Numba has no types
_length = kernel(_PAIR(BYTES, I, I, I))(_read_length)
_walk = kernel(I(BYTES, I, I, I))(_walk_block)
measure = kernel(types.void(BYTES, INT32, I, I, INT32_OUT))(_measure)
fill = kernel(types.void(BYTES, INT32, I, INT32, OUT))(_fill)
