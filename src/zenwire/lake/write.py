"""One pass over a range of a spool: Parquet files of ``samples`` and partial results beside them.

Rows keep their arrival order and are never copied for sorting: payloads would be most of the work.
Compaction clusters them by key later.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

from zenwire.lake import key_stats, latest
from zenwire.lake.address import PARTIALS, Address
from zenwire.lake.decode import decoded
from zenwire.lake.files import DataFile, FileWriter
from zenwire.lake.payloads.messages import Definitions
from zenwire.lake.rows import Origin, loss_rows, sample_rows
from zenwire.spool import Spool

__all__ = ["Range", "Written", "read_partial", "write_losses", "write_range"]

GROUP_BYTES: Final = 64 << 20
"""Bytes of rows that become one row group."""
GROUP_ROWS: Final = 1 << 20
FILE_BYTES: Final = 512 << 20
"""Bytes of rows after which a range begins another file."""
_DAY: Final = 86_400_000_000_000


@dataclass(frozen=True)
class Range:
    """Offsets of one spool, from ``first`` up to ``end``. ``path`` is the spool's address."""

    path: str
    spool: str
    id: str
    first: int
    end: int


@dataclass
class Written:
    """Result of a range. Paths of ``newest``, ``counts`` and ``segments`` are partial results."""

    id: str
    first: int
    end: int
    samples: list[DataFile] = field(default_factory=list)
    newest: str | None = None
    counts: str | None = None
    segments: str | None = None
    rows: int = 0
    faults: int = 0
    newest_ns: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain values, for the way from a task to the driver."""
        return {**vars(self), "samples": [file.to_json() for file in self.samples]}

    @classmethod
    def of_json(cls, given: dict[str, Any]) -> Written:
        return cls(**{**given, "samples": [DataFile.of_json(f) for f in given["samples"]]})


def write_range(
    address: Address, part: Range, definitions: Definitions, tables: Collection[str]
) -> Written:
    """Write the rows of a range for these tables. Raises SpoolError, LakeError, OSError."""
    writer = _RangeWriter(address, part, tables)
    try:
        for first, batch in Spool.open(part.path).samples.read(part.first, part.end):
            writer.take(first, batch, definitions)
        return writer.close()
    except BaseException:
        writer.abandon()
        raise


class _RangeWriter:
    def __init__(self, address: Address, part: Range, tables: Collection[str]) -> None:
        self._address = address
        self._part = part
        self._tables = tables
        self._waiting: list[pa.RecordBatch] = []
        self._bytes = self._rows = 0
        self._open: dict[str, FileWriter] = {}
        self._newest: list[pa.Table] = []
        self._counts: list[pa.Table] = []
        self._segments: list[pa.Table] = []
        self._written = Written(part.id, part.first, part.end)

    def take(self, first: int, batch: pa.RecordBatch, definitions: Definitions) -> None:
        values = decoded(batch, definitions)
        rows = sample_rows(Origin(self._part.spool, self._part.id, first), batch, values)
        self._waiting.append(rows)
        self._bytes += batch.nbytes
        self._rows += batch.num_rows
        if self._bytes >= GROUP_BYTES or self._rows >= GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        rows = pa.Table.from_batches(self._waiting).unify_dictionaries()
        self._waiting, self._bytes, self._rows = [], 0, 0
        if "samples" in self._tables:
            self._write_samples(rows)
        codes, keys = _codes(rows)
        if "latest" in self._tables:
            self._newest.append(latest.newest(rows, codes, len(keys)))
        if "key_stats" in self._tables:
            counts, segments = key_stats.counted(rows, codes, keys)
            self._counts.append(counts)
            self._segments.append(segments)

    def _write_samples(self, rows: pa.Table) -> None:
        self._written.rows += rows.num_rows
        newest = pc.max(rows.column("received_ns")).as_py()
        self._written.newest_ns = max(self._written.newest_ns, newest)
        self._written.faults += rows.num_rows - rows.column("value_fault").null_count
        for day, some in _by_day(rows):
            file = self._open.get(day)
            if file is None:
                file = self._open[day] = FileWriter(self._address, "samples", {"day": day}, some)
            file.write(some)
            if file.bytes >= FILE_BYTES:
                self._written.samples.append(self._open.pop(day).close())

    def close(self) -> Written:
        """Complete all files."""
        self._flush()
        written = self._written
        written.samples += [file.close() for file in self._open.values()]
        self._open.clear()
        if self._newest:
            written.newest = _write_partial(self._address, latest.merged(self._newest))
        if self._counts:
            written.counts = _write_partial(self._address, pa.concat_tables(self._counts))
            written.segments = _write_partial(self._address, pa.concat_tables(self._segments))
        return written

    def abandon(self) -> None:
        for file in self._open.values():
            file.abandon()


def _codes(rows: pa.Table) -> tuple[np.ndarray, pa.Array]:
    """Number of each row's key, and the keys by number."""
    column = rows.column("key")
    words = column.chunk(0).dictionary
    return np.concatenate([np.asarray(chunk.indices) for chunk in column.chunks]), words


def _by_day(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Runs of rows that were received on the same UTC day."""
    if not rows.num_rows:
        return
    days = rows.column("received_ns").to_numpy() // _DAY
    begins = np.flatnonzero(np.append(True, days[1:] != days[:-1])).tolist()
    for begin, end in zip(begins, [*begins[1:], len(days)], strict=True):
        yield str(np.datetime64(int(days[begin]), "D")), rows.slice(begin, end - begin)


# Losses.


def write_losses(address: Address, spool: Spool, first: int) -> tuple[DataFile | None, int, int]:
    """Write the losses from number ``first`` on: the file, where they end, lost samples."""
    log = spool.losses
    end = log.latest()
    found = [
        loss_rows(Origin(spool.name, spool.id, number), batch)
        for number, batch in log.read(max(first, log.earliest()), end)
    ]
    if not found:
        return None, end, 0
    rows = pa.Table.from_batches(found)
    writer = FileWriter(address, "losses", {}, rows)
    writer.write(rows)
    lost = sum(count or 0 for count in rows.column("count").to_pylist())
    return writer.close(), end, lost


# Partial results. They can be made again from the spool, so they are not synced.


def _write_partial(address: Address, rows: pa.Table) -> str:
    path = f"{PARTIALS}/{uuid.uuid4().hex}.arrow"
    address.files.create_dir(PARTIALS, recursive=True)
    with (
        address.files.open_output_stream(path, compression=None) as out,
        ipc.new_stream(out, rows.schema) as stream,
    ):
        stream.write_table(rows)
    return path


def read_partial(address: Address, path: str) -> pa.Table:
    """Rows of a partial result."""
    with address.files.open_input_file(path) as file, ipc.open_stream(file) as stream:
        return stream.read_all()
