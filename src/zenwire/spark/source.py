"""``format("zenoh.capture")``: capture files as the ``batches`` table.

Options: ``path`` (or several, as ``load`` takes them) names files, directories or patterns;
``maxPartitionBytes`` is how much of small files one task reads together.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from zenwire.capture import SCHEMA, read_capture, splits
from zenwire.errors import CaptureError
from zenwire.spark.schema import struct_of

__all__ = ["CaptureReader", "CaptureSource", "Files", "register"]

MAX_PARTITION_BYTES: Final = 128 << 20


def register(spark: SparkSession) -> None:
    """For sessions that do not find ``pyspark_zenoh`` by themselves, such as Spark Connect's."""
    spark.dataSource.register(CaptureSource)


class CaptureSource(DataSource):
    """Captured traffic: one row for each transport batch, and one for each fault."""

    @classmethod
    def name(cls) -> str:
        return "zenoh.capture"

    def schema(self) -> StructType:
        return struct_of(SCHEMA)

    def reader(self, schema: StructType) -> DataSourceReader:
        return CaptureReader(
            _paths(self.options),
            _positive(self.options.get("maxPartitionBytes"), MAX_PARTITION_BYTES),
        )


@dataclass
class Files(InputPartition):
    """What one task reads, file after file."""

    paths: tuple[str, ...]


class CaptureReader(DataSourceReader):
    """A file is read by one task: where a stream is in it shows only from its beginning on."""

    def __init__(self, paths: list[str], partition_bytes: int) -> None:
        self._paths = paths
        self._partition_bytes = partition_bytes

    def partitions(self) -> list[InputPartition]:
        """Runs on the driver. Raises CaptureError for what is not there or cannot be opened."""
        sizes = [(path, Path(path).stat().st_size) for path in _files(self._paths)]
        return [Files(paths) for paths in _pack(sizes, self._partition_bytes)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Files)
        for path in partition.paths:
            yield from read_capture(path)


def _positive(text: str | None, default: int) -> int:
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or not int(text):
        raise ValueError(f"maxPartitionBytes is a number of bytes above 0, not {text!r}")
    return int(text)


def _paths(options: Mapping[str, str]) -> list[str]:
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


def _files(paths: list[str]) -> list[str]:
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
        splits(name)
    return list(found)


def _pack(sizes: list[tuple[str, int]], limit: int) -> Iterator[tuple[str, ...]]:
    """Files in order, together while they stay below the limit."""
    together: list[str] = []
    total = 0
    for path, size in sizes:
        if together and total + size > limit:
            yield tuple(together)
            together, total = [], 0
        together.append(path)
        total += size
    if together:
        yield tuple(together)
