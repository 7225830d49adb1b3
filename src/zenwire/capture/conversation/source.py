"""Captures as windows of batches: read once, or followed while they grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

from zenwire.capture.reader import BatchReader
from zenwire.capture.records import Part, Place, RecordReader
from zenwire.capture.source import compression_of
from zenwire.errors import CaptureError

__all__ = ["HEAD", "capture_files", "follow", "is_capture", "windows"]

HEAD: Final = 24
"""Bytes that tell whether a file is a capture."""
WINDOW: Final = 1 << 20
"""Smaller than for tables: the first entries are wanted soon."""

_MAGICS: Final = frozenset(
    bytes.fromhex(magic) for magic in ("d4c3b2a1", "a1b2c3d4", "4d3cb2a1", "a1b23c4d", "0a0d0d0a")
)

Window = list[pa.RecordBatch]


def is_capture(head: bytes) -> bool:
    """Whether a file that begins like this may be a capture: pcap, pcapng, or compressed."""
    return head[:4] in _MAGICS or compression_of(head) is not None


def capture_files(path: str | Path) -> list[Path]:
    """The file itself, or the captures of a directory in order of their last change.

    Raises CaptureError if there is none.
    """
    path = Path(path)
    if not path.is_dir():
        return [path]
    found = _captures_in(path)
    if not found:
        raise CaptureError(str(path), "no captures in this directory")
    return found


def _captures_in(path: Path) -> list[Path]:
    try:
        found = [
            (file.stat().st_mtime_ns, file.name, file)
            for file in path.iterdir()
            if file.is_file() and is_capture(_head(file))
        ]
    except OSError as e:
        raise CaptureError(str(path), e.strerror or str(e)) from None
    return [file for *_, file in sorted(found)]


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD)


def windows(path: str | Path, *, window: int = WINDOW) -> Iterator[Window]:
    """The ``batches`` table of a file, as it was captured together. Raises CaptureError."""
    reader = BatchReader(str(path))
    for records in RecordReader(str(path), window=window):
        yield list(reader.feed(records))
    yield [*reader.finish(), *reader.books()]


def follow(path: str | Path, wait: Callable[[], bool], *, window: int = WINDOW) -> Iterator[Window]:
    """The same of a file that grows or, of a directory, of one file after another.

    Files of a directory continue one another, as those of a rotation do: they are one capture, with
    the name of the directory. ``wait`` is called when there is nothing more for now; it ends when
    that gives False. Raises CaptureError.
    """
    path = Path(path)
    files = capture_files(path)
    done: set[Path] = set()
    reader = BatchReader(str(path))
    while files:
        current = files[0]
        done.add(current)
        growing = _Growing(current, window)
        while True:
            yield from growing.read(reader)
            if path.is_dir():
                files = [file for file in _captures_in(path) if file not in done]
                if files:
                    yield from growing.read(reader, rest=True)
                    break
            if not wait():
                files = []
                break
    yield [*reader.finish(), *reader.books()]


class _Growing:
    """A file, and how far it was read."""

    def __init__(self, path: Path, window: int) -> None:
        self._path = path
        self._window = window
        self._place: Place | None = None
        self._read = 0

    def read(self, reader: BatchReader, *, rest: bool = False) -> Iterator[Window]:
        """What is new. ``rest``: nothing more comes, so what is cut is told."""
        try:
            size = self._path.stat().st_size
        except OSError as e:
            raise CaptureError(str(self._path), e.strerror or str(e)) from None
        if size < self._read:
            # Somebody began it anew.
            self._place = None
        elif size == self._read and not rest:
            return
        part = Part(str(self._path)) if rest else Part(str(self._path), size, growing=True)
        records = RecordReader(part, place=self._place, window=self._window)
        if records.compression and not rest:
            records.close()
            raise CaptureError(
                str(self._path), f"a {records.compression} file is not followed: read it without"
            )
        for some in records:
            yield list(reader.feed(some))
        self._place = records.place()
        self._read = size
