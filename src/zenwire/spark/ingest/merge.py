"""Files of ``samples`` as few larger ones, by Arrow: what a task does to put small files together.

Rows are sorted by key and time as far as memory allows, so each group of rows is; and no file is
read as a whole.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zenwire.spark.ingest.sorting import SPARK, TOGETHER, by_key, new_file, with_words

__all__ = ["merge_files", "merging"]


def merging(
    paths: Sequence[str], to: str, target: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For ``mapInArrow`` of one row: gives the names of the files."""

    def merge(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([merge_files(paths, Path(to), target)], names=["name"])

    return merge


def merge_files(paths: Sequence[str], to: Path, target: int) -> list[str]:
    """Writes them into a directory. Raises OSError."""
    schema = _united(paths)
    file: pq.ParquetWriter | None = None
    names: list[str] = []
    try:
        for rows in _together(paths, schema):
            made = _as(rows, schema)
            if file is None:
                names.append(f"{uuid.uuid4().hex}.parquet")
                file = new_file(to / names[-1], made)
            file.write_batch(made)
            if (to / names[-1]).stat().st_size >= target:
                file.close()
                file = None
    finally:
        if file is not None:
            file.close()
    return names


def _united(paths: Sequence[str]) -> pa.Schema:
    """Also columns that only some of them have, or that this version does not know."""
    schemas = [pq.read_schema(path) for path in paths]
    told: dict[str, object] = {}
    for schema in schemas:
        for column in json.loads((schema.metadata or {}).get(SPARK, b"{}")).get("fields", ()):
            told.setdefault(column["name"], column)
    whole = pa.unify_schemas([schema.remove_metadata() for schema in schemas])
    if not told:
        return whole
    return whole.with_metadata(
        {SPARK: json.dumps({"type": "struct", "fields": list(told.values())})}
    )


def _together(paths: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows that fit into memory, sorted."""
    few: list[pa.Table] = []
    size = 0
    for path in paths:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                few.append(_whole(file.read_row_group(group), schema))
                size += few[-1].nbytes
                if size >= TOGETHER:
                    yield _sorted(few)
                    few, size = [], 0
    if few:
        yield _sorted(few)


def _whole(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        rows.column(f.name)
        if f.name in rows.schema.names
        else pa.chunked_array([pa.nulls(rows.num_rows, f.type)])
        for f in schema
    ]
    return pa.table(columns, schema=schema.remove_metadata())


def _sorted(few: list[pa.Table]) -> pa.RecordBatch:
    (rows,) = pa.concat_tables(few).combine_chunks().to_batches()
    rows = with_words(rows)
    return rows.take(pa.array(by_key(rows)[0]))


def _as(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Words as they are: a file has its columns' own types."""
    columns = [_filled(c) if pa.types.is_struct(c.type) else c for c in rows.columns]
    fields = [pa.field(f.name, c.type) for f, c in zip(schema, columns, strict=True)]
    return pa.record_batch(columns, schema=pa.schema(fields, metadata=schema.metadata))


def _filled(values: pa.StructArray) -> pa.StructArray:
    """What is null as a whole has parts all the same, and those of VARIANT are never null."""
    parts = [
        values.field(i) if field.nullable else pc.fill_null(values.field(i), b"")
        for i, field in enumerate(values.type)
    ]
    return pa.StructArray.from_arrays(parts, fields=list(values.type), mask=values.is_null())
