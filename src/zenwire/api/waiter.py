"""Waiting for one thing, as for a future, but so that a task can go on without another round.

What comes from a link is handed over while no task runs. A task that waits for just that may then
be run there and then, once all that came together is handed over: as if the loop had come to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

__all__ = ["Soon", "Waiter"]

Soon: TypeAlias = Callable[[Callable[[], None]], bool]
"""Takes what is to be called when all is handed over. False if nothing is being handed over."""


class Waiter:
    """Awaited once, by one task. `wake` ends the wait; any thread may call it.

    It has what tasks want of a future, and no more. Without ``soon`` the loop runs the task, in
    its next round.
    """

    __slots__ = (
        "_asyncio_future_blocking",
        "_callback",
        "_cancelled",
        "_context",
        "_done",
        "_loop",
        "_soon",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, soon: Soon | None = None) -> None:
        self._asyncio_future_blocking = False
        self._loop = loop
        self._soon = soon
        self._done = False
        self._cancelled: asyncio.CancelledError | None = None
        self._callback: Callable[[Waiter], object] | None = None
        self._context: contextvars.Context | None = None

    def wake(self) -> None:
        """What was waited for is there."""
        if asyncio._get_running_loop() is not self._loop:  # noqa: SLF001 # named in its documentation
            # The loop may be closed already: then nobody waits.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.wake)
        elif not self._done:
            self._done = True
            if self._callback is not None and (self._soon is None or not self._soon(self._go_on)):
                self._call_soon()

    def _go_on(self) -> None:
        """Run the task now."""
        assert self._callback is not None
        assert self._context is not None
        try:
            self._context.run(self._callback, self)
        except RuntimeError:
            # Its context is in use, or another task runs; what a task raises itself stays there.
            self._call_soon()

    def _call_soon(self) -> None:
        if self._callback is not None:
            self._loop.call_soon(self._callback, self, context=self._context)

    # What tasks want.

    def __await__(self) -> Generator[Any, None, None]:
        if not self._done:
            self._asyncio_future_blocking = True
            yield self
        self.result()

    def add_done_callback(
        self, callback: Callable[[Any], object], *, context: contextvars.Context | None = None
    ) -> None:
        self._callback = callback
        self._context = contextvars.copy_context() if context is None else context
        if self._done:
            self._call_soon()

    def cancel(self, msg: Any | None = None) -> bool:
        if self._done:
            return False
        self._done = True
        self._cancelled = asyncio.CancelledError() if msg is None else asyncio.CancelledError(msg)
        self._call_soon()
        return True

    def result(self) -> None:
        if self._cancelled is not None:
            raise self._cancelled

    def done(self) -> bool:
        return self._done

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop
