"""Small files of a partition become few large ones: the same rows, sorted by key and time.

It happens after a micro-batch, a partition at a time. What goes wrong before it counts leaves the
partition as it was, and is tried again later.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import PurePosixPath
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped] # comes with PySpark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from zenwire.spark.ingest.journal import Journal
from zenwire.spark.ingest.lake import Change, Lake
from zenwire.spark.ingest.merge import merging
from zenwire.spark.ingest.names import TARGET, chosen, merged, range_of, stem_of
from zenwire.spark.write_layout import why

__all__ = ["Compaction"]

_log = logging.getLogger(__name__)
_ORDER: Final = {"losses": ("time",), "key_stats": ("key", "window")}
_SPLIT: Final = {"samples": ("day", "prefix"), "losses": (), "key_stats": ("day",)}


@dataclass
class Compaction:
    """Which partitions are looked at, and when.

    Those that a micro-batch has written to; and when it is the first of a day, or of this process,
    those of the days before, which are finished then.
    """

    all_at_once: bool = False
    """All that is to be done; else one partition after each micro-batch."""
    target: int = TARGET
    _day: str = ""
    _hour: str = ""
    _waiting: list[str] = field(default_factory=list)

    def samples(
        self, spark: SparkSession, lake: Lake, journal: Journal, touched: Iterable[str], now: str
    ) -> None:
        """``touched`` are partitions, ``now`` the newest time there is, as 2026-03-01T13."""
        day = now[:10]
        if day != self._day:
            self._day = day
            older = {_folder(name) for name in lake.store.files("samples")}
            self._waiting = sorted(where for where in older if _day_of(where) < day)
        for where in [*touched, *self._waiting]:
            if where in self._waiting:
                self._waiting.remove(where)
            done = self._partition(spark, lake, journal, where, finished=_day_of(where) < day)
            if done and not self.all_at_once:
                return
        if now != self._hour:
            self._hour = now
            self._hours(spark, lake, journal, now)

    def losses(self, spark: SparkSession, lake: Lake, journal: Journal) -> None:
        names = lake.store.files("losses")
        some = chosen(_sizes(lake, "losses", names), finished=False, target=self.target)
        if some:
            _merge(spark, lake, journal, "losses", some, target=self.target)

    def _partition(
        self, spark: SparkSession, lake: Lake, journal: Journal, where: str, *, finished: bool
    ) -> bool:
        names = lake.store.files("samples", where)
        sizes = {PurePosixPath(n).name: s for n, s in _sizes(lake, "samples", names).items()}
        some = chosen(sizes, finished=finished, target=self.target)
        if not some:
            return False
        chosen_names = [f"{where}/{name}" for name in some]
        return _merge(spark, lake, journal, "samples", chosen_names, target=self.target)

    def _hours(self, spark: SparkSession, lake: Lake, journal: Journal, now: str) -> None:
        """Minutes of ``key_stats`` become hours, when another one is between them and now."""
        minutes = sorted(n for n in lake.store.files("key_stats") if "m" in _name(n))
        for hour, some in groupby(minutes, key=lambda name: name[: name.rindex("m")]):
            names, at = [*some], hour.removeprefix("day=").replace("/h", "T")
            if len(names) > 1 and at < _before(now):
                _merge(spark, lake, journal, "key_stats", names, stem=hour)


def _folder(name: str) -> str:
    return str(PurePosixPath(name).parent)


def _name(path: str) -> str:
    return stem_of(PurePosixPath(path).name)


def _day_of(where: str) -> str:
    return where.partition("/")[0].removeprefix("day=")


def _before(now: str) -> str:
    import datetime as dt  # noqa: PLC0415 - only here

    at = dt.datetime.fromisoformat(f"{now}:00+00:00") - dt.timedelta(hours=1)
    return at.strftime("%Y-%m-%dT%H")


def _sizes(lake: Lake, table: str, names: Sequence[str]) -> dict[str, int]:
    return {name: (lake.out / table / name).stat().st_size for name in names}


def _merge(
    spark: SparkSession,
    lake: Lake,
    journal: Journal,
    table: str,
    names: Sequence[str],
    *,
    stem: str | None = None,
    target: int = TARGET,
) -> bool:
    """These files of one directory as few. Whether it was done."""
    state = journal.state()
    staging = journal.begin()
    try:
        size = sum(_sizes(lake, table, names).values())
        if table == "samples":
            merge = merging(lake.paths(table, names), str(staging / table), target)
            done = spark.range(1, numPartitions=1).mapInArrow(merge, "name string").collect()
            made = [staging / table / row["name"] for row in done]
        else:
            # Also columns that this version does not know.
            found = spark.read.option("mergeSchema", "true").parquet(*lake.paths(table, names))
            few = 1 if stem is not None else math.ceil(size / target)
            sorted_rows = found.coalesce(few).sortWithinPartitions(*_ORDER[table])
            sorted_rows.write.option("compression", "zstd").parquet(str(staging / table))
            made = sorted((staging / table).glob("*.parquet"))
        if stem is None:
            new = [*_numbered(names, len(made))]
        else:
            new = [lake.store.name(stem, state.batch)]
        change = Change(table, dict(zip(made, new, strict=True)), names, _SPLIT[table])
        plans = lake.store.plan(change)
    except (PySparkException, Py4JError, OSError) as e:
        _log.warning("small files of %s stay as they are: %s", table, why(e))
        journal.recover()
        return False
    journal.commit(plans, state)
    return True


def _numbered(names: Sequence[str], count: int) -> Iterator[str]:
    """Names for the files that take their place."""
    where = _folder(names[0])
    spans = [span for name in names if (span := range_of(PurePosixPath(name).name))]
    first, last = min(a for a, _ in spans), max(b for _, b in spans)
    for number in range(count):
        name = merged(first, last, number)
        yield name if where == "." else f"{where}/{name}"
