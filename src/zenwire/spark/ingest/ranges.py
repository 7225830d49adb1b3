"""What a task does with ranges of a spool: its rows to files, by Arrow, and none to Spark.

A row costs Spark some twenty times what it costs Arrow. So rows whose payload has no views become
files of ``samples`` where they are read, and what ``latest`` and ``key_stats`` need of them becomes
small files beside those. Rows with views are given to Spark, which makes them.

A task gives the names of its files when all of them are complete: those of a task that failed are
in nobody's list.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zenwire.spark.ingest.pieces import newest, pieces
from zenwire.spark.ingest.rows import NEW, OTHER, PREFIX_MAX, PREFIXES_MAX
from zenwire.spark.ingest.sorting import SPARK, TOGETHER, by_key, in_order, new_file, with_words
from zenwire.spark.live.columns import plain
from zenwire.spark.live.options import Options
from zenwire.spark.live.plan import Range, rows_of
from zenwire.spark.payloads.values import CBOR, CDR, SERIALIZED
from zenwire.spark.tables.words import TEXT_NAMES

__all__ = ["DONE", "WRITTEN", "Target", "has_views", "name_of_key", "write_ranges"]

WRITTEN: Final = "written"
"""Where tasks write to, also those whose work nobody takes."""
DONE: Final = "_done"
"""The column of what a task has done, beside those of rows that Spark is to do."""
_VIEWED: Final = pa.array([*TEXT_NAMES, CBOR, CDR, SERIALIZED])
_ROS: Final = "::dds_::"
_DAY: Final = 86_400_000_000_000
_TASKS: Final = 32
"""So many may make directories of their own for prefixes that are new, and do not make too many."""
_FILES_MAX: Final = 128
"""That are open at once."""
_ESCAPED: Final = re.compile("[\x01-\x1f\"#%'*/:=?\\\\\x7f{\\[\\]^]")
"""What Spark does not write into names of directories as it is."""
_VARIANT: Final = pa.struct(
    [
        pa.field("metadata", pa.binary(), nullable=False),
        pa.field("value", pa.binary(), nullable=False),
    ]
)


@dataclass(frozen=True)
class Target:
    """Where files go, and as what."""

    staging: Path
    chunks: int
    known: frozenset[str]
    """Prefixes that have a directory."""
    schema: str
    """Of ``samples`` as Spark's JSON: files say it, so that Spark reads them as its own."""
    variants: bool


def write_ranges(
    options: Options, target: Target
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For ``mapInArrow`` of ranges: gives rows that Spark is to do, and what was done."""

    def write(ranges: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task, nothing = _Task(target), None
        for batch in ranges:
            for part in batch.to_pylist():
                for rows in rows_of(Range(**part), options, words=True):
                    viewed = task.take(rows)
                    if viewed.num_rows:
                        yield _row(viewed, None)
                    if nothing is None:
                        nothing = pa.record_batch(
                            [plain(pa.nulls(1, f.type)) for f in rows.schema],
                            names=rows.schema.names,
                        )
                # Pieces are of one spool.
                task.flush()
        if nothing is not None:
            yield _row(nothing, json.dumps(task.end()))

    return write


def _row(rows: pa.RecordBatch, done: str | None) -> pa.RecordBatch:
    """With the column of what was done."""
    told = pa.array([done], pa.string()).take(pa.array(np.zeros(rows.num_rows, np.int32)))
    columns = [plain(column) for column in rows.columns]
    return pa.record_batch([*columns, told], names=[*rows.schema.names, DONE])


def has_views(rows: pa.RecordBatch, of_ros: pa.Array) -> pa.Array:
    """Which rows Spark is to do: those whose payload is text, or something to be looked into."""
    encoding = rows.column("encoding").dictionary_encode()
    viewed = pc.is_in(encoding.dictionary, value_set=_VIEWED).take(encoding.indices)
    return pc.or_(pc.fill_null(viewed, False), of_ros)


def name_of_key(key: str, chunks: int) -> str:
    """As ``name_of`` of `rows` makes it of a column."""
    first = "/".join(key.split("/")[:chunks])
    plain = re.sub(r"[^ -~]", "_", first)
    if len(plain) <= PREFIX_MAX:
        return plain
    return f"{plain[:40]}~{hashlib.md5(first.encode(), usedforsecurity=False).hexdigest()[:12]}"


@dataclass
class _Done:
    """Names of files."""

    samples: list[str] = field(default_factory=list)
    newest: list[str] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    viewed: int = 0
    """Rows that were given to Spark."""


class _Task:
    """The rows of a task, until they are files."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._done = _Done()
        self._waiting: list[pa.RecordBatch] = []
        self._bytes = 0
        self._new: set[str] = set()
        self._open: dict[str, pq.ParquetWriter] = {}
        self._beside: dict[str, pq.ParquetWriter] = {}

    def take(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Gives those that it does not take."""
        keys = rows.column("key").dictionary_encode()
        of_ros = pa.array([_ROS in key for key in keys.dictionary.to_pylist()], pa.bool_())
        viewed = has_views(rows, of_ros.take(keys.indices))
        some = pc.any(viewed).as_py()
        mine = rows.filter(pc.invert(viewed)) if some else rows
        if mine.num_rows:
            self._waiting.append(mine)
            self._bytes += mine.nbytes
            if self._bytes >= TOGETHER:
                self.flush()
        theirs = rows.filter(viewed) if some else rows.slice(0, 0)
        self._done.viewed += theirs.num_rows
        return theirs

    def flush(self) -> None:
        """Writes what waits, in the order of keys and times."""
        if not self._waiting:
            return
        rows = with_words(pa.concat_batches(self._waiting))
        self._waiting, self._bytes = [], 0
        order, codes, places = by_key(rows, self._name)
        rows = in_order(rows, order)
        whole = self._whole(rows)
        for place, begin, end in self._parts(places, codes, np.asarray(rows.column("time"))):
            part = whole.slice(begin, end - begin)
            self._file(place, part).write_batch(part)
        few = whole.take(pa.array(newest(rows, codes)))
        self._small("newest", few)
        self._small("pieces", pieces(rows, codes))

    def _name(self, key: str) -> str:
        name, known = name_of_key(key, self._target.chunks), self._target.known
        if name in known or name in self._new:
            return name
        if len(known) >= PREFIXES_MAX:
            return OTHER
        if len(self._new) >= (PREFIXES_MAX - len(known)) // _TASKS:
            return NEW
        self._new.add(name)
        return name

    def _parts(
        self, places: list[str], codes: np.ndarray, times: np.ndarray
    ) -> Iterator[tuple[str, int, int]]:
        """Runs of rows that go to one directory."""
        numbers = {name: i for i, name in enumerate(dict.fromkeys(places))}
        place = np.array([numbers[name] for name in places])[codes]
        day = times // _DAY
        other = (place[1:] != place[:-1]) | (day[1:] != day[:-1])
        begins = np.flatnonzero(np.append(True, other)).tolist()
        for begin, end in zip(begins, [*begins[1:], len(codes)], strict=True):
            date = np.datetime64(int(day[begin]), "D")
            name = _ESCAPED.sub(lambda c: f"%{ord(c[0]):02X}", places[codes[begin]])
            yield f"day={date}/prefix={name}", begin, end

    def _whole(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """With the columns of views, which are empty, and what Spark says of them."""
        nothing = pa.nulls(rows.num_rows, pa.string())
        value = _no_variants(rows.num_rows) if self._target.variants else nothing
        columns = {**dict(zip(rows.schema.names, rows.columns, strict=True)), "text": nothing}
        columns |= {"value": value, "value_fault": nothing}
        fields = [pa.field(name, column.type) for name, column in columns.items()]
        told = {SPARK: self._target.schema}
        return pa.record_batch([*columns.values()], schema=pa.schema(fields, metadata=told))

    def _file(self, place: str, first: pa.RecordBatch) -> pq.ParquetWriter:
        if place not in self._open:
            if len(self._open) >= _FILES_MAX:
                self._close(self._open)
            self._open[place] = self._writer(self._done.samples, f"samples/{place}", first)
        return self._open[place]

    def _small(self, what: str, rows: pa.RecordBatch) -> None:
        if what not in self._beside:
            names = getattr(self._done, what)
            self._beside[what] = self._writer(names, what, rows)
        self._beside[what].write_batch(rows)

    def _writer(self, names: list[str], folder: str, first: pa.RecordBatch) -> pq.ParquetWriter:
        name = f"{folder}/{uuid.uuid4().hex}.parquet"
        names.append(name)
        return new_file(self._target.staging / WRITTEN / name, first)

    @staticmethod
    def _close(files: dict[str, pq.ParquetWriter]) -> None:
        for file in files.values():
            file.close()
        files.clear()

    def end(self) -> dict[str, Any]:
        """Everything is written: what that was."""
        self._close(self._open)
        self._close(self._beside)
        return vars(self._done)


def _no_variants(rows: int) -> pa.Array:
    nothing = pa.array([b""], pa.binary()).take(pa.array(np.zeros(rows, np.int32)))
    return pa.StructArray.from_arrays(
        [nothing, nothing], fields=list(_VARIANT), mask=pa.array(np.ones(rows, np.bool_))
    )
