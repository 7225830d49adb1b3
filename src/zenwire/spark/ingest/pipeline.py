"""The standing pipeline: a streaming query from spools into a lake.

with Pipeline(spark, ["spools/fleet"], "lake") as pipeline:
    pipeline.start(interval=10)
    pipeline.status()
    pipeline.stop()
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from py4j.protocol import Py4JError  # type: ignore[import-untyped] # comes with PySpark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from zenwire.errors import ZError
from zenwire.lake.errors import LakeError
from zenwire.lake.ingest import Ingest
from zenwire.lake.lake import Lake
from zenwire.lake.payloads.messages import Definitions, load
from zenwire.spark.ingest.job import run_batch, run_tasks
from zenwire.spark.ingest.sources import IngestSource
from zenwire.spark.ingest.transient_errors import is_transient
from zenwire.spark.live.options import PARTITION
from zenwire.spool import Spool, SpoolError

__all__ = ["SETTINGS", "Pipeline", "Status"]

_log = logging.getLogger("zenwire.ingest")

RECORDS: Final = 20_000_000
"""Rows of a micro-batch at most: enough that its fixed cost does not limit it, and a restart is short."""
BYTES: Final = 1 << 30
"""Bytes of a micro-batch at most, as the spools have them. Samples of 10 MB are common."""
PARTITION_BYTES: Final = 128 << 20
"""Bytes of a task at most, as the spools have them. Each task writes a file."""
SETTINGS: Final = {
    # Renames instead of new file contexts: a trigger takes half as long on local disks.
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming."
    "checkpointing.FileSystemBasedCheckpointFileManager",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.noDataProgressEventInterval": "1000",
}
_POLL: Final = 0.1
_LOSSES_EVERY: Final = 5.0
"""Seconds between looks for losses while no micro-batch runs."""
_STOP: Final = 120.0
"""Seconds that a micro-batch may take to its end when the pipeline stops."""
_RETRIES: Final = (1.0, 2.0, 5.0, 10.0, 20.0)
"""Seconds before each retry after a transient fault. A successful micro-batch resets them."""


class Status(NamedTuple):
    """Progress. ``lag_rows`` and ``lag_seconds``: rows that the spools have and the table has not."""

    rows: int
    """Rows of ``samples``, since the lake was made."""
    losses: int
    """Rows of ``losses``, since the lake was made."""
    lost: int
    """Samples that are known to be lost, of the losses that this process committed."""
    faults: int
    """Payloads that do not match their declared encoding, of the rows of this process."""
    batch: int
    """Micro-batches of this process, from 0."""
    batch_rows: int
    batch_seconds: float
    rows_per_s: float
    lag_rows: int
    lag_seconds: float
    restarts: int
    """Restarts of the query after transient faults of Spark."""


class Pipeline:
    """One lake and the spools that go into it. Raises LakeError; ``start`` and ``wait`` too.

    The tables say how far they are, so a checkpoint of Spark is not needed: each query has a new one
    in a temporary directory, and begins where the tables end.
    """

    def __init__(
        self,
        spark: SparkSession,
        spools: Sequence[str | Path],
        lake: str | Path,
        *,
        format: str = "delta",
        records: int = RECORDS,
        reader: str | None = None,
        definitions: Definitions | None = None,
        options: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        """``reader`` registers with the spools, so that retention keeps rows until they are here.

        ``options`` are options of ``format("zenoh")``, ``storage_options`` those of deltalake.
        """
        self._spark = spark
        self._where = str(lake)
        self._format = format
        self._storage_options = storage_options
        self._paths = [
            str(path) if "://" in str(path) else str(Path(path).resolve()) for path in spools
        ]
        self._records = records
        self._reader = reader
        self._definitions = load() if definitions is None else definitions
        self._options = dict(options or {})
        self._stack = contextlib.ExitStack()
        self._lock = threading.RLock()
        """Held by whoever commits: the query's micro-batch, or this object."""
        self._ingest: Ingest | None = None
        self._query: StreamingQuery | None = None
        self._how: tuple[bool, float] = False, 0.0
        self._before = (0, 0)
        self._batches = self._failures = self._restarts = 0
        self._succeeded = False
        self._resumes: float | None = None
        """When the query begins again after a fault."""
        self._looks = 0.0
        self._begins: dict[str, int] = {}
        self._fault: Exception | None = None

    def __enter__(self) -> Self:
        lake = Lake(self._where, self._format, self._storage_options)
        spools = {path: Spool.open(path) for path in self._paths}
        self._ingest = Ingest(lake, spools, self._definitions, reader=self._reader)
        samples, losses = (
            sum(file.rows for file in lake[name].files()) for name in ("samples", "losses")
        )
        self._before = samples, losses
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        self._stack.close()

    @property
    def _open(self) -> Ingest:
        assert self._ingest is not None, "used outside of its with statement"
        return self._ingest

    def _run(self, texts: Sequence[str]) -> list[str]:
        return run_tasks(self._spark, self._open.task(), texts)

    # The query.

    def start(self, *, once: bool = False, interval: float = 10.0) -> None:
        """``once``: ingest the rows that the spools have now, then end."""
        self._how = once, interval
        for name, value in SETTINGS.items():
            self._spark.conf.set(name, value)
        try:
            self._begin()
        except (PySparkException, Py4JError, LakeError) as e:
            self._fail(e)

    def _begin(self) -> None:
        """Start the query where the tables end. Raises what Spark raises, and LakeError."""
        self._resumes = None
        once, interval = self._how
        with self._lock:
            self._fault = None
            self._begins = self._open.catch_up(self._run)
        self._stack.close()
        checkpoint = self._stack.enter_context(
            tempfile.TemporaryDirectory(prefix="zenwire-ingest-", ignore_cleanup_errors=True)
        )
        self._spark.dataSource.register(IngestSource)
        written = (
            self._spark.readStream.format(IngestSource.name())
            .options(**self._source_options(self._begins))
            .load()
            .writeStream.queryName("zenwire ingest")
            .option("checkpointLocation", Path(checkpoint).as_uri())
            .foreachBatch(self._micro_batch)
        )
        if once:
            written = written.trigger(availableNow=True)
        else:
            written = written.trigger(processingTime=f"{max(interval, 0.0)} seconds")
        self._query = written.start()

    def _source_options(self, begins: Mapping[str, int]) -> dict[str, str]:
        offsets = {name: {PARTITION: offset} for name, offset in begins.items()}
        return {
            "spool": json.dumps(self._paths),
            "table": "ranges",
            "startingOffsets": json.dumps(offsets),
            "maxPartitionBytes": str(PARTITION_BYTES),
            "minPartitions": str(_cores(self._spark)),
            "maxRecordsPerTrigger": str(self._records),
            "maxBytesPerTrigger": str(BYTES),
            **self._options,
        }

    def _micro_batch(self, ranges: DataFrame, number: int) -> None:
        ingest = self._open
        with self._lock:
            try:
                others = [*ingest.merges(), *ingest.compactions()]
                ingest.commit(run_batch(ranges, ingest.task(), others))
            except Exception as e:
                # Spark gives it back as text.
                self._fault = e
                raise
            self._batches += 1
            self._succeeded = True

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the query has ended, or the time is over. Return whether it has ended.

        Raises LakeError if the query failed for good. Retries after transient faults.
        """
        ends = None if seconds is None else time.monotonic() + seconds
        while True:
            self._keep_on()
            if self._resumes is None and (self._query is None or not self._query.isActive):
                self._finish()
                return True
            if time.monotonic() >= self._looks and self._resumes is None:
                self._looks = time.monotonic() + _LOSSES_EVERY
                self._commit_losses()
            if ends is not None and time.monotonic() >= ends:
                return False
            time.sleep(_POLL)

    def _commit_losses(self) -> None:
        """Commit losses unless a micro-batch is under way, which commits them itself.

        A spool that cannot be read is the query's to report.
        """
        if self._lock.acquire(blocking=False):
            try:
                with contextlib.suppress(SpoolError, OSError):
                    self._open.commit_losses()
            finally:
                self._lock.release()

    @property
    def active(self) -> bool:
        """Whether the query runs."""
        return self._query is not None and self._query.isActive

    def _keep_on(self) -> None:
        """Restart a query that failed of a transient fault. Raises LakeError for others."""
        if self._resumes is not None:
            if time.monotonic() >= self._resumes:
                try:
                    self._begin()
                except (PySparkException, Py4JError, LakeError) as e:
                    self._fail(e)
            return
        query = self._query
        error = None if query is None or query.isActive else query.exception()
        if error is not None:
            self._fail(self._fault if isinstance(self._fault, ZError) else error)

    def _fail(self, error: Exception) -> None:
        """Schedule a retry, or raise LakeError."""
        if self._succeeded:
            self._failures, self._succeeded = 0, False
        said = _one_line(error)
        if not is_transient(error) or self._failures == len(_RETRIES):
            self._query = None
            raise LakeError(
                self._where,
                f"{said}; every commit so far is complete, and the next run goes on from there",
            )
        pause = _RETRIES[self._failures]
        self._failures += 1
        self._restarts += 1
        _log.warning("%s; retry %d of %d in %g s", said, self._failures, len(_RETRIES), pause)
        self._halt()
        self._resumes = time.monotonic() + pause

    def stop(self) -> None:
        """Stop between two micro-batches, and merge the rest into the derived tables."""
        self._resumes = None
        self._halt()
        self._finish()

    def _finish(self) -> None:
        """Complete the derived tables, unless Spark is gone: the next run does it then."""
        if self._ingest is None:
            return
        with self._lock, contextlib.suppress(PySparkException, Py4JError, ZError, OSError):
            self._ingest.flush(self._run)
            self._ingest.commit_losses()
            if self._how[0]:
                self._ingest.compact(self._run)

    def _halt(self) -> None:
        query, self._query = self._query, None
        if query is None:
            return
        ends = time.monotonic() + _STOP
        with contextlib.suppress(PySparkException, Py4JError, OSError):
            while (
                query.isActive
                and query.status["isTriggerActive"]
                and query.exception() is None
                and time.monotonic() < ends
            ):
                time.sleep(_POLL / 2)
            query.stop()

    # Progress.

    def status(self) -> Status:
        """As of the last commit."""
        done, (rows, losses) = self._open.progress, self._before
        progress = self._last_progress()
        seconds = progress.get("batchDuration", 0) / 1e3
        taken = sum(_taken(source, self._begins) for source in progress.get("sources", ()))
        lag, newest = self._lag()
        behind = time.time() - newest / 1e9 if newest and lag else 0.0
        return Status(
            rows=rows + done.rows,
            losses=losses + done.losses,
            lost=done.lost,
            faults=done.faults,
            batch=self._batches - 1,
            batch_rows=taken,
            batch_seconds=seconds,
            rows_per_s=taken / seconds if seconds else 0.0,
            lag_rows=lag,
            lag_seconds=max(behind, 0.0),
            restarts=self._restarts,
        )

    def _lag(self) -> tuple[int, int]:
        """Rows of the spools that are not in the table, and the receive time of the last that is."""
        ingest, rows = self._open, 0
        for path in self._paths:
            # Another thread reads the spools of `ingest`.
            with contextlib.suppress(SpoolError, OSError):
                spool = Spool.open(path)
                end = ingest.ends.get(spool.id, spool.samples.earliest())
                rows += max(spool.samples.latest() - end, 0)
        return rows, ingest.progress.newest

    def _last_progress(self) -> dict[str, Any]:
        last = None if self._query is None else self._query.lastProgress
        return {} if last is None else json.loads(last.json)


def _cores(spark: SparkSession) -> int:
    try:
        return int(spark.sparkContext.defaultParallelism)
    except (PySparkException, Py4JError, AttributeError):
        # Spark Connect does not tell.
        return 8


def _taken(source: dict[str, Any], begins: Mapping[str, int]) -> int:
    """Rows between the offsets of a micro-batch. Spark itself counts ranges.

    The first micro-batch has no start: it goes from ``begins`` on.
    """
    ends, starts = source.get("endOffset") or {}, source.get("startOffset") or {}
    first = {name: at[PARTITION] for name, at in starts.items()}
    return sum(at[PARTITION] - first.get(name, begins.get(name, 0)) for name, at in ends.items())


def _one_line(error: Exception) -> str:
    """The cause, out of the many lines that Spark gives."""
    text = str(error)
    ours = re.findall(r"zenwire\.[\w.]*(?:Error|Exception|Damaged|Gone|Failed): (.+)", text)
    if ours:
        return str(ours[-1]).strip()
    theirs = re.findall(r"^(?:\w+\.)*\w*(?:Error|Exception): (.+)", text, re.MULTILINE)
    return str((theirs or [text.strip().splitlines()[0]])[-1]).strip()
