"""Threads for the callbacks of programs: each callback one call at a time, none behind another.

A callback has a thread while it has something to do, so that ten thousand of them need one thread,
and one that takes long, or waits, or calls the session again is in nobody's way.
"""

from __future__ import annotations

import inspect
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, TypeVar

from zenwire import process
from zenwire.api.channel import NOTHING, Channel
from zenwire.api.handlers import Callback, report
from zenwire.errors import ChannelClosed

__all__ = ["Strand", "Workers", "finish", "workers"]

T = TypeVar("T")

_IDLE: Final = 5.0
"""Seconds after which a thread that nobody needs ends."""


class Workers:
    """As many threads as callbacks run at a time, and an idle one while there are callbacks.

    The idle one is for the end of the program: Python 3.12 refuses to start threads then, and
    callbacks that have none still get what waits for them, and their ``drop``.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition(threading.Lock())
        self._ready: deque[Strand[Any]] = deque()
        self._idle = 0
        self._threads = 0
        self._strands: weakref.WeakSet[Strand[Any]] = weakref.WeakSet()

    def register(self, strand: Strand[Any]) -> None:
        """Keep a thread for it, until it is removed."""
        with self._condition:
            self._strands.add(strand)
            first = not self._threads
        if first:
            self._start()

    def remove(self, strand: Strand[Any]) -> None:
        """Keep no thread for it: it has ended."""
        with self._condition:
            self._strands.discard(strand)

    @property
    def strands(self) -> list[Strand[Any]]:
        """All callbacks of this process that have not ended."""
        with self._condition:
            return list(self._strands)

    def submit(self, strand: Strand[Any]) -> None:
        """Let it run, now."""
        with self._condition:
            self._ready.append(strand)
            self._condition.notify()
            short = len(self._ready) >= self._idle
        if short:
            self._start()

    def _start(self) -> None:
        """Start a thread. Without one the others have to do; raises RuntimeError if there is none."""
        with self._condition:
            self._threads += 1
        thread = threading.Thread(target=self._work, name="zenwire-callback", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            with self._condition:
                self._threads -= 1
                if not self._threads:
                    raise

    def _work(self) -> None:
        while (strand := self._next()) is not None:
            strand.run()
            # Nothing is held while there is nothing to do.
            del strand

    def _next(self) -> Strand[Any] | None:
        with self._condition:
            while not self._ready:
                self._idle += 1
                woken = self._condition.wait(_IDLE)
                self._idle -= 1
                if not woken and not self._ready and (self._idle or not self._strands):
                    self._threads -= 1
                    return None
            return self._ready.popleft()


class Strand(Generic[T]):
    """The calls of one callback, one after the other, until its channel ends."""

    __slots__ = (
        "__weakref__",
        "_callback",
        "_channel",
        "_failed",
        "_first",
        "_made",
        "_owner",
        "_thread",
        "_told",
        "done",
    )

    def __init__(
        self,
        channel: Channel[Any],
        callback: Callback[T],
        made: Callable[[Any], T] | None = None,
        failed: Callable[[T, Exception], None] | None = None,
    ) -> None:
        self._channel = channel
        self._callback = callback
        self._made = made
        self._failed = failed
        self._first: object = NOTHING
        self._owner: object = None
        self._thread: int | None = None
        self._told: Callable[[Strand[T]], None] | None = None
        self.done = threading.Event()

    def start(self, owner: object = None, told: Callable[[Strand[T]], None] | None = None) -> None:
        """A thread is needed when there is something, and that may be now.

        ``owner`` is held until the end, of which ``told`` is told.
        """
        self._owner, self._told = owner, told
        workers().register(self)
        try:
            self._first = self._channel.take(self._wake)
        except ChannelClosed:
            self._wake()
            return
        if self._first is not NOTHING:
            self._wake()

    def close(self, seconds: float | None) -> None:
        """No more comes. Waits for what there is, unless a call of itself asks for that."""
        self._channel.close()
        if self._thread != threading.get_ident():
            self.done.wait(seconds)

    def _wake(self) -> None:
        workers().submit(self)

    def run(self) -> None:
        """Call, until there is nothing more for now."""
        self._thread = threading.get_ident()
        try:
            while self._call_next():
                pass
        except ChannelClosed:
            self._end()
        finally:
            # Somebody else may go on with it already, who has said so.
            if self._thread == threading.get_ident():
                self._thread = None

    def _call_next(self) -> bool:
        item, self._first = self._first, NOTHING
        if item is NOTHING:
            item = self._channel.take(self._wake)
            if item is NOTHING:
                return False
        value: T = item if self._made is None else self._made(item)  # type: ignore[assignment]
        del item
        try:
            _refuse(self._callback.callback(value))
        except Exception as e:  # noqa: BLE001 # whatever a program raises, it is told
            report(e, self._callback.callback)
            if self._failed is not None:
                self._failed(value, e)
        return True

    def _end(self) -> None:
        drop = self._callback.drop
        try:
            if drop is not None:
                drop()
        except Exception as e:  # noqa: BLE001 # whatever a program raises, it is told
            report(e, self._callback.callback)
        finally:
            self._owner = None
            workers().remove(self)
            self.done.set()
            if self._told is not None:
                self._told(self)


def _refuse(result: object) -> None:
    """Of what a callback returns, a coroutine: nobody would run it."""
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError("a coroutine was returned: give the coroutine function itself")


def finish(strands: Iterable[Strand[Any]], seconds: float) -> None:
    """Let callbacks take what waits for them, and call ``drop``. All have ``seconds`` together."""
    ending = list(strands)
    for strand in ending:
        strand.close(0)
    for strand in ending:
        strand.close(seconds)
        if not strand.done.is_set():
            seconds = 0.0


_workers: tuple[int, Workers] | None = None


def workers() -> Workers:
    """Those of this process: a forked child has none of its parent's."""
    global _workers  # noqa: PLW0603 # one for each process
    pid, found = process.pid, _workers
    if found is None or found[0] != pid:
        # Two that are made at the same time are no matter: both work.
        found = _workers = pid, Workers()
    return found[1]
