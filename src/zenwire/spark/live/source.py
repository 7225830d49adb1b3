"""``format("zenoh")``: samples of spools, of the network and of storages; and rows as publications.

- ``spool``: what recorders have written, by offset; ``read`` and ``readStream`` (`options`);
- ``connect`` and ``keyexpr``: live, with a recorder beside the query; ``readStream`` (`recorder`);
- ``connect`` and ``selector``: what others answer; ``read`` (`selector`);
- ``connect`` of ``write`` and ``writeStream``: rows are published (`sink`).

docs/spark.md has all options.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from zenwire.spark.live.selector import QueryOptions

__all__ = ["ZenohSource", "register"]


def register(spark: SparkSession) -> None:
    """For sessions that do not look for ``pyspark_zenoh`` by themselves."""
    spark.dataSource.register(ZenohSource)


class ZenohSource(DataSource):
    """Samples of spools: one row for each PUT and DELETE."""

    @classmethod
    def name(cls) -> str:
        return "zenoh"

    def schema(self) -> StructType:
        if "selector" in self.options:
            return struct("samples", _asked(self.options).columns)
        options = Options.of(self.options)
        return struct(options.table, options.columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        if "selector" in self.options:
            return _asked(self.options).reader()
        return SpoolReader(Options.of(self.options).for_batch())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        if "selector" in self.options:
            raise ValueError(
                'a selector is answered once, and readStream goes on: option("keyexpr", ...)'
            )
        return SpoolStream(Options.of(self.options).for_stream())

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return BatchSink(self._sink(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802 - Spark's name
        return StreamSink(self._sink(schema))

    def _sink(self, schema: StructType) -> SinkOptions:
        options = SinkOptions.of(self.options)
        check(schema, has_key=options.key is not None)
        return options


def _asked(said: Mapping[str, str]) -> QueryOptions:
    from zenwire.spark.live.selector import QueryOptions  # noqa: PLC0415 - slow to load

    return QueryOptions.of(said)
