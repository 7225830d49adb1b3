"""What tasks run: rows of ``batches``, from a DataFrame or at the source, to rows of a table.

A ``Task`` is given to ``mapInArrow``, or to the source as the text of an option; a ``Stitching``
gets the runs of pieces that tasks left.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from zenwire.spark.tables.faults import Malformed
from zenwire.spark.tables.fragments import RUNS, Broken, Reassembly, stitched
from zenwire.spark.tables.input import BadBlock, prepared, scans
from zenwire.spark.tables.scan import Selection

__all__ = ["BROKEN", "EDGES", "Stitching", "Task", "broken"]

EDGES: Final = "edge"
"""The column that says of a row that it is a run of pieces."""
_ROWS: Final = 4096
"""Of a record batch that is made of Python objects, at most."""


@dataclass(frozen=True)
class Task:
    """``rows`` of everything that is whole in the task; ``edges`` of what is not, besides."""

    rows: Selection | Malformed
    edges: bool = False

    @property
    def schema(self) -> pa.Schema:
        if not self.edges:
            return self.rows.schema
        fields = {field.name: field for schema in (self.rows.schema, RUNS) for field in schema}
        return pa.schema([*fields.values(), pa.field(EDGES, pa.bool_())])

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """From a DataFrame, whose rows may have been moved."""
        return self.read(batches, in_order=False)

    def read(
        self, batches: Iterable[pa.RecordBatch], *, in_order: bool
    ) -> Iterator[pa.RecordBatch]:
        """``in_order``: these are all batches of their streams from the first to the last."""
        reassembly = Reassembly(in_order=in_order)
        for batch in map(prepared, batches):
            blocks: list[BadBlock] = []
            for rows, scan in scans(batch, blocks):
                reassembly.take(rows, scan)
                yield from map(self._told, self.rows.of(rows, scan))
            yield from map(self._told, self.rows.of_bad_blocks(blocks))
            yield from map(self._told, self.rows.of_scouting(batch))
            yield from self._judged(reassembly)
        yield from self._judged(reassembly, end=True)

    def _judged(self, reassembly: Reassembly, *, end: bool = False) -> Iterator[pa.RecordBatch]:
        judged = reassembly.judge(end=end)
        if judged is None:
            return
        for rows, scan in scans(judged.whole):
            yield from map(self._told, self.rows.of(rows, scan))
        if self.edges and judged.runs.num_rows:
            yield self._told(judged.runs, edge=True)

    def _told(self, found: pa.RecordBatch, *, edge: bool = False) -> pa.RecordBatch:
        """With all columns, where it is one of several kinds of rows."""
        if not self.edges:
            return found
        arrays = [
            found.column(field.name)
            if field.name in found.schema.names
            else pa.nulls(found.num_rows, field.type)
            for field in self.schema
        ]
        arrays[-1] = pa.repeat(pa.scalar(edge), found.num_rows)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    # As the text of an option.

    def to_text(self) -> str:
        return json.dumps({"edges": self.edges, "rows": self.rows.to_plain()})

    @classmethod
    def from_text(cls, text: str) -> Task:
        """Raises ValueError for what is no task."""
        try:
            plain = json.loads(text)
            rows = plain["rows"]
            made = Malformed() if rows is None else Selection.from_plain(rows)
            task = cls(made, plain["edges"])
            task.schema  # noqa: B018 - columns that are none
        except (KeyError, TypeError) as e:
            raise ValueError(f"no task: {text}") from e
        return task


@dataclass(frozen=True)
class Stitching:
    """``rows`` of the messages that runs become; runs are in order of lane and place."""

    rows: Selection | Malformed

    def __call__(self, runs: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for whole in stitched(_rows(runs)):
            if not isinstance(whole, Broken):
                for rows, scan in scans(whole):
                    yield from self.rows.of(rows, scan)


BROKEN: Final = pa.schema(
    [
        *(RUNS.field(name) for name in RUNS.names[: RUNS.names.index("more")]),
        pa.field("from_sn", pa.int64()),
        pa.field("count", pa.int64()),
        pa.field("reason", pa.string()),
    ]
)
"""What did not become a message; ``sn`` is that of the last piece."""


def broken(runs: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What ``mapInArrow`` calls for messages that have lost pieces."""
    told: list[dict[str, object]] = []
    for each in stitched(_rows(runs)):
        if isinstance(each, Broken):
            more = {"from_sn": each.from_sn, "count": each.pieces, "reason": each.reason}
            told.append(each.last | more)
        if len(told) == _ROWS:
            yield pa.RecordBatch.from_pylist(told, BROKEN)
            told.clear()
    yield pa.RecordBatch.from_pylist(told, BROKEN)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    return (row for batch in batches for row in batch.to_pylist())
