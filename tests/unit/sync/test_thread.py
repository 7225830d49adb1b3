"""The loop in its thread: results and errors, what may not wait, and the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from zenwire.errors import ZError
from zenwire.sync.thread import Loop, current


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.stop()


def test_results_and_errors_come_back(loop: Loop) -> None:
    async def waits() -> str:
        await asyncio.sleep(0)
        await asyncio.sleep(0.001)
        return threading.current_thread().name

    async def fails() -> None:
        raise KeyError("here")

    def cannot_be_made() -> Coroutine[Any, Any, None]:
        raise KeyError("there")

    assert loop.run(waits) == "zenwire"
    assert loop.run(waits, task=True) == "zenwire"
    assert loop.call(lambda: 3) == 3
    for task in (True, False):
        with pytest.raises(KeyError, match="here"):
            loop.run(fails, task=task)
        with pytest.raises(KeyError, match="there"):
            loop.run(cannot_be_made, task=task)
    assert not loop.here
    assert loop.call(lambda: loop.here)


def test_in_its_own_thread_nothing_waits(loop: Loop) -> None:
    async def at_once() -> int:
        await asyncio.sleep(0)
        return 3

    async def never() -> None:
        await asyncio.get_running_loop().create_future()

    def call() -> int:
        with pytest.raises(ZError, match="indirect"):
            loop.run(never)
        return loop.run(at_once)

    assert loop.call(call) == 3


def test_after_the_end(loop: Loop) -> None:
    async def nothing() -> None:
        pass

    loop.stop()
    loop.stop()
    with pytest.raises(ZError, match="ends"):
        loop.run(nothing)
    loop.later(nothing)


def test_one_for_a_process() -> None:
    assert current() is current()
