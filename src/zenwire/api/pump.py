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

from zenwire.api.channel import NOTHING, wake_future
from zenwire.api.handlers import Opened, finish_callback
from zenwire.errors import ChannelClosed, ZError

__all__ = ["Pump", "goes_on"]

T = TypeVar("T")

_CANCELLED: Final = "what the callback waited for was cancelled"
_ALONE: Final = 2
"""How often an item is referred to that one variable has: by it, and to be counted."""


class Pump(Generic[T]):
    """Puts items into a callback. ``run`` is for a task, with ``context`` as its context."""

    __slots__ = (
        "_begun",
        "_busy",
        "_callback",
        "_channel",
        "_future",
        "_loop",
        "_opened",
        "_task",
        "_watching",
        "context",
    )

    def __init__(self, opened: Opened[T]) -> None:
        assert opened.channel is not None
        assert opened.callback is not None
        self.context = contextvars.copy_context()
        self._opened = opened
        self._channel = opened.channel
        self._callback: Callable[[T], Any] = opened.callback.callback
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[Any] | None = None
        self._busy = True
        """A callback is under way; or nobody would go on with one."""
        self._begun: tuple[T, Generator[Any, Any, None]] | None = None
        self._future: asyncio.Future[None] | None = None
        self._watching = False

    def put(self, item: T, /) -> bool:
        """Hand an item over. False if one was dropped for it, or itself; never waits."""
        channel, loop = self._channel, self._loop
        if self._busy or channel.closed or asyncio.current_task(loop) is not None:
            # What is there wakes the task, which is free when nothing is left.
            self._busy = True
            return channel.put(item)
        self.context.run(self._call, item)
        return True

    def put_many(self, items: Iterable[T]) -> None:
        """The same for items that came together."""
        if self._busy or self._channel.closed or asyncio.current_task(self._loop) is not None:
            self._busy = True
            self._channel.put_many(items)
            return
        self.context.run(self._call_many, items)

    def _call_many(self, items: Iterable[T]) -> None:
        """As ``_call``, one after the other; once one has to wait, the rest waits behind it."""
        task, channel, call = self._task, self._channel, self._callback
        assert task is not None
        self._busy = True
        asyncio._enter_task(self._loop, task)  # noqa: SLF001 # documented: for other kinds of tasks
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
                if channel.closed or self._begun is not None:
                    break
            if not channel.closed:
                channel.put_many(left)
        finally:
            asyncio._leave_task(self._loop, task)  # noqa: SLF001 # as above
        if self._begun is None:
            self._busy = False
        else:
            self._wake()

    def _call(self, item: T) -> None:
        """Call as if the task did it, which waits for nothing but this."""
        task = self._task
        assert task is not None
        self._busy = True
        asyncio._enter_task(self._loop, task)  # noqa: SLF001 # documented: for other kinds of tasks
        try:
            result = self._callback(item)
            if type(result) is CoroutineType or inspect.isawaitable(result):
                self._begin(item, result)
        except Exception as e:  # noqa: BLE001 # whatever a program raises, it is told
            self._opened.failed_for(item, e)
        except asyncio.CancelledError:
            # Of something that it waited for: the link that brought the item lives on.
            self._opened.failed_for(item, ZError(_CANCELLED))
        finally:
            asyncio._leave_task(self._loop, task)  # noqa: SLF001 # as above
        if self._begun is None:
            self._busy = False
        else:
            self._wake()

    def _begin(self, item: T, result: Any) -> None:
        """Go as far as it goes without waiting."""
        begun = result if type(result) is CoroutineType else _coroutine(result)
        try:
            waits = begun.send(None)
        except StopIteration:
            return
        self._begun = item, goes_on(begun, waits)

    async def run(self) -> None:
        """Call the callback, until the channel ends."""
        self._task = asyncio.current_task()
        channel, opened = self._channel, self._opened
        try:
            while True:
                result: Any = None
                if self._begun is not None:
                    (item, result), self._begun = self._begun, None
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
                result = None
                if opened.left is not None and getrefcount(item) <= _ALONE:
                    opened.left(item)
                # Nothing is held while the next one is waited for: a query ends when it is let go.
                del item
        except ChannelClosed:
            pass
        finally:
            self._busy = True
            if self._begun is not None:
                self._begun[1].close()
        assert opened.callback is not None
        await finish_callback(opened.callback)

    async def _idle(self) -> None:
        """Wait for an item, or for a callback that has begun."""
        self._watching = True
        self._future = self._loop.create_future()
        self._busy = False
        await self._future

    def _woken(self) -> None:
        """There is something in the channel, or its end."""
        self._watching = False
        self._wake()

    def _wake(self) -> None:
        if self._future is not None:
            wake_future(self._loop, self._future)


def _coroutine(result: Any) -> Coroutine[Any, Any, Any]:
    async def wait() -> None:
        await result

    return wait()


@coroutine
def goes_on(begun: Coroutine[Any, Any, T], waits: object) -> Generator[Any, Any, T]:
    """The rest of a coroutine that was begun outside of a task, and waits for something."""
    while True:
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
