"""The event loop of programs without one: in one thread for all sessions of a process.

What is asked of it goes through one queue, so that it is done in the order in which it was asked:
a put before the close that follows. Who needs an answer waits for it (`Loop.run`); who needs none
goes on (`zenwire.sync.lanes`), as long as not too much of that is under way. The thread is started
by the first who needs it, and anew in a forked child. It does not keep a program from ending:
sessions that are open then are closed.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from _thread import allocate_lock
from collections import deque
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from zenwire import process
from zenwire.api.core import GRACE
from zenwire.api.pump import goes_on
from zenwire.errors import ForkedSession, ZError
from zenwire.sync.lanes import lost
from zenwire.sync.workers import finish, workers

if TYPE_CHECKING:
    from collections.abc import Callable

    from zenwire.sync.lanes import Burst

__all__ = ["Loop", "current"]

T = TypeVar("T")

_TURN: Final = 256
"""So many calls at once, then the network has its turn."""

_AT_EXIT: Final = 15.0
"""Seconds that sessions have to end when the program does; mostly they know when to give up."""

_TO_END: Final = 2.0
"""Seconds that tasks which were cancelled have, and the thread."""

_WOULD_WAIT: Final = (
    "this call has to wait for the network, in the thread that serves it: "
    "leave out indirect=False, or make the call in another thread"
)


class _Outcome(Generic[T]):
    """What becomes of a coroutine. One thread waits for it, and Ctrl-C ends that."""

    __slots__ = ("_done", "_error", "_result", "task")

    def __init__(self) -> None:
        self._done = allocate_lock()
        self._done.acquire()
        self._error: BaseException | None = None
        self._result: T | None = None
        self.task: asyncio.Task[T] | None = None

    def set(self, result: T) -> None:
        self._result = result
        self._done.release()

    def fail(self, error: BaseException) -> None:
        self._error = error
        self._done.release()

    def abandon(self) -> None:
        """Nobody waits for it any more."""
        if self.task is not None:
            self.task.cancel()

    def finish(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.fail(ZError("it was cancelled: the program ends"))
        elif (error := task.exception()) is not None:
            self.fail(error)
        else:
            self.set(task.result())

    def wait(self) -> T:
        self._done.acquire()
        if self._error is not None:
            try:
                raise self._error
            finally:
                # Or the traceback would hold the frame that holds the error.
                self._error = None
        return self._result  # type: ignore[return-value] # it is there, be it None


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.pid = process.pid
        self.closers: dict[int, Callable[[], Coroutine[Any, Any, None]]] = {}
        """By the id of what they close, when the program ends."""
        self._loop = asyncio.new_event_loop()
        self.calls: deque[Callable[[], None]] = deque()
        """What is to be done, in this order. Whoever adds to it calls ``wake``, unless it is."""
        self.woken = False
        self.newest: Burst | None = None
        """The last in ``calls``, or that was there, if it was a burst."""
        self._lock = threading.Lock()
        self._waiting: list[Any] = []
        self._over = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self._run, name="zenwire", daemon=True)
        self._thread.start()

    @property
    def here(self) -> bool:
        """Whether this is its thread, which may not wait for itself."""
        return threading.get_ident() == self._thread.ident

    def check(self, what: str) -> None:
        """Raise in a forked child, and when the program ends."""
        if process.pid != self.pid:
            raise ForkedSession(what, self.pid)
        if self._over:
            raise ZError(f"{what}: the program ends, there is no network any more")

    def run(self, call: Callable[[], Coroutine[Any, Any, T]], *, task: bool = False) -> T:
        """Do it there, and wait for what comes of it. Ctrl-C cancels it.

        Made there as well: here Ctrl-C could leave a coroutine that nobody has yet.
        ``task``: it must run in a task from the start, as what has timeouts in it.
        """
        if self.here:
            if task:
                raise ZError(_WOULD_WAIT)
            return _at_once(call())
        self.check("this call")
        outcome: _Outcome[T] = _Outcome()
        start = self._start_task if task else self._start
        try:
            self.post(partial(start, call, outcome))
            return outcome.wait()
        except KeyboardInterrupt:
            self.post(outcome.abandon)
            raise

    def call(self, call: Callable[[], T]) -> T:
        """Call there, and wait for the result."""
        return self.run(partial(_called, call))

    def post(self, call: Callable[[], None]) -> None:
        """Call there, after all that was asked before."""
        self.newest = None
        self.calls.append(call)
        if not self.woken:
            self.wake()

    def wake(self) -> None:
        """There is something to be done."""
        try:
            self.woken = True
            self._wake(self._drain)
        except BaseException:
            # Ctrl-C may come in between, and the next one must wake it then.
            self.woken = False
            raise

    def room(self) -> None:
        """Wait until there is less to be done."""
        gate = allocate_lock()
        gate.acquire()
        with self._lock:
            self._waiting.append(gate)
        # It may have been done meanwhile, and nobody looks again then.
        if self.woken and not self._over:
            gate.acquire()

    def later(self, make: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """As ``post``, from wherever the garbage collector runs: nothing here takes a lock."""
        if process.pid == self.pid and not self._over:
            self.post(partial(self._make, make))

    def _wake(self, call: Callable[..., None], *args: Any) -> None:
        # A loop that is closed has nothing left to be done.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *args)

    # In the thread.

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _drain(self) -> None:
        more = True
        try:
            more = self._take()
        finally:
            if more:
                self._loop.call_soon(self._drain)
            if self._waiting:
                with self._lock:
                    waiting, self._waiting = self._waiting, []
                for gate in waiting:
                    gate.release()

    def _take(self) -> bool:
        """Do what is to be done, for a while. Whether more of it is left."""
        take = self.calls.popleft
        for _ in range(_TURN):
            try:
                call = take()
            except IndexError:
                # Before it is looked at once more: what comes later wakes again.
                self.woken = False
                if not self.calls:
                    return False
                self.woken = True
                return True
            call()
        return True

    def _make(self, make: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        task = self._loop.create_task(make())
        self._tasks.add(task)
        task.add_done_callback(partial(self._finished, None))

    def _start_task(self, call: Callable[[], Coroutine[Any, Any, T]], outcome: _Outcome[T]) -> None:
        try:
            outcome.task = self._loop.create_task(call())
        except BaseException as e:  # noqa: BLE001 # who waits gets it
            outcome.fail(e)
        else:
            outcome.task.add_done_callback(outcome.finish)

    def _start(self, call: Callable[[], Coroutine[Any, Any, T]], outcome: _Outcome[T]) -> None:
        try:
            begun = call()
            waits = begun.send(None)
        except StopIteration as e:
            outcome.set(e.value)
        except BaseException as e:  # noqa: BLE001 # who waits gets it
            outcome.fail(e)
        else:
            self._start_task(partial(goes_on, begun, waits), outcome)

    def begin(self, call: Callable[[], Coroutine[Any, Any, Any]], left: Callable[[], None]) -> None:
        """Do what nobody waits for, then call ``left``; no task, if it need not wait."""
        begun = call()
        try:
            waits = begun.send(None)
        except StopIteration:
            left()
        except Exception as e:  # noqa: BLE001 # nobody else would know
            left()
            lost(e)
        else:
            task = self._loop.create_task(goes_on(begun, waits))
            self._tasks.add(task)
            task.add_done_callback(partial(self._finished, left))

    def _finished(self, left: Callable[[], None] | None, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if left is not None:
            left()
        if not task.cancelled() and (error := task.exception()) is not None:
            lost(error)

    # The end.

    def release(self) -> None:
        """In a forked child, let go of the sockets: they would stay open when the parent is gone.

        Their numbers stay taken, for those who still have them; and the selector, which both
        processes share, is left alone.
        """
        self.newest = None
        selector = getattr(self._loop, "_selector", None)
        if selector is not None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            for key in list(selector.get_map().values()):
                os.dup2(nowhere, key.fd, inheritable=False)
            os.close(nowhere)

    def stop(self) -> None:
        """Close what is open, as `Session.close` does, and end the thread."""
        if self._over or process.pid != self.pid:
            return
        with contextlib.suppress(ZError):
            # Calls that nobody waits for come first: callbacks get what they lead to.
            self.call(_nothing)
            finish(workers().strands, GRACE)
            self.run(self._close, task=True)
        self._over = True
        self._wake(self._loop.stop)
        self._thread.join(_TO_END)

    async def _close(self) -> None:
        closing = [asyncio.create_task(closer()) for closer in self.closers.values()]
        if closing:
            await asyncio.wait(closing, timeout=_AT_EXIT)
        # What is left looks for others, or is late.
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_TO_END)


def _nothing() -> None:
    pass


async def _called(call: Callable[[], T]) -> T:
    return call()


def _at_once(call: Coroutine[Any, Any, T]) -> T:
    """Do it in the thread of the loop, as long as it need not wait."""
    try:
        while call.send(None) is None:
            pass
        call.throw(ZError(_WOULD_WAIT))
    except StopIteration as e:
        return e.value  # type: ignore[no-any-return] # what the coroutine returns
    raise ZError(_WOULD_WAIT)


# The one of this process.

_current: Loop | None = None
_lock = threading.Lock()


def current() -> Loop:
    """The loop of this process; it is started when there is none."""
    global _current  # noqa: PLW0603 # one for each process
    with _lock:
        if _current is None:
            _current = Loop()
        return _current


def _forked() -> None:
    """The thread is not there in a child, and the lock may be held by one that is not."""
    global _current, _lock  # one for each process
    if _current is not None:
        _current.release()
    _current, _lock = None, threading.Lock()


def _exit() -> None:
    if _current is not None:
        _current.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
atexit.register(_exit)
