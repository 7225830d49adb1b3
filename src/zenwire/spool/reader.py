"""Reading a spool: by offset, by time, and how far it goes. Many may, while one writes."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from zenwire.columns.samples import SAMPLES
from zenwire.spool import registry
from zenwire.spool.errors import OffsetGone, SpoolDamaged, SpoolError
from zenwire.spool.files import Place, place_of
from zenwire.spool.index import (
    ENTRY_SIZE,
    HEADER_SIZE,
    Entry,
    Header,
    IndexFault,
    entries_of,
    header_of,
)
from zenwire.spool.losses import LOSSES
from zenwire.spool.manifest import Manifest, ManifestFault, Segment
from zenwire.spool.registry import Registered

__all__ = ["MANIFEST", "SCHEMAS", "LogReader", "Rows", "Spool", "load"]

MANIFEST: Final = "manifest.json"
SCHEMAS: Final = {"samples": SAMPLES, "losses": LOSSES}
_RETRIES: Final = 8
_CACHED: Final = 256


class Rows(NamedTuple):
    """A record batch, and the offset of its first row; the others follow without gap."""

    first: int
    batch: pa.RecordBatch


def load(place: Place) -> Manifest:
    """The manifest. Raises SpoolError, SpoolDamaged."""
    try:
        return Manifest.of_text(place.read(MANIFEST))
    except FileNotFoundError:
        raise SpoolError(str(place), f"is no spool: it has no {MANIFEST}") from None
    except OSError as e:
        raise SpoolError(str(place), f"cannot be read: {e.strerror or e}") from None
    except ManifestFault as e:
        raise SpoolDamaged(str(place), MANIFEST, str(e)) from None


class Spool:
    """A spool to read from.

        spool = Spool.open("spools/fleet")
        for rows in spool.samples.read(spool.samples.earliest(), spool.samples.latest()):
            ...

    ``samples`` and ``losses`` are its logs. Not to be shared by threads. Raises SpoolError and what
    is below it; each method looks at what is there now.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self._stamp: object = None
        self._manifest = self.manifest()
        self.samples = LogReader(self, "samples")
        self.losses = LogReader(self, "losses")

    @classmethod
    def open(cls, where: str | Path | Place) -> Spool:
        """A directory, or an address that PyArrow or fsspec knows."""
        return cls(place_of(where))

    @property
    def name(self) -> str:
        return self._manifest.name

    @property
    def id(self) -> str:
        """Another one for a spool that was made anew under the same name."""
        return self._manifest.id

    def manifest(self) -> Manifest:
        """As it is now. Raises SpoolDamaged if it is that of another spool."""
        try:
            stamp = self.place.stamp(MANIFEST)
        except OSError:
            stamp = None
        if stamp is None or stamp != self._stamp:
            found = load(self.place)
            if self._stamp is not None and found.id != self._manifest.id:
                raise SpoolDamaged(str(self.place), MANIFEST, "another spool is in its place")
            self._manifest, self._stamp = found, stamp or object()
        return self._manifest

    # Readers that asked not to be forgotten.

    def register(self, name: str, position: int | None = None, *, log: str = "samples") -> int:
        """What it has not read stays. Gives where it goes on: where it was, or ``position``.

        A name is that of a reader of one ``log``.
        """
        for known in self.readers():
            if known.name == name and not known.broken and known.log == log:
                return known.position
        reader: LogReader = getattr(self, log)
        begin = reader.earliest() if position is None else position
        self.commit(name, begin, log=log)
        return begin

    def commit(self, name: str, position: int, *, log: str = "samples") -> None:
        """It has read everything before that offset."""
        registry.commit(self.place, name, position, log)

    def forget(self, name: str) -> None:
        """What it has not read may go."""
        registry.forget(self.place, name)

    def readers(self) -> list[Registered]:
        return registry.registered(self.place)


class LogReader:
    """One log of a spool."""

    def __init__(self, spool: Spool, name: str) -> None:
        self._spool = spool
        self._name = name
        self.schema: pa.Schema = SCHEMAS[name]
        self._complete: dict[int, Sequence[Entry]] = {}
        self._growing: tuple[int, list[Entry]] = -1, []
        self._heads: dict[int, int] = {}

    @property
    def _place(self) -> Place:
        return self._spool.place

    def _damaged(self, file: str, reason: str) -> SpoolDamaged:
        return SpoolDamaged(str(self._place), f"{self._name}/{file}", reason)

    def segments(self) -> Sequence[Segment]:
        """Those that are there now. The last may have no end yet."""
        return self._spool.manifest().logs[self._name]

    def earliest(self) -> int:
        """The first offset that is there, or will be."""
        manifest = self._spool.manifest()
        segments = manifest.logs[self._name]
        return segments[0].first if segments else manifest.next[self._name]

    def latest(self) -> int:
        """The first offset that is not there yet: everything before it is on disk."""
        for _ in range(_RETRIES):
            manifest = self._spool.manifest()
            segments = manifest.logs[self._name]
            if not segments:
                return manifest.next[self._name]
            last = segments[-1]
            if last.end is not None:
                return last.end
            try:
                return self._header(last).published
            except FileNotFoundError:
                # It had no rows when its writer died, and was removed since.
                continue
        raise self._damaged("the last index", "it is not there")

    # Entries: what is where.

    def _header(self, segment: Segment) -> Header:
        name = f"{self._name}/{segment.index}"
        for attempt in range(_RETRIES):
            try:
                header = header_of(self._place.part(name, 0, HEADER_SIZE))
            except IndexFault as e:
                # It is overwritten in place: a second look tells a write from a fault.
                if attempt + 1 == _RETRIES:
                    raise self._damaged(segment.index, str(e)) from None
                continue
            if header.first != segment.first:
                raise self._damaged(segment.index, f"it is that of offset {header.first}")
            return header
        raise AssertionError

    def _entries(self, segment: Segment) -> Sequence[Entry]:
        """Of the rows that may be read. Raises SpoolDamaged."""
        complete = self._complete.get(segment.first)
        if complete is not None:
            return complete
        # What a segment that grows had before, it still has.
        whose, before = self._growing
        known = before if whose == segment.first else []
        try:
            published = self._header(segment).published
            end = published if segment.end is None else segment.end
            if end == segment.first:
                return ()
            at = HEADER_SIZE + ENTRY_SIZE * len(known)
            data = self._place.part(f"{self._name}/{segment.index}", at)
        except FileNotFoundError:
            raise self._damaged(segment.index, "it is not there") from None
        except OSError as e:
            raise self._damaged(segment.index, e.strerror or str(e)) from None
        if known:
            first, position = known[-1].end, known[-1].position + known[-1].length
        else:
            first, position = segment.first, self._head(segment)
        found = [*known, *(e for e in entries_of(data, first, position) if e.first < end)]
        if not found or found[-1].end != end:
            reached = found[-1].end if found else segment.first
            at = HEADER_SIZE + ENTRY_SIZE * len(found)
            raise self._damaged(
                segment.index, f"offsets from {reached} on are missing (entry at byte {at})"
            )
        if segment.end is None:
            self._growing = segment.first, found
        else:
            if len(self._complete) >= _CACHED:
                self._complete.clear()
            self._complete[segment.first] = found
        return found

    def _head(self, segment: Segment) -> int:
        """How long the schema before the first batch is. Raises SpoolDamaged."""
        known = self._heads.get(segment.first)
        if known is not None:
            return known
        name = f"{self._name}/{segment.data}"
        head = self.schema.serialize()
        try:
            size = self._place.size(name)
            data = self._place.view(name, 0, min(size, max(1 << 16, head.size)))
            with pa.BufferReader(data) as source:
                if not ipc.read_schema(ipc.read_message(source)).equals(self.schema):
                    raise self._damaged(segment.data, "its columns are not those of a spool")
                found = int(source.tell())
        except FileNotFoundError:
            raise self._damaged(segment.data, "it is not there") from None
        except (pa.ArrowException, EOFError, OSError) as e:
            raise self._damaged(segment.data, f"it does not begin with a schema ({e})") from None
        self._heads[segment.first] = found
        return found

    def entries(self, start: int, end: int) -> Iterator[tuple[Segment, Entry]]:
        """The batches that hold offsets from ``start`` up to ``end``, for planning."""
        for segment in self._between(start, end):
            for entry in self._entries(segment):
                if entry.end > start and entry.first < end:
                    yield segment, entry

    def _between(self, start: int, end: int) -> Iterator[Segment]:
        segments = self.segments()
        at = max(bisect_right(segments, start, key=lambda s: s.first) - 1, 0)
        for segment in segments[at:]:
            if segment.first >= end:
                break
            if segment.end is None or segment.end > start:
                yield segment

    # Rows.

    def read(
        self,
        start: int,
        end: int,
        *,
        lost: Callable[[SpoolError], object] | None = None,
        columns: Sequence[str] | None = None,
    ) -> Iterator[Rows]:
        """Rows from ``start`` up to ``end``, or as far as there are any; here not even copied.

        Of some ``columns``, the others are not decompressed. Raises OffsetGone if the first of them were removed, and SpoolDamaged; or, if there is
        ``lost``, tells it and goes on behind that.
        """
        position = start
        while position < end:
            # Segments are looked up one at a time: meanwhile some may go, and others come.
            segment = next(self._between(position, end), None)
            earliest = self.earliest()
            if position < earliest:
                self._lose(OffsetGone(str(self._place), position, earliest), lost)
                position = earliest
                continue
            if segment is None:
                return
            try:
                entries = self._kept(segment)
            except SpoolError as e:
                self._lose(e, lost)
                entries = ()
            for entry in entries:
                if entry.end <= position:
                    continue
                if entry.first >= end:
                    return
                try:
                    batch = self._batch(segment, entry, columns)
                except SpoolError as e:
                    self._lose(e, lost)
                    continue
                begin = max(position - entry.first, 0)
                stop = min(end - entry.first, entry.rows)
                position = entry.first + stop
                yield Rows(entry.first + begin, batch.slice(begin, stop - begin))
            if segment.end is None:
                return
            position = max(position, segment.end)

    @staticmethod
    def _lose(error: SpoolError, lost: Callable[[SpoolError], object] | None) -> None:
        if lost is None:
            raise error
        lost(error)

    def _kept(self, segment: Segment) -> Sequence[Entry]:
        """The entries, unless the segment goes in this moment."""
        try:
            return self._entries(segment)
        except SpoolDamaged:
            earliest = self.earliest()
            if segment.first < earliest:
                raise OffsetGone(str(self._place), segment.first, earliest) from None
            raise

    def _batch(
        self, segment: Segment, entry: Entry, columns: Sequence[str] | None = None
    ) -> pa.RecordBatch:
        name = f"{self._name}/{segment.data}"
        where = f"offsets {entry.first} to {entry.end - 1}"
        try:
            data = self._place.view(name, entry.position, entry.length)
            if zlib.crc32(data) != entry.crc:
                raise self._damaged(segment.data, f"{where}: the checksum is wrong")
            if columns is None:
                batch = ipc.read_record_batch(data, self.schema)
            else:
                batch = self._some(data, columns)
            # A checksum tells chance from intent, not one who means harm: Arrow trusts offsets.
            batch.validate(full=True)
        except FileNotFoundError:
            earliest = self.earliest()
            if entry.first < earliest:
                raise OffsetGone(str(self._place), entry.first, earliest) from None
            raise self._damaged(segment.data, "it is not there") from None
        except (pa.ArrowException, EOFError, OSError) as e:
            raise self._damaged(segment.data, f"{where}: {e}") from None
        if batch.num_rows != entry.rows:
            raise self._damaged(segment.data, f"{where}: there are {batch.num_rows} rows")
        return batch

    def _some(self, data: pa.Buffer, columns: Sequence[str]) -> pa.RecordBatch:
        """Arrow leaves columns out of streams only, which begin with a schema."""
        fields = [self.schema.get_field_index(name) for name in columns]
        options = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        stream = pa.py_buffer(b"".join((self.schema.serialize(), data)))
        with ipc.open_stream(stream, options=options) as found:
            return found.read_next_batch().select(list(columns))

    def check(self, segment: Segment) -> Iterator[Rows | SpoolDamaged]:
        """Every batch of a segment, or what is wrong with it; what is behind that comes too."""
        try:
            entries = self._entries(segment)
        except SpoolDamaged as e:
            yield e
            return
        for entry in entries:
            try:
                yield Rows(entry.first, self._batch(segment, entry))
            except SpoolDamaged as e:
                yield e

    def offset_of_time(self, nanoseconds: int) -> int:
        """The first offset whose row was received at that time or later; ``latest`` if none was.

        A clock that went back makes earlier times follow later ones: it is the first all the same.
        """
        for segment in self.segments():
            if segment.time_max is not None and segment.time_max < nanoseconds:
                continue
            for entry in self._entries(segment):
                if entry.time_max >= nanoseconds:
                    times = self._batch(segment, entry).column("time")
                    late = np.flatnonzero(np.asarray(times) >= nanoseconds)
                    return entry.first + (int(late[0]) if len(late) else 0)
        return self.latest()
