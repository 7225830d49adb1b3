"""Tables as Delta Lake tables: Spark writes the files, delta-rs commits what they are.

The driver handles names and sizes of files only. What a commit replaces stays on disk until
somebody vacuums the table, as always with Delta.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from zenwire.spark.write_layout import Plan, TableError

try:
    from deltalake import DeltaTable, Schema
    from deltalake.exceptions import DeltaError
    from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions
except ImportError:
    raise TableError("Delta tables need deltalake: pip install 'zenwire[delta]'") from None

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DeltaFormat"]

_PARTITION: Final = "capture_id"


class DeltaFormat:
    """One Delta table for each table, partitioned by ``capture_id``."""

    def __init__(self, out: Path) -> None:
        self._out = out

    def has(self, capture: str) -> bool:
        return any(
            capture in found.values()
            for table in self._tables()
            for found in _active(table).values()
        )

    def others(self, table: str, captures: list[str]) -> list[str]:
        path = self._out / table
        if not DeltaTable.is_deltatable(str(path)):
            return []
        active = _active(DeltaTable(str(path)))
        return [
            str(path / name)
            for name, values in active.items()
            if values.get(_PARTITION) not in captures
        ]

    def _tables(self) -> Iterator[DeltaTable]:
        for path in self._out.iterdir():
            if path.is_dir() and DeltaTable.is_deltatable(str(path)):
                yield DeltaTable(str(path))

    def plan(self, staged: Path, captures: dict[str, str]) -> list[Plan]:
        """One commit for each table."""
        files = sorted(staged.rglob("*.parquet"))
        partitioned = any(staged.glob("capture_id=*"))
        told = [
            {
                "path": str(file.relative_to(staged)),
                "size": file.stat().st_size,
                "rows": pq.read_metadata(file).num_rows,
            }
            for file in files
        ]
        if partitioned:
            # A file without rows holds the columns, which the log holds here.
            told = [file for file in told if file["rows"]]
        schema = pq.read_schema(files[0]).remove_metadata()
        if partitioned:
            schema = schema.append(pa.field(_PARTITION, pa.string()))
        return [
            {
                "staged": str(staged),
                "table": str(self._out / staged.name),
                "files": told,
                "captures": [*captures] if partitioned else None,
                "schema": schema.serialize().to_pybytes().hex(),
            }
        ]

    def apply(self, plan: Plan) -> None:
        staged, table = Path(plan["staged"]), Path(plan["table"])
        for file in plan["files"]:
            source, target = staged / file["path"], table / file["path"]
            if source.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                source.rename(target)
        try:
            self._commit(table, plan)
        except DeltaError as e:
            raise TableError(f"{table}: {e}") from None

    def _commit(self, table: Path, plan: Plan) -> None:
        schema = Schema.from_arrow(pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(plan["schema"]))))
        adds = [_add(table, file) for file in plan["files"]]
        by = [] if plan["captures"] is None else [_PARTITION]
        if not DeltaTable.is_deltatable(str(table)):
            table.mkdir(parents=True, exist_ok=True)
            create_table_with_add_actions(str(table), schema, adds, partition_by=by)
            return
        known = DeltaTable(str(table))
        active = _active(known)
        if adds and all(add.path in active for add in adds):
            return
        now = int(time.time() * 1000)
        removes = [
            RemoveAction(name, data_change=True, deletion_timestamp=now)
            for name, values in active.items()
            if plan["captures"] is None or values.get(_PARTITION) in plan["captures"]
        ]
        if adds or removes:
            known.create_write_transaction([*adds, *removes], "append", schema, by)


def _active(table: DeltaTable) -> dict[str, dict[str, str]]:
    """The files of the newest version, with the values of their partition."""
    found = pa.table(table.get_add_actions(flatten=False)).to_pylist()
    return {row["path"]: row.get("partition") or row.get("partition_values") or {} for row in found}


def _add(table: Path, file: Plan) -> AddAction:
    capture = file["path"].split("/")[0].removeprefix(f"{_PARTITION}=")
    values = {_PARTITION: capture} if "/" in file["path"] else {}
    stamp = int((table / file["path"]).stat().st_mtime * 1000)
    stats = json.dumps({"numRecords": file["rows"]})
    return AddAction(file["path"], file["size"], values, stamp, data_change=True, stats=stats)
