"""Writing a spool: rows in from any thread, and two of our own to bring them to the disk."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, Self

import pyarrow as pa

from zenwire.columns.samples import SAMPLES
from zenwire.spool.batches import TOGETHER, Sized, difference, pieces, together
from zenwire.spool.disk import Disk
from zenwire.spool.errors import SpoolError, SpoolFailed
from zenwire.spool.files import Local, Place, place_of
from zenwire.spool.lock import Lock, lock_of
from zenwire.spool.losses import Loss, Losses
from zenwire.spool.manifest import Manifest
from zenwire.spool.opening import begun
from zenwire.spool.segment import message_of
from zenwire.spool.settings import Settings
from zenwire.spool.sources import Numbers, SourceNumbers
from zenwire.spool.work import Work

__all__ = ["Counts", "Writer"]

_RETRY: Final = (0.05, 2.0)
"""Seconds until a disk that did not take rows is tried again: at first, and at most."""
_RETENTION: Final = 5.0
"""Seconds between looks for what is too old, at most."""
_NEVER: Final = float("inf")


class Counts(NamedTuple):
    """Since the writer was opened: rows."""

    appended: int
    synced: int
    lost: int
    waiting_bytes: int
    trouble: str
    """Why nothing is written just now, or empty."""


class Writer:
    """The one writer of a spool; makes the spool if there is none.

        with Writer.open("spools/fleet") as writer:
            offset = writer.append(samples)   # of SAMPLES
            writer.flush()                    # until it is on disk

    ``append`` and ``lose`` may be called by any thread. A full disk is waited for: meanwhile rows
    wait too, and what finds no room becomes a row of ``losses``. A directory that is taken away
    stops the writer: ``append`` raises SpoolFailed from then on.
    """

    def __init__(
        self,
        place: Place,
        lock: Lock,
        manifest: Manifest,
        settings: Settings,
        *,
        who: str,
        now: Callable[[], int],
    ) -> None:
        """See ``open``."""
        self._place = place
        self._lock = lock
        self._settings = settings
        self._now = now
        self._losses = Losses()
        self._numbers = SourceNumbers()
        self._disk = Disk(place, lock, manifest, settings, who=who, now=now, losses=self._losses)
        self._interval = settings.interval(local=self._disk.local)
        self._room = settings.room(local=self._disk.local)
        # Losses that were found while recovering wait for their first sync.
        self._due: float | None = time.monotonic() if self._losses else None
        self._pid = os.getpid()
        self._first = self._accepted = self._disk.samples.end
        self._queue: deque[Sized] = deque()
        self._queued = 0
        self.on_room: Callable[[], None] | None = None
        """Called, in a thread of the writer, when the queue has become smaller."""
        self._lost = 0
        self._trouble = ""
        self._failed: SpoolFailed | None = None
        self._closing = self._given_up = self._crowded = False
        age = settings.retention.age
        self._look = _NEVER if age is None else 0.0
        self._looks = _RETENTION if age is None else min(_RETENTION, max(age / 4, 0.05))
        self._flushes = 0
        self._flushed = 0
        self._changed = threading.Condition()
        self._work: Work | None = None
        self._encoded = self._first
        self._marks: deque[tuple[int, int]] = deque()
        """Pending flushes: number, and the offset that completes each."""
        self._threads = [
            threading.Thread(
                target=self._guarded, args=(work,), name=f"zenwire-spool-{name}", daemon=True
            )
            for name, work in (("encode", self._encode), ("write", self._write))
        ]
        for thread in self._threads:
            thread.start()

    @classmethod
    def open(
        cls,
        where: str | Path | Place,
        settings: Settings | None = None,
        *,
        name: str | None = None,
        program: str = "zenwire",
        now: Callable[[], int] = time.time_ns,
    ) -> Self:
        """``name`` is that of a new spool, if it is not that of its directory.

        Raises SpoolLocked if somebody else writes it, SpoolDamaged, SpoolError.
        """
        place = place_of(where)
        settings = settings or Settings()
        try:
            if isinstance(place, Local):
                place.root.mkdir(parents=True, exist_ok=True)
            lock = lock_of(place, program, now())
        except OSError as e:
            raise SpoolError(str(place), f"cannot be written: {e.strerror or e}") from None
        try:
            who = f"{program} (process {os.getpid()})"
            manifest = begun(place, name, now())
            return cls(place, lock, manifest, settings, who=who, now=now)
        except OSError as e:
            lock.release()
            raise SpoolError(str(place), f"cannot be written: {e.strerror or e}") from None
        except BaseException:
            lock.release()
            raise

    # In.

    @property
    def name(self) -> str:
        return self._disk.name

    @property
    def next_offset(self) -> int:
        """The one that the next row gets."""
        return self._accepted

    @property
    def settled(self) -> int:
        """Up to there everything that is missing between rows stands in ``losses``.

        The writer before may have ended before it said so of its last rows.
        """
        return self._disk.settled

    @property
    def queued_bytes(self) -> int:
        """Bytes of the rows that wait to be encoded."""
        return self._queued

    @property
    def queue_limit(self) -> int | None:
        """Bytes of the queue at which the caller is to pause its source; None if it need not."""
        settings = self._settings
        return settings.queue_bytes if settings.overflow == "accept" else None

    def append(self, batch: pa.RecordBatch, *, numbers: Numbers = "check") -> int | None:
        """Takes rows of SAMPLES; gives the offset of the first, or None if they were lost.

        ``numbers`` says what to do with their source numbers. They are on disk and readable after
        the next sync. Raises SpoolFailed, and SpoolError for other columns.
        """
        if not batch.schema.equals(SAMPLES):
            raise SpoolError(str(self._place), difference(batch.schema))
        size = batch.nbytes
        with self._changed:
            self._check()
            if not batch.num_rows:
                return self._accepted
            limit, accept = self._settings.queue_bytes, self.queue_limit is not None
            # What is larger than all the room there is waits alone.
            while self._queued and self._queued + size > limit and not accept:
                if self._settings.overflow == "lose":
                    self._overflow(batch.num_rows, size)
                    return None
                self._crowded = True
                self._changed.notify_all()
                self._changed.wait()
                self._check()
            first = self._accepted
            self._accepted += batch.num_rows
            self._queue.append(Sized(batch, size, numbers))
            before, self._queued = self._queued, self._queued + size
            if self._due is None:
                self._due = time.monotonic() + self._interval
                self._changed.notify_all()
            elif before < TOGETHER <= self._queued:
                self._changed.notify_all()
            return first

    def _overflow(self, rows: int, size: int) -> None:
        self._lost += rows
        reason = self._trouble or "rows came faster than they could be written"
        now = self._now()
        self._add(Loss("overflow", reason, self._accepted, now, rows, size))

    def _add(self, loss: Loss) -> None:
        self._losses.add(loss)
        if self._due is None:
            self._due = time.monotonic() + self._interval
            self._changed.notify_all()

    def lose(
        self,
        kind: str,
        reason: str,
        *,
        count: int | None = None,
        source: tuple[bytes, int] | None = None,
        numbers: tuple[int, int] | None = None,
    ) -> None:
        """Something that the caller knows to have lost: of a source, from number to number."""
        with self._changed:
            self._check()
            self._lost += count or 0
            loss = Loss(kind, reason, self._accepted, self._now(), count)
            if source is not None:
                loss.source_zid, loss.source_eid = source
            if numbers is not None:
                loss.from_sn, loss.to_sn = numbers
            self._add(loss)

    def learn(self, numbers: Mapping[tuple[bytes, int], int]) -> None:
        """How far sources have come, as others know: gaps are looked for from there on."""
        self._numbers.learn(numbers)

    def _check(self) -> None:
        if self._failed is not None:
            raise SpoolFailed(str(self._place), self._failed.reason)
        if self._closing:
            raise SpoolFailed(str(self._place), "its writer is closed; open another one")
        if os.getpid() != self._pid:
            raise SpoolFailed(
                str(self._place), f"its writer belongs to process {self._pid}; open one here"
            )

    def counts(self) -> Counts:
        """What became of the rows so far."""
        with self._changed:
            synced = self._disk.samples.synced - self._first
            waiting = self._queued + self._disk.samples.pending_bytes
            taken = self._accepted - self._first
            return Counts(taken, synced, self._lost, waiting, self._trouble)

    def flush(self, timeout: float | None = None) -> bool:
        """Waits until all rows and losses so far are on disk; False if that takes too long.

        Raises SpoolFailed.
        """
        with self._changed:
            self._check()
            self._flushes += 1
            mine = self._flushes
            self._marks.append((mine, self._accepted))
            self._changed.notify_all()
            done = self._changed.wait_for(
                lambda: self._flushed >= mine or self._failed is not None, timeout
            )
            if self._flushed < mine:
                self._check()
            return done

    def close(self, timeout: float = 10.0) -> None:
        """Writes what waits, and completes the segments.

        Raises SpoolFailed if the disk does not take it within ``timeout`` seconds; what is then
        not written is lost, and the next writer says so.
        """
        with self._changed:
            if self._closing or os.getpid() != self._pid:
                return
            self._closing = True
            self._changed.notify_all()
        until = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0))
        if any(thread.is_alive() for thread in self._threads):
            with self._changed:
                self._given_up = True
                self._changed.notify_all()
            for thread in self._threads:
                thread.join(timeout)
        self._lock.release()
        if self._failed is not None:
            raise SpoolFailed(str(self._place), self._failed.reason)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Out. One thread makes bytes of rows while another waits for the disk.

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except SpoolError as e:
            self._fail(e)
        except Exception as e:  # noqa: BLE001 - whatever ends the thread is told to who appends
            self._fail(SpoolFailed(str(self._place), f"its writer has failed: {e!r}"))

    def _fail(self, error: SpoolError) -> None:
        with self._changed:
            left = self._accepted - self._disk.samples.synced
            self._lost += left
            rows = f"; {left} rows could not be written" if left else ""
            self._failed = self._failed or SpoolFailed(str(self._place), error.reason + rows)
            self._queue.clear()
            self._queued = 0
            self._changed.notify_all()
        self._tell_room()

    def _tell_room(self) -> None:
        tell = self.on_room
        if tell is not None:
            tell()

    def _encode(self) -> None:
        """The first thread: rows to bytes, and no further than one sync ahead of the disk."""
        while True:
            batches, work = self._take()
            if batches:
                self._tell_room()
            for sized in together(batches):
                self._find_gaps(sized)
                self._encoded += sized.batch.num_rows
                work.messages.extend(message_of(piece) for piece in pieces(sized))
            with self._changed:
                self._changed.wait_for(self._has_room)
                self._work = work if self._work is None else self._work.and_then(work)
                self._changed.notify_all()
                if work.closing or self._failed is not None:
                    return

    def _has_room(self) -> bool:
        return self._work is None or self._work.size < self._room or self._failed is not None

    def _take(self) -> tuple[list[Sized], Work]:
        """What waits, once there is something to do."""
        with self._changed:
            while True:
                now = time.monotonic()
                due = self._due is not None and now >= self._due
                much = self._crowded or self._queued >= TOGETHER
                look = now >= self._look
                if self._marks or due or look or much or self._closing or self._failed is not None:
                    break
                until = self._look if self._due is None else min(self._due, self._look)
                self._changed.wait(None if until == _NEVER else until - now)
            if look:
                self._look = now + self._looks
            taken, size = [], 0
            while self._queue and size < TOGETHER:
                # In small steps, so that the disk need not wait for the first.
                taken.append(self._queue.popleft())
                size += taken[-1].size
            self._queued -= size
            self._crowded = False
            self._changed.notify_all()
            # Not when the queue is empty: one that is fed as fast as it is written never is.
            asked, end = 0, self._encoded + sum(sized.batch.num_rows for sized in taken)
            while self._marks and self._marks[0][1] <= end:
                asked, _ = self._marks.popleft()
            if self._queue:
                if due:
                    self._due = now + self._interval
                return taken, Work([], asked, due, look, closing=False)
            if asked or due or self._closing:
                self._due = None
            return taken, Work([], asked, due, look, self._closing)

    def _find_gaps(self, sized: Sized) -> None:
        if not self._settings.source_numbers or sized.numbers == "skip":
            return
        gaps = self._numbers.gaps(sized.batch)
        for gap in gaps if sized.numbers == "check" else ():
            loss = Loss("source", "gap", self._encoded + gap.row, self._now(), gap.missing)
            loss.source_zid, loss.source_eid = gap.zid, gap.eid
            loss.from_sn, loss.to_sn = gap.first, gap.last
            with self._changed:
                self._add(loss)

    def _write(self) -> None:
        """The second thread: bytes to the disk."""
        samples = self._disk.samples
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._work or self._failed)
                    work, self._work = self._work, None
                    self._changed.notify_all()
                if work is None or self._failed is not None:
                    return
                for message in work.messages:
                    samples.append(message)
                self._insist(self._disk.pump)
                if work.wants_sync or samples.pending_bytes >= self._room:
                    self._insist(self._sync)
                    with self._changed:
                        self._flushed = max(self._flushed, work.asked)
                        self._changed.notify_all()
                if work.look:
                    self._insist(self._retain)
                if work.closing:
                    self._insist(self._end)
                    return
        finally:
            self._disk.close()

    def _insist(self, act: Callable[[], object]) -> None:
        """A disk that is full, or fails, is tried again until it works or ``close`` gives up.

        Raises SpoolFailed if the spool is not there any more.
        """
        pause, longest = _RETRY
        while True:
            try:
                act()
            except OSError as e:
                # Whoever took the directory away took the lock with it.
                self._lock.check()
                with self._changed:
                    self._trouble = e.strerror or str(e)
                    if self._changed.wait_for(lambda: self._given_up, pause):
                        raise SpoolFailed(str(self._place), self._trouble) from None
                pause = min(pause * 2, longest)
            else:
                self._trouble = ""
                return

    def _sync(self) -> None:
        """Raises OSError, SpoolFailed."""
        with self._changed:
            lost = self._losses.take()
        self._disk.lose(lost)
        self._lose_more(self._disk.sync())

    def _retain(self) -> None:
        """Raises OSError."""
        self._lose_more(self._disk.look())

    def _lose_more(self, lost: list[Loss]) -> None:
        with self._changed:
            for loss in lost:
                self._add(loss)

    def _end(self) -> None:
        """Raises OSError, SpoolFailed."""
        self._sync()
        self._disk.lose(self._losses.take())
        self._disk.end()
