"""``spark.read.format("zenoh")``: what spools hold between two offsets or times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from zenwire.spark.live.options import EARLIEST, LATEST, Options
from zenwire.spark.live.plan import Range, Spools, rows_of
from zenwire.spool import OffsetGone

__all__ = ["SpoolReader"]


class SpoolReader(DataSourceReader):
    """Plans on the driver, reads in tasks.

    Conditions are left to Spark, which hands those of one scan to all scans of the same relation
    (seen with 4.3). Options say what is not even to be read: ``keyexpr``, ``startingTimestamp``.
    """

    def __init__(self, options: Options) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Runs on the driver. Raises SpoolError, ValueError."""
        options = self._options
        spools = Spools(options)
        starts = spools.resolve(options.starting, options.starting_time, EARLIEST)
        ends = spools.resolve(options.ending, options.ending_time, LATEST)
        parts: dict[str, tuple[int, int]] = {}
        for name, first in starts.items():
            log = spools.log(name)
            earliest = log.earliest()
            if first < earliest and options.fail_on_data_loss:
                raise OffsetGone(spools.paths[name], first, earliest)
            parts[name] = max(first, earliest), min(ends[name], log.latest())
        # Spark takes none for one that is to be read without a plan.
        return spools.partitions(parts) or [Range(options.spools[0], next(iter(starts)), 0, 0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        return rows_of(partition, self._options)
