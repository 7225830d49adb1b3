"""Tables as Iceberg tables: Spark writes the files, PyIceberg commits what they are.

The driver handles names and statistics of files only. The catalogue is a file beside the tables,
``catalog.db`` (SQLite), with all of them in the namespace ``zenwire``. Partitions are by
``capture``, whose value is in the files.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from zenwire.spark.write_layout import Plan, TableError, capture_id

try:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.exceptions import NoSuchTableError
    from pyiceberg.expressions import AlwaysTrue, In
    from pyiceberg.table import Table
except ImportError:
    raise TableError(
        "Iceberg tables need PyIceberg with SQLite: pip install 'zenwire[iceberg]'"
    ) from None

__all__ = ["IcebergFormat"]

_NAMESPACE: Final = "zenwire"
_BY: Final = "capture"


class IcebergFormat:
    """One Iceberg table for each table."""

    def __init__(self, out: Path) -> None:
        self._out = out

    def has(self, capture: str) -> bool:
        if not (self._out / "catalog.db").exists():
            return False
        with _catalogue(self._out) as catalogue:
            names = [name for _, name in catalogue.list_tables(_NAMESPACE)]
            tables = (catalogue.load_table((_NAMESPACE, name)) for name in names)
            return any(capture == found for table in tables for found in _active(table).values())

    def others(self, table: str, captures: list[str]) -> list[str]:
        if not (self._out / "catalog.db").exists():
            return []
        with _catalogue(self._out) as catalogue:
            try:
                found = _active(catalogue.load_table((_NAMESPACE, table)))
            except NoSuchTableError:
                return []
        return [path for path, capture in found.items() if capture not in captures]

    def plan(self, staged: Path, captures: dict[str, str]) -> list[Plan]:
        """One commit for each table."""
        files = sorted(staged.rglob("*.parquet"))
        schema = pq.read_schema(files[0]).remove_metadata()
        partitioned = any(staged.glob("capture_id=*"))
        # A file without rows holds the columns, which the catalogue holds here.
        added = [f for f in files if not partitioned or pq.read_metadata(f).num_rows]
        return [
            {
                "staged": str(staged),
                "table": staged.name,
                "files": [str(f.relative_to(staged)) for f in added],
                "captures": [*captures.values()] if partitioned else None,
                "schema": schema.serialize().to_pybytes().hex(),
            }
        ]

    def apply(self, plan: Plan) -> None:
        staged, data = Path(plan["staged"]), self._out / plan["table"] / "data"
        for file in plan["files"]:
            source, target = staged / file, data / file
            if source.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                source.rename(target)
        with _catalogue(self._out) as catalogue:
            _commit(catalogue, data, plan)


def _commit(catalogue: SqlCatalog, data: Path, plan: Plan) -> None:
    name = (_NAMESPACE, plan["table"])
    whole = plan["captures"] is None
    try:
        table = catalogue.load_table(name)
    except NoSuchTableError:
        schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(plan["schema"])))
        table = catalogue.create_table(name, schema, location=_location(data.parent))
        if not whole:
            with table.update_spec() as spec:
                spec.add_identity(_BY)
    added = [_location(data / file) for file in plan["files"]]
    active = {Path(path) for path in _active(table)}
    if added and all(data / file in active for file in plan["files"]):
        return
    with table.transaction() as change:
        if active:
            change.delete(AlwaysTrue() if whole else In(_BY, plan["captures"]))
        if added:
            change.add_files(added)


def _location(path: Path) -> str:
    """As PyIceberg takes it: nothing in it is escaped."""
    return f"file://{path}"


def _active(table: Table) -> dict[str, str]:
    """The files of the newest version, with the id of their capture."""
    found = {}
    for task in table.scan().plan_files():
        path = task.file.file_path.removeprefix("file://")
        values = task.file.partition
        found[path] = capture_id(values[0]) if len(values) else ""
    return found


@contextmanager
def _catalogue(out: Path) -> Iterator[SqlCatalog]:
    with warnings.catch_warnings():
        # A delete that finds nothing is no news: a capture that is read for the first time.
        warnings.filterwarnings("ignore", message="Delete operation did not match any records")
        catalogue = SqlCatalog(
            _NAMESPACE, uri=f"sqlite:///{out / 'catalog.db'}", warehouse=_location(out)
        )
        try:
            catalogue.create_namespace_if_not_exists(_NAMESPACE)
            yield catalogue
        finally:
            catalogue.engine.dispose()
