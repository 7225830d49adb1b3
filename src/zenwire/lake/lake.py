"""A lake: its tables in one format, opened together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from zenwire.lake.address import Address
from zenwire.lake.commit import CommittedTable
from zenwire.lake.errors import LakeError
from zenwire.lake.schema import TABLES, Table

__all__ = ["FORMATS", "Lake", "format_of", "is_lake"]


def _delta(address: Address, definition: Table) -> CommittedTable:
    from zenwire.lake.delta import DeltaFormat  # noqa: PLC0415 - an extra of its own

    return DeltaFormat(address, definition)


def _iceberg(address: Address, definition: Table) -> CommittedTable:
    from zenwire.lake.iceberg import IcebergFormat  # noqa: PLC0415 - an extra of its own

    return IcebergFormat(address, definition)


FORMATS: Final[dict[str, Callable[[Address, Table], CommittedTable]]] = {
    "delta": _delta,
    "iceberg": _iceberg,
}


class Lake:
    """The tables of one address. All of them exist, empty, from the first opening on.

    Raises LakeError.
    """

    def __init__(
        self,
        where: str | Path | Address,
        format: str = "delta",
        options: Mapping[str, str] | None = None,
    ) -> None:
        if format not in FORMATS:
            raise LakeError(str(where), f"no format {format}; use {', '.join(FORMATS)}")
        self.address = where if isinstance(where, Address) else Address.of(where, options)
        self.format = format
        self._check()
        self.tables = {name: FORMATS[format](self.address, table) for name, table in TABLES.items()}

    def _check(self) -> None:
        """Refuse a directory whose tables have another format, or are not a lake's."""
        root = self.address.local
        if root is None or not root.exists():
            return
        if not root.is_dir():
            raise LakeError(str(root), "is a file; a lake is a directory")
        there = _found(root)
        if there is None and any((root / name).is_dir() for name in TABLES):
            reason = "has tables that are plain Parquet, of an earlier version or another program"
            raise LakeError(str(root), f"{reason}; give another directory")
        if there not in (None, self.format):
            raise LakeError(str(root), f"has tables of format {there}; use that format")

    def __getitem__(self, name: str) -> CommittedTable:
        return self.tables[name]

    def refresh(self) -> None:
        """Read the newest snapshot of every table."""
        for table in self.tables.values():
            table.refresh()


def format_of(address: Address) -> str:
    """The format of the tables at an address. Raises LakeError if there are none."""
    if address.local is None:
        return "delta"
    found = _found(address.local)
    if found is None:
        raise LakeError(str(address), "is no lake; zenwire ingest makes one")
    return found


def is_lake(path: Path) -> bool:
    """Whether a directory holds the tables of a lake."""
    return _found(path) is not None


def _found(root: Path) -> str | None:
    if (root / "catalog.db").exists():
        return "iceberg"
    return "delta" if (root / "samples" / "_delta_log").is_dir() else None
