"""The standing pipeline: streaming queries from spools into a lake, and how they do.

with Pipeline(spark, ["spools/fleet"], "lake") as pipeline:
    pipeline.start(interval=10)
    pipeline.status()
    pipeline.stop()
"""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from py4j.protocol import Py4JError  # type: ignore[import-untyped] # comes with PySpark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from zenwire.spark.ingest.batch import LossesBatch, SamplesBatch
from zenwire.spark.ingest.compact import Compaction
from zenwire.spark.ingest.lake import Lake
from zenwire.spark.ingest.names import TARGET
from zenwire.spark.ingest.passing import passes
from zenwire.spark.ingest.sources import SOURCES
from zenwire.spark.live.options import PARTITION, Options
from zenwire.spark.payloads.messages import Definitions, load
from zenwire.spark.write_layout import TableError, why
from zenwire.spool import Spool, SpoolError

__all__ = ["QUERIES", "SETTINGS", "Pipeline", "Status"]

_log = logging.getLogger("zenwire.ingest")

QUERIES: Final = ("samples", "losses")
RECORDS: Final = 20_000_000
"""Rows of a micro-batch at most: enough that what it costs by itself, some seconds, and the ten
seconds to the next one are not what limits it; and a restart is short."""
BYTES: Final = 1 << 30
"""And their bytes, as the spools have them: samples of 10 MB are no rarity."""
PARTITION_BYTES: Final = 128 << 20
"""Of a task at most, as the spools have them. Every task has a file for each prefix that it meets,
and costs something by itself: there are no more of them than keep all cores busy."""
SETTINGS: Final = {
    # Renames in place of new file contexts: a trigger is shorter by half, on disks that have them.
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming."
    "checkpointing.FileSystemBasedCheckpointFileManager",
    "spark.sql.session.timeZone": "UTC",
    # Times as other readers of Parquet understand them.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.streaming.noDataProgressEventInterval": "1000",
}
_LOOK: Final = 0.1
_TELL: Final = 5.0
"""Seconds between two times that spools are told how far it is."""
_STOP: Final = 120.0
"""Seconds that a micro-batch may take to its end when it is told to stop."""
_PAUSES: Final = (1.0, 2.0, 5.0, 10.0, 20.0)
"""Seconds before it is tried again after a fault that passes: so often, without a micro-batch that
went well in between."""


class Status(NamedTuple):
    """How it goes. ``lag_rows`` and ``lag_seconds``: what the spools have and the tables have not."""

    rows: int
    """Of ``samples``, since there is the lake."""
    losses: int
    lost: int
    """Samples that are known to be lost, as ``losses`` says."""
    faults: int
    """Payloads that are not what their encoding says."""
    batch: int
    batch_rows: int
    batch_seconds: float
    rows_per_s: float
    lag_rows: int
    lag_seconds: float
    restarts: int
    """Times that Spark failed at something of its own, and was told to try again."""


class Pipeline:
    """One lake and what goes into it. Raises TableError; ``start`` and ``wait`` too.

    A fault of Spark that passes is a line of the log, and the queries begin again: some times in a
    row, which is in ``wait``. ``check`` says of any failure what it was.
    """

    def __init__(
        self,
        spark: SparkSession,
        spools: Sequence[str | Path],
        lake: str | Path,
        *,
        format: str = "parquet",
        prefix_chunks: int = 2,
        records: int = RECORDS,
        reader: str | None = None,
        definitions: Definitions | None = None,
        options: Mapping[str, str] | None = None,
        target: int = TARGET,
    ) -> None:
        self._spark = spark
        self._lake = Lake(Path(lake).resolve(), format)
        self._spools = [str(Path(spool).resolve()) for spool in spools]
        self._chunks = prefix_chunks
        self._records = records
        self._reader = reader
        self._definitions = load() if definitions is None else definitions
        self._options = dict(options or {})
        self._target = target
        self._queries: dict[str, StreamingQuery] = {}
        self._tells = 0.0
        self._how: tuple[bool, float] = False, 0.0
        self._resumes: float | None = None
        """When queries begin again that have failed."""
        self._failures = self._restarts = 0
        self._reached = (-1, -1)
        self._stack = contextlib.ExitStack()
        self.completed: list[str] = []
        """Queries whose last micro-batch a former run had begun to commit, and this one ended."""

    def __enter__(self) -> Self:
        self._stack.enter_context(self._lake.locked())
        try:
            self.completed = self._lake.recover(QUERIES)
            self._check_checkpoints()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        self._lake.clear(QUERIES)
        self._stack.close()

    def _check_checkpoints(self) -> None:
        """Numbers of micro-batches begin anew with a new one, and would be taken for old ones."""
        for query in QUERIES:
            there = (self._lake.checkpoint(query) / "offsets").exists()
            if not there and self._lake.journal(query).state().batch >= 0:
                raise TableError(
                    f"{self._lake.checkpoint(query)} is gone, which says how far {query} has come: "
                    "put it back, or give another --lake"
                )

    def start(self, *, once: bool = False, interval: float = 10.0) -> None:
        """``once``: what is in the spools now, and then it ends by itself."""
        self._how = once, interval
        self._failures, self._reached = 0, self._at()
        for name, value in SETTINGS.items():
            self._spark.conf.set(name, value)
        try:
            self._begin()
        except (PySparkException, Py4JError) as e:
            self._fail(why(e), passing=passes(e))

    def _begin(self) -> None:
        """Raises what Spark raises."""
        self._resumes = None
        once, interval = self._how
        self._tell_losses()
        out, format = self._lake.out, self._lake.format
        how: dict[str, Callable[[DataFrame, int], None]] = {
            "samples": SamplesBatch(
                out,
                format,
                chunks=self._chunks,
                definitions=self._definitions,
                compaction=Compaction(all_at_once=once, target=self._target),
                source=Options.of(self._said("samples") | {"table": "samples"}),
            ),
            "losses": LossesBatch(out, format, Compaction(target=self._target)),
        }
        for query, each in how.items():
            self._spark.dataSource.register(SOURCES[query])
            read = self._spark.readStream.format(SOURCES[query].name())
            written = (
                read.options(**self._said(query))
                .load()
                .writeStream.queryName(f"zenwire ingest {query}")
                .option("checkpointLocation", str(self._lake.checkpoint(query)))
                .foreachBatch(each)
            )
            if once:
                written = written.trigger(availableNow=True)
            else:
                written = written.trigger(processingTime=f"{max(interval, 0.0)} seconds")
            self._queries[query] = written.start()

    def _said(self, query: str) -> dict[str, str]:
        said = {
            "spool": json.dumps(self._spools),
            "table": query,
            "startingOffsets": "earliest",
            **self._options,
        }
        if query == "samples":
            # Tasks get offsets, and read the rows themselves: those need not pass through Spark.
            said["table"] = "ranges"
            said.setdefault("maxPartitionBytes", str(PARTITION_BYTES))
            said.setdefault("minPartitions", str(_tasks(self._spark)))
            said["maxRecordsPerTrigger"] = str(self._records)
            said["maxBytesPerTrigger"] = str(BYTES)
            if self._reader is not None:
                said["reader"] = self._reader
        return said

    @property
    def active(self) -> bool:
        """Whether all of it runs."""
        return bool(self._queries) and all(query.isActive for query in self._queries.values())

    def wait(self, seconds: float | None = None) -> bool:
        """Until all have ended, or one has failed, or the time is over. Whether all have ended."""
        ends = None if seconds is None else time.monotonic() + seconds
        while True:
            self._keep_on()
            if time.monotonic() >= self._tells:
                self._tell_losses()
            if self._resumes is None and not any(q.isActive for q in self._queries.values()):
                return True
            if ends is not None and time.monotonic() >= ends:
                return False
            time.sleep(_LOOK)

    def check(self) -> None:
        """Raises TableError if a query has failed."""
        found = self._failed()
        if found is not None:
            raise TableError(self._whole(found[0]))

    def _failed(self) -> tuple[str, bool] | None:
        """Why a query has, and whether that passes."""
        for name, query in self._queries.items():
            error = None if query.isActive else query.exception()
            if error is not None:
                return f"{name}: {why(error)}", passes(error)
        return None

    def _whole(self, said: str) -> str:
        return f"{said}; what is in {self._lake.out} is whole, and the next run goes on from there"

    def _keep_on(self) -> None:
        """Begin again what has failed of a fault that passes. Raises TableError for others."""
        if self._resumes is not None:
            if time.monotonic() < self._resumes:
                return
            try:
                self._begin()
            except (PySparkException, Py4JError) as e:
                self._fail(why(e), passing=passes(e))
            return
        found = self._failed()
        if found is not None:
            self._fail(found[0], passing=found[1])

    def _fail(self, said: str, *, passing: bool) -> None:
        """Raises TableError, unless it is to be tried again."""
        reached = self._at()
        if reached != self._reached:
            self._failures, self._reached = 0, reached
        if not passing or self._failures == len(_PAUSES):
            raise TableError(self._whole(said))
        pause = _PAUSES[self._failures]
        self._failures += 1
        self._restarts += 1
        _log.warning(
            "%s; Spark is told to try again in %g s (%d of %d)",
            said,
            pause,
            self._failures,
            len(_PAUSES),
        )
        if not self._halt():
            # It may go on for a while, and there must not be two.
            raise TableError(self._whole(said))
        self._resumes = time.monotonic() + pause

    def _at(self) -> tuple[int, int]:
        """The last micro-batches that are in the tables."""
        samples, losses = (self._lake.journal(query).state().batch for query in QUERIES)
        return samples, losses

    def stop(self) -> None:
        """Between two micro-batches, if that is soon."""
        self._resumes = None
        self._halt()

    def _halt(self) -> bool:
        """Whether none of them was within a micro-batch."""
        ends, between = time.monotonic() + _STOP, True
        for query in self._queries.values():
            try:
                while (
                    query.isActive
                    and query.status["isTriggerActive"]
                    and query.exception() is None
                    and (between := time.monotonic() < ends)
                ):
                    time.sleep(_LOOK / 2)
                query.stop()
            except (PySparkException, Py4JError, OSError):
                # Spark itself is gone. What it had begun, the next run completes or drops.
                continue
        if self._queries:
            self._tell_losses()
        self._queries = {}
        return between

    def _tell_losses(self) -> None:
        """How far ``losses`` has come: the spools keep theirs until then.

        Of ``samples`` the source itself says so.
        """
        self._tells = time.monotonic() + _TELL
        if self._reader is None:
            return
        ends, name = _committed(self._lake.checkpoint("losses")), f"{self._reader}-losses"
        for path in self._spools:
            # A spool that is gone, or cannot be written, is not for here to say.
            with contextlib.suppress(SpoolError, OSError):
                spool = Spool.open(path)
                if spool.register(name, ends.get(spool.name), log="losses") < ends.get(
                    spool.name, 0
                ):
                    spool.commit(name, ends[spool.name], log="losses")

    def status(self) -> Status:
        """As of the last micro-batch."""
        state = self._lake.journal("samples").state()
        lost = self._lake.journal("losses").state()
        progress = self._progress()
        seconds = progress.get("batchDuration", 0) / 1e3
        rows = sum(map(_taken, progress.get("sources", ())))
        lag = self._lag()
        behind = time.time() - state.newest / 1e9 if state.newest and lag else 0.0
        return Status(
            rows=state.rows,
            losses=lost.rows,
            lost=lost.lost,
            faults=state.faults,
            batch=state.batch,
            batch_rows=rows,
            batch_seconds=seconds,
            rows_per_s=rows / seconds if seconds else 0.0,
            lag_rows=lag,
            lag_seconds=max(behind, 0.0),
            restarts=self._restarts,
        )

    def _lag(self) -> int:
        """Rows of the spools that are not in the tables; of those that can be seen from here."""
        ends = _committed(self._lake.checkpoint("samples"))
        rows = 0
        for path in self._spools:
            with contextlib.suppress(SpoolError, OSError):
                spool = Spool.open(path)
                begin = ends.get(spool.name, spool.samples.earliest())
                rows += max(spool.samples.latest() - begin, 0)
        return rows

    def _progress(self) -> dict[str, Any]:
        query = self._queries.get("samples")
        last = None if query is None else query.lastProgress
        return {} if last is None else json.loads(last.json)


def _tasks(spark: SparkSession) -> int:
    """Two for each core, so that the last one is not waited for long."""
    try:
        return 2 * int(spark.sparkContext.defaultParallelism)
    except (PySparkException, Py4JError, AttributeError):
        # Spark Connect does not tell.
        return 16


def _taken(source: dict[str, Any]) -> int:
    """Rows between the offsets of a micro-batch; Spark itself saw ranges alone."""
    ends, begins = source.get("endOffset") or {}, source.get("startOffset") or {}
    return sum(
        at[PARTITION] - begins.get(name, {PARTITION: 0})[PARTITION] for name, at in ends.items()
    )


def _committed(checkpoint: Path) -> dict[str, int]:
    """Where the last micro-batch that was completed has ended, by the spools' names."""
    done = [int(p.name) for p in (checkpoint / "commits").glob("*") if p.name.isdigit()]
    if not done:
        return {}
    try:
        text = (checkpoint / "offsets" / str(max(done))).read_text().splitlines()[-1]
        return {name: int(at["0"]) for name, at in json.loads(text).items()}
    except (OSError, ValueError, IndexError, KeyError, TypeError):
        # It is removed, or another one is written, in this moment.
        return {}
