from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable

import pytest

from tests.unit.api.nodes import run
from zenwire.api.channel import Channel
from zenwire.api.waiter import Waiter

_where: contextvars.ContextVar[str] = contextvars.ContextVar("where", default="nowhere")


class Net:
    """Hands over as a link does: from a callback of the loop, where no task runs."""

    def __init__(self) -> None:
        self.afterwards: list[Callable[[], None]] = []

    def soon(self, call: Callable[[], None]) -> bool:
        if asyncio.current_task() is not None:
            return False
        self.afterwards.append(call)
        return True

    async def do(self, what: Callable[[], None], then: Callable[[], None] = lambda: None) -> None:
        """``then`` comes in the same round of the loop, after all who may go on have gone on."""
        done = asyncio.get_running_loop().create_future()

        def deliver() -> None:
            what()
            while self.afterwards:
                self.afterwards.pop(0)()
            then()
            done.set_result(None)

        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(deliver)
        await done


def test_a_task_goes_on_where_things_are_handed_over() -> None:
    async def main() -> None:
        net, seen = Net(), list[str]()
        waiter = Waiter(asyncio.get_running_loop(), net.soon)

        async def wait() -> None:
            _where.set("in the task")
            await waiter
            assert asyncio.current_task() is task
            seen.append(_where.get())
            await asyncio.sleep(0)
            seen.append("later")

        task = asyncio.create_task(wait())
        await net.do(waiter.wake, lambda: seen.append("told"))
        assert seen[:2] == ["in the task", "told"]
        await task
        assert seen[2:] == ["later"]
        assert _where.get() == "nowhere"

    run(main())


@pytest.mark.parametrize("soon", [True, False])
def test_a_task_that_runs_is_not_interrupted(soon: bool) -> None:
    async def main() -> None:
        net, seen = Net(), list[int]()
        waiter = Waiter(asyncio.get_running_loop(), net.soon if soon else None)

        async def wait() -> None:
            await waiter
            seen.append(1)

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        waiter.wake()
        waiter.wake()
        assert seen == []
        await task
        assert seen == [1]

    run(main())


def test_what_is_there_before_it_is_waited_for() -> None:
    async def main() -> None:
        waiter = Waiter(asyncio.get_running_loop())
        waiter.wake()
        await waiter
        assert waiter.done()
        assert not waiter.cancel()

    run(main())


def test_a_task_that_waits_can_be_cancelled_and_its_words_are_kept() -> None:
    async def main() -> None:
        waiter = Waiter(asyncio.get_running_loop(), Net().soon)

        async def wait() -> None:
            await waiter

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel("enough")
        with pytest.raises(asyncio.CancelledError, match="enough"):
            await task
        waiter.wake()

    run(main())


def test_cancelled_while_it_is_about_to_go_on() -> None:
    async def main() -> None:
        net, seen = Net(), list[str]()
        waiter = Waiter(asyncio.get_running_loop(), net.soon)

        async def wait() -> None:
            try:
                await waiter
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise
            seen.append("went on")

        task = asyncio.create_task(wait())

        def both() -> None:
            waiter.wake()
            task.cancel()

        await net.do(both)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert seen == ["cancelled"]

    run(main())


def test_a_context_that_is_in_use_is_left_to_the_loop() -> None:
    async def main() -> None:
        net, seen = Net(), list[int]()
        waiter = Waiter(asyncio.get_running_loop(), net.soon)
        context = contextvars.copy_context()

        async def wait() -> None:
            await waiter
            seen.append(1)

        task = asyncio.get_running_loop().create_task(wait(), context=context)

        def wake() -> None:
            waiter.wake()
            net.afterwards.pop()()

        def deliver() -> None:
            context.run(wake)

        await net.do(deliver)
        await task
        assert seen == [1]

    run(main())


def test_another_thread_wakes() -> None:
    async def main() -> None:
        waiter = Waiter(asyncio.get_running_loop())
        thread = threading.Thread(target=waiter.wake)
        thread.start()
        await waiter
        thread.join()

    run(main())


def test_waking_after_the_end_of_the_loop_is_no_matter() -> None:
    async def main() -> Waiter:
        return Waiter(asyncio.get_running_loop())

    run(main()).wake()


def test_timeouts_and_groups_of_tasks_work_with_it() -> None:
    async def main() -> None:
        channel = Channel[int](4)
        channel.soon = Net().soon
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await channel.recv()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(channel.recv(), 0.01)
        both = asyncio.gather(channel.recv(), channel.recv())
        await asyncio.sleep(0)
        channel.put(1)
        channel.put(2)
        assert list(await both) == [1, 2]

    run(main())


def test_a_reader_of_a_channel_gets_all_that_came_together_in_one_go() -> None:
    async def main() -> None:
        net, channel, seen = Net(), Channel[int](8), list[object]()
        channel.soon = net.soon

        async def read() -> None:
            async for item in channel:
                seen.append(item)
            seen.append("end")

        task = asyncio.create_task(read())

        def deliver() -> None:
            for n in range(3):
                channel.put(n)
            assert seen == []
            assert len(net.afterwards) == 1
            channel.close()

        await net.do(deliver, lambda: seen.append("told"))
        await task
        assert seen == [0, 1, 2, "end", "told"]

    run(main())
