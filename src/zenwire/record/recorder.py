"""The recorder: subscribers of a session whose rows go into a sink, and the holes between them."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from zenwire.api.columnar import Columnar
from zenwire.api.handlers import Callback
from zenwire.errors import ZError
from zenwire.record.chosen import Chosen, choose
from zenwire.record.history import TIMEOUT, pull
from zenwire.record.known import Known
from zenwire.spool import Spool, SpoolError
from zenwire.wire.values import WhatAmI

if TYPE_CHECKING:
    from collections.abc import Iterable
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
        self._hole: int | None = None
        """The offset of the first row after what was missed, until history has filled it."""
        self._someone = asyncio.Event()
        """Somebody came who may have what was missed."""
        self._tasks: list[asyncio.Task[None]] = []
        self._declared: list[Any] = []
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
        )

    # The beginning and the end.

    async def __aenter__(self) -> Self:
        self._lost_frames = self._missing_frames()
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
        if self.failed is None:
            self._count_frames()

    def _handler(self, chosen: Chosen) -> Columnar:
        def take(samples: pa.RecordBatch) -> None:
            self._take(chosen.keep(samples))

        return Columnar(Callback(take, indirect=False), rows=_ROWS, interval=_INTERVAL)

    def _take(self, samples: pa.RecordBatch) -> None:
        if self.failed is not None or not samples.num_rows:
            return
        try:
            self._sink.append(samples, numbers="check" if self._hole is None else "learn")
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
        if self._spool is not None and self._hole is None:
            self._hole = self._sink.next_offset

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

    async def _fill(self) -> None:
        """Ask for what was missed, each time that somebody came."""
        while True:
            await self._someone.wait()
            self._someone.clear()
            try:
                await self._fill_hole()
            except SpoolError as e:
                _log.warning("what was missed is not known: %s", e)
            if not self._someone.is_set():
                self._hole = None
            await asyncio.sleep(_PAUSE)

    async def _fill_hole(self) -> None:
        assert self._spool is not None
        assert self._hole is not None
        asked = [pull(self._session, key, self._timeout) for key in self.keys]
        histories = await asyncio.gather(*asked)
        await asyncio.to_thread(self._sink.flush)
        log = Spool.open(self._spool).samples
        known = await asyncio.to_thread(Known.read, log, self._hole)
        for chosen, history in zip(self._chosen, histories, strict=True):
            for batch in history.batches:
                self._recover(known.fresh(chosen.keep(batch)))
            if history.lost:
                self._lose("overflow", "a history was too large", count=history.lost)
        for missing in known.missing():
            self._lose(
                "source",
                "missed while there was no session, and nobody has it any more",
                count=missing.samples,
                source=missing.source,
                numbers=(missing.first, missing.last),
            )

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

    def _missing_frames(self) -> int:
        stats = self._session.info.stats()
        return stats.ended.rx_missing + sum(n.transport.rx_missing for n in stats.neighbours)

    def _count_frames(self) -> None:
        missing = self._missing_frames()
        if missing > self._lost_frames:
            count = missing - self._lost_frames
            self._lose("link", f"{count} frames are missing in the numbers of a link")
            self._lost_frames = missing
