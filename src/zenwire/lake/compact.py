"""Compaction: small files of a partition become few large ones, clustered by key.

The rows stay the same, so streams that read the table have nothing to do. One compaction takes a
bounded number of bytes, of the partition that has the most small files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from zenwire.lake.address import Address
from zenwire.lake.files import DataFile, FileWriter
from zenwire.lake.schema import TABLES

__all__ = ["TARGET", "chosen", "compacted"]

TARGET: Final = 128 << 20
"""Bytes of a file that small ones are put together to."""
SMALL_FILES: Final = 16
"""Small files of a partition that is still written to, from which on it is compacted."""
_AT_ONCE: Final = 2
"""Files of the target's size that one compaction makes."""
_SORT_BYTES: Final = 96 << 20
"""Bytes of rows that are sorted and written at once."""
_ORDER: Final = {"samples": ("key", "received_ns"), "losses": ("spool", "number")}


def chosen(
    table: str, files: Sequence[DataFile], *, target: int = TARGET, everything: bool = False
) -> list[DataFile]:
    """Files to compact next; none if no partition needs it.

    ``everything``: a partition that is still written to counts as finished too.
    """
    if table not in _ORDER:
        return []
    partitions: dict[tuple[str, ...], list[DataFile]] = {}
    for file in files:
        partitions.setdefault(tuple(file.partition.values()), [])
        if file.size < target // 2:
            partitions[tuple(file.partition.values())].append(file)
    newest = max(partitions, default=())
    worst: list[DataFile] = []
    for where, small in partitions.items():
        finished = everything or (where != newest and bool(where))
        if len(small) >= (2 if finished else SMALL_FILES) and len(small) > len(worst):
            worst = small
    taken: list[DataFile] = []
    size = 0
    for file in sorted(worst, key=lambda file: str(file.low.get("received_at", ""))):
        size += file.size
        if taken and size > _AT_ONCE * target:
            break
        taken.append(file)
    return taken if len(taken) > 1 else []


def compacted(
    address: Address, table: str, files: Sequence[DataFile], target: int = TARGET
) -> list[DataFile]:
    """Write the rows of files of one partition as fewer files. Raises OSError."""
    made: list[DataFile] = []
    writer: FileWriter | None = None
    try:
        for rows in _sorted_runs(address, table, files):
            if writer is None:
                writer = FileWriter(address, table, files[0].partition, rows)
            writer.write(rows)
            if writer.written >= target:
                made.append(writer.close())
                writer = None
        if writer is not None:
            made.append(writer.close())
            writer = None
    finally:
        if writer is not None:
            writer.abandon()
    return made


def _sorted_runs(address: Address, table: str, files: Sequence[DataFile]) -> Iterator[pa.Table]:
    """Rows that fit into memory, sorted. No file is read as a whole."""
    waiting: list[pa.Table] = []
    size = 0
    for file in files:
        with (
            address.files.open_input_file(f"{table}/{file.path}") as source,
            pq.ParquetFile(source) as parquet,
        ):
            for group in range(parquet.num_row_groups):
                rows = _whole(table, parquet.read_row_group(group))
                waiting.append(rows)
                size += rows.nbytes
                if size >= _SORT_BYTES:
                    yield _sorted(table, waiting)
                    waiting, size = [], 0
    if waiting:
        yield _sorted(table, waiting)


def _whole(table: str, rows: pa.Table) -> pa.Table:
    """With all columns of the table: files of an earlier version may lack some."""
    schema = TABLES[table].file_schema
    columns = [
        rows.column(f.name) if f.name in rows.schema.names else pa.nulls(rows.num_rows, f.type)
        for f in schema
    ]
    return pa.table(columns, schema=schema)


def _sorted(table: str, waiting: list[pa.Table]) -> pa.Table:
    order = [(name, "ascending") for name in _ORDER[table]]
    return pa.concat_tables(waiting).sort_by(order)
