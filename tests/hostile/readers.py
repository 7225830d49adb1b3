"""Both readers on many inputs at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.parity.rows import Found, by_objects, found_in
from tests.recorded import Batch, batches
from zenwire.columns import Scan, Scanner, Spans, as_buffer
from zenwire.errors import DecodeError, Fault
from zenwire.wire import walk, walk_low_latency

Told = tuple[Fault, int] | None
"""A fault and its offset in the batch."""


def told_by_objects(data: bytes, *, low_latency: bool = False) -> tuple[Told, int]:
    """The fault, and how many messages came before it."""
    messages = 0
    try:
        for _ in walk_low_latency(data) if low_latency else walk(data):
            messages += 1
    except DecodeError as e:
        return (e.fault, e.offset), messages
    return None, messages


def told_by_columns(
    inputs: Sequence[bytes], *, low_latency: bool = False, scanner: Scanner | None = None
) -> list[tuple[Told, int]]:
    """The same of each batch, from one call for all of them."""
    told: list[tuple[Told, int]] = []
    buffer = as_buffer(b"".join(inputs))
    spans = Spans.of_lengths([len(data) for data in inputs])
    for scan in (scanner or Scanner()).scan(buffer, spans, low_latency=low_latency):
        told += _told(scan)
    return told


def _told(scan: Scan) -> list[tuple[Told, int]]:
    bad = scan.bad
    faults = {
        int(batch): (Fault(int(fault)), int(offset))
        for batch, fault, offset in zip(bad.batch, bad.fault, bad.offset, strict=True)
    }
    count = scan.stop - scan.first
    frame = scan.network.fixed("frame")
    batch = scan.transport.fixed("batch")
    owner = -1 - frame
    owner[frame >= 0] = batch[frame[frame >= 0]]
    rows = np.bincount(batch - scan.first, minlength=count)
    rows += np.bincount(owner - scan.first, minlength=count)
    found: list[tuple[Told, int]] = []
    for i in range(count):
        fault = faults.get(scan.first + i)
        start = int(scan.spans.starts[scan.first + i])
        found.append((fault and (fault[0], fault[1] - start), int(rows[i])))
    return found


def assert_same_rows(
    inputs: Sequence[bytes], *, low_latency: bool = False, scanner: Scanner | None = None
) -> None:
    """All that both readers say of each batch, value by value."""
    buffer = as_buffer(b"".join(inputs))
    spans = Spans.of_lengths([len(data) for data in inputs])
    for scan in (scanner or Scanner()).scan(buffer, spans, low_latency=low_latency):
        rows = iter(found_in(scan, -1).rows)
        row = next(rows, None)
        faults = _told(scan)
        for i in range(scan.first, scan.stop):
            start, end = int(spans.starts[i]), int(spans.ends[i])
            of_batch = []
            while row is not None and row["at"] < end:
                of_batch.append(row | {"at": row["at"] - start, "end": row["end"] - start})
                row = next(rows, None)
            fault = faults[i - scan.first][0]
            by_column = Found(of_batch, fault and (fault[0].value, fault[1]))
            assert by_column == by_objects(inputs[i], low_latency=low_latency), inputs[i].hex()


def some_recorded(path: Path, count: int = 12, longest: int = 400) -> list[Batch]:
    """Recorded batches that are not long, no two of one length, from all over a capture."""
    by_length = {len(b.data): b for b in batches(path) if len(b.data) <= longest}
    found = [by_length[n] for n in sorted(by_length)]
    return found[:: max(1, len(found) // count)]
