"""Derived tables are sorted: each file covers a range of the sort key of its own.

A merge rewrites only the files whose ranges new rows fall into, and cuts a file that grew too large.
Files of one table never overlap, so readers prune them by key or time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa

from zenwire.lake.address import Address
from zenwire.lake.files import DataFile, FileWriter, read_file
from zenwire.lake.schema import Table

__all__ = ["LEAF_BYTES", "Leaf", "leaves_for", "rewritten"]

LEAF_BYTES: Final = 8 << 20
"""Bytes of rows of one file. A larger one is cut, so a merge rewrites no more than this for a row."""
_FULL: Final = LEAF_BYTES // 8
"""Bytes of a file, compressed, from which on later rows begin another one."""


@dataclass(frozen=True)
class Leaf:
    """A file of the table, or None for a table without files, and the rows that fall into it."""

    file: DataFile | None
    rows: pa.Table


def leaves_for(
    address: Address, table: Table, files: Sequence[DataFile], rows: pa.Table
) -> list[Leaf]:
    """Distribute sorted rows among the files of the table.

    The first sort column decides. Rows between two files go to the later one.
    """
    if not rows.num_rows:
        return []
    if not files:
        return [Leaf(None, rows)]
    name = table.order_by[0]
    bounded = sorted(((_high(address, table, file), file) for file in files), key=itemgetter(0))
    highs, ordered = [high for high, _ in bounded], [file for _, file in bounded]
    column = _comparable(rows.column(name))
    leaves: list[Leaf] = []
    begin = 0
    while begin < len(column):
        at = bisect_left(highs, column[begin])
        end = len(column)
        if at == len(ordered):
            # Behind the last file, which takes them while it is small.
            file = ordered[-1] if ordered[-1].size < _FULL else None
        else:
            end = _end(column, begin, highs[at])
            file = ordered[at]
        leaves.append(Leaf(file, rows.slice(begin, end - begin)))
        begin = end
    return _joined(leaves)


def _high(address: Address, table: Table, file: DataFile) -> Any:
    """Greatest sort key of a file. Read from the file if its commit does not have it.

    Parquet keeps no statistics of keys above 4 KiB.
    """
    name = table.order_by[0]
    if name in file.high:
        return file.high[name]
    return _comparable(read_file(address, table.name, file.path, [name]).column(name))[-1]


def _joined(leaves: list[Leaf]) -> list[Leaf]:
    """Rows of one file together."""
    found: list[Leaf] = []
    for leaf in leaves:
        if found and found[-1].file is leaf.file:
            rows = pa.concat_tables([found[-1].rows, leaf.rows])
            found[-1] = Leaf(leaf.file, rows)
        else:
            found.append(leaf)
    return found


def _comparable(column: pa.ChunkedArray) -> list[Any]:
    """Values as the statistics of a file have them."""
    if pa.types.is_timestamp(column.type):
        return [value.strftime("%Y-%m-%dT%H:%M:%S.%fZ") for value in column.to_pylist()]
    values: list[Any] = column.to_pylist()
    return values


def _end(column: list[Any], begin: int, high: Any) -> int:
    """First index behind ``begin`` whose value is above ``high``."""
    low, top = begin, len(column)
    while low < top:
        middle = (low + top) // 2
        if column[middle] <= high:
            low = middle + 1
        else:
            top = middle
    return low


def rewritten(
    address: Address,
    table: Table,
    leaf: Leaf,
    merge: Callable[[list[pa.Table]], pa.Table],
) -> list[DataFile]:
    """Write the rows of a leaf, merged with those of its file, as one file or several."""
    before = [] if leaf.file is None else [read_file(address, table.name, leaf.file.path)]
    rows = merge([*before, leaf.rows])
    parts = max(-(-rows.nbytes // LEAF_BYTES), 1)
    each = -(-rows.num_rows // parts)
    made = []
    for begin, end in _cuts(_comparable(rows.column(table.order_by[0])), each):
        some = rows.slice(begin, end - begin)
        writer = FileWriter(address, table.name, {}, some)
        writer.write(some)
        made.append(writer.close())
    return made


def _cuts(column: list[Any], each: int) -> list[tuple[int, int]]:
    """Cut into runs of about ``each`` rows. Equal values stay together."""
    cuts: list[tuple[int, int]] = []
    begin = 0
    while begin < len(column):
        end = min(begin + each, len(column))
        end = _end(column, begin, column[end - 1])
        cuts.append((begin, end))
        begin = end
    return cuts
