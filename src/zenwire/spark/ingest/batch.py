"""What is done with a micro-batch: its rows go into the tables, once.

Spark calls these with the number of the micro-batch, and again with the same number if the one
before did not come to its end. The rows of a number are always the same, since offsets are kept;
so one that is in the tables is passed over.

Only names, sizes and statistics of files come to the driver.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pyarrow.parquet as pq
from py4j.protocol import Py4JError  # type: ignore[import-untyped] # comes with PySpark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import LongType, StructField, StructType

from zenwire.spark.ingest import key_stats as stats
from zenwire.spark.ingest.compact import Compaction
from zenwire.spark.ingest.journal import State
from zenwire.spark.ingest.lake import Change, Lake
from zenwire.spark.ingest.latest import bucket, latest
from zenwire.spark.ingest.names import appended, minutes_of, stem_of
from zenwire.spark.ingest.rows import PLACE, PREFIXES_MAX, plain, samples
from zenwire.spark.payloads.messages import Definitions
from zenwire.spark.write_layout import TableError, why

__all__ = ["LossesBatch", "SamplesBatch"]

_COMPRESSION: Final = "zstd"


@dataclass
class SamplesBatch:
    """``samples``, ``latest`` and ``key_stats``: together, or none of them."""

    out: Path
    format: str = "parquet"
    chunks: int = 2
    definitions: Definitions = field(default_factory=dict)
    compaction: Compaction = field(default_factory=Compaction)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Raises TableError."""
        with _plainly(self.out):
            self._take(rows, batch)

    def _take(self, rows: DataFrame, batch: int) -> None:
        lake = Lake(self.out, self.format)
        journal = lake.journal("samples")
        journal.recover()
        state = journal.state()
        if batch <= state.batch:
            return
        staging, spark = journal.begin(), rows.sparkSession
        made = samples(rows, chunks=self.chunks, known=state.prefixes, definitions=self.definitions)
        made = made if lake.store.variants else plain(made)
        _write(made, staging / "samples", PLACE)
        files = [_Written.of(path) for path in _files(staging / "samples")]
        plans, after = [], replace(state, batch=batch)
        touched: set[str] = set()
        if files:
            whole = StructType([f for f in made.schema if f.name not in PLACE])
            read = spark.read.schema(whole).parquet(*[str(file.path) for file in files])
            step = _Step(read, lake, staging, batch, files)
            for change in (step.samples(), *step.tables()):
                plans += lake.store.plan(change)
            after = step.after(state)
            touched = {str(f.path.parent.relative_to(staging / "samples")) for f in files}
        journal.commit(plans, after)
        now = dt.datetime.fromtimestamp(after.newest / 1e9, dt.UTC).strftime("%Y-%m-%dT%H")
        self.compaction.samples(spark, lake, journal, sorted(touched), now)


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
        raise TableError(f"{out}: {_cause(e)}") from None
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
        rows: DataFrame,
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
        columns = self._rows.schema
        known = StructType([*columns, StructField("last_time", LongType())])
        there = [*self._lake.current("latest").values()]
        before = self._read("latest", there, known)
        newest = latest(self._rows, before).withColumn("bucket", bucket())
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
        made = stats.key_stats(self._rows, seen, self._read("key_stats", touched, stats.SCHEMA))
        placed = made.select("*", *stats.unit(F.col("window.start"), whole))
        _write(placed.repartition(*stats.PLACE), self._staging / "key_stats", stats.PLACE)
        return self._replace("key_stats", "unit", ("day",))

    def _read(self, table: str, names: Sequence[str], schema: StructType | str) -> DataFrame | None:
        """Columns that older files do not have are null."""
        if not names:
            return None
        return self._rows.sparkSession.read.schema(schema).parquet(*self._lake.paths(table, names))

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
    return sorted(root.rglob("*.parquet"))


def _write(frame: DataFrame, path: Path, by: Sequence[str]) -> None:
    frame.write.option("compression", _COMPRESSION).partitionBy(*by).parquet(str(path))
