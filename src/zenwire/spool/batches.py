"""Record batches as a spool wants them: neither tiny nor huge, and with its columns. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from zenwire.columns.samples import SAMPLES
from zenwire.spool.sources import Numbers

__all__ = ["TOGETHER", "Sized", "difference", "pieces", "together"]

TOGETHER: Final = 1 << 20
"""Small batches are put together up to so many bytes, large ones cut into pieces of 16 times that."""
_ROWS: Final = 1 << 16


class Sized(NamedTuple):
    """A record batch and its bytes, which Arrow counts anew each time."""

    batch: pa.RecordBatch
    size: int
    numbers: Numbers = "check"


def together(batches: Sequence[Sized]) -> Iterator[Sized]:
    """Small batches as fewer ones: each costs a kilobyte of Arrow's own."""
    few: list[pa.RecordBatch] = []
    size = rows = 0
    same: Numbers = "check"
    for batch, its, numbers in batches:
        much = size + its > TOGETHER or rows + batch.num_rows > _ROWS
        if few and (much or numbers != same):
            yield Sized(_one(few), size, same)
            few, size, rows = [], 0, 0
        few.append(batch)
        size, rows, same = size + its, rows + batch.num_rows, numbers
    if few:
        yield Sized(_one(few), size, same)


def _one(few: list[pa.RecordBatch]) -> pa.RecordBatch:
    return few[0] if len(few) == 1 else pa.concat_batches(few)


def pieces(sized: Sized) -> Iterator[pa.RecordBatch]:
    """No message is so large that to read one row of it is dear."""
    batch, size, _ = sized
    rows = batch.num_rows
    each = max(min(_ROWS, rows * (TOGETHER << 4) // max(size, 1)), 1)
    for begin in range(0, rows, each):
        yield batch.slice(begin, each) if each < rows else batch


def difference(schema: pa.Schema) -> str:
    """What is wrong with columns that are not SAMPLES."""
    for field in SAMPLES:
        at = schema.get_field_index(field.name)
        if at < 0:
            return (
                f"rows have no column {field.name}; a spool keeps zenwire.columns.samples.SAMPLES"
            )
        if not schema.field(at).equals(field):
            return f"column {field.name} is {schema.field(at)}, not {field}"
    return f"columns are {', '.join(schema.names)}, not {', '.join(SAMPLES.names)}"
