from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.unit.api.nodes import run
from zenwire.api.handlers import Callback, Opened, on_callback_error, open_handler
from zenwire.api.pump import Pump

_where: contextvars.ContextVar[str] = contextvars.ContextVar("where", default="nowhere")


class Net:
    """Hands items over as a link does: from a callback of the loop, where no task runs."""

    def __init__(self, callback: Callable[[Any], Any], **how: Any) -> None:
        self.opened: Opened[Any] = open_handler(Callback(callback, **how))
        self.pump = Pump(self.opened)
        loop = asyncio.get_running_loop()
        self.task = loop.create_task(self.pump.run(), context=self.pump.context)

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
        seen: list[object] = []

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
        assert seen == [(net.task, "declared"), (net.task, "inside")]

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
