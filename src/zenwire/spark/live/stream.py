"""``spark.readStream.format("zenoh")``: spools as they are written.

Offsets are those of the spool, so what a checkpoint says can always be read again: a query that
was killed plans the same micro-batch anew, and its rows are the same. Live, with ``connect``, the
query has a recorder beside it that writes the spool.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from zenwire.spark.live.beside import OwnRecorder
from zenwire.spark.live.offsets import At, as_json, of_json, share
from zenwire.spark.live.options import LATEST, Options, Start
from zenwire.spark.live.plan import Range, Spools, rows_of
from zenwire.spool import OffsetGone, SpoolError

__all__ = ["SpoolStream"]

_NOT_THIS: Final = (
    "the checkpoint is of another spool named {name} ({was}, this is {now}): start a new query, or "
    "set failOnDataLoss to false to read this one from its beginning"
)


class SpoolStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver; tasks read the ranges of them."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._opened: Spools | None = None
        self._target: dict[str, int] | None = None
        self._registered = False
        self._recorder: OwnRecorder | None = None

    def __reduce__(self) -> tuple[type[SpoolStream], tuple[Options]]:
        """Tasks get the options alone."""
        return type(self), (self._options,)

    @property
    def _spools(self) -> Spools:
        """Also begins to record, if the query does that. Raises ZError."""
        live = self._options.live
        if live is not None and self._recorder is None:
            recorder = OwnRecorder(live)
            recorder.start()
            self._recorder = recorder
        if self._opened is None:
            self._opened = Spools(self._options)
        return self._opened

    def _latest(self) -> dict[str, int]:
        return {name: self._spools.log(name).latest() for name in self._spools.spools}

    def _json(self, offsets: dict[str, int]) -> dict[str, Any]:
        ids = {name: spool.id for name, spool in self._spools.spools.items()}
        return as_json({name: At(offset, ids[name]) for name, offset in offsets.items()})

    # Offsets.

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Of a new query. Raises SpoolError, ValueError."""
        options, spools = self._options, self._spools
        found = spools.resolve(options.starting, options.starting_time, LATEST)
        if self._recorder is not None and options.starting_time is None:
            # What came since the recorder runs is for this query, whatever is the latest now.
            for name in found:
                if _is_latest(options.starting, name):
                    found[name] = self._recorder.before
        return self._json(found)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        if self._options.records is not None:
            return ReadMaxRows(self._options.records)
        if self._options.bytes is not None:
            return ReadMaxBytes(self._options.bytes)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        begin = self._begin(start)
        self._register(begin)
        if self._recorder is not None:
            self._recorder.check()
        ends = self._latest()
        if self._target is not None:
            ends = {name: min(end, self._target.get(name, end)) for name, end in ends.items()}
        ends = {name: max(end, begin[name]) for name, end in ends.items()}
        rows, size = self._limits(limit)
        left = {name: end - begin[name] for name, end in ends.items()}
        ends = {name: begin[name] + its for name, its in share(left, rows).items()}
        if size is not None:
            ends = self._within(begin, ends, size)
        return self._json(ends)

    def _limits(self, limit: ReadLimit) -> tuple[int, int | None]:
        """Rows and bytes. Spark has one limit, and ours may be two."""
        if isinstance(limit, ReadAllAvailable):
            return sys.maxsize, None
        rows, size = self._options.records or sys.maxsize, self._options.bytes
        if isinstance(limit, ReadMaxRows):
            rows = min(rows, limit.max_rows)
        if isinstance(limit, ReadMaxBytes):
            size = limit.max_bytes if size is None else min(size, limit.max_bytes)
        return rows, size

    def _within(self, begin: dict[str, int], ends: dict[str, int], most: int) -> dict[str, int]:
        """No more bytes than that, but a row at least."""
        batches = {name: self._spools.ranges(name, begin[name], ends[name], most) for name in ends}
        sizes = {name: sum(size for _, _, size in found) for name, found in batches.items()}
        shares = share(sizes, most)
        found = dict(begin)
        for name, its in shares.items():
            room = its
            for first, stop, size in batches[name]:
                rows = stop - first if size <= room else (stop - first) * room // size
                found[name] = first + rows
                room -= size
                if room < 0:
                    break
        if found == begin:
            # A row that is larger than the limit has to go through all the same.
            name = max(ends, key=lambda name: ends[name] - begin[name])
            found[name] = min(begin[name] + 1, ends[name])
        return found

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        return self._json(self._latest())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """What there is now; of a network, what others still have of the time before."""
        spools = self._spools
        if self._recorder is not None:
            self._recorder.filled()
        self._target = {name: spools.log(name).latest() for name in spools.spools}

    def _begin(self, start: dict[str, Any]) -> dict[str, int]:
        """Where each spool goes on. One that is new since the checkpoint is read from its beginning.

        Raises ValueError, OffsetGone if rows are missing, unless that is allowed.
        """
        found: dict[str, int] = {}
        known = of_json(start)
        strict = self._options.fail_on_data_loss
        for name, spool in self._spools.spools.items():
            log = self._spools.log(name)
            earliest, at = log.earliest(), known.pop(name, None)
            if at is None:
                found[name] = earliest
                continue
            path = self._spools.paths[name]
            if at.id != spool.id:
                if strict:
                    raise SpoolError(path, _NOT_THIS.format(name=name, was=at.id, now=spool.id))
                found[name] = earliest
                continue
            if at.offset < earliest and strict:
                raise OffsetGone(path, at.offset, earliest)
            latest = log.latest()
            if at.offset > latest and strict:
                raise SpoolError(path, f"ends at {latest}, before {at.offset} of the checkpoint")
            found[name] = min(max(at.offset, earliest), latest)
        if known and strict:
            raise ValueError(f"the checkpoint is of {', '.join(known)} too; add it to option spool")
        return found

    # Retention keeps what a registered reader has not read.

    def _register(self, begin: dict[str, int]) -> None:
        if self._registered or self._options.reader is None:
            return
        for name, offset in begin.items():
            self._spools.spools[name].register(self._options.reader, offset)
        self._registered = True

    def commit(self, end: dict[str, Any]) -> None:
        if self._options.reader is None:
            return
        for name, at in of_json(end).items():
            spool = self._spools.spools.get(name)
            if spool is not None and spool.id == at.id:
                spool.commit(self._options.reader, at.offset)

    # Micro-batches.

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        begin = self._begin(start)
        ends = {name: at.offset for name, at in of_json(end).items()}
        parts = {name: (first, ends.get(name, first)) for name, first in begin.items()}
        return self._spools.partitions({k: v for k, v in parts.items() if v[0] < v[1]})

    def stop(self) -> None:
        if self._recorder is not None:
            self._recorder.stop()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        return rows_of(partition, self._options)


def _is_latest(starting: Start | None, name: str) -> bool:
    said = starting.get(name) if isinstance(starting, Mapping) else starting
    return said is None or said == LATEST
