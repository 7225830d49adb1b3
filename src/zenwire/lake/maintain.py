"""Maintenance of a lake: info, compaction, expiry, vacuum, checks and rebuilds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as pafs

from zenwire.lake import key_stats, latest
from zenwire.lake.address import PARTIALS
from zenwire.lake.commit import Change
from zenwire.lake.compact import chosen, compacted
from zenwire.lake.files import DataFile
from zenwire.lake.lake import Lake
from zenwire.lake.tasks import merge_rows, seen

__all__ = ["Checked", "check", "compact", "expire", "info", "rebuild", "vacuum"]

KEEP: Final = timedelta(days=7)
"""How long removed files stay for readers that hold an earlier snapshot."""
_DAY: Final = "%Y-%m-%d"
Tell = Callable[[str], None]


def info(lake: Lake) -> dict[str, Any]:
    """Rows, bytes, files and versions of each table, and the spools that it comes from."""
    tables = {}
    for name, table in lake.tables.items():
        files = table.files()
        tables[name] = {
            "version": table.version,
            "files": len(files),
            "rows": sum(file.rows for file in files),
            "bytes": sum(file.size for file in files),
        }
    samples = lake["samples"].files()
    times = [str(file.low["received_at"]) for file in samples if "received_at" in file.low]
    ends = [str(file.high["received_at"]) for file in samples if "received_at" in file.high]
    return {
        "lake": str(lake.address),
        "format": lake.format,
        "tables": tables,
        "days": sorted({file.partition.get("day", "") for file in samples}),
        "first": min(times, default=None),
        "last": max(ends, default=None),
    }


def compact(lake: Lake, tell: Tell, *, everything: bool = True) -> int:
    """Compact until no partition needs it. Return how many files became fewer."""
    gone = 0
    for name in ("samples", "losses"):
        table = lake[name]
        while files := chosen(name, table.files(), everything=everything):
            made = compacted(lake.address, name, files)
            table.commit(Change(made, files, rearranges=True))
            gone += len(files) - len(made)
            tell(f"{name}: {len(files)} files became {len(made)}")
            if len(made) >= len(files):
                break
    return gone


def expire(lake: Lake, keep: timedelta, tell: Tell, now: datetime | None = None) -> int:
    """Remove samples and statistics of days before ``now - keep``. Return the removed rows.

    ``latest`` keeps the newest sample of each key, however old it is.
    """
    limit = (now or datetime.now(UTC)) - keep
    day, instant = limit.strftime(_DAY), limit.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    old = {
        "samples": [f for f in lake["samples"].files() if f.partition["day"] < day],
        "key_stats": [
            f for f in lake["key_stats"].files() if str(f.high["window_start"]) < instant
        ],
    }
    for name, files in old.items():
        if files:
            lake[name].commit(Change(remove=files))
            tell(f"{name}: {sum(file.rows for file in files):,} rows before {day} removed")
    return sum(file.rows for file in old["samples"])


def vacuum(lake: Lake, keep: timedelta, tell: Tell) -> int:
    """Delete files that no snapshot of the last ``keep`` refers to. Return how many.

    Also files that tasks left behind when they were killed.
    """
    ends = time.time() - keep.total_seconds()
    gone = 0
    for name, table in lake.tables.items():
        used = table.recent(keep)
        for path, modified in _listed(lake, name):
            if path not in used and modified < ends and path.endswith(".parquet"):
                lake.address.files.delete_file(f"{name}/{path}")
                gone += 1
    for path, modified in _listed(lake, PARTIALS):
        if modified < ends:
            with suppress(OSError):
                lake.address.files.delete_file(f"{PARTIALS}/{path}")
                gone += 1
    tell(f"{gone} files deleted")
    return gone


def _listed(lake: Lake, folder: str) -> Iterator[tuple[str, float]]:
    select = pafs.FileSelector(folder, recursive=True, allow_not_found=True)
    for found in lake.address.files.get_file_info(select):
        if found.is_file and not found.path.removeprefix(f"{folder}/").startswith("_delta_log"):
            modified = found.mtime_ns / 1e9 if found.mtime_ns is not None else 0.0
            yield found.path.removeprefix(f"{folder}/"), modified


@dataclass
class Checked:
    """Result of a check. ``problems`` is empty for a healthy lake."""

    rows: int = 0
    problems: list[str] = field(default_factory=list)


def check(lake: Lake, tell: Tell) -> Checked:
    """Read every file, compare its rows with the commit, and find repeated offsets."""
    found = Checked()
    offsets: dict[str, list[np.ndarray]] = {}
    for name, table in lake.tables.items():
        for file in table.files():
            columns = ["spool_id", "offset"] if name == "samples" else None
            try:
                with lake.address.files.open_input_file(f"{name}/{file.path}") as source:
                    rows = pq.read_table(source, columns=columns)
            except (OSError, pa.ArrowException) as e:
                found.problems.append(f"{name}/{file.path}: {e}")
                continue
            if rows.num_rows != file.rows:
                found.problems.append(
                    f"{name}/{file.path}: has {rows.num_rows} rows, the commit says {file.rows}"
                )
            if name == "samples":
                found.rows += rows.num_rows
                for spool, its in _by_spool(rows):
                    offsets.setdefault(spool, []).append(its)
        tell(f"{name}: {len(table.files())} files")
    for spool, parts in offsets.items():
        found.problems += _check_offsets(spool, np.sort(np.concatenate(parts)), lake)
    return found


def _by_spool(rows: pa.Table) -> Iterator[tuple[str, np.ndarray]]:
    coded = rows.column("spool_id").combine_chunks().dictionary_encode()
    codes, all_offsets = np.asarray(coded.indices), rows.column("offset").to_numpy()
    for number, spool in enumerate(coded.dictionary.to_pylist()):
        yield spool, all_offsets[codes == number]


def _check_offsets(spool: str, offsets: np.ndarray, lake: Lake) -> Iterator[str]:
    twice = offsets[1:][offsets[1:] == offsets[:-1]]
    if len(twice):
        yield f"samples: {len(twice)} offsets of spool {spool} are there twice, from {twice[0]} on"
    end = lake["samples"].offset(spool)
    if end is None or offsets[-1] >= end:
        yield f"samples: rows of spool {spool} reach {offsets[-1]}, the commit says {end}"


def rebuild(lake: Lake, tell: Tell) -> None:
    """Make ``latest`` and ``key_stats`` again from ``samples``. Raises LakeError.

    Not while an ingest runs: its next commit would be refused.
    """
    samples = sorted(lake["samples"].files(), key=lambda file: str(file.low.get("received_at")))
    made: dict[str, list[DataFile]] = {"latest": [], "key_stats": []}
    for number, file in enumerate(samples, 1):
        with lake.address.files.open_input_file(f"samples/{file.path}") as source:
            rows = pq.read_table(source).sort_by(
                [("received_ns", "ascending"), ("offset", "ascending")]
            )
        coded = rows.column("key").combine_chunks().dictionary_encode()
        codes, keys = np.asarray(coded.indices), coded.dictionary
        counts, segments = key_stats.counted(rows, codes, keys)
        before = seen(lake.address, [one.path for one in made["latest"]])
        merged = {
            "key_stats": key_stats.merged([], [counts], [segments], before),
            "latest": latest.newest(rows, codes, len(keys)).sort_by("key"),
        }
        for name, some in merged.items():
            add, remove = merge_rows(lake.address, name, made[name], some)
            made[name] = [one for one in made[name] if one not in remove] + add
        tell(f"{number} of {len(samples)} files")
    offsets = _offsets(lake)
    for name, files in made.items():
        lake[name].commit(Change(files, lake[name].files(), offsets))


def _offsets(lake: Lake) -> dict[str, int]:
    """Ends of all spools that ``samples`` has rows of."""
    found = {}
    for file in lake["samples"].files():
        with lake.address.files.open_input_file(f"samples/{file.path}") as source:
            for spool in pq.read_table(source, columns=["spool_id"]).column(0).unique().to_pylist():
                end = lake["samples"].offset(spool)
                if end is not None:
                    found[spool] = end
    return found
