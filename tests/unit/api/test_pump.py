from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.ports import free_port
from tests.unit.api.nodes import config, run, until
from zenwire import aio
from zenwire.api.handlers import Callback, Opened, on_callback_error, open_handler
from zenwire.api.pump import Pump
from zenwire.errors import ZError

_where: contextvars.ContextVar[str] = contextvars.ContextVar("where", default="nowhere")


class Net:
    """Hands items over as a link does: from a callback of the loop, where no task runs."""

    def __init__(self, callback: Callable[[Any], Any], **how: Any) -> None:
        self.opened: Opened[Any] = open_handler(Callback(callback, **how))
        self.pump = Pump(self.opened)
        self.task = self.pump.start()

    async def put(self, *items: object) -> None:
        done = asyncio.get_running_loop().create_future()

        def deliver() -> None:
            for item in items:
                self.pump.put(item)
            done.set_result(None)

        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(deliver)
        await done

    async def end(self) -> None:
        self.opened.sink.close()
        await self.task


def test_a_free_callback_is_called_at_once() -> None:
    async def main() -> None:
        seen: list[object] = []
        net = Net(seen.append)
        done = asyncio.get_running_loop().create_future()

        def deliver() -> None:
            net.pump.put(1)
            done.set_result(list(seen))

        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(deliver)
        assert await done == [1]
        await net.end()

    run(main())


@pytest.mark.parametrize("waits", [0, 1, 3])
def test_items_are_taken_in_order_and_one_at_a_time(waits: int) -> None:
    async def main() -> None:
        seen: list[object] = []
        inside = 0

        async def callback(item: int) -> None:
            nonlocal inside
            inside += 1
            assert inside == 1
            for _ in range(waits if item % 2 else 0):
                await asyncio.sleep(0)
            seen.append(item)
            inside -= 1

        net = Net(callback)
        for start in range(0, 30, 3):
            await net.put(start, start + 1, start + 2)
        await net.end()
        assert seen == list(range(30))

    run(main())


def test_what_a_callback_waits_for_wakes_it() -> None:
    async def main() -> None:
        gate = asyncio.get_running_loop().create_future()
        seen: list[object] = []

        async def callback(item: object) -> None:
            seen.append(await gate)
            seen.append(item)

        net = Net(callback)
        await net.put(1)
        await net.put(2)
        assert seen == []
        gate.set_result("open")
        await net.end()
        assert seen == ["open", 1, "open", 2]

    run(main())


def test_a_callback_runs_in_its_task_and_context_wherever_it_began() -> None:
    async def main() -> None:
        seen: list[tuple[object, str]] = []

        async def callback(_item: object) -> None:
            seen.append((asyncio.current_task(), _where.get()))
            _where.set("inside")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await asyncio.sleep(60)
            seen.append((asyncio.current_task(), _where.get()))

        _where.set("declared")
        net = Net(callback)
        _where.set("later")
        await net.put(1)
        await net.end()
        (before, declared), (after, inside) = seen
        assert before is after is not None
        assert before is not net.task
        assert (declared, inside) == ("declared", "inside")

    run(main())


def test_what_a_task_hands_over_waits_for_its_turn() -> None:
    async def main() -> None:
        seen: list[object] = []
        net = Net(seen.append)
        await asyncio.sleep(0)
        net.pump.put(1)
        assert seen == []
        await net.put(2)
        await net.end()
        assert seen == [1, 2]

    run(main())


async def _raises(_item: object) -> None:
    raise RuntimeError("boom")


async def _raises_later(_item: object) -> None:
    await asyncio.sleep(0)
    raise RuntimeError("boom")


def _raises_plainly(_item: object) -> None:
    raise RuntimeError("boom")


def _future(_item: object) -> Awaitable[None]:
    future = asyncio.get_running_loop().create_future()
    future.set_exception(RuntimeError("boom"))
    return future


def _stops(_item: object) -> None:
    raise StopIteration("boom")


@pytest.mark.parametrize("callback", [_raises, _raises_later, _raises_plainly, _future, _stops])
def test_one_that_raises_is_told_and_gets_the_next(callback: Callable[[Any], Any]) -> None:
    told: list[Exception] = []

    async def main() -> None:
        net = Net(callback)
        await net.put(1, 2)
        await net.put(3)
        await net.end()

    before = on_callback_error(lambda error, _who: told.append(error))
    try:
        run(main())
    finally:
        on_callback_error(before)
    assert [str(error) for error in told] == ["boom"] * 3


def test_what_was_cancelled_harms_nobody_but_the_item() -> None:
    told: list[Exception] = []

    async def main() -> None:
        gone = asyncio.get_running_loop().create_future()
        gone.cancel()
        seen: list[object] = []

        async def callback(item: object) -> None:
            if item == 1:
                await gone
            seen.append(item)

        net = Net(callback)
        await net.put(1)
        await net.put(2)
        await net.end()
        assert seen == [2]

    before = on_callback_error(lambda error, _who: told.append(error))
    try:
        run(main())
    finally:
        on_callback_error(before)
    assert "cancelled" in str(told[0])


def test_what_has_no_room_while_a_callback_waits_is_dropped_and_counted() -> None:
    async def main() -> None:
        gate = asyncio.get_running_loop().create_future()
        seen: list[object] = []

        async def callback(item: object) -> None:
            await gate
            seen.append(item)

        net = Net(callback, capacity=2)
        await net.put(*range(5))
        assert net.opened.channel is not None
        assert net.opened.channel.dropped == 2
        gate.set_result(None)
        await net.end()
        assert seen == [0, 1, 2]

    run(main())


def test_nothing_is_called_after_the_end() -> None:
    async def main() -> None:
        seen: list[object] = []
        net = Net(seen.append, drop=lambda: seen.append("end"))
        await net.put(1)
        net.opened.sink.close()
        await net.put(2)
        await net.task
        await net.put(3)
        assert seen == [1, "end"]

    run(main())


def test_one_that_is_cancelled_while_it_waits_is_ended() -> None:
    async def main() -> None:
        seen: list[object] = []

        async def callback(_item: object) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                seen.append("ended")

        net = Net(callback)
        await net.put(1)
        net.task.cancel()
        await asyncio.wait([net.task])
        assert net.task.cancelled()
        assert seen == ["ended"]

    run(main())


async def _cancel_then_wait() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(60)


async def _cancel_then_return() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


async def _cancel_twice() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(60)
    task.cancel()
    await asyncio.sleep(60)


async def _swallow_cancellation() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(60)
    await asyncio.sleep(0)


async def _cancel_after_waiting() -> None:
    await asyncio.sleep(0.001)
    await _cancel_then_wait()


async def _timeout() -> None:
    async with asyncio.timeout(0):
        await asyncio.sleep(60)


async def _timeout_over_nothing() -> None:
    async with asyncio.timeout(0):
        await asyncio.sleep(0)


async def _timeout_is_handled() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await asyncio.sleep(60)


async def _wait_for() -> None:
    await asyncio.wait_for(asyncio.sleep(60), 0.001)


async def _failing_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(_raises(None))
        await asyncio.sleep(60)


async def _cancel_later() -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_later(0.001, task.cancel)


_INTERRUPTED: dict[Callable[[], Awaitable[None]], type[Exception] | None] = {
    _cancel_then_wait: ZError,
    _cancel_then_return: None,
    _cancel_twice: ZError,
    _swallow_cancellation: None,
    _cancel_after_waiting: ZError,
    _cancel_later: None,
    _timeout: TimeoutError,
    _timeout_over_nothing: TimeoutError,
    _timeout_is_handled: None,
    _wait_for: TimeoutError,
    _failing_group: ExceptionGroup,
}
"""Coroutines that cancel their own task, and the error each is reported with."""


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("body", _INTERRUPTED)
def test_a_callback_that_cancels_itself_gets_all_further_items(
    body: Callable[[], Awaitable[None]], together: bool
) -> None:
    told: list[Exception] = []
    items = [0, 1, 2, 3]

    async def main() -> None:
        seen: list[object] = []

        async def callback(item: object) -> None:
            seen.append(item)
            task = asyncio.current_task()
            assert task is not None
            assert not task.cancelling()
            await body()

        net = Net(callback, drop=lambda: seen.append("end"))
        if together:
            await net.put(*items)
        else:
            for item in items:
                await net.put(item)
                await asyncio.sleep(0.005)
        await net.end()
        assert seen == [*items, "end"]

    before = on_callback_error(lambda error, _who: told.append(error))
    try:
        run(main())
    finally:
        on_callback_error(before)
    expected = _INTERRUPTED[body]
    assert [type(error) for error in told] == ([] if expected is None else [expected] * len(items))


@pytest.mark.parametrize("body", _INTERRUPTED)
def test_a_subscriber_whose_callback_cancels_itself_gets_every_sample(
    body: Callable[[], Awaitable[None]],
) -> None:
    async def main() -> None:
        seen: list[bytes] = []

        async def callback(sample: aio.Sample) -> None:
            seen.append(sample.payload.to_bytes())
            await body()

        port = free_port()
        async with (
            aio.open(config(listen=port)) as to,
            aio.open(config(connect=port)) as by,
            to.declare_subscriber("a/b", callback),
            by.declare_publisher("a/b") as publisher,
        ):
            await until(lambda: publisher.matching_status.matching)
            values = [b"%d" % n for n in range(6)]
            for n, value in enumerate(values):
                await publisher.put(value)
                if n % 2:
                    await asyncio.sleep(0.005)
            await until(lambda: len(seen) == len(values))
        assert seen == values

    run(main())


def test_cancelling_the_pump_cancels_the_callback_and_calls_drop() -> None:
    async def main() -> None:
        seen: list[object] = []

        async def callback(_item: object) -> None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                await asyncio.sleep(0)
                seen.append("ended")
                raise

        for queued in (False, True):
            seen.clear()
            net = Net(callback, drop=lambda: seen.append("dropped"))
            if queued:
                net.pump.put(1)
                await asyncio.sleep(0.005)
            else:
                await net.put(1, 2)
            net.task.cancel()
            await asyncio.wait([net.task])
            assert net.task.cancelled()
            assert seen == ["ended", "dropped"]

    run(main())


def test_drop_is_called_once_even_if_it_cancels_itself() -> None:
    async def main() -> None:
        seen: list[object] = []

        async def drop() -> None:
            seen.append("dropped")
            await _cancel_then_wait()

        net = Net(seen.append, drop=drop)
        await net.put(1)
        await net.end()
        assert seen == [1, "dropped"]

    run(main())


def test_an_item_that_a_callback_hands_over_is_not_overtaken() -> None:
    async def main() -> None:
        seen: list[object] = []

        def callback(item: int) -> None:
            seen.append(item)
            if item == 1:
                net.pump.put(2)

        net = Net(callback)
        await net.put(1, 3)
        await net.end()
        assert seen == [1, 2, 3]

    run(main())


def test_a_loop_that_ends_leaves_no_task_of_a_callback_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tasks: list[asyncio.Task[Any]] = []
    seen: list[object] = []

    async def callback(item: object) -> None:
        seen.append(item)
        await asyncio.sleep(60)

    async def main() -> None:
        net = Net(callback)
        await net.put(1, 2)
        tasks.extend(asyncio.all_tasks())

    run(main())
    gc.collect()
    assert all(task.done() for task in tasks)
    assert seen == [1]
    assert not caplog.records
