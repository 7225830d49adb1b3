"""A directory of tables that micro-batches are added to, and what plans do to its files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from zenwire.spark.ingest.exchange import exchange
from zenwire.spark.ingest.journal import Journal, Plan, sync
from zenwire.spark.ingest.names import stem_of
from zenwire.spark.write_layout import TableError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows, where nobody is kept out
    fcntl = None  # type: ignore[assignment]

__all__ = ["FORMATS", "HOME", "Change", "Lake", "ParquetStore", "Store"]

HOME: Final = ".zenwire"
"""Checkpoints, journals and what is being made; hidden from those who read tables."""
_FORMAT: Final = "format"
_NEW: Final = ".zenwire-new"
"""In a directory that has not taken its place yet."""


@dataclass(frozen=True)
class Change:
    """Files come (from where they were made, to their names) and go, as one."""

    table: str
    add: Mapping[Path, str]
    remove: Sequence[str] = ()
    partitions: Sequence[str] = field(default=())
    """Columns by which the table is cut into directories."""


class Store(Protocol):
    """A format: which files a table has, and how that changes."""

    variants: bool
    """Whether it can hold VARIANT."""

    def files(self, table: str, below: str = "") -> list[str]:
        """Their names from the table's directory on; those of a partition, or all."""

    def name(self, stem: str, batch: int) -> str:
        """A name for a file that replaces the one with the same stem."""

    def plan(self, change: Change) -> list[Plan]:
        """What is to be done."""

    def apply(self, plan: Plan) -> None:
        """Do it; if some of it, or all, was done before, the rest."""


class ParquetStore:
    """A table is what is in its directory.

    A file replaces one of the same name in one moment. Where files become fewer, the directory
    that they are in changes places with another one.
    """

    variants = True

    def __init__(self, out: Path) -> None:
        self._out = out

    def files(self, table: str, below: str = "") -> list[str]:
        root = self._out / table
        return sorted(str(path.relative_to(root)) for path in (root / below).rglob("*.parquet"))

    def name(self, stem: str, batch: int) -> str:
        return f"{stem}.parquet"

    def plan(self, change: Change) -> list[Plan]:
        gone = set(change.remove) - set(change.add.values())
        if gone:
            return [self._swap(change, gone)]
        return [
            {"do": "move", "from": self._below(path), "to": f"{change.table}/{name}"}
            for path, name in change.add.items()
        ]

    def _below(self, path: Path) -> str:
        return str(path.relative_to(self._out))

    def _swap(self, change: Change, gone: set[str]) -> Plan:
        """The directory as it is to be, made of links: nothing is copied."""
        root = self._out / change.table
        (where,) = {os.path.dirname(name) for name in (*gone, *change.add.values())}  # noqa: PTH120 - names
        there = root / where
        new = next(iter(change.add)).parent / "swap"
        new.mkdir()
        replaced = {Path(name).name for name in (*gone, *change.add.values())}
        for path in there.glob("*.parquet"):
            if path.name not in replaced:
                os.link(path, new / path.name)
        for path, name in change.add.items():
            os.link(path, new / Path(name).name)
        (new / _NEW).touch()
        sync([new])
        return {"do": "swap", "from": self._below(new), "to": self._below(there)}

    def apply(self, plan: Plan) -> None:
        source, target = self._out / plan["from"], self._out / plan["to"]
        if plan["do"] == "move":
            if source.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                source.replace(target)
                sync([target.parent])
            return
        if (source / _NEW).exists():
            exchange(source, target)
            sync([target.parent])
        (target / _NEW).unlink(missing_ok=True)


def _delta(out: Path) -> Store:
    from zenwire.spark.ingest.delta import DeltaStore  # noqa: PLC0415 - an extra of its own

    return DeltaStore(out)


def _iceberg(out: Path) -> Store:
    from zenwire.spark.ingest.iceberg import IcebergStore  # noqa: PLC0415 - an extra of its own

    return IcebergStore(out)


FORMATS: Final[dict[str, Callable[[Path], Store]]] = {
    "parquet": ParquetStore,
    "delta": _delta,
    "iceberg": _iceberg,
}


class Lake:
    """The tables ``samples``, ``latest``, ``key_stats`` and ``losses`` of one directory."""

    def __init__(self, out: Path, format: str = "parquet") -> None:
        if format not in FORMATS:
            raise TableError(f"no format {format}; there are {', '.join(FORMATS)}")
        self.out = out
        self.home = out / HOME
        self.format = format
        self.store = FORMATS[format](out)

    def journal(self, query: str) -> Journal:
        return Journal(self.home / query, self.store.apply)

    def checkpoint(self, query: str) -> Path:
        return self.home / query / "checkpoint"

    def paths(self, table: str, names: Sequence[str]) -> list[str]:
        return [str(self.out / table / name) for name in names]

    def current(self, table: str) -> dict[str, str]:
        """Names by what they replace."""
        return {stem_of(name): name for name in self.store.files(table)}

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else writes here meanwhile. Makes the directory. Raises TableError."""
        try:
            self.home.mkdir(parents=True, exist_ok=True)
            lock = (self.home / "lock").open("w")
        except OSError as e:
            raise TableError(f"{self.out} cannot be written to: {e.strerror or e}") from None
        with lock:
            if fcntl is not None:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    raise TableError(
                        f"another ingest writes to {self.out}: wait for it, or give another --lake"
                    ) from None
            self._claim()
            yield

    def _claim(self) -> None:
        """Tables of one directory are of one format, and of no other program."""
        told = self.home / _FORMAT
        known = told.read_text().strip() if told.exists() else ""
        if known and known != self.format:
            raise TableError(
                f"the tables in {self.out} are of format {known}: "
                f"use --format {known}, or give another --lake"
            )
        if not known and any((self.out / name).exists() for name in ("samples", "latest")):
            raise TableError(
                f"the tables in {self.out} were not made by ingest: give another --lake"
            )
        told.write_text(f"{self.format}\n")

    def recover(self, queries: Sequence[str]) -> list[str]:
        """Complete what a former run had begun; which queries that was."""
        return [query for query in queries if self.journal(query).recover()]

    def clear(self, queries: Sequence[str]) -> None:
        """Nothing half-made stays."""
        for query in queries:
            if not (self.home / query / "journal.json").exists():
                shutil.rmtree(self.home / query / "staging", ignore_errors=True)
