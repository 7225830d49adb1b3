"""A lake of Iceberg tables: Spark writes the files, PyIceberg commits what they are.

A commit of a table is one snapshot of it, so that readers see all of a micro-batch or none. The
catalogue is a file beside the tables, ``catalog.db`` (SQLite), with all of them in the namespace
``zenwire``. The tables have no partitions as Iceberg knows them; their files have the statistics by
which readers pass over them. VARIANT is JSON text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from zenwire.spark.ingest.journal import Plan, sync
from zenwire.spark.write_layout import TableError

try:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.exceptions import NoSuchTableError
    from pyiceberg.io.pyarrow import parquet_file_to_data_file
    from pyiceberg.table import Table, TableProperties
except ImportError:
    raise TableError(
        "Iceberg tables need PyIceberg with SQLite: pip install 'zenwire[iceberg]'"
    ) from None

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile

    from zenwire.spark.ingest.lake import Change

__all__ = ["IcebergStore"]

_NAMESPACE: Final = "zenwire"


class IcebergStore:
    """One Iceberg table for each table; its files are where those of Parquet would be."""

    variants = False

    def __init__(self, out: Path) -> None:
        self._out = out

    def files(self, table: str, below: str = "") -> list[str]:
        if not (self._out / "catalog.db").exists():
            return []
        with _catalogue(self._out) as catalogue:
            try:
                active = _active(catalogue.load_table((_NAMESPACE, table)))
            except NoSuchTableError:
                return []
        root, inside = f"{self._out / table}/", f"{below}/" if below else ""
        names = [path.removeprefix(root) for path in active]
        return sorted(name for name in names if name.startswith(inside))

    def name(self, stem: str, batch: int) -> str:
        """Another one each time: what was there stays for those who read it."""
        return f"{stem}-b{batch:012d}.parquet"

    def plan(self, change: Change) -> list[Plan]:
        schema = pq.read_schema(next(iter(change.add))).remove_metadata()
        files = [
            {"from": str(path.relative_to(self._out)), "to": name}
            for path, name in change.add.items()
        ]
        return [
            {
                "table": change.table,
                "files": files,
                "gone": [*change.remove],
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
        with _catalogue(self._out) as catalogue:
            _commit(catalogue, root, plan)


def _commit(catalogue: SqlCatalog, root: Path, plan: Plan) -> None:
    name = (_NAMESPACE, plan["table"])
    schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(plan["schema"])))
    try:
        table = catalogue.load_table(name)
    except NoSuchTableError:
        table = catalogue.create_table(name, schema, location=_location(root))
    active = _active(table)
    new = [str(root / file["to"]) for file in plan["files"]]
    new = [path for path in new if path not in active]
    gone = [active[path] for path in (str(root / n) for n in plan["gone"]) if path in active]
    if not new and not gone:
        return
    with table.transaction() as change:
        with change.update_schema() as columns:
            columns.union_by_name(schema)
        mapping = change.table_metadata.schema().name_mapping.model_dump_json()
        change.set_properties({TableProperties.DEFAULT_NAME_MAPPING: mapping})
        told = [
            parquet_file_to_data_file(table.io, change.table_metadata, _location(Path(path)))
            for path in new
        ]
        snapshots = change.update_snapshot()
        with snapshots.overwrite() if gone else snapshots.fast_append() as snapshot:
            for file in gone:
                snapshot.delete_data_file(file)
            for file in told:
                snapshot.append_data_file(file)


def _location(path: Path) -> str:
    """As PyIceberg takes it: nothing in it is escaped."""
    return f"file://{path}"


def _active(table: Table) -> dict[str, DataFile]:
    """The files of the newest snapshot, by path."""
    return {
        task.file.file_path.removeprefix("file://"): task.file for task in table.scan().plan_files()
    }


@contextmanager
def _catalogue(out: Path) -> Iterator[SqlCatalog]:
    catalogue = SqlCatalog(
        _NAMESPACE, uri=f"sqlite:///{out / 'catalog.db'}", warehouse=_location(out)
    )
    try:
        catalogue.create_namespace_if_not_exists(_NAMESPACE)
        yield catalogue
    finally:
        catalogue.engine.dispose()
