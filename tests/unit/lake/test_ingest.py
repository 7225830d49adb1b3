"""Ingest without Spark: every row once, derived tables right, whatever is repeated or lost."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog

from tests.unit.lake.traffic import samples
from zenwire.columns.samples import SAMPLES
from zenwire.lake.errors import LakeError
from zenwire.lake.ingest import Ingest
from zenwire.lake.lake import Lake
from zenwire.lake.payloads.messages import load
from zenwire.lake.tasks import run_task
from zenwire.spool import Spool, Writer

DEFINITIONS = load()


def fill(path: Path, first: int, count: int, **said: Any) -> None:
    with Writer.open(path) as writer:
        for at in range(first, first + count, 100):
            writer.append(samples(at, min(100, first + count - at), **said))
            writer.flush()


def opened(lake: Path, *spools: Path, format: str = "delta") -> Ingest:
    return Ingest(Lake(lake, format), {str(path): Spool.open(path) for path in spools}, DEFINITIONS)


def ranges(ingest: Ingest, begins: dict[str, int], each: int) -> Iterator[list[str]]:
    """Micro-batches of two ranges of each spool."""
    at = dict(begins)
    while any(at[s.name] < s.samples.latest() for s in ingest.spools.values()):
        found = []
        for path, spool in ingest.spools.items():
            for _ in range(2):
                first, end = at[spool.name], min(at[spool.name] + each, spool.samples.latest())
                if first < end:
                    said = {"path": path, "spool": spool.name, "first": first, "end": end}
                    found.append(json.dumps({"do": "range", **said}))
                at[spool.name] = end
        yield found


def running(ingest: Ingest) -> Any:
    def run(tasks: Sequence[str]) -> list[str]:
        task = ingest.task()
        return [run_task(task, text) for text in tasks]

    return run


def ingest_all(ingest: Ingest, each: int = 150, stop: Any = lambda: False) -> None:
    """To the end of the spools; ``stop`` ends it as a crash would, before any of its steps."""
    run = running(ingest)
    for tasks in ranges(ingest, ingest.catch_up(run), each):
        if stop():
            return
        results = run([*tasks, *ingest.merges()])
        if stop():
            return
        ingest.commit(results)
    if not stop():
        ingest.flush(run)
        ingest.commit_losses()


def table(lake: Path, name: str) -> list[dict[str, Any]]:
    if (lake / "catalog.db").exists():
        return iceberg(lake, name)
    found: list[dict[str, Any]] = DeltaTable(str(lake / name)).to_pyarrow_table().to_pylist()
    return found


def iceberg(lake: Path, name: str) -> list[dict[str, Any]]:
    """As PyIceberg reads it."""
    catalogue = SqlCatalog("zenwire", uri=f"sqlite:///{lake / 'catalog.db'}")
    try:
        found: list[dict[str, Any]] = (
            catalogue.load_table(("zenwire", name)).scan().to_arrow().to_pylist()
        )
        return found
    finally:
        catalogue.engine.dispose()


def check(lake: Path, *spools: Path) -> None:
    """Every row once; ``latest`` and ``key_stats`` are those of all rows."""
    truth = []
    for path in spools:
        log = Spool.open(path).samples
        truth += [
            {**row, "spool": path.name, "offset": found.first + i}
            for found in log.read(0, log.latest())
            for i, row in enumerate(found.batch.to_pylist())
        ]
    found = table(lake, "samples")
    assert sorted(
        (r["spool"], r["offset"], r["key"], r["payload"], r["received_ns"]) for r in found
    ) == sorted((r["spool"], r["offset"], r["key"], r["payload"], r["time"]) for r in truth)

    newest: dict[str, tuple[Any, ...]] = {}
    last: dict[str, int] = {}
    for row in truth:
        at = row["timestamp"] if row["timestamp"] is not None else ntp(row["time"])
        order = (at, row["timestamp_id"] or b"", row["time"], row["spool"], row["offset"])
        newest[row["key"]] = max(newest.get(row["key"], ()), (*order, row["payload"]))
        last[row["key"]] = max(last.get(row["key"], 0), row["time"])
    latest = table(lake, "latest")
    assert [r["key"] for r in latest] == sorted(newest) or len(latest) == len(newest)
    for row in latest:
        *_, spool, offset, payload = newest[row["key"]]
        assert (row["spool"], row["offset"], row["payload"]) == (spool, offset, payload)
        assert row["last_received_ns"] == last[row["key"]]

    windows: dict[tuple[str, int], list[int]] = {}
    before: dict[str, int] = {}
    for row in truth:
        sums = windows.setdefault((row["key"], row["time"] // 10**10 * 10), [0, 0, 0])
        sums[0] += 1
        sums[1] += len(row["payload"])
        sums[2] += row["key"] in before
        before[row["key"]] = row["time"]
    stats = table(lake, "key_stats")
    told = {
        (r["key"], int(r["window_start"].timestamp())): [
            r["messages"],
            r["bytes"],
            sum(b["n"] for b in r["gap_bins"]),
        ]
        for r in stats
    }
    assert len(told) == len(stats)
    assert told == windows


def ntp(nanoseconds: int) -> int:
    return (nanoseconds // 10**9 << 32) | ((nanoseconds % 10**9) << 32) // 10**9


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_rows_of_several_spools_are_in_the_tables_once(tmp_path: Path, format: str) -> None:
    a, b, lake = tmp_path / "a", tmp_path / "b", tmp_path / "lake"
    fill(a, 0, 900)
    fill(b, 0, 300, spool="b", step=500_000_000)
    ingest_all(opened(lake, a, b, format=format))
    check(lake, a, b)
    fill(a, 900, 250)
    with Writer.open(a) as writer:
        writer.lose("link", "two frames", count=2)
    ingest = opened(lake, a, b, format=format)
    ingest_all(ingest)
    check(lake, a, b)
    assert [(r["kind"], r["count"]) for r in table(lake, "losses")] == [("link", 2)]
    assert ingest.progress.rows == 250


def test_all_tables_exist_before_the_first_row(tmp_path: Path) -> None:
    Lake(tmp_path / "lake")
    for name in ("samples", "latest", "key_stats", "losses"):
        assert table(tmp_path / "lake", name) == []


@pytest.mark.parametrize("seed", range(12))
def test_a_crash_at_any_step_loses_and_repeats_nothing(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    a, b, lake = tmp_path / "a", tmp_path / "b", tmp_path / "lake"
    fill(a, 0, 700)
    fill(b, 0, 400, spool="b", step=300_000_000)
    for _ in range(6):
        ingest_all(opened(lake, a, b), chance.choice((40, 90)), lambda: chance.random() < 0.2)
    ingest_all(opened(lake, a, b))
    check(lake, a, b)


class CrashError(Exception):
    pass


@pytest.mark.parametrize(
    ("format", "steps"), [*(("delta", n) for n in range(1, 13)), ("iceberg", 2), ("iceberg", 6)]
)
def test_a_crash_between_two_commits_loses_and_repeats_nothing(
    tmp_path: Path, steps: int, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit is one table's: the others may be a micro-batch behind, or two."""
    path, lake = tmp_path / "a", tmp_path / "lake"
    fill(path, 0, 500, step=300_000_000)
    ingest = opened(lake, path, format=format)
    left = steps

    def crash(change: Any, commit: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise CrashError
        commit(change)

    for committed in ingest.lake.tables.values():
        whole = committed.commit
        monkeypatch.setattr(committed, "commit", lambda change, commit=whole: crash(change, commit))
    with pytest.raises(CrashError):
        ingest_all(ingest, 60)
    ingest_all(opened(lake, path, format=format))
    check(lake, path)


def test_a_repeated_or_overlapping_range_is_recognised_from_the_table(tmp_path: Path) -> None:
    path, lake = tmp_path / "a", tmp_path / "lake"
    fill(path, 0, 300)
    ingest = opened(lake, path)
    run = running(ingest)
    ingest.catch_up(run)

    def part(first: int, end: int) -> str:
        return json.dumps(
            {"do": "range", "path": str(path), "spool": "a", "first": first, "end": end}
        )

    ingest.commit(run([part(0, 200)]))
    ingest.commit(run([part(0, 200), *ingest.merges()]))
    ingest.commit(run([part(150, 300), *ingest.merges()]))
    ingest.flush(run)
    check(lake, path)
    with pytest.raises(LakeError, match="offsets 300 to 399"):
        ingest.commit(
            [json.dumps({"id": Spool.open(path).id, "first": 400, "end": 500, "samples": []})]
        )


def test_two_writers_of_one_spool_do_not_both_commit(tmp_path: Path) -> None:
    path, lake = tmp_path / "a", tmp_path / "lake"
    fill(path, 0, 300)
    one, two = opened(lake, path), opened(lake, path)
    results = []
    for ingest in (one, two):
        run = running(ingest)
        tasks = next(ranges(ingest, ingest.catch_up(run), 150))
        results.append(run(tasks))
    one.commit(results[0])
    with pytest.raises(LakeError, match="another ingest"):
        two.commit(results[1])
    ingest_all(opened(lake, path))
    check(lake, path)


def test_small_files_of_a_finished_day_become_one_and_streams_see_nothing(tmp_path: Path) -> None:
    path, lake = tmp_path / "a", tmp_path / "lake"
    fill(path, 0, 400)
    # The next day.
    fill(path, 400, 120, step=24 * 3600 * 10**9 // 400)
    ingest = opened(lake, path)
    ingest_all(ingest, 50)
    table = ingest.lake["samples"]
    before = {file.partition["day"] for file in table.files()}
    assert len(before) == 2
    assert ingest.compact(running(ingest)) == 1
    days = [file.partition["day"] for file in table.files()]
    assert days.count(min(before)) == 1
    check(lake, path)
    log = max((lake / "samples" / "_delta_log").glob("*.json")).read_text().splitlines()
    actions = [action for line in log for action in json.loads(line).items()]
    changes = {said["dataChange"] for kind, said in actions if kind in ("add", "remove")}
    assert changes == {False}
    # The open day is compacted too, if it is asked for.
    assert ingest.compact(running(ingest), everything=True) == 1
    assert len(table.files()) == 2
    check(lake, path)


def test_of_two_compactions_one_counts(tmp_path: Path) -> None:
    path, lake = tmp_path / "a", tmp_path / "lake"
    fill(path, 0, 300)
    one = opened(lake, path)
    ingest_all(one, 50)
    two = opened(lake, path)
    tasks = two.compactions(everything=True)
    results = running(two)(tasks)
    assert one.compact(running(one), everything=True) == 1
    two.commit(results)
    check(lake, path)


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_keys_that_are_too_long_for_statistics_are_merged(
    tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In several files of ``latest``, whose keys share a long beginning."""
    monkeypatch.setattr("zenwire.lake.derived.LEAF_BYTES", 20_000)
    path, lake = tmp_path / "a", tmp_path / "lake"
    for turn in range(3):
        rows = samples(60 * turn, 60).to_pylist()
        for n, row in enumerate(rows):
            row["key"] = f"fleet/robot/{'e' * (5_000 if n % 2 else 100)}/{n % 20:02}"
        with Writer.open(path) as writer:
            writer.append(pa.RecordBatch.from_pylist(rows, schema=SAMPLES))
        ingest_all(opened(lake, path, format=format), 30)
    assert len(Lake(lake, format)["latest"].files()) > 1
    check(lake, path)
