"""One segment: an Arrow stream that any Arrow reader reads, and the index beside it.

Rows are written, synced, and then published. A crash can leave anything behind the published rows;
``recover`` keeps of it what is whole, and cuts the rest off.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

from zenwire.spool.errors import SpoolDamaged, SpoolFailed
from zenwire.spool.files import Local, Place, sync_folder
from zenwire.spool.index import (
    ENTRY_SIZE,
    HEADER_SIZE,
    PUBLISHED_AT,
    Entry,
    IndexFault,
    entries_of,
    header_of,
    pack_entry,
    pack_header,
    pack_published,
)
from zenwire.spool.manifest import Segment

__all__ = ["END", "Message", "Recovered", "SegmentWriter", "message_of", "recover", "write_whole"]

END: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""What ends an Arrow stream."""
_COMPRESSED: Final = ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_COMPRESSED_MIN: Final = 1 << 14
"""Bytes of a batch: less is not worth it."""
_ROW_MAX: Final = 1 << 10
"""Bytes of a row. Larger ones are their payloads, and those are often compressed already."""
_OPEN: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)


class Message(NamedTuple):
    """A record batch as Arrow writes it, and what its entry needs."""

    data: pa.Buffer
    rows: int
    time_min: int
    time_max: int
    crc: int


def message_of(batch: pa.RecordBatch) -> Message:
    """Of a batch that has rows."""
    data = _serialized(batch)
    times = pc.min_max(batch.column("time"))
    return Message(
        data, batch.num_rows, times["min"].as_py(), times["max"].as_py(), zlib.crc32(data)
    )


def _serialized(batch: pa.RecordBatch) -> pa.Buffer:
    """Small rows are mostly keys, nulls and times: to compress those costs less than their disk."""
    size = batch.nbytes
    if size < _COMPRESSED_MIN or size >= batch.num_rows * _ROW_MAX:
        return batch.serialize()
    out = pa.BufferOutputStream()
    ipc.new_stream(out, batch.schema, options=_COMPRESSED).write_batch(batch)
    return out.getvalue().slice(batch.schema.serialize().size)


class SegmentWriter:
    """The segment of a directory that grows. Its methods raise OSError.

    After one did, ``rewind`` takes back what was not synced, so that it can be written again.
    """

    def __init__(self, place: Local, log: str, first: int, schema: pa.Schema, now: int) -> None:
        segment = Segment(first)
        folder = place.root / log
        folder.mkdir(exist_ok=True)
        self.created = now
        self._place = place
        self._paths = folder / segment.data, folder / segment.index
        self._fds: list[int] = []
        self.first = self._end = first
        head = schema.serialize()
        try:
            self._fds += [os.open(path, _OPEN | os.O_TRUNC, 0o644) for path in self._paths]
            _write(self._fds[0], head)
            _write(self._fds[1], pack_header(first, now))
            for fd in self._fds:
                os.fsync(fd)
            sync_folder(folder)
        except BaseException:
            self.close()
            raise
        self._sizes: list[int] = [head.size, HEADER_SIZE]
        self._synced = first, *self._sizes
        self._times: list[int] = []
        self._dirty = False

    @property
    def end(self) -> int:
        """The first offset that was not written."""
        return self._end

    @property
    def size(self) -> int:
        return self._sizes[0]

    def write(self, message: Message, now: int) -> None:
        if self._dirty:
            self.rewind()
        entry = Entry(
            self._end,
            message.rows,
            self._sizes[0],
            message.data.size,
            message.time_min,
            message.time_max,
            now,
            message.crc,
        )
        _write(self._fds[0], message.data)
        _write(self._fds[1], pack_entry(entry))
        self._sizes = [self._sizes[0] + entry.length, self._sizes[1] + ENTRY_SIZE]
        self._end = entry.end
        self._times += [entry.time_min, entry.time_max]

    def sync(self) -> None:
        """What was written is on disk, and readers may read it."""
        for fd in self._fds:
            os.fsync(fd)
        self._check()
        os.pwrite(self._fds[1], pack_published(self._end), PUBLISHED_AT)
        self._synced = self._end, *self._sizes
        self._times = [min(self._times), max(self._times)] if self._times else []

    def _check(self) -> None:
        """What is written to a file without a name is gone with the last one that has it open."""
        for fd, path in zip(self._fds, self._paths, strict=True):
            ours = os.fstat(fd)
            try:
                there = path.stat()
            except OSError as e:
                reason = f"{path} was taken away ({e.strerror}); nothing more can be written"
                raise SpoolFailed(str(self._place), reason) from None
            if (ours.st_dev, ours.st_ino) != (there.st_dev, there.st_ino):
                raise SpoolFailed(str(self._place), f"{path} is another file now")

    def rewind(self) -> None:
        """Back to what was synced."""
        self._dirty = True
        self._end, *self._sizes = self._synced
        for fd, size in zip(self._fds, self._sizes, strict=True):
            os.ftruncate(fd, size)
            os.lseek(fd, size, os.SEEK_SET)
        self._dirty = False

    def seal(self, note: str = "") -> Segment:
        """Complete: nothing is written to it any more. Everything was synced before."""
        if self._dirty:
            self.rewind()
        _write(self._fds[0], END)
        for fd in self._fds:
            os.fsync(fd)
        low, high = (min(self._times), max(self._times)) if self._times else (None, None)
        return Segment(self.first, self._end, self._sizes[0] + len(END), low, high, note)

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds = []


def _write(fd: int, data: bytes | pa.Buffer) -> None:
    view = memoryview(data)
    while view:
        # Less than all is written when the disk is nearly full; the next call says so.
        view = view[os.write(fd, view) :]


def write_whole(
    place: Place,
    log: str,
    first: int,
    schema: pa.Schema,
    *,
    messages: Sequence[Message],
    now: int,
) -> Segment:
    """A complete segment at once, where files do not grow."""
    head = schema.serialize().to_pybytes()
    position, end = len(head), first
    index = [b""]
    for m in messages:
        entry = Entry(end, m.rows, position, m.data.size, m.time_min, m.time_max, now, m.crc)
        index.append(pack_entry(entry))
        position, end = position + entry.length, entry.end
    header = pack_header(first, now)
    index[0] = header[:PUBLISHED_AT] + pack_published(end) + header[PUBLISHED_AT + 16 :]
    low, high = min(m.time_min for m in messages), max(m.time_max for m in messages)
    segment = Segment(first, end, position + len(END), low, high)
    data = b"".join([head, *(m.data.to_pybytes() for m in messages), END])
    place.replace(f"{log}/{segment.data}", data)
    place.replace(f"{log}/{segment.index}", b"".join(index))
    return segment


class Recovered(NamedTuple):
    """``segment`` is complete now. ``cut`` bytes were no whole batches, of ``lost`` published rows.

    ``lost`` are rows that readers may have seen: a disk that did not keep what it had synced.
    ``published`` is the first offset that readers had not seen.
    """

    segment: Segment
    cut: int
    lost: int
    published: int


def recover(place: Local, log: str, first: int, schema: pa.Schema) -> Recovered:
    """Completes a segment that its writer did not. Raises SpoolDamaged, OSError.

    A damaged batch among the published ones stays where it is: readers are told, and what is
    behind it keeps its offsets.
    """
    segment = Segment(first)
    data_path, index_path = (place.root / log / name for name in (segment.data, segment.index))
    index = index_path.read_bytes() if index_path.exists() else b""
    if len(index) <= HEADER_SIZE:
        # It never had a row: the crash came before.
        return _start_again(place, log, segment, data_path, schema)
    try:
        header = header_of(index)
    except IndexFault as e:
        raise SpoolDamaged(str(place), f"{log}/{segment.index}", str(e)) from None
    if header.first != first:
        reason = f"it is that of offset {header.first}"
        raise SpoolDamaged(str(place), f"{log}/{segment.index}", reason)
    size = data_path.stat().st_size if data_path.exists() else 0
    position = _head(place, log, segment.data, schema) if size else 0
    entries = entries_of(index[HEADER_SIZE:], first, position)
    whole = _whole(data_path, entries, header.published)
    kept = entries[:whole]
    end = kept[-1].end if kept else first
    stop = kept[-1].position + kept[-1].length if kept else position
    with data_path.open("r+b") as f:
        cut = max(f.seek(0, os.SEEK_END) - stop, 0)
        if cut == len(END):
            f.seek(stop)
            cut = 0 if f.read() == END else cut
        f.truncate(stop)
        f.seek(stop)
        f.write(END)
        f.flush()
        os.fsync(f.fileno())
    with index_path.open("r+b") as f:
        f.truncate(HEADER_SIZE + whole * ENTRY_SIZE)
        f.seek(PUBLISHED_AT)
        f.write(pack_published(end))
        f.flush()
        os.fsync(f.fileno())
    note = f"recovered, {cut} bytes cut off" if cut else "recovered"
    low = min((e.time_min for e in kept), default=None)
    high = max((e.time_max for e in kept), default=None)
    lost = max(header.published - end, 0)
    done = Segment(first, end, stop + len(END), low, high, note)
    return Recovered(done, cut, lost, header.published)


def _start_again(
    place: Local, log: str, segment: Segment, data_path: Path, schema: pa.Schema
) -> Recovered:
    cut = data_path.stat().st_size if data_path.exists() else 0
    writer = SegmentWriter(place, log, segment.first, schema, 0)
    try:
        done = writer.seal("recovered, had no rows")
        return Recovered(done, max(cut - writer.size, 0), 0, segment.first)
    finally:
        writer.close()


def _head(place: Local, log: str, name: str, schema: pa.Schema) -> int:
    """How long the schema at the beginning of the data is. Raises SpoolDamaged."""
    head = schema.serialize().to_pybytes()
    with (place.root / log / name).open("rb") as f:
        if f.read(len(head)) == head:
            return len(head)
        f.seek(0)
        try:
            # Another version of Arrow may write the same schema in other bytes.
            with pa.PythonFile(f, "r") as source:
                message = ipc.read_message(source)
                if ipc.read_schema(message).equals(schema):
                    return int(source.tell())
        except (pa.ArrowInvalid, EOFError, OSError):
            pass
    raise SpoolDamaged(str(place), f"{log}/{name}", "it does not begin with the columns of a spool")


def _whole(path: Path, entries: Sequence[Entry], published: int) -> int:
    """How many batches are to be kept: all before the first that is broken and unpublished."""
    with path.open("rb") as f:
        size = f.seek(0, os.SEEK_END)
        for number, entry in enumerate(entries):
            if entry.position + entry.length > size:
                return number
            if entry.first < published:
                continue
            f.seek(entry.position)
            if zlib.crc32(f.read(entry.length)) != entry.crc:
                return number
    return len(entries)
