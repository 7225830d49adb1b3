"""An event loop whose time is virtual: when nothing is ready, it jumps to the next timer."""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["Stuck", "VirtualLoop", "bytes_of", "run"]

T = TypeVar("T")


class Stuck(Exception):  # noqa: N818 # the word says what is the matter
    """Everyone waits, and no timer will ever wake anyone."""


class _Jumping(selectors.SelectSelector):
    """Waits by moving the clock. Sockets are never looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stuck("no timer is set")
        self.now += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Starts at 0 seconds."""

    def __init__(self) -> None:
        self._clock = _Jumping()
        super().__init__(self._clock)
        # What is due within this much runs together, so that rounding does not make it stutter.
        self._clock_resolution = 1e-6
        self._calls = 0

    def time(self) -> float:
        return self._clock.now

    def call_at(  # type: ignore[override] # what it hands on is asyncio's matter
        self, when: float, *args: Any, **more: Any
    ) -> asyncio.TimerHandle:
        # What is set for the same moment runs in the order in which it was set.
        self._calls += 1
        return super().call_at(when + self._calls % 100_000 * 1e-12, *args, **more)


def run(main: Coroutine[Any, Any, T]) -> T:
    """As ``asyncio.run``, in virtual time. What fails in a callback fails here too."""
    failed: list[BaseException] = []

    def handle(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        failed.append(context.get("exception") or RuntimeError(context["message"]))

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.get_loop().set_exception_handler(handle)
        result = runner.run(main)
    if failed:
        raise failed[0]
    return result


def bytes_of(seed: object) -> Callable[[int], bytes]:
    """Randomness of a seed, in place of the operating system's."""
    return random.Random(str(seed)).randbytes
