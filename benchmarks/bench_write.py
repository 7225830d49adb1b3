"""Arrow columns to framed batches against encoding the same messages as objects.

A turn writes the rows of one stream of 4 MiB (``recorded``: the publications of a capture), from
a record batch to full batches with their lengths, checks of the values included. The object
codec encodes messages that exist already, with the FRAME and the length of each batch. What both
write has been compared before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from benchmarks import traffic
from benchmarks.report import Result, best_of, progress
from benchmarks.traffic import BATCH_SIZE, Traffic
from zenwire.columns import COLUMNS, Scanner, Writer, as_buffer, network
from zenwire.wire.batch import STREAM_PREFIX, decode_batch, encode_batch, frame_stream

__all__ = ["run"]

GOAL = 20
OBJECTS = 1_000
"""Messages for the object codec: it is slow, and each takes as long as the next."""


def run(quick: bool) -> list[Result]:
    seconds = 0.1 if quick else 2.0
    scanner = Scanner()
    results: list[Result] = []
    for name in traffic.DATA:
        progress(f"write: {name}")
        sent = traffic.build(name, quick=quick)
        if name == "recorded":
            sent = sent.data()
        results += _measure(sent, scanner, seconds)
    return results


def _measure(sent: Traffic, scanner: Scanner, seconds: float) -> Iterator[Result]:
    table = _table(scanner, sent.stream)
    _check(scanner, table)
    few = sent.head(OBJECTS)
    batches = [decode_batch(batch) for batch in few.batches]
    writer = Writer(batch_size=BATCH_SIZE + STREAM_PREFIX)
    contenders: dict[str, Callable[[], object]] = {
        "columns": lambda: write(writer, table),
        "objects": lambda: [frame_stream(encode_batch(batch)) for batch in batches],
    }
    best = best_of(contenders, seconds=seconds)
    ours, objects = best["columns"] / sent.messages, best["objects"] / few.messages
    yield Result(
        "write", sent.name, "columns", ours, other="object codec", other_seconds=objects, goal=GOAL
    )


def write(writer: Writer, table: pa.Table) -> int:
    """What a publisher does with a table; gives the number of bytes."""
    return sum(len(written.data) for written in writer.write(table))


def _table(scanner: Scanner, stream: bytes) -> pa.Table:
    scans = scanner.scan_stream(as_buffer(stream))
    return pa.Table.from_batches([network(scan, ("body", *COLUMNS)) for scan in scans])


def _check(scanner: Scanner, table: pa.Table) -> None:
    """Raises AssertionError unless both writers' bytes are read as what was to be written."""
    stream = b"".join(bytes(w.data) for w in Writer().write(table))
    assert _table(scanner, stream).combine_chunks() == table.combine_chunks()
