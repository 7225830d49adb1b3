"""Rows into a spool against plain writes of the same bytes, synced as often.

A turn appends 128 MiB of record batches (``quick``: 8 MiB) to a new spool, and waits until all of
it is on disk. "plain writes" writes the same record batches as Arrow's bytes to a new file, in pieces
of one, and syncs it every 8 MiB, as the spool does, and at the end. "of what it holds" writes what
the spool's data files then hold: small rows are compressed, so these are fewer bytes than came. To
make the spool, to close it and to remove files is not timed. The time is that of a row.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.report import Result, progress
from zenwire.columns.samples import SAMPLES
from zenwire.spool import Settings, Spool, Writer

__all__ = ["run"]

GOAL = 0.5
SYNC = 8 << 20
TOTAL = 128 << 20
TURNS = 5
SIZES = {"8 B": 8, "100 B": 100, "1 KiB": 1 << 10, "64 KiB": 64 << 10, "10 MB": 10_000_000}


def run(quick: bool) -> list[Result]:
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="zenwire-bench-") as folder:
        for case, size in SIZES.items():
            progress(f"spool: {case}")
            results += _measure(Path(folder), case, size, quick=quick)
    return results


def batch_of(size: int, rows: int) -> pa.RecordBatch:
    """Samples of 100 keys, stamped by their publishers."""
    chance = np.random.default_rng(size)
    data = pa.py_buffer(chance.bytes(size * rows))
    offsets = pa.py_buffer(np.arange(rows + 1, dtype=np.int32) * size)
    given = {
        "key": pa.array([f"fleet/{i % 100}/position" for i in range(rows)]),
        "kind": pa.array(np.zeros(rows, np.int8)),
        "payload": pa.Array.from_buffers(pa.binary(), rows, [None, offsets, data]),
        "encoding": pa.array(np.zeros(rows, np.int32)),
        "timestamp": pa.array(chance.integers(0, 1 << 62, rows)),
        "timestamp_id": pa.array([b"0123456789abcdef"] * rows),
        "qos": pa.array(np.full(rows, 13, np.int32)),
        "reliable": pa.array(np.ones(rows, np.bool_)),
        "time": pa.array(np.arange(rows) + 1_800_000_000_000_000_000),
    }
    arrays = [given.get(field.name, pa.nulls(rows, field.type)) for field in SAMPLES]
    return pa.record_batch(arrays, schema=SAMPLES)


def _measure(folder: Path, case: str, size: int, *, quick: bool) -> Iterator[Result]:
    batch = batch_of(size, max((1 << 20) // (size + 60), 1))
    count = max((8 << 20 if quick else TOTAL) // batch.nbytes, 2)
    spool, plain = folder / "spool", folder / "plain"
    _append(spool, batch, count)
    _check(spool, batch, count)
    held = _pieces(spool)
    shutil.rmtree(spool)
    given = [batch.serialize()] * count
    contenders: dict[str, Callable[[], float]] = {
        "spool": lambda: _append(spool, batch, count),
        "plain writes": lambda: _write(plain, given),
        "of what it holds": lambda: _write(plain, held),
    }
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(1 if quick else TURNS):
        for name, act in contenders.items():
            best[name] = min(best[name], act())
            shutil.rmtree(spool, ignore_errors=True)
            with suppress(FileNotFoundError):
                plain.unlink()
    rows = count * batch.num_rows
    rate, kept = (sum(p.size for p in pieces) / best["spool"] / 1e6 for pieces in (given, held))
    for other, goal in (("plain writes", GOAL), ("of what it holds", None)):
        yield Result(
            "spool",
            case,
            "append",
            best["spool"] / rows,
            other=other,
            other_seconds=best[other] / rows,
            goal=goal,
            note=f"{rate:,.0f} MB/s come, {kept:,.0f} MB/s go to the disk" if goal else "",
        )


def _append(path: Path, batch: pa.RecordBatch, count: int) -> float:
    with Writer.open(path, Settings(overflow="wait", sync_bytes=SYNC)) as writer:
        start = time.perf_counter()
        for _ in range(count):
            writer.append(batch)
        writer.flush()
        return time.perf_counter() - start


def _check(path: Path, batch: pa.RecordBatch, count: int) -> None:
    """Raises AssertionError unless the spool gives what was appended."""
    log = Spool.open(path).samples
    assert log.latest() == count * batch.num_rows
    (rows,) = log.read(0, min(batch.num_rows, 10))
    assert rows.batch.equals(batch.slice(0, rows.batch.num_rows))


def _pieces(path: Path) -> list[pa.Buffer]:
    """What is in the data files, as the spool wrote it."""
    log = Spool.open(path).samples
    found = []
    for segment, entry in log.entries(0, log.latest()):
        with (path / "samples" / segment.data).open("rb") as f:
            f.seek(entry.position)
            found.append(pa.py_buffer(f.read(entry.length)))
    return found


def _write(path: Path, pieces: list[pa.Buffer]) -> float:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        start = time.perf_counter()
        since = 0
        for piece in pieces:
            view = memoryview(piece)
            while view:
                view = view[os.write(fd, view) :]
            since += piece.size
            if since >= SYNC:
                os.fsync(fd)
                since = 0
        os.fsync(fd)
        return time.perf_counter() - start
    finally:
        os.close(fd)
