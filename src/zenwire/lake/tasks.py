"""Tasks of an ingest job: write a range, merge partial results, compact files.

A task and its result are JSON texts with names and numbers, so that anything can run them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from zenwire.lake import key_stats, latest
from zenwire.lake.address import Address
from zenwire.lake.compact import compacted
from zenwire.lake.derived import leaves_for, rewritten
from zenwire.lake.files import DataFile, read_file
from zenwire.lake.payloads.messages import Definitions
from zenwire.lake.schema import KEY_STATS, LATEST, Table
from zenwire.lake.write import Range, read_partial, write_range
from zenwire.spool import Spool

__all__ = ["ALL", "DERIVED", "Task", "merge_rows", "run_task", "seen"]

DERIVED: Final = ("key_stats", "latest")
"""In the order of their commits: gaps of ``key_stats`` need ``latest`` as it was before."""
ALL: Final = ("samples", *DERIVED)


@dataclass(frozen=True)
class Task:
    """Parameters that all tasks of a job share. Sent to workers by pickle."""

    address: Address
    definitions: Definitions
    floors: Mapping[str, int]
    """By spool id: the first offset that ``samples`` does not have."""


def run_task(task: Task, text: str) -> str:
    """Run one task. Raises SpoolError, LakeError, OSError."""
    given: dict[str, Any] = json.loads(text)
    match given.pop("do"):
        case "range":
            return json.dumps(_range(task, given))
        case "merge":
            return json.dumps(_merge(task.address, **given))
        case "compact":
            return json.dumps(_compact(task.address, **given))
        case other:
            raise AssertionError(f"unknown task {other}")


def _range(task: Task, given: dict[str, Any]) -> dict[str, Any]:
    tables = given.pop("tables", ALL)
    if "id" not in given:
        given["id"] = Spool.open(given["path"]).id
    part = Range(**given)
    if "samples" in tables:
        floor = min(task.floors.get(part.id, part.first), part.end)
        part = Range(part.path, part.spool, part.id, max(part.first, floor), part.end)
    return write_range(task.address, part, task.definitions, tables).to_json()


def _merge(
    address: Address,
    table: str,
    files: list[dict[str, Any]],
    partials: dict[str, list[str]],
    seen_in: list[str],
) -> dict[str, Any]:
    """Merge partial results into the files of a derived table."""
    known = [DataFile.of_json(file) for file in files]
    if table == "latest":
        rows = latest.merged([read_partial(address, path) for path in partials["newest"]])
    else:
        rows = key_stats.merged(
            [],
            [read_partial(address, path) for path in partials["counts"]],
            [read_partial(address, path) for path in partials["segments"]],
            seen(address, seen_in),
        )
    add, remove = merge_rows(address, table, known, rows)
    return {
        "table": table,
        "add": [file.to_json() for file in add],
        "remove": [file.to_json() for file in remove],
    }


def merge_rows(
    address: Address, table: str, files: list[DataFile], rows: pa.Table
) -> tuple[list[DataFile], list[DataFile]]:
    """Merge sorted rows into the files of a derived table: the new files, and those they replace."""
    definition, merge = _MERGED[table]
    add: list[DataFile] = []
    remove: list[DataFile] = []
    for leaf in leaves_for(address, definition, files, rows):
        add += rewritten(address, definition, leaf, merge)
        remove += [] if leaf.file is None else [leaf.file]
    return add, remove


def _compact(address: Address, table: str, files: list[dict[str, Any]]) -> dict[str, Any]:
    made = compacted(address, table, [DataFile.of_json(file) for file in files])
    add = [file.to_json() for file in made]
    return {"compacted": table, "add": add, "remove": files}


def _summed(tables: list[pa.Table]) -> pa.Table:
    return key_stats.merged(tables, [], [], _SEEN.empty_table())


_MERGED: Final[Mapping[str, tuple[Table, Callable[[list[pa.Table]], pa.Table]]]] = {
    "latest": (LATEST, latest.merged),
    "key_stats": (KEY_STATS, _summed),
}
_SEEN: Final = pa.schema([LATEST.schema.field(name) for name in ("key", "last_received_ns")])


def seen(address: Address, paths: Iterable[str]) -> pa.Table:
    """Newest receive time of each key, of files of ``latest``."""
    tables = [read_file(address, "latest", path, _SEEN.names) for path in paths]
    return pa.concat_tables([_SEEN.empty_table(), *tables])
