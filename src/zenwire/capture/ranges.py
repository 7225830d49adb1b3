"""One capture read by many: checkpoints of a reader, and the ranges between them.

A checkpoint is the state of every step after some record. An index pass runs the steps without
making rows and notes one every so many bytes; who goes on from it gives the rows that the reader
of all would give there, because it is the same reader in the same state. A range whose capture
goes on after it ends with a sweep, as the index pass does before it notes a checkpoint.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from zenwire.capture.flows import Limits
from zenwire.capture.reader import BatchReader
from zenwire.capture.records import Part, Place, RecordReader
from zenwire.capture.source import WINDOW
from zenwire.capture.summary import Summary
from zenwire.errors import CaptureError

__all__ = ["CaptureReader", "Checkpoint", "Index", "Range", "index", "read_capture", "read_range"]

SPLIT: Final = 32 << 20
"""Bytes between two checkpoints."""


class Checkpoint(NamedTuple):
    """Where a reader is: in which file of its capture, where there, and what it knows."""

    part: int
    place: Place | None
    state: bytes

    @property
    def position(self) -> tuple[int, int]:
        """(file, offset), which grow."""
        return self.part, self.place.offset if self.place else 0


@dataclass(frozen=True, slots=True)
class Range:
    """What one task reads: from one checkpoint to another, or from the begin or to the end."""

    capture: str
    parts: tuple[Part, ...]
    begin: Checkpoint | None = None
    end: tuple[int, int] | None = None
    ends: bool = True
    """Whether nothing comes after the last range of the capture."""
    window: int = WINDOW


@dataclass(frozen=True, slots=True)
class Index:
    """The ranges of a capture and, if it goes on, from where."""

    ranges: tuple[Range, ...]
    end: Checkpoint | None


class CaptureReader:
    """A pass over a capture, of one file or of several that continue one another.

    ``summary`` is complete when the pass is.
    """

    def __init__(
        self, source: Range | str | Path, *, window: int = WINDOW, limits: Limits | None = None
    ) -> None:
        if not isinstance(source, Range):
            source = Range(str(source), (Part(str(source)),), window=window)
        self._range = source
        self._pass = _Pass(source, rows=True, limits=limits)

    @property
    def summary(self) -> Summary:
        return self._pass.reader.summary

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        end, reader = self._range.end, self._pass.reader
        for rows in self._pass:
            yield from rows
            if end and self._pass.position >= end:
                if self._pass.position != end:
                    raise CaptureError(self._range.capture, "it changed while it was read")
                break
        if end is None and self._range.ends:
            yield from reader.finish()
        else:
            yield from reader.sweep()
        yield from reader.books()


def read_capture(path: str | Path, *, window: int = WINDOW) -> Iterator[pa.RecordBatch]:
    """The ``batches`` table of a capture file.

    In each flow, connection and direction, batches come in order. Raises CaptureError for what is
    no capture or cannot be read; everything else that is wrong is a row with a ``fault``.
    """
    return iter(CaptureReader(path, window=window))


def read_range(some: Range) -> Iterator[pa.RecordBatch]:
    """The rows of a range. Those of all ranges are those of the capture."""
    return iter(CaptureReader(some))


def index(source: Range | str | Path, size: int = SPLIT, *, window: int = WINDOW) -> Index:
    """Ranges of about ``size`` bytes, each of whole windows. A compressed file is one range.

    Reads all of it once. Raises CaptureError.
    """
    if not isinstance(source, Range):
        source = Range(str(source), (Part(str(source)),), window=window)
    run = _Pass(source, rows=False)
    edges: list[Checkpoint] = []
    last = 0
    for rows in run:
        for _ in rows:
            pass
        # A window is never quite full.
        if run.leavable and run.done - last >= max(size - source.window // 2, 1):
            edges.append(run.checkpoint())
            last = run.done
    end = None if source.ends else run.checkpoint()
    if edges and last == run.done:
        del edges[-1]
    begins = [source.begin, *edges]
    ends = [*(edge.position for edge in edges), None]
    ranges = (
        Range(source.capture, source.parts, begin, stop, source.ends, source.window)
        for begin, stop in zip(begins, ends, strict=True)
    )
    return Index(tuple(ranges), end)


class _Pass:
    """The rows of one window after another. They are to be used up before the next is asked for."""

    def __init__(self, some: Range, *, rows: bool, limits: Limits | None = None) -> None:
        self._range = some
        self._part, self._place = 0, None
        self.reader = BatchReader(some.capture, rows=rows, limits=limits)
        self.leavable = False
        self.done = 0
        """Bytes so far."""
        if some.begin:
            self._part, self._place = some.begin.part, some.begin.place
            if some.begin.state:
                # Made by ``checkpoint``, and handed on as the ranges are, which are pickled too.
                self.reader.load(pickle.loads(zlib.decompress(some.begin.state)))  # noqa: S301

    @property
    def position(self) -> tuple[int, int]:
        return self._part, self._place.offset if self._place else 0

    def __iter__(self) -> Iterator[Iterator[pa.RecordBatch]]:
        parts, window = self._range.parts, self._range.window
        while self._part < len(parts):
            records = RecordReader(parts[self._part], place=self._place, window=window)
            for some in records:
                self.done += some.size
                self._place = records.place()
                self.leavable = records.leavable
                yield self.reader.feed(some)
            if parts[self._part].growing:
                return
            self._part, self._place = self._part + 1, None

    def checkpoint(self) -> Checkpoint:
        """To be asked for between two windows."""
        for _ in self.reader.sweep():
            pass
        state = zlib.compress(pickle.dumps(self.reader.save(), 5), 1)
        return Checkpoint(self._part, self._place, state)
