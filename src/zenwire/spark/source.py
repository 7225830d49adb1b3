"""``format("zenoh.capture")``: capture files as the ``batches`` table.

Options: ``path`` (or several, as ``load`` takes them) names files, directories or patterns;
``maxPartitionBytes`` is how much one task reads, of small files together or of a large one;
``rotating`` says that the files continue one another, as ``tcpdump -C`` writes them. ``task`` is
what the tables ask for instead of ``batches`` (``spark/tables/tasks.py``).
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
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
from zenwire.errors import CaptureError
from zenwire.spark.relation import SOURCE
from zenwire.spark.schema import struct_of
from zenwire.spark.table_options import is_table, keep_options, options_with, own_options
from zenwire.spark.tables.tasks import Task

__all__ = ["CaptureReader", "CaptureSource", "Ranges", "register", "rows_of"]

MAX_PARTITION_BYTES: Final = 64 << 20
_INDEXED: Final[dict[object, tuple[Range, ...]]] = {}
_INDEXED_MAX: Final = 16


def register(spark: SparkSession) -> None:
    """For sessions that do not find ``pyspark_zenoh_capture`` by themselves, such as Spark Connect's."""
    spark.dataSource.register(CaptureSource)


class CaptureSource(DataSource):
    """Captured traffic: one row for each transport batch, and one for each fault."""

    @classmethod
    def name(cls) -> str:
        return SOURCE

    def schema(self) -> StructType:
        options = own_options(self.options)
        task = _task(options)
        columns = struct_of(SCHEMA if task is None else task.schema)
        if not is_table(self.options):
            return columns
        paths_of(options)
        return keep_options(columns, options)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = options_with(schema, self.options)
        return CaptureReader(
            paths_of(options),
            positive(options, "maxPartitionBytes", MAX_PARTITION_BYTES),
            rotating=_flag(options, "rotating"),
            task=_task(options),
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        from zenwire.spark.stream import CaptureStream  # noqa: PLC0415 - it imports this module

        options = options_with(schema, self.options)
        paths = paths_of(options)
        if len(paths) > 1:
            raise ValueError("a stream of captures is one directory")
        return CaptureStream(
            paths[0],
            positive(options, "maxBytesPerTrigger", 0),
            positive(options, "maxPartitionBytes", MAX_PARTITION_BYTES),
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

    def __init__(
        self,
        paths: list[str],
        partition_bytes: int,
        *,
        rotating: bool = False,
        task: Task | None = None,
    ) -> None:
        self._task = task
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
            return list(threads.map(self._index, captures))

    def _index(self, capture: Range) -> tuple[Range, ...]:
        # Several scans make a table, and one process may plan them all.
        stats = [Path(part.path).stat() for part in capture.parts]
        key = capture, self._partition_bytes, *((s.st_ino, s.st_size, s.st_mtime_ns) for s in stats)
        found = _INDEXED.get(key)
        if found is None:
            found = index(capture, self._partition_bytes).ranges
            if len(_INDEXED) >= _INDEXED_MAX:
                _INDEXED.clear()
            _INDEXED[key] = found
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Ranges)
        if self._task is None:
            return rows_of(partition)
        # What a range holds of a stream is all of it from the first batch to the last.
        made = (self._task.read(read_range(some), in_order=True) for some in partition.ranges)
        return chain.from_iterable(made)


def rows_of(partition: Ranges) -> Iterator[pa.RecordBatch]:
    """What a task gives."""
    if partition.faults is not None:
        yield partition.faults
    for some in partition.ranges:
        yield from read_range(some)


# Options and files.


def _task(options: Mapping[str, str]) -> Task | None:
    text = options.get("task")
    return None if text is None else Task.from_text(text)


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
        raise ValueError(
            'zenoh.capture needs a path: .load("captures/*.pcap*"), or in SQL CREATE TABLE t USING '
            "`zenoh.capture` OPTIONS (path 'captures/*.pcap*'), without columns"
        )
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
