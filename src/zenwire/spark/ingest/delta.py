"""A lake of Delta tables: Spark writes the files, delta-rs commits what they are.

A commit of a table is one version of it, so that readers see all of a micro-batch or none, and
files that are gone stay on disk until somebody vacuums the table. VARIANT is JSON text.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from zenwire.spark.ingest.journal import Plan, sync
from zenwire.spark.write_layout import TableError

try:
    from deltalake import DeltaTable, Schema
    from deltalake.exceptions import DeltaError
    from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions
except ImportError:
    raise TableError("Delta tables need deltalake: pip install 'zenwire[delta]'") from None

if TYPE_CHECKING:
    from zenwire.spark.ingest.lake import Change

__all__ = ["DeltaStore"]


class DeltaStore:
    """One Delta table for each table."""

    variants = False

    def __init__(self, out: Path) -> None:
        self._out = out

    def files(self, table: str, below: str = "") -> list[str]:
        path = self._out / table
        if not DeltaTable.is_deltatable(str(path)):
            return []
        inside = f"{below}/" if below else ""
        return sorted(name for name in _active(DeltaTable(str(path))) if name.startswith(inside))

    def name(self, stem: str, batch: int) -> str:
        """Another one each time: what was there stays for those who read it."""
        return f"{stem}-b{batch:012d}.parquet"

    def plan(self, change: Change) -> list[Plan]:
        schema = pq.read_schema(next(iter(change.add))).remove_metadata()
        for name in change.partitions:
            schema = schema.append(pa.field(name, pa.string()))
        files = [
            {
                "from": str(path.relative_to(self._out)),
                "to": name,
                "size": path.stat().st_size,
                "rows": pq.read_metadata(path).num_rows,
            }
            for path, name in change.add.items()
        ]
        return [
            {
                "table": change.table,
                "files": files,
                "gone": [*change.remove],
                "by": [*change.partitions],
                "schema": schema.serialize().to_pybytes().hex(),
            }
        ]

    def apply(self, plan: Plan) -> None:
        root = self._out / plan["table"]
        for file in plan["files"]:
            source, target = self._out / file["from"], root / file["to"]
            if source.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                source.replace(target)
                sync([target.parent])
        try:
            _commit(root, plan)
        except DeltaError as e:
            raise TableError(f"{root}: {e}") from None


def _commit(root: Path, plan: Plan) -> None:
    schema = Schema.from_arrow(pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(plan["schema"]))))
    adds = [_add(root, file, plan["by"]) for file in plan["files"]]
    if not DeltaTable.is_deltatable(str(root)):
        root.mkdir(parents=True, exist_ok=True)
        create_table_with_add_actions(str(root), schema, adds, partition_by=plan["by"])
        return
    known = DeltaTable(str(root))
    active = _active(known)
    new = [add for add in adds if add.path not in active]
    gone = [name for name in plan["gone"] if name in active]
    now = int(time.time() * 1000)
    removes = [RemoveAction(name, data_change=True, deletion_timestamp=now) for name in gone]
    there = {column.name for column in known.schema().fields}
    more = [column for column in schema.fields if column.name not in there]
    if more:
        known.alter.add_columns(more)
    if new or removes:
        known.create_write_transaction([*new, *removes], "append", known.schema(), plan["by"])


def _active(table: DeltaTable) -> set[str]:
    found = pa.table(table.get_add_actions(flatten=False)).column("path").to_pylist()
    # The log has them as parts of an address.
    return set(map(unquote, found))


def _add(root: Path, file: Plan, by: list[str]) -> AddAction:
    parts = dict(part.split("=", 1) for part in file["to"].split("/")[: len(by)])
    values = {name: unquote(parts[name]) for name in by}
    stamp = int((root / file["to"]).stat().st_mtime * 1000)
    stats = json.dumps({"numRecords": file["rows"]})
    return AddAction(file["to"], file["size"], values, stamp, data_change=True, stats=stats)
