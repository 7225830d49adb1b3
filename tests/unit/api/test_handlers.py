from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from zenwire.api.handlers import (
    DEFAULT_CAPACITY,
    Callback,
    Channel,
    DefaultHandler,
    FifoChannel,
    RingChannel,
    on_callback_error,
    open_handler,
)
from zenwire.api.pump import Pump


@pytest.fixture
def errors() -> Iterator[list[tuple[Exception, Callable[..., Any]]]]:
    told: list[tuple[Exception, Callable[..., Any]]] = []
    before = on_callback_error(lambda error, callback: told.append((error, callback)))
    yield told
    on_callback_error(before)


def fail(item: object) -> None:
    raise RuntimeError(item)


@pytest.mark.parametrize(
    ("handler", "capacity", "overflow"),
    [
        (None, DEFAULT_CAPACITY, "drop_newest"),
        (DefaultHandler(), DEFAULT_CAPACITY, "drop_newest"),
        (FifoChannel(3), 3, "drop_newest"),
        (FifoChannel(3, overflow="drop_oldest"), 3, "drop_oldest"),
        (RingChannel(2), 2, "drop_oldest"),
    ],
)
def test_channels(handler: Any, capacity: int, overflow: str) -> None:
    opened, again = open_handler(handler), open_handler(handler)
    assert isinstance(opened.receiver, Channel)
    assert opened.sink is opened.receiver is opened.channel
    assert (opened.receiver.capacity, opened.receiver.overflow) == (capacity, overflow)
    assert again.receiver is not opened.receiver
    assert opened.callback is None


@pytest.mark.parametrize("handler", [5, "x", (1, 2), (print,), [print]])
def test_what_is_no_handler_is_refused(handler: Any) -> None:
    with pytest.raises(TypeError):
        open_handler(handler)


def test_a_channel_without_room_is_refused_when_it_is_named() -> None:
    with pytest.raises(ValueError, match="at least one"):
        RingChannel(0)


def test_a_handler_of_the_programs_own() -> None:
    box = object()
    opened = open_handler((print, box))
    assert opened.receiver is box
    assert opened.callback is not None


def test_callbacks_run_in_a_task_and_errors_are_told(
    errors: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Any] = []

    async def callback(item: int) -> None:
        await asyncio.sleep(0)
        if item == 1:
            raise RuntimeError("boom")
        seen.append(item)

    async def drop() -> None:
        seen.append("end")

    async def main() -> None:
        opened = open_handler(Callback(callback, drop))
        task = Pump(opened).start()
        for n in range(3):
            opened.sink.put(n)
        opened.sink.close()
        await task

    with caplog.at_level(logging.ERROR, "zenwire.handlers"):
        asyncio.run(main())
    assert seen == [0, 2, "end"]
    ((error, who),) = errors
    assert (str(error), who) == ("boom", callback)
    assert "raised RuntimeError" in caplog.text


def test_callbacks_run_in_a_thread(errors: list[Any]) -> None:
    seen: list[object] = []
    opened = open_handler(Callback(seen.append, lambda: seen.append("end")))
    thread = threading.Thread(target=opened.pump_blocking)
    thread.start()
    for n in range(3):
        opened.sink.put(n)
    opened.sink.close()
    thread.join()
    assert seen == [0, 1, 2, "end"]
    assert errors == []


def test_a_coroutine_function_in_a_thread_needs_a_loop(errors: list[Any]) -> None:
    async def callback(item: int) -> None:
        seen.append(item)

    seen: list[int] = []
    for run in (None, asyncio.run):
        opened = open_handler(callback)
        opened.sink.put(1)
        opened.sink.close()
        opened.pump_blocking(run)  # type: ignore[arg-type]
    assert seen == [1]
    assert [type(error) for error, _ in errors] == [TypeError]


def test_a_direct_callback_is_called_at_once_and_never_raises(errors: list[Any]) -> None:
    dropped: list[int] = []
    opened = open_handler(Callback(fail, lambda: dropped.append(1), indirect=False))
    assert opened.sink.put("x")
    opened.sink.close()
    assert [str(error) for error, _ in errors] == ["x"]
    assert dropped == [1]
    assert (opened.callback, opened.channel, opened.receiver) == (None, None, None)


def test_a_slow_callback_overflows_alone() -> None:
    opened = open_handler(Callback(print, capacity=2))
    for n in range(5):
        opened.sink.put(n)
    assert opened.channel is not None
    assert opened.channel.dropped == 3


def test_a_handler_of_errors_may_fail_itself(caplog: pytest.LogCaptureFixture) -> None:
    before = on_callback_error(lambda error, callback: fail(error))
    try:
        open_handler(Callback(fail, indirect=False)).sink.put("x")
    finally:
        on_callback_error(before)
    assert "failed itself" in caplog.text


def test_a_coroutine_function_is_not_called_directly() -> None:
    async def callback(item: object) -> None: ...

    with pytest.raises(TypeError, match="indirect"):
        Callback(callback, indirect=False)
    assert Callback(fail).callback is fail
    with pytest.raises(RuntimeError):
        Callback(fail)("x")
