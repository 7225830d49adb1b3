"""What tasks make of rows: files, the newest of each key, and pieces of its statistics."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from tests.unit.ingest.traffic import samples
from zenwire.spark.ingest.key_stats import BASE, FIRST, GAP, LATE, MESSAGE, SEEN, WIDTH, WINDOW
from zenwire.spark.ingest.merge import merge_files
from zenwire.spark.ingest.pieces import newest, pieces
from zenwire.spark.ingest.ranges import DONE, WRITTEN, Target, name_of_key, write_ranges
from zenwire.spark.live.columns import COLUMNS, range_row, sample_rows
from zenwire.spark.live.options import Options
from zenwire.spool import Spool, Writer

SECOND = 10**9


def sorted_rows(count: int, seed: int) -> tuple[pa.RecordBatch, np.ndarray]:
    """Rows by key and time, as tasks sort them; some stamped, many at the same time."""
    chance = random.Random(seed)
    made = samples(0, count).to_pylist()
    for row in made:
        row["time"] = 1_800_000_000 * SECOND + chance.choice([0, 1, 7_000_000, 11 * SECOND])
        row["timestamp"] = chance.choice([None, row["timestamp"], (1_800_000_000 << 32) + 5])
        row["timestamp_id"] = row["timestamp"] and chance.choice([b"a", b"bb", b"\xff"])
    made.sort(key=lambda row: (row["key"], row["time"]))
    batch = pa.RecordBatch.from_pylist(made, schema=samples(0, 1).schema)
    rows = sample_rows("s", 0, batch, COLUMNS, None)
    names = sorted({row["key"] for row in made})
    return rows, np.array([names.index(row["key"]) for row in made])


@pytest.mark.parametrize("seed", range(5))
def test_the_newest_of_each_key_is_among_few(seed: int) -> None:
    rows, codes = sorted_rows(400, seed)
    found = rows.to_pylist()

    def order(row: dict[str, Any]) -> tuple[Any, ...]:
        at = row["timestamp"] or row["received_at"]
        stamped = row["ntp64"] is not None
        return at, stamped, row["ntp64"] or 0, row["clock_id"] or b"", row["time"], row["offset"]

    kept = [found[i] for i in newest(rows, codes)]
    for key in {row["key"] for row in found}:
        mine = [row for row in found if row["key"] == key]
        few = [row for row in kept if row["key"] == key]
        assert max(few, key=order) == max(mine, key=order)
        assert max(r["time"] for r in few) == max(r["time"] for r in mine)
        assert len(few) <= 2


def bin_of(seconds: float) -> int:
    if abs(seconds) <= BASE:
        return 0
    return int(math.copysign(math.ceil(math.log(abs(seconds) / BASE) / math.log(WIDTH)), seconds))


@pytest.mark.parametrize("seed", range(5))
def test_pieces_count_what_their_rows_have(seed: int) -> None:
    rows, codes = sorted_rows(300, seed)
    wanted: Counter[tuple[str, int, int, int]] = Counter()
    sizes: Counter[tuple[str, int]] = Counter()
    before: dict[str, int] = {}
    ends: dict[str, list[int]] = {}
    for row in rows.to_pylist():
        key, time = row["key"], row["time"]
        start = time // SECOND // 10 * 10
        wanted[key, start, MESSAGE, 0] += 1
        sizes[key, start] += len(row["payload"])
        if key in before:
            wanted[key, start, GAP, bin_of((time - before[key]) / 1e9)] += 1
        if row["timestamp"] is not None:
            late = (row["received_at"] - row["timestamp"]).total_seconds()
            wanted[key, start, LATE, bin_of(late)] += 1
        before[key] = time
        ends.setdefault(key, [time, time])[1] = time
    found = pieces(rows, codes).to_pylist()
    counted = {
        (row["key"], int(row["start"].timestamp()), part["what"], part["bin"]): part["n"]
        for row in found
        if row["kind"] == WINDOW
        for part in row["parts"]
    }
    assert counted == wanted
    assert sum(p["bytes"] for r in found for p in r["parts"] or ()) == sum(sizes.values())
    assert {r["key"]: r["time"] for r in found if r["kind"] == FIRST} == {
        key: first for key, (first, _) in ends.items()
    }
    assert {r["key"]: r["time"] for r in found if r["kind"] == SEEN}.items() <= {
        key: last for key, (_, last) in ends.items()
    }.items()


def test_a_task_writes_what_spark_need_not_see(tmp_path: Path) -> None:
    spool, staging = tmp_path / "s", tmp_path / "staging"
    with Writer.open(spool) as writer:
        for at in range(0, 400, 100):
            writer.append(samples(at, 100))
            writer.flush()
    (whole,) = [pa.Table.from_batches([r.batch for r in Spool.open(spool).samples.read(0, 400)])]
    target = Target(staging, 2, frozenset(), json.dumps({"type": "struct", "fields": []}), True)
    write = write_ranges(Options((str(spool),)), target)
    ranges = [range_row(str(spool), "s", 0, 250), range_row(str(spool), "s", 250, 400)]
    given = pa.Table.from_batches([*write(iter(ranges))])
    (done,) = [json.loads(text) for text in given[DONE].to_pylist() if text is not None]
    left = given.filter(pa.compute.is_null(given[DONE]))
    assert done["viewed"] == left.num_rows > 0
    offsets = left["offset"].to_pylist()
    for name in done["samples"]:
        with pq.ParquetFile(staging / WRITTEN / name) as file:
            table = file.read()
        mine = table["offset"].to_pylist()
        offsets += mine
        assert table["key"].to_pylist() == whole["key"].take(mine).to_pylist()
        assert table["payload"].to_pylist() == whole["payload"].take(mine).to_pylist()
        assert table["value"].null_count == table["text"].null_count == len(mine)
        prefixes = {name_of_key(key, 2).replace("/", "%2F") for key in table["key"].to_pylist()}
        assert prefixes == {Path(name).parent.name.removeprefix("prefix=")}
    assert sorted(offsets) == list(range(400))


def test_names_of_directories_are_those_that_spark_makes() -> None:
    assert name_of_key("a/b/c", 2) == "a/b"
    assert name_of_key("a", 2) == "a"
    assert name_of_key("\u00fc\U0001f600/\x00", 2) == "__/_"
    long = "x" * 71
    digest = hashlib.md5(long.encode(), usedforsecurity=False).hexdigest()
    assert name_of_key(f"{long}/y", 1) == f"{'x' * 40}~{digest[:12]}"


def test_files_are_put_together_with_the_columns_of_all(tmp_path: Path) -> None:
    spool = tmp_path / "s"
    with Writer.open(spool) as writer:
        writer.append(samples(0, 300))
    told = {"type": "struct", "fields": [{"name": "spool"}, {"name": "value"}]}
    target = Target(tmp_path, 9, frozenset(), json.dumps(told), True)
    write = write_ranges(Options((str(spool),)), target)
    given = pa.Table.from_batches([*write(iter([range_row(str(spool), "s", 0, 300)]))])
    done = json.loads(given[DONE].to_pylist()[-1])
    paths = [str(tmp_path / WRITTEN / name) for name in done["samples"]]
    rows = pa.concat_tables(
        [pq.ParquetFile(path).read().replace_schema_metadata() for path in paths]
    )
    other = pa.table({"key": ["a"], "time": pa.array([5]), "more": pa.array([1.5])})
    pq.write_table(other, tmp_path / "other.parquet")

    names = merge_files([*paths, str(tmp_path / "other.parquet")], tmp_path / "merged", 1 << 30)
    (name,) = names
    with pq.ParquetFile(tmp_path / "merged" / name) as file:
        found = file.read()
        kept = json.loads(file.metadata.metadata[b"org.apache.spark.sql.parquet.row.metadata"])
    assert kept == told
    assert found["more"].to_pylist() == [1.5, *[None] * rows.num_rows]
    found = found.slice(1).drop_columns(["more"]).replace_schema_metadata()
    assert found.schema == rows.schema
    assert (
        found.to_pylist() == rows.sort_by([("key", "ascending"), ("time", "ascending")]).to_pylist()
    )
    # No more than what is asked for in a file, if rows come in several groups.
    assert len(merge_files(paths, tmp_path / "small", 1)) == 1
