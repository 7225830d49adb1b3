"""The recorder: subscribers of a session whose rows go into a sink, and the holes between them."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from zenwire.api.columnar import Columnar
from zenwire.api.handlers import Callback
from zenwire.errors import ZError
from zenwire.node.backlog import Backlog
from zenwire.record.chosen import Chosen, choose
from zenwire.record.history import TIMEOUT, History, pull
from zenwire.record.hole import Hole
from zenwire.record.known import Known, Missing, times_of
from zenwire.spool import Spool, SpoolError
from zenwire.spool.files import Local, place_of
from zenwire.wire.values import WhatAmI

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from types import TracebackType

    import pyarrow as pa

    from zenwire.api.session import Session
    from zenwire.node.neighbour import Neighbour
    from zenwire.record.sink import Sink

__all__ = ["Recorder", "Status"]

_log = logging.getLogger("zenwire.record")

_WATCH: Final = 1.0
"""Seconds between looks at what links have lost."""
_PAUSE: Final = 1.0
"""Seconds between two histories, however many come and go."""
_ROWS: Final = 65_536
_INTERVAL: Final = 0.05
"""Seconds that rows wait for others before they go to the sink."""
_SETTLE: Final = 0.3
"""Seconds after a history: what it has may come once more, by itself, and is told by the spool."""
_ROUNDS: Final = 5
"""Histories of one hole, if somebody comes during each of them, before what is missing is told."""
_SOFT: Final = 4
"""Links wait once this fraction of the queue, a quarter, is used; the rest is for slow disks."""
_STALLED: Final = 10.0
"""Seconds without progress of the disk after which the log says that links wait."""
_CANNOT_WAIT: Final = "the queue was full, and their source cannot be made to wait"
_TELL: Final = 2048
"""Losses at once; a spool puts those together that wait in larger numbers."""


class Status(NamedTuple):
    """How it goes, since the start."""

    rows: int
    """That came."""
    bytes: int
    synced: int
    """Rows that are safe."""
    lost: int
    waiting_bytes: int
    recovered: int
    """Rows that came as history."""
    neighbours: int
    trouble: str
    paused: float
    """Seconds in which links had to wait for the sink."""


def _incomparable(error: SpoolError) -> None:
    _log.warning("some of what was recorded cannot be compared with histories: %s", error)


def _unmapped(spool: str | Path) -> Spool:
    """A spool to read once. Mapped files of gigabytes would count as memory of the recorder."""
    place = place_of(spool)
    return Spool.open(Local(place.root, mapped=False) if isinstance(place, Local) else place)


class Recorder:
    """Records from ``async with`` until it ends.

    ``liveliness`` are key expressions of tokens: a row is a PUT when a key becomes alive, and a
    DELETE when it is not any more.
    ``spool`` is where the sink writes, so that what it has can be told from what is new in a
    history; without it, and without ``history``, nobody is asked for what was missed. Raises
    KeyExprError for what is no key expression, and ZError if nothing is left to record.
    """

    def __init__(
        self,
        session: Session,
        sink: Sink,
        include: Iterable[str],
        *,
        exclude: Iterable[str] = (),
        liveliness: Iterable[str] = (),
        spool: str | Path | None = None,
        history: bool = True,
        history_timeout: float = TIMEOUT,
    ) -> None:
        self._session = session
        self._sink = sink
        self._chosen = choose(include, exclude)
        self._alive = choose(liveliness)
        if not self._chosen:
            raise ZError("there is nothing to record: all of it is excluded")
        self._spool = spool if history else None
        self._timeout = history_timeout
        self._rows = self._bytes = self._recovered = 0
        self._lost_frames = 0
        self._hole: Hole | None = None
        """What was missed, until a history has filled it; None where nobody is asked for one."""
        self._someone = asyncio.Event()
        """Somebody came who may have what was missed."""
        self.filled = asyncio.Event()
        """Set when everybody who is there was asked for what was missed."""
        self._tasks: list[asyncio.Task[None]] = []
        self._declared: list[Any] = []
        self._backlog: Backlog | None = None
        """Pauses links while the sink has no room; None for a sink that drops."""
        self._progress = 0
        self._stalled = 0.0
        self.failed: ZError | None = None
        """Why nothing can be written any more."""
        self.over = asyncio.Event()
        """Set when it has failed."""

    @property
    def keys(self) -> list[str]:
        """What it subscribes to."""
        return [chosen.key for chosen in self._chosen]

    def status(self) -> Status:
        """How it goes."""
        counts = self._sink.counts()
        return Status(
            self._rows,
            self._bytes,
            counts.synced,
            counts.lost,
            counts.waiting_bytes,
            self._recovered,
            len(self._session.info.transports()),
            counts.trouble,
            0.0 if self._backlog is None else self._backlog.paused,
        )

    # The beginning and the end.

    async def __aenter__(self) -> Self:
        self._lost_frames = self._missing_frames()
        sink, limit = self._sink, self._sink.queue_limit
        if limit is not None:
            soft = max(limit // _SOFT, 1)
            self._backlog = Backlog(lambda: sink.queued_bytes, soft, limit, self._refuse)
            sink.on_room = self._backlog.drained
        if self._spool is not None:
            settled = self._sink.settled
            self._hole = await asyncio.to_thread(Hole, self._spool, settled)
            self._begin_hole()
        for chosen in self._chosen:
            handler = self._handler(chosen)
            self._declared.append(await self._session.declare_subscriber(chosen.key, handler))
        for alive in self._alive:
            handler, tokens = self._handler(alive), self._session.liveliness()
            watched = tokens.declare_subscriber(alive.key, handler, history=True)
            self._declared.append(await watched)
        self._session.core.node.on_neighbour.append(self._neighbour)
        self._tasks.append(asyncio.create_task(self._watch()))
        if self._spool is not None:
            self._someone.set()
            self._tasks.append(asyncio.create_task(self._fill()))
        else:
            self.filled.set()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._session.core.node.on_neighbour.remove(self._neighbour)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for declared in self._declared:
            # What was collected so far goes to the sink with it.
            await declared.undeclare()
        self._sink.on_room = None
        if self.failed is None:
            self._count_frames()

    def _handler(self, chosen: Chosen) -> Columnar:
        def take(samples: pa.RecordBatch) -> None:
            self._take(chosen.keep(samples))

        callback = Callback(take, indirect=False)
        return Columnar(callback, rows=_ROWS, interval=_INTERVAL, backlog=self._backlog)

    def _refuse(self, rows: int) -> None:
        self._lose("overflow", _CANNOT_WAIT, count=rows)

    def _take(self, samples: pa.RecordBatch) -> None:
        if self.failed is not None or not samples.num_rows:
            return
        try:
            in_hole = self._hole is not None and self._hole.first is not None
            self._sink.append(samples, numbers="learn" if in_hole else "check")
        except ZError as e:
            self._fail(e)
        else:
            self._rows += samples.num_rows
            self._bytes += samples.nbytes

    def _fail(self, error: ZError) -> None:
        if self.failed is None:
            self.failed = error
            self.over.set()

    def _lose(self, kind: str, reason: str, **more: Any) -> None:
        if self.failed is None:
            try:
                self._sink.lose(kind, reason, **more)
            except ZError as e:
                self._fail(e)

    # Holes.

    def _begin_hole(self) -> None:
        if self._hole is not None and self._hole.begin(self._sink.next_offset):
            self.filled.clear()

    def _neighbour(self, neighbour: Neighbour, came: bool) -> None:
        zid = neighbour.face.zid
        if came:
            _log.info("connected to %s", zid)
            self._begin_hole()
            self._someone.set()
        elif neighbour.farewell and neighbour.face.whatami is not WhatAmI.ROUTER:
            # It had nobody behind it, and has said all it wanted.
            _log.info("%s has left", zid)
        else:
            _log.warning("the session with %s is lost", zid)
            self._begin_hole()
            self._lose("session", f"the session with {zid} is lost, and what it had for us perhaps")
            # Others may have it; and until somebody was asked, nobody looks for gaps.
            self._someone.set()

    async def _fill(self) -> None:
        """Ask for what was missed, each time that somebody came."""
        assert self._hole is not None
        rounds = 0
        while True:
            await self._someone.wait()
            self._someone.clear()
            self._begin_hole()
            asked = [pull(self._session, key, self._timeout) for key in self.keys]
            histories = await asyncio.gather(*asked)
            await asyncio.sleep(_SETTLE)
            # Somebody came meanwhile, who may have what is still missing.
            again = self._someone.is_set() and rounds < _ROUNDS
            rounds = rounds + 1 if again else 0
            try:
                await self._fill_hole(self._hole, histories, again=again)
            except (SpoolError, OSError, ValueError) as e:
                # Rows that cannot be read: recording goes on, and what it cannot know is told.
                _log.warning("what was missed is not known: %s", e)
                self._lose("session", f"what was missed before is not known: {e}")
                if not again and self._hole.first is not None:
                    self._hole.take(again=False)
            if not again:
                self._hole.keep(filled=True)
            if self._hole.first is None and not self._someone.is_set():
                self.filled.set()
            await asyncio.sleep(_PAUSE)

    async def _fill_hole(self, hole: Hole, histories: Sequence[History], *, again: bool) -> None:
        mark = hole.take(again=True)
        await asyncio.to_thread(self._sink.flush)
        known = await asyncio.to_thread(self._known, mark, histories)
        for chosen, history in zip(self._chosen, histories, strict=True):
            for batch in history.batches:
                self._recover(await asyncio.to_thread(known.fresh, chosen.keep(batch)))
                if self._backlog is not None and self._backlog.check():
                    await asyncio.shield(self._backlog.done)
            if history.lost:
                self._lose("overflow", "a history was too large", count=history.lost)
        if again:
            return
        # The sink looks for gaps itself from here on; also of sources that are silent now.
        self._sink.learn(known.furthest())
        hole.take(again=False)
        missing = await asyncio.to_thread(self._missing, known, mark, self._sink.next_offset)
        for number, gap in enumerate(missing, 1):
            self._lose(
                "source",
                "missed while there was no session, and nobody has it any more",
                count=gap.samples,
                source=gap.source,
                numbers=(gap.first, gap.last),
            )
            if not number % _TELL:
                await asyncio.to_thread(self._sink.flush)
        await asyncio.to_thread(self._sink.flush)

    def _known(self, mark: int, histories: Sequence[History]) -> Known:
        """In a thread. Raises SpoolError."""
        assert self._spool is not None
        times = times_of(batch for history in histories for batch in history.batches)
        return Known.read(_unmapped(self._spool), mark, _incomparable, times)

    def _missing(self, known: Known, mark: int, end: int) -> list[Missing]:
        """In a thread, of the rows before ``end``. Raises SpoolError."""
        assert self._spool is not None
        self._sink.flush()
        known.read_on(_unmapped(self._spool), mark, end, _incomparable)
        return known.missing()

    def _recover(self, samples: pa.RecordBatch) -> None:
        if samples.num_rows and self.failed is None:
            try:
                self._sink.append(samples, numbers="skip")
            except ZError as e:
                self._fail(e)
            else:
                self._recovered += samples.num_rows

    # What links have lost.

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_WATCH)
            self._count_frames()
            self._tell_stalled()

    def _tell_stalled(self) -> None:
        """Log once that links wait for a disk that takes nothing."""
        counts, before = self._sink.counts(), self._stalled
        if self._backlog is None or not self._backlog.careful or counts.synced > self._progress:
            self._progress, self._stalled = counts.synced, 0.0
            return
        self._stalled += _WATCH
        if before < _STALLED <= self._stalled:
            _log.warning(
                "nothing has been written for %.0f s%s: the links that bring rows are paused, so that "
                "senders wait, drop, or close their sessions",
                self._stalled,
                f" ({counts.trouble})" if counts.trouble else "",
            )

    def _missing_frames(self) -> int:
        stats = self._session.info.stats()
        return stats.ended.rx_missing + sum(n.transport.rx_missing for n in stats.neighbours)

    def _count_frames(self) -> None:
        missing = self._missing_frames()
        if missing > self._lost_frames:
            count = missing - self._lost_frames
            self._lose("link", f"{count} frames are missing in the numbers of a link")
            self._lost_frames = missing
