"""Samples as Arrow record batches: no object for each, and cut by their number or by time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

from zenwire.api.channel import Channel, Overflow
from zenwire.api.handlers import Callback, FifoChannel, Opened, open_handler
from zenwire.node.backlog import Backlog
from zenwire.node.plane import load
from zenwire.routing import LivelinessChanged, SampleReceived
from zenwire.wire.data import Del, Put
from zenwire.wire.values import QoS

if TYPE_CHECKING:
    from zenwire.api.core import Core
    from zenwire.node.plane import RowsReceived
    from zenwire.routing import Output

__all__ = [
    "CAPACITY",
    "INTERVAL",
    "MAX_BYTES",
    "ROWS",
    "Columnar",
    "OpenedRows",
    "RowSink",
    "columnar",
]

ROWS: Final = 65_536
"""Rows of a batch."""
ROWS_MAX: Final = 2**20
INTERVAL: Final = 0.1
"""Seconds until a batch is given that has fewer."""
CAPACITY: Final = 64
"""Batches that may wait."""
MAX_BYTES: Final = 256 * 2**20
"""Bytes of all batches that wait."""

_PIECE: Final = 256 * 1024
"""Bytes of a batch while a full queue admits small portions."""
_QOS: Final = QoS()
_PATIENT: Final = 0.02
"""Seconds of an interval in which some more do not show."""


def columnar(
    callback: Callable[[Any], Any] | None = None,
    *,
    rows: int = ROWS,
    interval: float = INTERVAL,
    columns: Iterable[str] | None = None,
    capacity: int = CAPACITY,
    overflow: Overflow | Literal["wait"] = "drop_newest",
) -> Any:  # a Columnar; but a subscriber with it gives no samples, so the types of others mislead
    """A handler for ``declare_subscriber``: it gives ``pyarrow.RecordBatch`` instead of samples.

    A batch has up to ``rows`` samples, and fewer when the first of them is ``interval`` seconds
    old, or when they are large. ``columns`` chooses some of `zenwire.columns.samples.SAMPLES`; the
    others are not made. Up to ``capacity`` batches wait; ``dropped`` of the subscriber counts the
    rows of those that had no room.

    ``overflow="wait"`` drops nothing that came by a reliable link: the links that deliver to a full
    queue are not read until there is room, and their senders wait or drop. Everything else that
    these links carry waits too, so take batches in time, and do not await a reply while the
    queue is full. Rows of puts in the same session and of datagrams cannot wait: they are dropped
    and counted. Needs the extra ``fast``: raises ImportError without it.
    """
    return Columnar(
        callback,
        rows=rows,
        interval=interval,
        columns=columns,
        capacity=capacity,
        overflow=overflow,
    )


class Columnar(FifoChannel[Any]):
    """What `columnar` gives. Its items are record batches."""

    __slots__ = ("backlog", "callback", "columns", "interval", "rows", "waits")

    def __init__(
        self,
        callback: Callable[[Any], Any] | None = None,
        *,
        rows: int = ROWS,
        interval: float = INTERVAL,
        columns: Iterable[str] | None = None,
        capacity: int = CAPACITY,
        overflow: Overflow | Literal["wait"] = "drop_newest",
        backlog: Backlog | None = None,
    ) -> None:
        """``backlog`` is that of a direct ``callback`` which puts batches into a queue."""
        self.waits = overflow == "wait"
        drops: Overflow = "drop_newest" if overflow == "wait" else overflow
        super().__init__(capacity, drops)
        self.backlog = backlog
        if not 1 <= rows <= ROWS_MAX:
            raise ValueError(f"a batch has 1 to {ROWS_MAX} rows, not {rows}")
        if not interval > 0:
            raise ValueError(f"an interval is longer than {interval} seconds")
        load()
        self.columns = None if columns is None else tuple(columns)
        self.collector(1, self.columns)  # refuses what is no column
        self.rows = rows
        self.interval = interval
        if callback is not None and not isinstance(callback, Callback):
            callback = Callback(callback, capacity=capacity, overflow=drops)
        self.callback: Callback[Any] | None = callback

    @staticmethod
    def collector(rows: int, columns: Iterable[str] | None) -> Any:
        """A ``Collector`` of `zenwire.columns.collect`."""
        return import_module("zenwire.columns.collect").Collector(rows, columns)

    def without_callback(self) -> Columnar:
        """The same, to be read from."""
        return Columnar(
            rows=self.rows,
            interval=self.interval,
            columns=self.columns,
            capacity=self.capacity,
            overflow="wait" if self.waits else self.overflow,
        )

    def open(self, on_drop: Callable[[Any], None] | None = None) -> Channel[Any]:
        """A channel whose ``dropped`` counts rows."""
        channel: Channel[Any]

        def lost(batch: Any) -> None:
            channel.dropped += batch.num_rows - 1
            if on_drop is not None:
                on_drop(batch)

        kind: type[Channel[Any]] = _WaitingChannel if self.waits else Channel
        channel = kind(self.capacity, self.overflow, on_drop=lost, size=_size, max_bytes=MAX_BYTES)
        return channel

    def opened(self, on_drop: Callable[[Any], None] | None = None) -> OpenedRows:
        """At work: see `open_handler`."""
        callback = self.callback
        if callback is not None and not callback.indirect:
            direct: Opened[Any] = open_handler(callback)
            return OpenedRows(direct.sink, None, None, handler=self, backlog=self.backlog)
        channel = self.open(on_drop)
        opened = OpenedRows(channel, None if callback else channel, channel, callback, handler=self)
        if isinstance(channel, _WaitingChannel):

            def refuse(rows: int) -> None:
                channel.dropped += rows
                if on_drop is not None:
                    on_drop(None)

            # A reader, unlike a disk, may take nothing for minutes: no portions are admitted.
            capacity = channel.capacity
            opened.backlog = channel.backlog = Backlog(channel.level, capacity, capacity, refuse)
        return opened

    def __repr__(self) -> str:
        return f"Columnar(rows={self.rows}, interval={self.interval}, columns={self.columns})"


@dataclass(slots=True)
class OpenedRows(Opened[Any]):
    """A handler of record batches at work."""

    handler: Columnar = field(kw_only=True)
    backlog: Backlog | None = field(default=None, kw_only=True)


class _WaitingChannel(Channel[Any]):
    """A channel that takes every batch: its backlog pauses the links that bring them."""

    __slots__ = ("backlog",)

    def __init__(self, capacity: int, overflow: Overflow = "drop_newest", **more: Any) -> None:
        super().__init__(capacity, overflow, **more)
        self.backlog: Backlog | None = None

    def level(self) -> int:
        """Batches that wait; more if it is their bytes that reach the bound."""
        return max(len(self), self._bytes * self.capacity // self.max_bytes)

    def _has_room(self, _item: Any) -> bool:
        return True

    def _popleft(self) -> Any:
        item = super()._popleft()
        if self.backlog is not None:
            self.backlog.drained()
        return item

    def drain(self) -> list[Any]:
        items = super().drain()
        if self.backlog is not None:
            self.backlog.drained()
        return items


def _size(batch: Any) -> int:
    size: int = batch.nbytes
    return size


class RowSink:
    """Collects what a subscriber gets, and puts batches of it."""

    def __init__(
        self, core: Core, eid: int, opened: OpenedRows, put: Callable[[Any], bool]
    ) -> None:
        handler = opened.handler
        self._core = core
        self._eid = eid
        self._backlog = opened.backlog
        self._inward = None if core.namespace.prefix is None else core.namespace.inward
        self._put = put
        self._interval = handler.interval
        self._collected = handler.collector(handler.rows, handler.columns)
        self._loop = asyncio.get_running_loop()
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        if self._backlog is not None:
            self._backlog.watch(self._receive)
        self._receive(careful=self._backlog is not None and self._backlog.careful)

    def _receive(self, careful: bool) -> None:
        """Select the receive functions; the usual ones do not check the backlog."""
        node, eid = self._core.node, self._eid
        node.receivers[eid] = self._deliver_carefully if careful else self.deliver
        if self.takes_rows:
            node.row_receivers[eid] = self._rows_carefully if careful else self.rows

    @property
    def patient(self) -> bool:
        """Whether it is no matter when exactly rows come."""
        return self._interval >= _PATIENT

    @property
    def takes_rows(self) -> bool:
        """Whether keys are as they came."""
        return self._inward is None

    def deliver(self, output: Output) -> None:
        """A sample by itself."""
        if type(output) is SampleReceived:
            _, key, body, qos, _, reliable = output
        elif isinstance(output, LivelinessChanged):
            key, qos, reliable = output.key, _QOS, True
            body = Put(payload=b"") if output.alive else Del()
        else:
            return
        if self._inward is not None:
            inward = self._inward(key)
            if inward is None:
                self._core.foreign += 1
                return
            key = inward
        collected = self._collected
        collected.put(key, body, qos, reliable, time.time_ns())
        self._added()

    def rows(self, output: RowsReceived, subscriber: int) -> None:
        """Many at once."""
        rows, count = output.rows(subscriber)
        part, collected, now, at = output.part, self._collected, time.time_ns(), 0
        while at < count:
            n = min(count - at, collected.room(part))
            chosen = rows[at : at + n] if len(rows) else rows
            collected.add(part, chosen, part.first + at, n, now)
            at += n
            self._added()

    def _deliver_carefully(self, output: Output) -> None:
        """Take a sample while the backlog is full or nearly so; drop it if its link cannot wait."""
        assert self._backlog is not None
        if self._may_take(self._backlog):
            self.deliver(output)
            self._admitted(self._backlog)
        else:
            self._backlog.refuse(1)

    def _rows_carefully(self, output: RowsReceived, subscriber: int) -> None:
        """The same for many."""
        assert self._backlog is not None
        if self._may_take(self._backlog):
            self.rows(output, subscriber)
            self._admitted(self._backlog)
        else:
            self._backlog.refuse(output.rows(subscriber)[1])

    def _may_take(self, backlog: Backlog) -> bool:
        """Return whether the link that delivers can wait, or need not."""
        if not self._core.node.holds:
            # Room that was made in this turn of the loop has not been told yet.
            backlog.look()
        return self._core.node.holds or not backlog.careful

    def _admitted(self, backlog: Backlog) -> None:
        if not backlog.full and self._collected.size >= _PIECE:
            # A portion is small: it is counted before the next read.
            self._cut()
        if backlog.check() and self._core.node.holds:
            self._core.node.wait_for(backlog)

    def _added(self) -> None:
        if self._collected.full:
            self._cut()
        elif self._timer is None:
            self._since = self._loop.time()
            self._timer = self._loop.call_later(self._interval, self._due)
        elif not self._since:
            self._since = self._loop.time()

    def _cut(self) -> None:
        self._since = 0.0
        batch = self._collected.cut()
        if batch is None:
            return
        self._put(batch)
        backlog = self._backlog
        if backlog is not None and backlog.check() and self._core.node.holds:
            self._core.node.wait_for(backlog)

    def _due(self) -> None:
        """The timer runs on when a batch is full: most are, before it is due."""
        self._timer = None
        if not self._since:
            return
        due = self._since + self._interval
        if self._loop.time() >= due:
            self._cut()
        else:
            self._timer = self._loop.call_at(due, self._due)

    def close(self) -> None:
        """Nothing more comes: give what there is."""
        if self._backlog is not None:
            self._backlog.unwatch(self._receive)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._cut()
