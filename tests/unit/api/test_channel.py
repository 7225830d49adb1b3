from __future__ import annotations

import asyncio
import threading

import pytest

from zenwire.api.channel import NOTHING, Channel, Handler
from zenwire.errors import ChannelClosed


def test_a_full_channel_drops_by_its_policy_and_counts() -> None:
    newest, oldest = Channel[int](2), Channel[int](2, "drop_oldest")
    assert [newest.put(n) for n in range(5)] == [True, True, False, False, False]
    assert [oldest.put(n) for n in range(5)] == [True, True, False, False, False]
    assert [newest.try_recv(), newest.try_recv(), newest.try_recv()] == [0, 1, None]
    assert [oldest.try_recv(), oldest.try_recv(), oldest.try_recv()] == [3, 4, None]
    assert newest.dropped == oldest.dropped == 3


@pytest.mark.parametrize("args", [(0,), (-1,), (1, "block")])
def test_what_makes_no_channel_is_refused(args: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match=r"at least one|no policy"):
        Channel[int](*args)  # type: ignore[arg-type]


def test_the_rest_is_read_after_the_end() -> None:
    channel = Channel[int](4)
    channel.put(1)
    channel.close()
    assert not channel.put(2)
    assert channel.dropped == 1
    assert channel.try_recv() == 1
    with pytest.raises(ChannelClosed):
        channel.try_recv()


def test_async_iteration_waits_and_ends() -> None:
    async def main() -> list[int]:
        channel = Channel[int](4)
        task = asyncio.create_task(_collect(channel))
        await asyncio.sleep(0)
        for n in range(3):
            channel.put(n)
            await asyncio.sleep(0)
        channel.close()
        return await task

    assert asyncio.run(main()) == [0, 1, 2]


async def _collect(channel: Channel[int]) -> list[int]:
    return [item async for item in channel]


def test_a_thread_wakes_a_coroutine() -> None:
    async def main() -> list[int]:
        channel = Channel[int](1000)

        def feed() -> None:
            for n in range(500):
                channel.put(n)
            channel.close()

        thread = threading.Thread(target=feed)
        task = asyncio.create_task(_collect(channel))
        await asyncio.sleep(0)
        thread.start()
        found = await task
        thread.join()
        return found

    assert asyncio.run(main()) == list(range(500))


def test_a_cancelled_reader_takes_nothing_with_it() -> None:
    async def main() -> tuple[int, int]:
        channel = Channel[int](4)
        first = asyncio.create_task(channel.recv())
        second = asyncio.create_task(channel.recv())
        await asyncio.sleep(0)
        channel.put(1)
        first.cancel()
        found = await second
        assert channel._waiting == []
        return found, len(channel)

    assert asyncio.run(main()) == (1, 0)


def test_a_reader_on_a_closed_loop_harms_nobody() -> None:
    channel = Channel[int](4)
    loop = asyncio.new_event_loop()
    task = loop.create_task(channel.recv())
    loop.run_until_complete(asyncio.sleep(0))
    task.cancel()
    waiting = list(channel._waiting)
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(task)
    loop.close()
    channel._waiting += waiting
    assert channel.put(1)
    assert channel.try_recv() == 1


def test_a_handler_is_read_by_a_thread() -> None:
    channel = Channel[int](1000)
    handler = Handler(channel)
    assert handler.try_recv() is None
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.extend(handler))
    thread.start()
    for n in range(500):
        channel.put(n)
    channel.close()
    thread.join()
    assert found == list(range(500))
    assert handler.dropped == 0
    with pytest.raises(ChannelClosed):
        handler.recv()


def test_waiting_can_be_bounded() -> None:
    assert Channel[int](1).recv_blocking(timeout=0) is None


def test_bytes_are_bounded_too() -> None:
    dropped: list[bytes] = []
    newest = Channel[bytes](10, on_drop=dropped.append, size=len, max_bytes=5)
    assert [newest.put(item) for item in (b"aaaaaaa", b"b")] == [True, False]
    assert newest.try_recv() == b"aaaaaaa"
    assert [newest.put(item) for item in (b"ccc", b"dd", b"")] == [True, True, True]
    assert not newest.put(b"e")
    assert dropped == [b"b", b"e"]

    oldest = Channel[bytes](10, "drop_oldest", on_drop=dropped.append, size=len, max_bytes=5)
    for item in (b"1", b"22", b"33", b"4444"):
        oldest.put(item)
    assert oldest.drain() == [b"4444"]
    assert oldest.dropped == 3
    assert dropped[2:] == [b"1", b"22", b"33"]
    assert oldest.put(b"55555")
    assert oldest.try_recv() == b"55555"


def test_who_comes_while_others_are_woken_is_woken_once() -> None:
    channel: Channel[int] = Channel(4)
    woken: list[int] = []

    class Lock:
        """In the moment in which it is let go, a reader takes all there is, and waits."""

        come = False

        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None:
            if not self.come:
                self.come = True
                assert channel.take(None) == 1
                assert channel.take(lambda: woken.append(1)) is NOTHING

    channel._lock = Lock()  # type: ignore[assignment]
    channel.put(1)
    assert woken == []
    channel.put(2)
    assert woken == [1]
