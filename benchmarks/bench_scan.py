"""The columnar scan against the same scan in C, and against decoding into objects.

A turn takes a stream of 4 MiB (``control``: 1 MiB; ``recorded``: a capture of 1.5 MB) from bytes
to filled columns: finding the batches, then scanning them. Both scans fill the same memory, and
their arrays have been compared before. The C scan reads publications only: ``control`` has no
such ratio, and of ``recorded`` all contenders get the batches that hold nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from benchmarks import traffic
from benchmarks.c_scan import CScanner
from benchmarks.report import Result, Skipped, best_of, progress
from benchmarks.traffic import Traffic
from zenwire.columns.layout import Form
from zenwire.columns.scan import Bytes, Rows, Scanner, split
from zenwire.wire.batch import decode_batch

__all__ = ["agree", "c_scan_all", "run", "scan_all"]

Column = npt.NDArray[np.generic]

GOAL = 0.7
OBJECTS = 1_000
"""Messages for the object codec: it is slow, and each takes as long as the next."""


def run(quick: bool) -> list[Result]:
    seconds = 0.15 if quick else 2.0
    scanner = Scanner()
    results: list[Result] = []
    for name in traffic.NAMES:
        progress(f"scan: {name}")
        results += _measure(traffic.build(name, quick=quick), scanner, seconds)
    return results


def _measure(sent: Traffic, scanner: Scanner, seconds: float) -> Iterator[Result]:
    data = sent if sent.name != "recorded" else sent.data()
    few = data.head(OBJECTS)
    buffer = np.frombuffer(data.stream, np.uint8)
    contenders: dict[str, Callable[[], object]] = {
        "ours": lambda: scan_all(scanner, buffer),
        "objects": lambda: [decode_batch(batch) for batch in few.batches],
    }
    note = ""
    if sent.name == "control":
        note = "the C scan reads publications only"
    else:
        try:
            c = CScanner(next(scanner.scan_stream(buffer)))
        except Skipped as e:
            note = str(e)
        else:
            agree(scanner, c, buffer)
            contenders["c"] = lambda: c_scan_all(c, buffer)
    best = best_of(contenders, seconds=seconds)
    ours = best["ours"] / data.messages
    per_object = best["objects"] / few.messages
    if "c" in best:
        in_c = best["c"] / data.messages
        yield Result("scan", sent.name, "scan", ours, "message", "C scan", in_c, GOAL)
    else:
        progress(f"scan: {sent.name}: no ratio to C: {note}")
    yield Result("scan", sent.name, "scan", ours, "message", "object codec", per_object, note=note)


def scan_all(scanner: Scanner, buffer: Bytes) -> int:
    """What a reader does with a receive buffer; gives the number of rows."""
    spans, _ = split(buffer)
    return sum(scan.network.count for scan in scanner.scan(buffer, spans))


def c_scan_all(c: CScanner, buffer: Bytes) -> int:
    """The same in C."""
    spans = c.split(buffer)
    rows = first = 0
    while first < len(spans.starts):
        counts = c.scan(buffer, spans, first)
        first = counts.batches
        rows += counts.rows
    return rows


def agree(scanner: Scanner, c: CScanner, buffer: Bytes) -> int:
    """Raises AssertionError unless both give the same columns. Gives the number of rows."""
    spans, _ = split(buffer)
    c_spans = c.split(buffer)
    assert all(map(np.array_equal, spans, c_spans))
    rows = 0
    for scan in scanner.scan(buffer, spans):
        assert len(scan.bad.batch) == 0
        ours = columns(scan.network), columns(scan.transport)
        counts = c.scan(buffer, spans, scan.first)
        assert counts == (scan.stop, scan.network.count, scan.transport.count)
        # The C scan has overwritten what ``scan`` looks at.
        theirs = columns(scan.network), columns(scan.transport)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
        rows += counts.rows
    return rows


def columns(rows: Rows) -> dict[str, Column]:
    """A copy of what the rows say: the fixed columns, presence, and values where they count."""
    present = rows.present[: rows.count].copy()
    found: dict[str, Column] = {"present": present}
    for slot, name in enumerate(rows.layout.fixed):
        found[name] = rows.int32[slot, : rows.count].copy()
    for column in rows.layout.columns.values():
        if column.form is Form.BOOL:
            continue
        there = present >> np.uint64(column.bit) & np.uint64(1) != 0
        table = rows.uint64 if column.form is Form.UINT64 else rows.int32
        for i in range(2 if column.form is Form.SPAN else 1):
            found[f"{column.name}[{i}]"] = table[column.slot + i, : rows.count][there]
    return found


def same(ours: dict[str, Column], theirs: dict[str, Column]) -> None:
    """Raises AssertionError at the first column that differs."""
    for name, values in ours.items():
        assert np.array_equal(values, theirs[name]), f"column {name} differs"
