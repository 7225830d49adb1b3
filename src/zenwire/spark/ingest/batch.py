"""What is done with a micro-batch: its rows go into the tables, once.

Spark calls these with the number of the micro-batch, and again with the same number if the one
before did not come to its end. The rows of a number are always the same, since offsets are kept;
so one that is in the tables is passed over.

Only names, sizes and statistics of files come to the driver.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

import pyarrow.parquet as pq
from py4j.protocol import Py4JError  # type: ignore[import-untyped] # comes with PySpark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import LongType, StringType, StructField, StructType

from zenwire.spark.ingest import key_stats as stats
from zenwire.spark.ingest.compact import Compaction
from zenwire.spark.ingest.journal import State
from zenwire.spark.ingest.lake import Change, Lake
from zenwire.spark.ingest.latest import bucket, latest
from zenwire.spark.ingest.names import appended, minutes_of, stem_of
from zenwire.spark.ingest.passing import PassingError, passes
from zenwire.spark.ingest.ranges import DONE, WRITTEN, Target, write_ranges
from zenwire.spark.ingest.rows import (
    NEW,
    OTHER,
    PLACE,
    PREFIXES_MAX,
    name_of,
    plain,
    samples,
)
from zenwire.spark.live.columns import struct
from zenwire.spark.live.options import Options
from zenwire.spark.payloads.messages import Definitions
from zenwire.spark.write_layout import TableError, why

__all__ = ["LossesBatch", "SamplesBatch"]

_log = logging.getLogger("zenwire.ingest")

_COMPRESSION: Final = "zstd"
_DONE: Final = StructField(DONE, StringType())
_FEW: Final = 16
"""Directories that every task may write a file to."""


@dataclass
class SamplesBatch:
    """``samples``, ``latest`` and ``key_stats``: together, or none of them."""

    out: Path
    format: str = "parquet"
    chunks: int = 2
    definitions: Definitions = field(default_factory=dict)
    compaction: Compaction = field(default_factory=Compaction)
    source: Options = field(default_factory=lambda: Options(()))
    """How tasks read the ranges that they get."""

    def __call__(self, ranges: DataFrame, batch: int) -> None:
        """Raises TableError."""
        with _plainly(self.out):
            self._take(ranges, batch)

    def _take(self, ranges: DataFrame, batch: int) -> None:
        lake = Lake(self.out, self.format)
        journal = lake.journal("samples")
        journal.recover()
        state = journal.state()
        if batch <= state.batch:
            return
        staging, spark = journal.begin(), ranges.sparkSession
        made = self._made(lake, state.prefixes)
        wide = made(spark.createDataFrame([], struct("samples", self.source.columns))).schema
        whole = StructType([StructField(f.name, f.dataType) for f in wide if f.name not in PLACE])
        target = Target(
            staging, self.chunks, frozenset(state.prefixes), whole.json(), lake.store.variants
        )
        few = self._write(ranges, target, made)
        self._place_new(spark, staging, wide, state.prefixes)
        files = [_Written.of(path) for path in _files(staging / "samples")]
        plans, after = [], replace(state, batch=batch)
        touched: set[str] = set()
        if files:
            step = _Step(few.read(spark, whole), lake, staging, batch, files)
            for change in (step.samples(), *step.tables()):
                plans += lake.store.plan(change)
            after = step.after(state)
            touched = {str(f.path.parent.relative_to(staging / "samples")) for f in files}
        journal.commit(plans, after)
        now = dt.datetime.fromtimestamp(after.newest / 1e9, dt.UTC).strftime("%Y-%m-%dT%H")
        self.compaction.samples(spark, lake, journal, sorted(touched), now)

    def _made(self, lake: Lake, known: Sequence[str]) -> Callable[[DataFrame], DataFrame]:
        """Rows of the source, as Spark makes rows of ``samples`` of them."""

        def made(rows: DataFrame) -> DataFrame:
            found = samples(rows, chunks=self.chunks, known=known, definitions=self.definitions)
            return found if lake.store.variants else plain(found)

        return made

    def _write(
        self, ranges: DataFrame, target: Target, made: Callable[[DataFrame], DataFrame]
    ) -> _Few:
        """Files of ``samples``: those that tasks write, and those of rows that they leave to Spark."""
        staging, few = target.staging, _Few([], [], [])
        source = struct("samples", self.source.columns)
        out = StructType([StructField(f.name, f.dataType) for f in source] + [_DONE])
        found = ranges.mapInArrow(write_ranges(self.source, target), out).persist()
        try:
            told = found.where(F.col(DONE).isNotNull()).select(DONE).collect()
            done = [json.loads(row[0]) for row in told]
            for one in done:
                _take_over(staging / WRITTEN, staging, one["samples"])
                few.newest.extend(str(staging / WRITTEN / name) for name in one["newest"])
                few.pieces.extend(str(staging / WRITTEN / name) for name in one["pieces"])
            if any(one["viewed"] for one in done):
                rest = found.where(F.col(DONE).isNull()).drop(DONE)
                _write(made(rest), staging / "viewed", PLACE)
                files = _files(staging / "viewed")
                names = [str(path.relative_to(staging / "viewed")) for path in files]
                _take_over(staging / "viewed", staging / "samples", names)
                few.viewed.extend(map(str, files))
        finally:
            found.unpersist()
        return few

    def _place_new(
        self, spark: SparkSession, staging: Path, schema: StructType, known: Sequence[str]
    ) -> None:
        """Directories for prefixes that were not there before, as many as there may be.

        To count them first would mean to read every micro-batch twice, for something that is rare.
        """
        there = sorted((staging / "samples").glob(f"day=*/prefix={NEW}"))
        if not there:
            return
        read = spark.read.schema(StructType([f for f in schema if f.name != "prefix"]))
        read = read.option("basePath", str(staging / "samples"))
        rows = read.parquet(*map(str, there)).withColumn("prefix", name_of(self.chunks))
        counted = rows.groupBy("prefix").count().orderBy(F.desc("count"), "prefix")
        made = {path.name for path in (staging / "samples").glob("day=*/*")} - {f"prefix={NEW}"}
        others = {_unescaped(name.removeprefix("prefix=")) for name in made}
        room = max(PREFIXES_MAX - len({*known, *others}), 0)
        names = [row["prefix"] for row in counted.limit(room + 1).collect()]
        if len(names) > room:
            kept = F.col("prefix").isin(names[:room])
            rows = rows.withColumn("prefix", F.when(kept, F.col("prefix")).otherwise(OTHER))
        if len(names) > _FEW:
            # One task for each, else every task has a file for each.
            rows = rows.repartition(*PLACE)
        _write(rows, staging / "placed", PLACE)
        for folder in there:
            shutil.rmtree(folder)
        for path in _files(staging / "placed"):
            target = staging / "samples" / path.relative_to(staging / "placed")
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)


@dataclass
class LossesBatch:
    """``losses``: as the spools say them."""

    out: Path
    format: str = "parquet"
    compaction: Compaction = field(default_factory=Compaction)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Raises TableError."""
        with _plainly(self.out):
            self._take(rows, batch)

    def _take(self, rows: DataFrame, batch: int) -> None:
        lake = Lake(self.out, self.format)
        journal = lake.journal("losses")
        journal.recover()
        state = journal.state()
        if batch <= state.batch:
            return
        staging = journal.begin()
        _write(rows.coalesce(1), staging / "losses", ())
        files = [_Written.of(path) for path in _files(staging / "losses")]
        files = [file for file in files if file.rows]
        plans, after = [], replace(state, batch=batch)
        if files:
            made = rows.sparkSession.read.schema(rows.schema).parquet(str(staging / "losses"))
            (lost,) = made.agg(F.coalesce(F.sum("count"), F.lit(0))).collect()
            named = {file.path: appended(batch, i) for i, file in enumerate(files)}
            plans = lake.store.plan(Change("losses", named))
            many = sum(file.rows for file in files)
            after = replace(after, rows=state.rows + many, lost=state.lost + lost[0])
        journal.commit(plans, after)
        self.compaction.losses(rows.sparkSession, lake, journal)


@contextmanager
def _plainly(out: Path) -> Iterator[None]:
    """What went wrong in one line: Spark and Java say it in a hundred."""
    try:
        yield
    except (PySparkException, Py4JError) as e:
        _log.debug("%s", e)
        kind = PassingError if passes(e) else TableError
        raise kind(f"{out}: {_cause(e)}") from None
    except OSError as e:
        raise TableError(f"{e.filename or out}: {e.strerror or e}") from None


def _cause(error: Exception) -> str:
    cause = getattr(error, "java_exception", None)
    if cause is None:
        return why(error)
    while cause.getCause() is not None:
        cause = cause.getCause()
    said = str(cause.toString()).partition("\n")[0]
    return re.sub(r"^(?:[\w$]+\.)+[\w$]+: ", "", said)


def _take_over(root: Path, to: Path, names: Iterable[str]) -> None:
    """Files get a second name; the first is for who reads them meanwhile."""
    for name in names:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        os.link(root / name, to / name)


@dataclass(frozen=True)
class _Few:
    """Files of what ``latest`` and ``key_stats`` are made of: rows of few, or those of Spark."""

    newest: list[str]
    pieces: list[str]
    viewed: list[str]

    def read(self, spark: SparkSession, whole: StructType) -> _Rows:
        viewed = spark.read.schema(whole).parquet(*self.viewed) if self.viewed else None
        pieces = spark.read.parquet(*self.pieces) if self.pieces else None
        return _Rows(spark.read.schema(whole).parquet(*self.newest, *self.viewed), viewed, pieces)


class _Rows(NamedTuple):
    """``newest`` has what can be in ``latest``; ``key_stats`` is made of both of the others."""

    newest: DataFrame
    viewed: DataFrame | None
    pieces: DataFrame | None


@dataclass(frozen=True)
class _Written:
    """A file, as its last bytes say."""

    path: Path
    rows: int
    size: int
    faults: int
    times: tuple[int, int] | None

    @classmethod
    def of(cls, path: Path) -> _Written:
        with pq.ParquetFile(path) as file:
            told = file.metadata
        faults, times = 0, []
        for group in range(told.num_row_groups):
            for i in range(told.num_columns):
                column = told.row_group(group).column(i)
                statistics = column.statistics
                if statistics is None:
                    continue
                if column.path_in_schema == "value_fault":
                    faults += told.row_group(group).num_rows - (statistics.null_count or 0)
                elif column.path_in_schema == "time" and statistics.has_min_max:
                    times += [statistics.min, statistics.max]
        span = (min(times), max(times)) if times else None
        return cls(path, told.num_rows, path.stat().st_size, faults, span)


class _Step:
    """The tables of one micro-batch, made of its samples where those were written."""

    def __init__(
        self,
        rows: _Rows,
        lake: Lake,
        staging: Path,
        batch: int,
        files: Sequence[_Written],
    ) -> None:
        self._rows = rows
        self._lake = lake
        self._staging = staging
        self._batch = batch
        self._files = files
        self._names = {
            file.path: f"{file.path.parent.relative_to(staging / 'samples')}/{appended(batch, i)}"
            for i, file in enumerate(files)
        }

    def samples(self) -> Change:
        return Change("samples", self._names, partitions=PLACE)

    def after(self, state: State) -> State:
        """What is there then."""
        prefixes = {path.parent.name.removeprefix("prefix=") for path in self._names}
        new = sorted({*map(_unescaped, prefixes)} - {*state.prefixes})
        known = [*state.prefixes, *new][:PREFIXES_MAX]
        newest = max((file.times[1] for file in self._files if file.times), default=0)
        return replace(
            state,
            batch=self._batch,
            rows=state.rows + sum(file.rows for file in self._files),
            bytes=state.bytes + sum(file.size for file in self._files),
            faults=state.faults + sum(file.faults for file in self._files),
            newest=max(state.newest, newest),
            prefixes=known,
        )

    def tables(self) -> list[Change]:
        columns = self._rows.newest.schema
        known = StructType([*columns, StructField("last_time", LongType())])
        there = [*self._lake.current("latest").values()]
        before = self._read("latest", there, known)
        newest = latest(self._rows.newest, before).withColumn("bucket", bucket())
        _write(newest.repartition("bucket"), self._staging / "latest", ("bucket",))
        return [self._replace("latest", "bucket", ()), self._key_stats(before)]

    def _key_stats(self, before: DataFrame | None) -> Change:
        there = self._lake.current("key_stats")
        whole = [
            (stem.split("/")[0].removeprefix("day="), stem.split("/")[1])
            for stem in there
            if "m" not in stem.split("/")[1]
        ]
        spans = minutes_of(file.times for file in self._files if file.times)
        touched = [name for stem, name in there.items() if _within(stem, spans)]
        seen = None if before is None else before.select("key", "last_time")
        made = stats.key_stats(
            self._rows.viewed,
            seen,
            self._read("key_stats", touched, stats.SCHEMA),
            self._rows.pieces,
        )
        placed = made.select("*", *stats.unit(F.col("window.start"), whole))
        _write(placed.repartition(*stats.PLACE), self._staging / "key_stats", stats.PLACE)
        return self._replace("key_stats", "unit", ("day",))

    def _read(self, table: str, names: Sequence[str], schema: StructType | str) -> DataFrame | None:
        """Columns that older files do not have are null."""
        if not names:
            return None
        spark = self._rows.newest.sparkSession
        return spark.read.schema(schema).parquet(*self._lake.paths(table, names))

    def _replace(self, table: str, unit: str, partitions: tuple[str, ...]) -> Change:
        """Each directory of ``unit`` is a file; it takes the place of one that was there."""
        there = self._lake.current(table)
        add: dict[Path, str] = {}
        root = self._staging / table
        for path in _files(root):
            where = path.parent.relative_to(root)
            stem = str(where.parent / where.name.removeprefix(f"{unit}="))
            stem = f"{unit}-{stem}" if unit == "bucket" else stem
            if stem in {stem_of(name) for name in add.values()}:
                raise AssertionError(f"{table}: two files are of {stem}")
            add[path] = self._lake.store.name(stem, self._batch)
        gone = [there[stem_of(name)] for name in add.values() if stem_of(name) in there]
        return Change(table, add, gone, partitions)


def _within(stem: str, spans: Iterable[tuple[int, int]]) -> bool:
    """Whether a file of ``key_stats`` has a window of these minutes."""
    day, _, name = stem.partition("/")
    hour, _, minute = name.partition("m")
    first = _minutes(day.removeprefix("day=")) + int(hour[1:]) * 60 + int(minute or 0)
    last = first if minute else first + 59
    return any(a <= last and b >= first for a, b in spans)


def _minutes(day: str) -> int:
    return (dt.date.fromisoformat(day) - dt.date(1970, 1, 1)).days * 24 * 60


def _unescaped(name: str) -> str:
    """As Spark writes values into names of directories."""
    return unquote(name)


def _files(root: Path) -> list[Path]:
    """Those of tasks that came to their end: others may still write below _temporary."""
    found = (path.relative_to(root) for path in root.rglob("*.parquet"))
    return sorted(root / path for path in found if not path.parts[0].startswith(("_", ".")))


def _write(frame: DataFrame, path: Path, by: Sequence[str]) -> None:
    frame.write.option("compression", _COMPRESSION).partitionBy(*by).parquet(str(path))
