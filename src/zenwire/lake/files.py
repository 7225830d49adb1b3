"""Parquet files of a lake: how they are written, and the statistics that a commit carries."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from zenwire.lake.address import Address

__all__ = ["DataFile", "FileWriter", "read_file"]

_UNIQUE: Final = {"offset", "number", "payload", "ntp64", "source_sn", "received_ns", "received_at"}
"""Columns whose values rarely repeat: building a dictionary of them costs half of the write."""
_INCREASING: Final = {"offset", "number", "received_ns", "received_at"}
_NO_STATISTICS: Final = {"payload", "value", "attachment"}
_PRUNED: Final = ("key", "received_at", "offset", "spool", "window_start")
"""Columns whose minimum and maximum go into the commit: readers skip files by them."""
_PROBES: Final = 64
_PROBE_BYTES: Final = 4096
"""Payloads, and bytes of each, that are compressed to find out whether it pays."""
_INCOMPRESSIBLE: Final = 0.95


@dataclass(frozen=True)
class DataFile:
    """A complete file of a table. ``path`` is relative to the table.

    ``low`` and ``high`` hold the least and the greatest value of the columns that readers prune by.
    """

    path: str
    rows: int
    size: int
    partition: dict[str, str] = field(default_factory=dict)
    low: dict[str, Any] = field(default_factory=dict)
    high: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values, for the way from a task to the driver."""
        return {**vars(self)}

    @classmethod
    def of_json(cls, given: dict[str, Any]) -> Self:
        return cls(**given)


class FileWriter:
    """Writes one Parquet file. The file counts only after ``close`` has returned."""

    def __init__(
        self, address: Address, table: str, partition: dict[str, str], first: pa.Table
    ) -> None:
        """``first`` decides about dictionaries and compression; it is not written yet."""
        folder = "".join(f"{name}={value}/" for name, value in partition.items())
        self.path = f"{folder}{uuid.uuid4().hex}.parquet"
        self.rows = self.bytes = 0
        self._address = address
        self._table = table
        self._partition = partition
        self._collected: list[pq.FileMetaData] = []
        files = address.files
        files.create_dir(f"{table}/{folder}".rstrip("/"), recursive=True)
        names = set(first.schema.names)
        self._out = files.open_output_stream(f"{table}/{self.path}", compression=None)
        self._writer = pq.ParquetWriter(
            self._out,
            first.schema,
            compression=_compression(first),
            store_schema=False,
            use_dictionary=sorted(names - _UNIQUE),
            column_encoding=dict.fromkeys(sorted(names & _INCREASING), "DELTA_BINARY_PACKED"),
            write_statistics=sorted(names - _NO_STATISTICS),
            metadata_collector=self._collected,
        )

    def write(self, rows: pa.Table) -> None:
        """Append rows as one row group."""
        self._writer.write_table(rows, row_group_size=max(rows.num_rows, 1))
        self.rows += rows.num_rows
        self.bytes += rows.nbytes

    @property
    def written(self) -> int:
        """Bytes of the file so far."""
        return int(self._out.tell())

    def close(self) -> DataFile:
        """Complete the file, flush it to the disk, and describe it."""
        self._writer.close()
        size = self._out.tell()
        self._out.close()
        self._address.sync(f"{self._table}/{self.path}")
        low, high = _bounds(self._collected[0])
        return DataFile(self.path, self.rows, size, self._partition, low, high)

    def abandon(self) -> None:
        """Close without completing: the file stays behind unreferenced, vacuum removes it."""
        self._out.close()


def read_file(
    address: Address, table: str, path: str, columns: list[str] | None = None
) -> pa.Table:
    """Read a whole file of a table. For files of derived tables, which are small."""
    with address.files.open_input_file(f"{table}/{path}") as file:
        return pq.read_table(file, columns=columns)


def _compression(rows: pa.Table) -> dict[str, str] | str:
    """zstd, except for payloads that do not get smaller: images, video, random bytes."""
    if "payload" not in rows.schema.names or _compressible(rows.column("payload")):
        return "zstd"
    leaves = [column for field in rows.schema for column in _leaves(field)]
    return {name: "none" if name == "payload" else "zstd" for name in leaves}


def _leaves(field: pa.Field) -> list[str]:
    """Parquet's names of the columns below a field."""
    kind = field.type
    if pa.types.is_list(kind):
        return [f"{field.name}.list.{name}" for name in _leaves(kind.value_field)]
    if pa.types.is_struct(kind):
        return [f"{field.name}.{name}" for part in kind for name in _leaves(part)]
    return [field.name]


def _compressible(payloads: pa.ChunkedArray) -> bool:
    step = max(1, len(payloads) // _PROBES)
    probe = b"".join(
        (payloads[at].as_py() or b"")[:_PROBE_BYTES] for at in range(0, len(payloads), step)
    )
    if len(probe) < _PROBE_BYTES:
        return True
    return len(pa.compress(probe, "zstd", asbytes=True)) < _INCOMPRESSIBLE * len(probe)


def _bounds(told: pq.FileMetaData) -> tuple[dict[str, Any], dict[str, Any]]:
    """Least and greatest values as JSON has them. A column without complete statistics has none."""
    lows: dict[str, list[Any]] = {}
    highs: dict[str, list[Any]] = {}
    for group in range(told.num_row_groups):
        for at in range(told.num_columns):
            column = told.row_group(group).column(at)
            if column.path_in_schema in _PRUNED:
                known = column.statistics
                complete = known is not None and known.has_min_max
                lows.setdefault(column.path_in_schema, []).append(known.min if complete else None)
                highs.setdefault(column.path_in_schema, []).append(known.max if complete else None)
    low = {name: _json(min(its)) for name, its in lows.items() if None not in its}
    high = {name: _json(max(its)) for name, its in highs.items() if None not in its}
    return low, high


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return value
