"""Where tables are in their directory, and how a run takes the place of a former one."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from zenwire.errors import ZError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows, where nobody is kept out
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "Format",
    "Layout",
    "ParquetFormat",
    "Plan",
    "TableError",
    "capture_id",
    "partition",
    "why",
]

Plan = dict[str, Any]
"""Something to be done, as JSON can say it."""

_JOURNAL: Final = "moves.json"
_LOCK: Final = ".zenwire.lock"
_STAGING: Final = ".zenwire-staging"
_FORMAT: Final = ".zenwire-format"


class TableError(ZError):
    """Tables that cannot be written, and how they are left."""


def capture_id(capture: str) -> str:
    """A name for a capture that fits into any file system: that of the file, and of its place."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", capture.rsplit("/", 1)[-1])
    return f"{name[-80:]}-{hashlib.sha256(capture.encode()).hexdigest()[:12]}"


def why(error: Exception) -> str:
    """The line that says it, out of the many that Spark gives."""
    text = str(error)
    ours = re.findall(r"zenwire\.[\w.]*(?:Error|Exception): (.+)", text)
    if ours:
        return str(ours[-1]).strip()
    theirs = re.findall(r"^(?:\w+\.)*\w*(?:Error|Exception): (.+)", text, re.MULTILINE)
    return str((theirs or [text.strip().splitlines()[0]])[-1]).strip()


class Format(Protocol):
    """How the files of a run become part of the tables."""

    def has(self, capture: str) -> bool:
        """Whether a run wrote this capture before."""

    def others(self, table: str, captures: list[str]) -> list[str]:
        """Files or directories of a table that are not of these captures."""

    def plan(self, staged: Path, captures: dict[str, str]) -> list[Plan]:
        """What is to be done for the table that was staged there. Captures are path by id."""

    def apply(self, plan: Plan) -> None:
        """Do it; if some of it, or all, was done before, the rest."""


class Layout:
    """One directory of tables: who may write, and what a run must do to be done."""

    def __init__(self, out: Path, format: Format) -> None:
        self.out = out
        self.format = format
        self.staging = out / _STAGING

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else writes here meanwhile. Makes the directory."""
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            lock = (self.out / _LOCK).open("w")
        except OSError as e:
            raise TableError(f"{self.out} cannot be written to: {e.strerror or e}") from None
        with lock:
            if fcntl is not None:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    raise TableError(
                        f"another run writes to {self.out}: wait for it, or give another --out"
                    ) from None
            yield

    def claim(self, format: str) -> None:
        """Tables of one directory are of one format. Raises TableError if they are of another."""
        told = self.out / _FORMAT
        known = told.read_text().strip() if told.exists() else ""
        if known and known != format:
            raise TableError(
                f"the tables in {self.out} are of format {known}: "
                f"use --format {known}, or give another --out"
            )
        told.write_text(f"{format}\n")

    @contextmanager
    def staged(self) -> Iterator[None]:
        """An empty place beside the tables, gone at the end unless there is a journal."""
        shutil.rmtree(self.staging, ignore_errors=True)
        self.staging.mkdir()
        try:
            yield
        finally:
            if not (self.staging / _JOURNAL).exists():
                shutil.rmtree(self.staging, ignore_errors=True)

    def commit(self, tables: list[str], captures: dict[str, str]) -> None:
        """What was staged takes its place; from the journal on there is no way back."""
        plans = [
            plan for table in tables for plan in self.format.plan(self.staging / table, captures)
        ]
        journal = self.staging / _JOURNAL
        written = journal.with_suffix(".new")
        with written.open("w") as file:
            json.dump(plans, file)
            file.flush()
            os.fsync(file.fileno())
        written.rename(journal)
        self._apply()

    def complete(self) -> bool:
        """Do what a former run had still to do; what it had not finished is dropped."""
        if (self.staging / _JOURNAL).exists():
            self._apply()
            return True
        shutil.rmtree(self.staging, ignore_errors=True)
        return False

    def _apply(self) -> None:
        journal = self.staging / _JOURNAL
        for plan in json.loads(journal.read_text()):
            self.format.apply(plan)
        journal.unlink()
        shutil.rmtree(self.staging, ignore_errors=True)


class ParquetFormat:
    """Directories take the place of directories."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._aside = out / _STAGING / "old"

    def has(self, capture: str) -> bool:
        return any((table / partition(capture)).exists() for table in self._out.iterdir())

    def others(self, table: str, captures: list[str]) -> list[str]:
        mine = {*map(partition, captures), partition(None)}
        found = (self._out / table).glob("capture_id=*")
        return sorted(str(path) for path in found if path.name not in mine)

    def plan(self, staged: Path, captures: dict[str, str]) -> list[Plan]:
        there = self._out / staged.name
        if not any(staged.glob("capture_id=*")):
            return [self._move(staged, there)]
        plans = [
            self._move(staged / partition(capture), there / partition(capture))
            for capture in captures
        ]
        null = partition(None)
        if (there / null).exists():
            plans.append(self._move(staged / null, there / null))
        return plans

    def _move(self, staged: Path, there: Path) -> Plan:
        """A capture that has no rows in a table leaves none there."""
        return {
            "from": str(staged) if staged.exists() else "",
            "to": str(there),
            "aside": str(self._aside / there.relative_to(self._out)),
        }

    def apply(self, plan: Plan) -> None:
        staged = Path(plan["from"]) if plan["from"] else None
        if staged is not None and not staged.exists():
            return
        there, aside = Path(plan["to"]), Path(plan["aside"])
        if there.exists() and not aside.exists():
            aside.parent.mkdir(parents=True, exist_ok=True)
            there.rename(aside)
        if staged is not None:
            there.parent.mkdir(parents=True, exist_ok=True)
            staged.rename(there)


def partition(capture: str | None) -> str:
    """Name the directory of a partition.

    None is the null partition, which earlier versions wrote for a table without rows.
    """
    return f"capture_id={'__HIVE_DEFAULT_PARTITION__' if capture is None else capture}"
