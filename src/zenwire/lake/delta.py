"""Delta tables through deltalake.

The offset of a spool is an application transaction: app id is the spool's id, version the end of
its rows. Delta refuses a commit if another one with the same app id came first. It does not compare
removed files, so every commit that removes files also carries the app id ``REWRITE``: of two writers
that replace files of one snapshot, the second is refused.
"""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs as pafs

from zenwire.lake.address import Address
from zenwire.lake.commit import Change
from zenwire.lake.errors import LakeConflictError, LakeError
from zenwire.lake.files import DataFile
from zenwire.lake.schema import Table

try:
    from deltalake import CommitProperties, DeltaTable, Schema, Transaction
    from deltalake.exceptions import CommitFailedError, DeltaError
    from deltalake.transaction import AddAction, RemoveAction
except ImportError:
    raise LakeError("format delta", "needs deltalake: pip install 'zenwire[delta]'") from None

__all__ = ["REWRITE", "DeltaFormat"]

REWRITE: Final = "zenwire.rewrite"
_PARTITION: Final = "partition."
_BOUND: Final = ("min.", "max.")


class DeltaFormat:
    """One Delta table. Created on first use."""

    def __init__(self, address: Address, definition: Table) -> None:
        self.definition = definition
        self._address = address
        self._uri = address.table(definition.name)
        self._options = dict(address.options)
        self._schema = Schema.from_arrow(definition.schema)
        self._table = self._open()

    def _open(self) -> DeltaTable:
        """Raises LakeError."""
        try:
            if self._address.local is not None:
                (self._address.local / self.definition.name).mkdir(parents=True, exist_ok=True)
            table = DeltaTable.create(
                self._uri,
                self._schema,
                mode="ignore",
                partition_by=list(self.definition.partition_by),
                description=self.definition.meaning,
                storage_options=self._options,
            )
            there = {column.name for column in table.schema().fields}
            missing = [column for column in self._schema.fields if column.name not in there]
            if missing:
                table.alter.add_columns(missing)
                table.update_incremental()
        except (DeltaError, OSError) as e:
            raise LakeError(self._uri, str(e)) from None
        return table

    @property
    def version(self) -> int:
        return int(self._table.version())

    def refresh(self) -> None:
        try:
            self._table.update_incremental()
        except (DeltaError, OSError) as e:
            raise LakeError(self._uri, str(e)) from None

    def offset(self, spool_id: str) -> int | None:
        found: int | None = self._table.transaction_version(spool_id)
        return found

    def files(self) -> list[DataFile]:
        actions = pa.table(self._table.get_add_actions(flatten=True))
        return [_data_file(action) for action in actions.to_pylist()]

    def recent(self, keep: timedelta) -> set[str]:
        ends = (time.time() - keep.total_seconds()) * 1000
        found = {file.path for file in self.files()}
        # A file that was removed since then is still referred to by the snapshot before.
        log = sorted(name for name in self._log() if name.endswith(".json"))
        for name in reversed(log):
            with self._address.files.open_input_file(name) as file:
                actions = [json.loads(line) for line in file.read().splitlines()]
            found |= {unquote(a["remove"]["path"]) for a in actions if "remove" in a}
            stamps = [a["commitInfo"]["timestamp"] for a in actions if "commitInfo" in a]
            if stamps and min(stamps) < ends:
                break
        return found

    def _log(self) -> list[str]:
        select = pafs.FileSelector(f"{self.definition.name}/_delta_log", allow_not_found=True)
        return [found.path for found in self._address.files.get_file_info(select)]

    def commit(self, change: Change) -> None:
        if not change:
            return
        now = int(time.time() * 1000)
        moved = not change.rearranges
        actions: list[AddAction | RemoveAction] = [
            AddAction(file.path, file.size, file.partition, now, moved, _statistics(file))
            for file in change.add
        ]
        actions += [
            RemoveAction(file.path, moved, now, file.size, file.partition) for file in change.remove
        ]
        marks = [Transaction(app, version) for app, version in change.offsets.items()]
        if change.remove:
            marks.append(Transaction(REWRITE, (self.offset(REWRITE) or 0) + 1))
        try:
            self._table.create_write_transaction(
                actions,
                "append",
                self._schema,
                list(self.definition.partition_by),
                commit_properties=CommitProperties(app_transactions=marks),
            )
        except CommitFailedError as e:
            self.refresh()
            raise LakeConflictError(self._uri, str(e)) from None
        except (DeltaError, OSError) as e:
            raise LakeError(self._uri, str(e)) from None
        self.refresh()


def _statistics(file: DataFile) -> str:
    return json.dumps({"numRecords": file.rows, "minValues": file.low, "maxValues": file.high})


def _data_file(action: dict[str, Any]) -> DataFile:
    """A file as the log describes it."""
    low, high = (
        {
            name.removeprefix(bound): _plain(value)
            for name, value in action.items()
            if name.startswith(bound) and value is not None
        }
        for bound in _BOUND
    )
    partition = {
        name.removeprefix(_PARTITION): str(value)
        for name, value in action.items()
        if name.startswith(_PARTITION)
    }
    # The log has paths as parts of a URL.
    path = unquote(action["path"])
    return DataFile(path, action["num_records"], action["size_bytes"], partition, low, high)


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int) else value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
