"""``format("zenoh.capture")``: capture files as the ``batches`` table.

Options: ``path`` (or several, as ``load`` takes them) names files, directories or patterns;
``maxPartitionBytes`` is how much one task reads, of small files together or of a large one;
``rotating`` says that the files continue one another, as ``tcpdump -C`` writes them.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from zenwire.capture import SCHEMA, Part, Range, index, read_range
from zenwire.capture.rotation import check, in_turn
from zenwire.columns import Scanner, Spans
from zenwire.errors import CaptureError
from zenwire.spark.schema import struct_of
from zenwire.wire.define import spec_of
from zenwire.wire.network import Declare
from zenwire.wire.transport import Fragment

__all__ = ["BATCHES", "CaptureReader", "CaptureSource", "Ranges", "register", "rows_of"]

MAX_PARTITION_BYTES: Final = 64 << 20

BATCHES: Final = pa.schema(
    [
        *SCHEMA,
        # Whether a FRAGMENT or a DECLARE is in it, true where it is compressed: one may be.
        pa.field("fragments", pa.bool_(), nullable=False),
        pa.field("declares", pa.bool_(), nullable=False),
    ]
)
"""What the source gives: the ``batches`` table, and what tells which of them are wanted."""

_FRAGMENT: Final = np.uint64(spec_of(Fragment).id)
_DECLARE: Final = np.uint64(spec_of(Declare).id)


def register(spark: SparkSession) -> None:
    """For sessions that do not find ``pyspark_zenoh`` by themselves, such as Spark Connect's."""
    spark.dataSource.register(CaptureSource)


class CaptureSource(DataSource):
    """Captured traffic: one row for each transport batch, and one for each fault."""

    @classmethod
    def name(cls) -> str:
        return "zenoh.capture"

    def schema(self) -> StructType:
        return struct_of(BATCHES)

    def reader(self, schema: StructType) -> DataSourceReader:
        return CaptureReader(
            paths_of(self.options),
            positive(self.options, "maxPartitionBytes", MAX_PARTITION_BYTES),
            rotating=_flag(self.options, "rotating"),
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        from zenwire.spark.stream import CaptureStream  # noqa: PLC0415 - it imports this module

        paths = paths_of(self.options)
        if len(paths) > 1:
            raise ValueError("a stream of captures is one directory")
        return CaptureStream(
            paths[0],
            positive(self.options, "maxBytesPerTrigger", 0),
            positive(self.options, "maxPartitionBytes", MAX_PARTITION_BYTES),
        )


@dataclass
class Ranges(InputPartition):
    """What one task reads, one after the other, and faults that it reports beside that."""

    ranges: tuple[Range, ...]
    faults: pa.RecordBatch | None = None


class CaptureReader(DataSourceReader):
    """Plans on the driver, where large files are indexed, and reads ranges in tasks.

    Conditions are left to Spark: it hands those of one scan to all scans of the same relation
    (seen with 4.3), and a table is made of several scans.
    """

    def __init__(self, paths: list[str], partition_bytes: int, *, rotating: bool = False) -> None:
        self._paths = paths
        self._partition_bytes = partition_bytes
        self._rotating = rotating

    def partitions(self) -> list[InputPartition]:
        """Runs on the driver. Raises CaptureError for what is not there or cannot be opened."""
        files = files_of(self._paths)
        if self._rotating:
            parts = tuple(Part(turn.path) for turn in in_turn(files))
            captures = [Range(self._paths[0], parts)]
        else:
            captures = [Range(path, (Part(path),)) for path in files]
        sizes = [sum(Path(part.path).stat().st_size for part in some.parts) for some in captures]
        large = [some for some, size in zip(captures, sizes, strict=True) if self._is_large(size)]
        planned = dict(zip((some.capture for some in large), self._indexed(large), strict=True))
        small = []
        found: list[InputPartition] = []
        for some, size in zip(captures, sizes, strict=True):
            if some.capture in planned:
                found += [Ranges((piece,)) for piece in planned[some.capture]]
            else:
                small.append((some, size))
        found += [Ranges(ranges) for ranges in _pack(small, self._partition_bytes)]
        # Spark takes none for one that is to be read without a plan.
        return found or [Ranges(())]

    def _is_large(self, size: int) -> bool:
        return size > self._partition_bytes

    def _indexed(self, captures: list[Range]) -> list[tuple[Range, ...]]:
        """The compiled code lets other threads run."""
        if not captures:
            return []
        with ThreadPoolExecutor(min(len(captures), os.cpu_count() or 1)) as threads:
            found = threads.map(lambda some: index(some, self._partition_bytes), captures)
            return [one.ranges for one in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Ranges)
        return rows_of(partition)


def rows_of(partition: Ranges) -> Iterator[pa.RecordBatch]:
    """What a task gives."""
    if partition.faults is not None:
        yield _flagged(partition.faults)
    for some in partition.ranges:
        yield from map(_flagged, read_range(some))


# What is in a batch.


@cache
def _scanner() -> Scanner:
    return Scanner()


def _flagged(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows with ``fragments`` and ``declares``."""
    data = batch.column("bytes")
    flags = np.zeros((2, batch.num_rows), np.bool_)
    compressed = _true(batch.column("compression"))
    flags[:, compressed] = True
    # Rows of faults have no bytes, and those of scouting other messages.
    read = data.is_valid().to_numpy(zero_copy_only=False) & ~compressed
    read &= ~_true(batch.column("scouting"))
    low_latency = _true(batch.column("lowlatency"))
    if read.any():
        offsets = np.frombuffer(data.buffers()[1], np.int32)[
            data.offset : data.offset + len(data) + 1
        ]
        content = np.frombuffer(data.buffers()[2], np.uint8)
        for mask, is_low in ((read & ~low_latency, False), (read & low_latency, True)):
            rows = np.flatnonzero(mask)
            if len(rows):
                spans = Spans(offsets[:-1][rows], offsets[1:][rows])
                for scan in _scanner().scan(content, spans, low_latency=is_low):
                    batches = scan.transport.fixed("batch")
                    flags[0, rows[batches[scan.transport.message == _FRAGMENT]]] = True
                    frames = scan.network.fixed("frame")[scan.network.message == _DECLARE]
                    # A message that is in no FRAME names its batch itself.
                    of = np.where(frames < 0, -1 - frames, 0)
                    of[frames >= 0] = batches[frames[frames >= 0]]
                    flags[1, rows[of]] = True
    columns = [*batch.columns, pa.array(flags[0]), pa.array(flags[1])]
    return pa.RecordBatch.from_arrays(columns, schema=BATCHES)


def _true(flags: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    known: np.ndarray[Any, np.dtype[np.bool_]] = pc.fill_null(flags, fill_value=False).to_numpy(
        zero_copy_only=False
    )
    return known


# Options and files.


def positive(options: Mapping[str, str], name: str, default: int) -> int:
    """An option that is a number above 0."""
    text = options.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or not int(text):
        raise ValueError(f"{name} is a number of bytes above 0, not {text!r}")
    return int(text)


def _flag(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "false").lower()
    if text not in ("true", "false"):
        raise ValueError(f"{name} is true or false, not {text!r}")
    return text == "true"


def paths_of(options: Mapping[str, str]) -> list[str]:
    """``load`` hands one path as ``path``, several as a JSON list."""
    several = options.get("paths")
    found = json.loads(several) if several else []
    if options.get("path"):
        found.append(options["path"])
    if not found:
        raise ValueError('zenoh.capture needs a path: .load("captures/*.pcap*")')
    return [_local(path) for path in found]


def _local(path: str) -> str:
    url = urlsplit(path)
    if url.scheme != "file":
        return path
    return unquote(url.path)


def files_of(paths: list[str]) -> list[str]:
    """The files that paths name. Raises CaptureError for what is none, or is no capture."""
    found: dict[str, None] = {}
    for path in paths:
        if Path(path).is_dir():
            names = sorted(str(p) for p in Path(path).iterdir() if p.is_file())
        elif glob.has_magic(path) and not Path(path).exists():
            names = sorted(p for p in glob.iglob(path, recursive=True) if Path(p).is_file())  # noqa: PTH207 - absolute too
        else:
            names = [path]
        if not names:
            raise CaptureError(path, "no such file")
        found |= dict.fromkeys(names)
    for name in found:
        # A missing or unreadable file is said now, not by a task that fails four times.
        check(name)
    return list(found)


def _pack(sizes: list[tuple[Range, int]], limit: int) -> Iterator[tuple[Range, ...]]:
    """Files in order, together while they stay below the limit."""
    together: list[Range] = []
    total = 0
    for some, size in sizes:
        if together and total + size > limit:
            yield tuple(together)
            together, total = [], 0
        together.append(some)
        total += size
    if together:
        yield tuple(together)
