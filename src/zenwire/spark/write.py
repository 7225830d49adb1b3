"""The tables of captures, written to a directory: replaced where they are there, added elsewhere.

Every table is a directory of Parquet files, one partition for each capture (``capture_id``, a
short name of the file and its place), because a capture is what comes and goes as a whole: to
read one again replaces exactly its partitions. ``latest`` is about all captures and has none.

A run writes beside the tables first. When all of it is there, a list of what to move is written
down, and then it is moved: a run that fails before leaves everything as it was, and one that is
ended while it moves is completed by the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Final

import pyarrow.compute as pc
import pyarrow.parquet as pq
from py4j.protocol import Py4JError  # type: ignore[import-untyped] # comes with PySpark
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.capture.conversation.subscriptions import NOT_SENT
from zenwire.spark import tables
from zenwire.spark.write_layout import (
    Format,
    Layout,
    ParquetFormat,
    TableError,
    capture_id,
    partition,
    why,
)

__all__ = ["FORMATS", "TABLES", "Result", "TableError", "Written", "capture_id", "write_tables"]

Table = Callable[["_Made"], DataFrame]
Progress = Callable[[str], None]
"""Is told which table is being made."""

_PARTITION: Final = "capture_id"


def _delta(out: Path) -> Format:
    from zenwire.spark.write_delta import DeltaFormat  # noqa: PLC0415 - an extra of its own

    return DeltaFormat(out)


def _iceberg(out: Path) -> Format:
    from zenwire.spark.write_iceberg import IcebergFormat  # noqa: PLC0415 - an extra of its own

    return IcebergFormat(out)


FORMATS: Final[dict[str, Callable[[Path], Format]]] = {
    "parquet": ParquetFormat,
    "delta": _delta,
    "iceberg": _iceberg,
}


@dataclass
class _Made:
    """What tables are made of: the captures of this run."""

    batches: DataFrame
    messages: DataFrame | None = None
    samples: DataFrame | None = None

    @property
    def source(self) -> DataFrame:
        """``messages`` saves work if it is there."""
        return self.batches if self.messages is None else self.messages


def _samples(made: _Made) -> DataFrame:
    assert made.samples is not None  # they are made before
    return made.samples


_TABLES: Final[dict[str, Table]] = {
    "batches": lambda made: made.batches,
    "messages": lambda made: tables.messages(made.batches),
    "samples": lambda made: tables.samples(made.source),
    "sessions": lambda made: tables.sessions(made.batches, made.messages),
    "declarations": lambda made: tables.declarations(made.source),
    "queries": lambda made: tables.queries(made.source),
    "replies": lambda made: tables.replies(made.source),
    "losses": lambda made: tables.losses(made.batches, made.messages),
    "malformed": lambda made: tables.malformed(made.batches),
    "accounts": lambda made: tables.accounts(made.batches),
    "key_stats": lambda made: tables.key_stats(_samples(made)),
    "latest": lambda made: tables.latest(_samples(made)),
}
TABLES: Final = tuple(_TABLES)
"""All there are, in the order in which they are made."""
_WHOLE: Final = frozenset({"latest"})
"""About all captures at once."""
_OF_SAMPLES: Final = frozenset({"key_stats", "latest"})


@dataclass(frozen=True, slots=True)
class Written:
    """What a run added to a table."""

    rows: int
    bytes: int
    files: int


@dataclass(slots=True)
class Result:
    """What a run did. ``replaced`` are captures that were there before."""

    captures: list[str]
    replaced: list[str] = field(default_factory=list)
    tables: dict[str, Written] = field(default_factory=dict)
    accounts: dict[str, int] = field(default_factory=dict)
    """Bytes of the captures: in ``batches``, or by the reason for which they are in none."""
    not_sent: int = 0
    """Rows of ``losses`` that are none: gaps of the kind ``not_sent``."""
    completed: bool = False
    """Whether a former run, which was ended while it moved its tables, was completed first."""


def write_tables(
    spark: SparkSession,
    captures: Sequence[str | Path],
    out: str | Path,
    *,
    names: Iterable[str] | None = None,
    progress: Progress | None = None,
    format: str = "parquet",
    rotating: bool = False,
) -> Result:
    """Make the tables of these files. ``names`` are some of ``TABLES``; None is all of them.

    A capture is its absolute path without links, however it is named here. Files that are
    ``rotating`` continue one another: they are one capture with the name of the first, or of the
    directory that holds them. ``format`` is one of ``FORMATS``; those but Parquet have VARIANT
    columns as JSON text. Raises TableError.
    """
    chosen = _chosen(names)
    paths = list(dict.fromkeys(str(Path(capture).resolve()) for capture in captures))
    if format not in FORMATS:
        raise TableError(f"no format {format}; there are {', '.join(FORMATS)}")
    out = Path(out).resolve()
    layout = Layout(out, FORMATS[format](out))
    tell = progress or (lambda _: None)
    with layout.locked():
        layout.claim(format)
        named = paths[:1] if rotating else paths
        result = Result(named, completed=layout.complete())
        result.replaced = [path for path in named if layout.format.has(capture_id(path))]
        read = spark.read.format("zenoh.capture").option("rotating", str(rotating).lower())
        batches = read.load(paths if len(paths) > 1 else paths[0])
        run = _Run(spark, layout, _Made(batches), named, variants=format == "parquet")
        try:
            with layout.staged(), _settings(spark):
                for name in _needed(chosen):
                    tell(name)
                    run.make(name)
                    if name == "batches":
                        result.accounts = run.accounts()
                result.tables = {name: _measure(layout.staging / name) for name in chosen}
                result.not_sent = _not_sent(layout.staging / "losses")
                tell("commit")
                layout.commit(chosen, {capture_id(path): path for path in named})
        except (PySparkException, Py4JError) as e:
            raise TableError(f"{why(e)}; the tables in {out} are as they were") from None
        except OSError as e:
            raise TableError(f"{out}: {e.strerror or e}") from None
    return result


def _chosen(names: Iterable[str] | None) -> list[str]:
    if names is None:
        return list(TABLES)
    asked = set(names)
    unknown = asked - {*TABLES}
    if unknown:
        raise TableError(f"no table {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    if asked & _OF_SAMPLES:
        # They are made of the samples of all runs, which must be there then.
        asked.add("samples")
    return [name for name in TABLES if name in asked]


def _needed(chosen: list[str]) -> list[str]:
    return list(dict.fromkeys(["batches", *chosen]))


class _Run:
    """The tables of one run, each made of those before it."""

    def __init__(
        self,
        spark: SparkSession,
        layout: Layout,
        made: _Made,
        captures: list[str],
        *,
        variants: bool,
    ) -> None:
        self._spark = spark
        self._layout = layout
        self._made = made
        self._captures = captures
        self._variants = variants

    def make(self, name: str) -> None:
        frame = self._latest() if name == "latest" else _TABLES[name](self._made)
        target = str(self._layout.staging / name)
        if not self._variants:
            frame = _without_variants(frame)
        if name in _WHOLE:
            frame.write.parquet(target)
        else:
            named = frame.withColumn(_PARTITION, _capture_id(F.col("capture")))
            named.write.partitionBy(_PARTITION).parquet(target)
            self._keep_schema(frame, target)
        if name in ("batches", "messages", "samples"):
            written = self._spark.read.schema(frame.schema).parquet(target)
            if name == "messages" and not self._variants:
                # Other tables are made of the values, not of the text.
                written = written.withColumn("fields", F.parse_json("fields"))
            setattr(self._made, name, written)

    def accounts(self) -> dict[str, int]:
        """Where the bytes of the captures are."""
        of_all = tables.accounts(self._made.batches).groupBy("category").agg(F.sum("bytes"))
        found = sorted(of_all.collect(), key=lambda row: -row[1])
        return {row[0]: row[1] for row in found}

    def _keep_schema(self, frame: DataFrame, target: str) -> None:
        """Write the columns of a table without rows, as an empty file of the first capture.

        A partition of a null capture would do for Spark; PyArrow and pandas refuse to read it.
        """
        if any(Path(target).glob("*/*.parquet")):
            return
        empty = str(Path(target) / partition(capture_id(self._captures[0])))
        self._spark.createDataFrame([], frame.schema).coalesce(1).write.parquet(empty)
        (Path(empty) / "_SUCCESS").unlink(missing_ok=True)

    def _latest(self) -> DataFrame:
        """Of this run and of what other captures left there."""
        samples = _samples(self._made)
        others = self._layout.format.others("samples", [*map(capture_id, self._captures)])
        found = [samples]
        if others:
            found.append(self._spark.read.schema(samples.schema).parquet(*others))
        return tables.latest(reduce(DataFrame.unionByName, found))


def _capture_id(capture: Column) -> Column:
    """``capture_id`` of a column."""
    name = F.regexp_replace(F.substring_index(capture, "/", -1), "[^A-Za-z0-9._-]", "_")
    return F.concat(F.right(name, F.lit(80)), F.lit("-"), F.left(F.sha2(capture, 256), F.lit(12)))


def _without_variants(frame: DataFrame) -> DataFrame:
    """VARIANT as JSON text: the other formats' libraries cannot hold it yet."""
    kinds = {field.name: field.dataType.typeName() for field in frame.schema}
    return frame.withColumns(
        {name: F.to_json(name) for name, kind in kinds.items() if kind == "variant"}
    )


@contextmanager
def _settings(spark: SparkSession) -> Iterator[None]:
    """Times as other readers of Parquet understand them."""
    name = "spark.sql.parquet.outputTimestampType"
    before = spark.conf.get(name)
    spark.conf.set(name, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        spark.conf.set(name, before or "INT96")


def _measure(path: Path) -> Written:
    """Rows as the files say in their last bytes: no data is read."""
    files = list(path.rglob("*.parquet"))
    rows = sum(pq.read_metadata(file).num_rows for file in files)
    return Written(rows, sum(file.stat().st_size for file in files), len(files))


def _not_sent(losses: Path) -> int:
    """Rows of the kind ``not_sent`` in the files of ``losses``, if there are some."""
    files = losses.rglob("*.parquet")
    kinds = (pq.ParquetFile(file).read(columns=["kind"])["kind"] for file in files)
    return sum(pc.sum(pc.equal(kind, NOT_SENT[0])).as_py() or 0 for kind in kinds)
