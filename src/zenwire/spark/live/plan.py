"""Ranges of offsets as partitions, and partitions as rows."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from zenwire.columns.keys import Keys
from zenwire.spark.live.columns import loss_rows, range_row, sample_rows
from zenwire.spark.live.options import EARLIEST, LATEST, Options, Start
from zenwire.spool import LogReader, Spool, SpoolError

__all__ = ["RANGE_BYTES", "Range", "Spools", "cut", "rows_of"]

_log = logging.getLogger(__name__)

RANGE_BYTES: Final = 16 << 20
"""Of a range that is handed on, at least: who takes it writes files, which are not to be tiny."""


@dataclass
class Range(InputPartition):
    """What a task reads: offsets of one spool from ``first`` up to ``end``."""

    path: str
    spool: str
    first: int
    end: int


class Spools:
    """The spools of a query, opened, by their names. Raises SpoolError, ValueError."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.paths: dict[str, str] = {}
        self.spools: dict[str, Spool] = {}
        for path in options.spools:
            spool = Spool.open(path)
            if spool.name in self.spools:
                raise ValueError(
                    f"{path} and {self.paths[spool.name]} are both named {spool.name}: offsets are "
                    "kept by name"
                )
            self.paths[spool.name] = path
            self.spools[spool.name] = spool

    def log(self, name: str) -> LogReader:
        """The log that the query reads."""
        spool = self.spools[name]
        return spool.losses if self._options.table == "losses" else spool.samples

    def resolve(self, start: Start | None, time: int | None, default: int) -> dict[str, int]:
        """Where each spool begins or ends, as offsets that are there."""
        if time is not None:
            return {name: self.log(name).offset_of_time(time) for name in self.spools}
        said = default if start is None else start
        if isinstance(said, int):
            return {name: self._exact(name, said) for name in self.spools}
        wrong = sorted(said.keys() ^ self.spools.keys())
        if wrong:
            raise ValueError(
                f"offsets name {', '.join(said)}, and the spools are {', '.join(self.spools)}: "
                f"{', '.join(wrong)} is in one of them alone"
            )
        return {name: self._exact(name, at) for name, at in said.items()}

    def _exact(self, name: str, at: int) -> int:
        log = self.log(name)
        if at == EARLIEST:
            return log.earliest()
        return log.latest() if at == LATEST else at

    def ranges(
        self, name: str, first: int, end: int, most: int = sys.maxsize
    ) -> list[tuple[int, int, int]]:
        """The batches between, as offsets and bytes; no more of them than ``most`` bytes need."""
        found = []
        try:
            for _, entry in self.log(name).entries(first, end):
                begin, stop = max(entry.first, first), min(entry.end, end)
                size = entry.length * (stop - begin) // entry.rows
                found.append((begin, stop, max(size, 1)))
                most -= size
                if most <= 0:
                    break
        except SpoolError:
            if self._options.fail_on_data_loss:
                raise
            # Which of them can be read, the task finds out.
            found = [(first, end, 1)]
        return found

    def partitions(self, parts: dict[str, tuple[int, int]]) -> list[Range]:
        """What tasks read of so much of each spool."""
        batches = {name: self.ranges(name, *part) for name, part in parts.items()}
        total = sum(size for found in batches.values() for _, _, size in found)
        most = self._options.partition_bytes
        target = min(most, -(-total // self._options.min_partitions))
        if self._options.table == "ranges":
            target = max(target, min(most, RANGE_BYTES))
        return [
            Range(self.paths[name], name, first, end)
            for name, found in batches.items()
            for first, end in cut(found, max(target, 1))
        ]


def cut(batches: Sequence[tuple[int, int, int]], target: int) -> Iterator[tuple[int, int]]:
    """Batches in order, together up to so many bytes; larger ones in pieces of rows."""
    begin: int | None = None
    end = size = 0
    for first, stop, its in batches:
        if begin is not None and (size + its > target):
            yield begin, end
            begin, size = None, 0
        if its > target:
            rows = stop - first
            each = max(rows * target // its, 1)
            for at in range(first, stop, each):
                yield at, min(at + each, stop)
            continue
        begin = first if begin is None else begin
        end, size = stop, size + its
    if begin is not None:
        yield begin, end


def rows_of(part: Range, options: Options) -> Iterator[pa.RecordBatch]:
    """Rows of a partition. Raises SpoolError unless losses are allowed."""
    if options.table == "ranges":
        yield range_row(part.path, part.spool, part.first, part.end)
        return
    keys = Keys(options.keyexpr, options.exclude)
    spool = Spool.open(part.path)
    log: LogReader = getattr(spool, options.table)
    lost = None if options.fail_on_data_loss else _tell
    for first, batch in log.read(part.first, part.end, lost=lost):
        if options.table == "losses":
            yield loss_rows(part.spool, first, batch)
            continue
        keep = keys(batch.column("key"))
        made = sample_rows(part.spool, first, batch, options.columns, keep)
        if made.num_rows:
            yield made


def _tell(error: SpoolError) -> None:
    _log.warning("rows are passed over, as failOnDataLoss is false: %s", error)
