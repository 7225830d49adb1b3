"""``format("zenoh")``: samples by offset, and rows as publications (``spark/live/sink.py``).

Options to read with: ``spool`` (a directory or address, several with commas or as a JSON list), ``table``
(samples, losses), ``columns``, ``keyexpr`` and ``excludeKeyexpr``, ``startingOffsets``,
``startingTimestamp``, ``endingOffsets``, ``endingTimestamp``, ``maxRecordsPerTrigger``,
``maxBytesPerTrigger``, ``minPartitions``, ``maxPartitionBytes``, ``failOnDataLoss``,
``includeAttachment``, and ``reader``, a name under which retention keeps what was not yet read.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
)
from pyspark.sql.types import StructType

from zenwire.spark.live.batch import SpoolReader
from zenwire.spark.live.columns import struct
from zenwire.spark.live.options import Options
from zenwire.spark.live.publications import check
from zenwire.spark.live.sink import BatchSink, SinkOptions, StreamSink
from zenwire.spark.live.stream import SpoolStream

__all__ = ["ZenohSource", "register"]


def register(spark: SparkSession) -> None:
    """For sessions that do not find ``pyspark_zenoh`` by themselves, such as Spark Connect's."""
    spark.dataSource.register(ZenohSource)


class ZenohSource(DataSource):
    """Samples of spools: one row for each PUT and DELETE."""

    @classmethod
    def name(cls) -> str:
        return "zenoh"

    def schema(self) -> StructType:
        options = Options.of(self.options)
        return struct(options.table, options.columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        return SpoolReader(Options.of(self.options).for_batch())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return SpoolStream(Options.of(self.options).for_stream())

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return BatchSink(self._sink(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802 - Spark's name
        return StreamSink(self._sink(schema))

    def _sink(self, schema: StructType) -> SinkOptions:
        options = SinkOptions.of(self.options)
        check(schema, has_key=options.key is not None)
        return options
