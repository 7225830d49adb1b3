"""Iceberg tables through PyIceberg, with a catalogue in a file beside them (``catalog.db``, SQLite).

The offset of a spool is a property of the snapshot that added its rows, and each snapshot repeats
those of the one before. Iceberg refuses a commit if the table has changed since it was read.

The tables have no partitions as Iceberg knows them; readers skip files by their statistics.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from zenwire.lake.address import Address
from zenwire.lake.commit import Change
from zenwire.lake.errors import LakeConflictError, LakeError
from zenwire.lake.files import DataFile
from zenwire.lake.schema import Table

try:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.conversions import from_bytes
    from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
    from pyiceberg.io.pyarrow import parquet_file_to_data_file
    from pyiceberg.manifest import DataFile as Entry
    from pyiceberg.table import TableProperties
    from pyiceberg.types import LongType, StringType, TimestamptzType
except ImportError:
    raise LakeError(
        "format iceberg", "needs PyIceberg with SQLite: pip install 'zenwire[iceberg]'"
    ) from None

__all__ = ["IcebergFormat"]

_NAMESPACE: Final = "zenwire"
_OFFSET: Final = "zenwire.offset."
_METRICS: Final = "write.metadata.metrics.column.key"
_BOUNDED: Final = (LongType, StringType, TimestamptzType)


class IcebergFormat:
    """One Iceberg table. Created on first use. Local directories only."""

    def __init__(self, address: Address, definition: Table) -> None:
        if address.local is None:
            raise LakeError(str(address), "Iceberg tables need a local directory; use delta")
        self.definition = definition
        self._root = address.local / definition.name
        # Partition columns are not in the files, and an Iceberg table has only columns of files.
        self._schema = definition.file_schema
        address.local.mkdir(parents=True, exist_ok=True)
        self._catalogue = SqlCatalog(
            _NAMESPACE,
            uri=f"sqlite:///{address.local / 'catalog.db'}",
            warehouse=_location(address.local),
        )
        self._table = self._open()
        self._entries = self._read_entries()

    def _open(self) -> Any:
        self._catalogue.create_namespace_if_not_exists(_NAMESPACE)
        name = (_NAMESPACE, self.definition.name)
        try:
            table = self._catalogue.load_table(name)
        except NoSuchTableError:
            table = self._catalogue.create_table_if_not_exists(
                name, self._schema, location=_location(self._root)
            )
        with table.transaction() as change:
            with change.update_schema() as columns:
                columns.union_by_name(self._schema)
            mapping = change.table_metadata.schema().name_mapping.model_dump_json()
            # Whole bounds: derived tables find the file of a key by them.
            change.set_properties({TableProperties.DEFAULT_NAME_MAPPING: mapping, _METRICS: "full"})
        return table.refresh()

    def _read_entries(self) -> dict[str, Entry]:
        """Files of the snapshot by their path in the table."""
        self._snapshot = self._table.metadata.current_snapshot_id
        root = f"{_location(self._root)}/"
        return {
            task.file.file_path.removeprefix(root): task.file
            for task in self._table.scan().plan_files()
        }

    @property
    def version(self) -> int:
        return len(self._table.metadata.snapshots)

    def refresh(self) -> None:
        self._table.refresh()
        if self._table.metadata.current_snapshot_id != self._snapshot:
            self._entries = self._read_entries()

    def offset(self, spool_id: str) -> int | None:
        return self._offsets().get(spool_id)

    def _offsets(self) -> dict[str, int]:
        snapshot = self._table.current_snapshot()
        properties = {} if snapshot is None else snapshot.summary.additional_properties
        return {
            name.removeprefix(_OFFSET): int(value)
            for name, value in properties.items()
            if name.startswith(_OFFSET)
        }

    def files(self) -> list[DataFile]:
        return [self._data_file(path, entry) for path, entry in self._entries.items()]

    def _data_file(self, path: str, entry: Entry) -> DataFile:
        return DataFile(
            path,
            entry.record_count,
            entry.file_size_in_bytes,
            dict(part.split("=", 1) for part in path.split("/")[:-1]),
            self._bounds(entry.lower_bounds),
            self._bounds(entry.upper_bounds),
        )

    def _bounds(self, bounds: dict[int, bytes] | None) -> dict[str, Any]:
        schema = self._table.schema()
        return {
            schema.find_column_name(number): _plain(kind, from_bytes(kind, raw))
            for number, raw in (bounds or {}).items()
            if isinstance(kind := schema.find_type(number), _BOUNDED)
        }

    def recent(self, keep: timedelta) -> set[str]:
        ends = (time.time() - keep.total_seconds()) * 1000
        root = f"{_location(self._root)}/"
        found = set(self._entries)
        for snapshot in self._table.metadata.snapshots:
            if snapshot.timestamp_ms >= ends:
                for task in self._table.scan(snapshot_id=snapshot.snapshot_id).plan_files():
                    found.add(task.file.file_path.removeprefix(root))
        return found

    def commit(self, change: Change) -> None:
        if not change:
            return
        offsets = {**self._offsets(), **change.offsets}
        properties = {f"{_OFFSET}{spool}": str(end) for spool, end in offsets.items()}
        gone = [self._entries[file.path] for file in change.remove]
        try:
            with self._table.transaction() as transaction:
                new = [
                    parquet_file_to_data_file(
                        self._table.io,
                        transaction.table_metadata,
                        _location(self._root / file.path),
                    )
                    for file in change.add
                ]
                snapshots = transaction.update_snapshot(snapshot_properties=properties)
                with snapshots.overwrite() if gone else snapshots.fast_append() as snapshot:
                    for entry in gone:
                        snapshot.delete_data_file(entry)
                    for entry in new:
                        snapshot.append_data_file(entry)
        except CommitFailedException as e:
            self.refresh()
            raise LakeConflictError(str(self._root), str(e)) from None
        except OSError as e:
            raise LakeError(str(self._root), e.strerror or str(e)) from None
        self.refresh()

    def __del__(self) -> None:
        with suppress(AttributeError):
            self._catalogue.engine.dispose()


def _location(path: Path) -> str:
    """As PyIceberg takes it: nothing in it is escaped."""
    return f"file://{path}"


def _plain(kind: Any, value: Any) -> Any:
    if isinstance(kind, TimestamptzType):
        at = datetime.fromtimestamp(value / 1e6, UTC)
        return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return value


class _StatisticsFilter(logging.Filter):
    """Drop PyIceberg's warning for each column without statistics: payloads have none on purpose."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not record.msg.startswith("PyArrow statistics missing")


logging.getLogger("pyiceberg.io.pyarrow").addFilter(_StatisticsFilter())
