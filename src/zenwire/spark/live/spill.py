"""Record batches between a network that does not wait and a reader that may be slow.

Some bytes of them wait in memory, what is more in a file without a name, which ends with the
process. So nothing is dropped, and memory is bounded.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

__all__ = ["MEMORY", "Spill"]

MEMORY: Final = 64 << 20
"""Bytes that wait in memory."""


class Spill:
    """A queue of record batches of one schema. One thread puts, another reads."""

    def __init__(self, schema: pa.Schema, memory: int = MEMORY) -> None:
        self._schema = schema
        self._memory = memory
        self._waiting: deque[pa.RecordBatch | tuple[int, int]] = deque()
        """Batches, or where they are in the file."""
        self._bytes = 0
        self._file: int | None = None
        self._end = 0
        self._over = False
        self._failed: OSError | None = None
        self._changed = threading.Condition()
        self.spilled = 0
        """Batches that went through the file."""

    def put(self, batch: pa.RecordBatch) -> None:
        """Never raises: what the disk does not take is told to the reader."""
        with self._changed:
            if self._failed is not None:
                return
            size = batch.nbytes
            if self._bytes + size <= self._memory or not self._waiting:
                self._bytes += size
                self._waiting.append(batch)
            else:
                try:
                    self._waiting.append(self._write(batch.serialize()))
                except OSError as e:
                    self._failed = e
                else:
                    self.spilled += 1
            self._changed.notify_all()

    def _write(self, data: pa.Buffer) -> tuple[int, int]:
        if self._file is None:
            # Where Spark keeps what does not fit into memory, if it says where.
            folder = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0]
            handle, name = tempfile.mkstemp(dir=folder or None)
            os.unlink(name)  # noqa: PTH108 - of a descriptor's file
            self._file = handle
        at, left = self._end, memoryview(data)
        while left:
            written = os.pwrite(self._file, left, self._end)
            self._end += written
            left = left[written:]
        return at, data.size

    def close(self) -> None:
        """Nothing more comes."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """All that comes, until it is closed. Raises OSError if a disk did not take it."""
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._waiting or self._over or self._failed)
                    if self._failed is not None:
                        raise self._failed
                    if not self._waiting:
                        return
                    batch = self._taken(self._waiting.popleft())
                yield batch
        finally:
            with self._changed:
                if self._file is not None:
                    os.close(self._file)
                    self._file = None

    def _taken(self, one: pa.RecordBatch | tuple[int, int]) -> pa.RecordBatch:
        if isinstance(one, pa.RecordBatch):
            self._bytes -= one.nbytes
            return one
        assert self._file is not None
        at, size = one
        data = os.pread(self._file, size, at)
        if not any(isinstance(other, tuple) for other in self._waiting):
            # All of the file was read: it begins anew.
            os.ftruncate(self._file, 0)
            self._end = 0
        return pa.ipc.read_record_batch(pa.py_buffer(data), self._schema)
