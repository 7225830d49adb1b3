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
from zenwire.spark.table_options import (
    NO_OPTIONS,
    is_table,
    keep_options,
    options_with,
    own_options,
)

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
        options = own_options(self.options)
        if "selector" in options:
            columns = struct("samples", _asked(options).columns)
        else:
            said = Options.of(options)
            columns = struct(said.table, said.columns)
        return keep_options(columns, options) if is_table(self.options) else columns

    def reader(self, schema: StructType) -> DataSourceReader:
        options = _given(schema, self.options)
        if "selector" in options:
            return _asked(options).reader()
        return SpoolReader(Options.of(options).for_batch())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        options = _given(schema, self.options)
        if "selector" in options:
            raise ValueError(
                'a selector is answered once, and readStream goes on: option("keyexpr", ...)'
            )
        return SpoolStream(Options.of(options).for_stream())

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return BatchSink(self._sink(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802 - Spark's name
        return StreamSink(self._sink(schema))

    def _sink(self, schema: StructType) -> SinkOptions:
        options = SinkOptions.of(_given(schema, self.options))
        check(schema, has_key=options.key is not None)
        return options


def _given(columns: StructType, options: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options of a statement, and of the table that it names."""
    found = options_with(columns, options)
    if not found:
        raise ValueError(f"format zenoh has no options here. {NO_OPTIONS}")
    return found


def _asked(said: Mapping[str, str]) -> QueryOptions:
    from zenwire.spark.live.selector import QueryOptions  # noqa: PLC0415 - slow to load

    return QueryOptions.of(said)
