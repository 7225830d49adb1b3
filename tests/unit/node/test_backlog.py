from __future__ import annotations

import asyncio
import threading

import pytest

from tests.unit.node.nodes import run
from zenwire.node.backlog import Backlog


def test_links_wait_while_the_queue_is_at_its_mark() -> None:
    async def scenario() -> None:
        level, seen = [0], list[bool]()
        backlog = Backlog(lambda: level[0], 4, 4)
        backlog.watch(seen.append)
        assert not backlog.check()
        level[0] = 4
        assert backlog.check()
        assert backlog.check()
        assert seen == [True]
        first = backlog.done
        await asyncio.sleep(100)
        # Nothing is admitted between marks that are the same.
        assert not first.done()
        level[0] = 3
        thread = threading.Thread(target=backlog.drained)
        thread.start()
        thread.join()
        await first
        assert seen == [True, False]
        assert not backlog.full
        assert not backlog.check()
        assert backlog.paused == pytest.approx(100, abs=1)

    run(scenario())


def test_portions_are_admitted_and_shrink() -> None:
    async def scenario() -> None:
        level = [1000]
        backlog = Backlog(lambda: level[0], 1000, 5800)
        seen = list[bool]()
        backlog.watch(seen.append)
        admitted = []
        for _ in range(1000):
            assert backlog.check()
            before = level[0]
            try:
                async with asyncio.timeout(3):
                    await asyncio.shield(backlog.done)
            except TimeoutError:
                break
            # What is delivered counts at once, until the portion is used up.
            assert backlog.careful
            while not backlog.check():
                level[0] += 1
            admitted.append(level[0] - before)
        assert admitted[0] == 100
        assert admitted == sorted(admitted, reverse=True)
        assert 5700 < level[0] <= 5800
        assert seen == [True]
        level[0] = 999
        backlog.drained()
        await backlog.done
        assert seen == [True, False]
        assert not backlog.check()

    run(scenario())


def test_what_was_taken_before_anybody_waited_is_noticed() -> None:
    async def scenario() -> None:
        levels = iter([4, 3, 3])
        backlog = Backlog(lambda: next(levels), 4, 4)
        assert backlog.check()
        await backlog.done
        assert not backlog.check()

    run(scenario())


def test_the_last_watcher_lets_links_go() -> None:
    async def scenario() -> None:
        backlog, seen = Backlog(lambda: 9, 1, 9), list[bool]()
        watchers = [seen.append, lambda _: None]
        for watcher in watchers:
            backlog.watch(watcher)
        assert backlog.check()
        backlog.unwatch(watchers[0])
        assert backlog.full
        backlog.unwatch(watchers[1])
        await backlog.done
        assert not backlog.check()
        assert seen == [True]

    run(scenario())


@pytest.mark.parametrize(("soft", "hard"), [(0, 1), (2, 1)])
def test_marks_that_cannot_be(soft: int, hard: int) -> None:
    async def scenario() -> None:
        with pytest.raises(ValueError, match="soft <= hard"):
            Backlog(lambda: 0, soft, hard)

    run(scenario())
