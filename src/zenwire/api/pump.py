"""Calling the callbacks of a program: at once where that can be, else one after the other.

What comes from a link is handed over while nothing else runs. A callback that is free is then
called there and then, as if its task had run meanwhile; if it has to wait for something, its task
goes on with it. Whatever comes before it is done waits in its channel.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Coroutine, Generator, Iterable
from functools import partial
from sys import getrefcount
from types import CoroutineType, coroutine
from typing import Any, Final, Generic, TypeVar, cast

from zenwire.api.channel import NOTHING, finish_future, wake_future
from zenwire.api.handlers import Opened, finish_callback
from zenwire.errors import ChannelClosed, ZError

__all__ = ["Pump", "goes_on"]

T = TypeVar("T")

_CANCELLED: Final = "the callback, or what it waited for, was cancelled"
_ALONE: Final = 2
"""How often an item is referred to that one variable has: by it, and to be counted."""


class Pump(Generic[T]):
    """Feeds the items of one handler to its callback, one at a time and in order.

    Two tasks, both in ``context``: the worker runs the callback, and is the current task inside
    it; the supervisor waits for the worker. So a callback that cancels its own task, as
    ``asyncio.timeout`` does, ends the worker at most, and the supervisor starts another one.
    Cancelling the supervisor, which `start` returns, cancels the callback and ends the pump.
    """

    __slots__ = (
        "_begun",
        "_busy",
        "_callback",
        "_channel",
        "_future",
        "_loop",
        "_opened",
        "_over",
        "_queued",
        "_supervisor",
        "_watching",
        "_worker",
        "context",
    )

    _supervisor: asyncio.Task[None]
    _worker: asyncio.Task[None]

    def __init__(self, opened: Opened[T]) -> None:
        assert opened.channel is not None
        assert opened.callback is not None
        self.context = contextvars.copy_context()
        self._opened = opened
        self._channel = opened.channel
        self._callback: Callable[[T], Any] = opened.callback.callback
        self._loop = asyncio.get_running_loop()
        self._busy = True
        """A callback is under way, or the worker is not ready to resume one."""
        self._queued = False
        """Items were queued since the worker was idle: later ones go behind them."""
        self._begun: _Begun[T] | None = None
        self._future: asyncio.Future[None] | None = None
        self._watching = False
        self._over = False

    def start(self) -> asyncio.Task[None]:
        """Start both tasks. Returns the supervisor, which ends after ``drop``."""
        self._worker = self._new_worker()
        self._supervisor = self._loop.create_task(self._supervise(), context=self.context)
        return self._supervisor

    def runs(self, task: asyncio.Task[Any] | None) -> bool:
        """Return True if the callback runs in this task."""
        return task is self._worker

    def put(self, item: T, /) -> bool:
        """Hand an item over. False if one was dropped for it, or itself; never waits."""
        if (
            self._busy
            or self._channel.closed
            or self._worker.cancelling()
            or asyncio.current_task(self._loop) is not None
        ):
            # What is there wakes the task, which is free when nothing is left.
            self._busy = self._queued = True
            return self._channel.put(item)
        self.context.run(self._call, item)
        return True

    def put_many(self, items: Iterable[T]) -> None:
        """The same for items that came together."""
        if (
            self._busy
            or self._channel.closed
            or self._worker.cancelling()
            or asyncio.current_task(self._loop) is not None
        ):
            self._busy = self._queued = True
            self._channel.put_many(items)
            return
        self.context.run(self._call_many, items)

    def _call_many(self, items: Iterable[T]) -> None:
        """As ``_call``, one after the other; once one has to wait, the rest waits behind it."""
        worker, channel, call = self._worker, self._channel, self._callback
        self._busy = True
        asyncio._enter_task(self._loop, worker)  # noqa: SLF001 # documented: for other kinds of tasks
        try:
            left = iter(items)
            for item in left:
                try:
                    result = call(item)
                    if result is not None and inspect.isawaitable(result):
                        self._begin(item, result)
                except Exception as e:  # noqa: BLE001 # whatever a program raises, it is told
                    self._opened.failed_for(item, e)
                except asyncio.CancelledError:
                    self._opened.failed_for(item, ZError(_CANCELLED))
                if channel.closed or self._begun is not None or worker.cancelling():
                    break
            if not channel.closed:
                channel.put_many(left)
        finally:
            asyncio._leave_task(self._loop, worker)  # noqa: SLF001 # as above
        self._called()

    def _call(self, item: T) -> None:
        """Call as if the worker did it, which waits for nothing but this."""
        worker = self._worker
        self._busy = True
        asyncio._enter_task(self._loop, worker)  # noqa: SLF001 # documented: for other kinds of tasks
        try:
            result = self._callback(item)
            if result is not None and (
                type(result) is CoroutineType or inspect.isawaitable(result)
            ):
                self._begin(item, result)
        except Exception as e:  # noqa: BLE001 # whatever a program raises, it is told
            self._opened.failed_for(item, e)
        except asyncio.CancelledError:
            # Of something that it waited for: the link that brought the item lives on.
            self._opened.failed_for(item, ZError(_CANCELLED))
        finally:
            asyncio._leave_task(self._loop, worker)  # noqa: SLF001 # as above
        self._called()

    def _called(self) -> None:
        """Resume a callback that suspended, in the worker; else be ready for the next item."""
        if self._begun is not None:
            self._wake()
        elif not self._queued:
            self._busy = False

    def _begin(self, item: T, result: Any) -> None:
        """Run a coroutine until it suspends."""
        begun = result if type(result) is CoroutineType else _coroutine(result)
        try:
            waits = begun.send(None)
        except StopIteration:
            return
        self._begun = _Begun(item, begun, waits)

    def _new_worker(self) -> asyncio.Task[None]:
        # Not by the loop's task factory: an eager task cannot enter a context twice.
        return asyncio.Task(self._work(), loop=self._loop, context=self.context)

    async def _supervise(self) -> None:
        """Replace each worker that its callback cancelled, until the channel ends."""
        try:
            await self._worker_ended()
            while not self._over:
                self._worker = self._new_worker()
                await self._worker_ended()
        except asyncio.CancelledError:
            self._worker.cancel()
            await self._worker_ended()
            await self._finish()
            raise

    async def _worker_ended(self) -> None:
        """Wait for the worker. Raises whatever ended it other than a cancellation."""
        worker, ended = self._worker, self._loop.create_future()
        # Much cheaper than asyncio.wait, and there is a pump for each query with a callback.
        worker.add_done_callback(lambda _: finish_future(ended))
        await ended
        if not worker.cancelled():
            worker.result()

    async def _finish(self) -> None:
        """Call ``drop``, once."""
        if not self._over:
            self._over = True
            assert self._opened.callback is not None
            await finish_callback(self._opened.callback)

    async def _work(self) -> None:
        """Call the callback until the channel ends, or until a callback cancels this task."""
        channel, opened, worker = self._channel, self._opened, asyncio.current_task()
        assert worker is not None
        try:
            while self._begun is not None or not worker.cancelling():
                result: Any = None
                if self._begun is not None:
                    item, result = self._begun.item, self._begun.rest()
                    self._begun = None
                elif (taken := channel.take(None if self._watching else self._woken)) is NOTHING:
                    await self._idle()
                    continue
                else:
                    self._busy = True
                    item = cast(T, taken)
                    del taken
                try:
                    if result is None:
                        result = self._callback(item)
                    if inspect.isawaitable(result):
                        await result
                except Exception as e:  # noqa: BLE001 # whatever a program raises, it is told
                    opened.failed_for(item, e)
                except asyncio.CancelledError:
                    if self._supervisor.cancelling():
                        raise
                    opened.failed_for(item, ZError(_CANCELLED))
                result = None
                if opened.left is not None and getrefcount(item) <= _ALONE:
                    opened.left(item)
                # Nothing is held while the next one is waited for: a query ends when it is let go.
                del item
        except ChannelClosed:
            await self._finish()
        finally:
            self._busy = True
            if self._begun is not None:
                self._begun.close()

    async def _idle(self) -> None:
        """Wait for an item, or for a callback that has begun."""
        self._watching = True
        self._future = self._loop.create_future()
        self._busy = self._queued = False
        try:
            await self._future
        except asyncio.CancelledError as e:
            self._busy = True
            if self._begun is None:
                raise
            self._begun.cancel(e)

    def _woken(self) -> None:
        """There is something in the channel, or its end."""
        self._watching = False
        self._wake()

    def _wake(self) -> None:
        if self._future is not None:
            wake_future(self._loop, self._future)


class _Begun(Generic[T]):
    """A callback that suspended outside of its task: the task resumes it with ``rest``."""

    __slots__ = ("_coroutine", "_error", "_waits", "item")

    def __init__(self, item: T, begun: Coroutine[Any, Any, Any], waits: Any) -> None:
        self.item = item
        self._coroutine = begun
        self._waits = waits
        self._error: asyncio.CancelledError | None = None

    def cancel(self, error: asyncio.CancelledError) -> None:
        """The task was cancelled: cancel what the callback waits for, as a task does."""
        if self._waits is None or not self._waits.cancel(*error.args):
            self._error = asyncio.CancelledError(*error.args)

    def rest(self) -> Generator[Any, Any, Any]:
        """What is left of the coroutine."""
        return goes_on(self._coroutine, self._waits, self._error)

    def close(self) -> None:
        """Do not resume it."""
        self._coroutine.close()


def _coroutine(result: Any) -> Coroutine[Any, Any, Any]:
    async def wait() -> None:
        await result

    return wait()


@coroutine
def goes_on(
    begun: Coroutine[Any, Any, T], waits: object, error: BaseException | None = None
) -> Generator[Any, Any, T]:
    """The rest of a coroutine that was begun outside of a task, and waits for something.

    With ``error`` it does not wait: the error is raised in it.
    """
    resume = None if error is None else partial(begun.throw, error)
    while True:
        if resume is None:
            try:
                value = yield waits
            except GeneratorExit:
                begun.close()
                raise
            except BaseException as e:  # noqa: BLE001 # it is the coroutine's
                resume = partial(begun.throw, e)
            else:
                resume = partial(begun.send, value)
        try:
            waits = resume()
        except StopIteration as e:
            return e.value  # type: ignore[no-any-return] # what the coroutine returns
        resume = None
