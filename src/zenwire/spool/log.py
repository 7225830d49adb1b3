"""A log: segments one after the other, of which the last one grows. Used by one thread.

``append`` takes rows, ``pump`` writes them, ``sync`` makes them readable. What was not synced is
kept in memory: when the disk is full, or fails to sync, it is written once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from zenwire.spool.files import Local, Place
from zenwire.spool.manifest import Segment
from zenwire.spool.segment import Message, SegmentWriter, write_whole

__all__ = ["Log"]


class Log:
    """``save`` writes the manifest; it is called whenever ``segments`` are others.

    ``segment_bytes`` and ``segment_age`` (nanoseconds) say when the next segment begins.
    """

    def __init__(
        self,
        place: Place,
        name: str,
        schema: pa.Schema,
        segments: Sequence[Segment],
        *,
        end: int,
        save: Callable[[], None],
        segment_bytes: int,
        segment_age: int,
    ) -> None:
        self._place = place
        self.name = name
        self._schema = schema
        self._complete = list(segments)
        self._synced = self._end = end
        self._save = save
        self._segment_bytes = segment_bytes
        self._segment_age = segment_age
        self._current: SegmentWriter | None = None
        self._pending: list[Message] = []
        self._written = 0
        self.pending_bytes = 0

    @property
    def segments(self) -> tuple[Segment, ...]:
        """For the manifest."""
        growing = () if self._current is None else (Segment(self._current.first),)
        return (*self._complete, *growing)

    @property
    def end(self) -> int:
        """The offset that the next row gets."""
        return self._end

    @property
    def synced(self) -> int:
        """The first offset that readers do not see yet."""
        return self._synced

    @property
    def bytes(self) -> int:
        """Of all segments."""
        growing = 0 if self._current is None else self._current.size
        return growing + sum(s.bytes for s in self._complete)

    def append(self, message: Message) -> None:
        """Takes rows, and writes nothing yet."""
        self._pending.append(message)
        self._end += message.rows
        self.pending_bytes += message.data.size

    def pump(self, now: int) -> None:
        """Writes what was appended. Raises OSError, and can then be called again."""
        if not isinstance(self._place, Local) or self._written == len(self._pending):
            return
        if self._current is None:
            current = SegmentWriter(self._place, self.name, self._synced, self._schema, now)
            self._current = current
            try:
                self._save()
            except BaseException:
                self._current = None
                current.close()
                raise
        try:
            while self._written < len(self._pending):
                self._current.write(self._pending[self._written], now)
                self._written += 1
        except OSError:
            self._rewind()
            raise

    def sync(self, now: int) -> None:
        """Everything that was appended is kept, and readable. Raises OSError, SpoolFailed."""
        if not self._pending:
            return
        if isinstance(self._place, Local):
            self.pump(now)
            assert self._current is not None
            try:
                self._current.sync()
            except OSError:
                self._rewind()
                raise
        else:
            segment = write_whole(
                self._place,
                self.name,
                self._synced,
                self._schema,
                messages=self._pending,
                now=now,
            )
            self._complete.append(segment)
            try:
                self._save()
            except BaseException:
                self._complete.pop()
                raise
        self._synced = self._end
        self._pending, self._written, self.pending_bytes = [], 0, 0

    def rotate(self, now: int, *, force: bool = False) -> bool:
        """Completes the segment, if it is large or old. Raises OSError.

        With ``force`` it does so in any case, and saving is left to the caller.
        """
        current = self._current
        if current is None or self._pending:
            return False
        age = abs(now - current.created)
        if not force and current.size < self._segment_bytes and age < self._segment_age:
            return False
        try:
            done = current.seal()
        except OSError:
            self._rewind()
            raise
        self._complete.append(done)
        self._current = None
        current.close()
        if not force:
            self._save()
        return True

    def _rewind(self) -> None:
        assert self._current is not None
        self._written = 0
        self._current.rewind()

    def drop(self, count: int) -> list[Segment]:
        """The first segments, out of the manifest and then out of the place. Raises OSError."""
        gone, self._complete = self._complete[:count], self._complete[count:]
        try:
            self._save()
        except BaseException:
            self._complete = gone + self._complete
            raise
        for segment in gone:
            self._place.delete(f"{self.name}/{segment.data}")
            self._place.delete(f"{self.name}/{segment.index}")
        return gone

    @property
    def complete(self) -> Sequence[Segment]:
        return self._complete

    def close(self) -> None:
        """Without completing anything."""
        if self._current is not None:
            self._current.close()
            self._current = None
