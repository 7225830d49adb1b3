"""The loop in its thread: order, back pressure, what nobody waits for, what may not wait."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from tests.unit.sync.places import TIMEOUT, until
from zenwire.errors import ZError
from zenwire.node.neighbour import Waiting
from zenwire.sync.thread import LANE, Burst, Lane, Loop, current


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

    assert loop.run(waits()) == "zenwire"
    assert loop.run(waits(), task=True) == "zenwire"
    assert loop.call(lambda: 3) == 3
    for task in (True, False):
        with pytest.raises(KeyError, match="here"):
            loop.run(fails(), task=task)
    assert not loop.here
    assert loop.call(lambda: loop.here)


def test_the_order_is_that_of_the_calls(loop: Loop) -> None:
    said: list[int] = []
    lane = Lane(loop)

    async def say(number: int) -> None:
        said.append(number)

    for number in range(1000):
        lane.send(partial(say, number))
    loop.run(say(1000))
    assert said == list(range(1001))


def test_a_lane_that_is_full_makes_wait(loop: Loop) -> None:
    lane, other = Lane(loop), Lane(loop)
    gate = loop.call(asyncio.Event)
    sent: list[int] = []

    async def stuck() -> None:
        await gate.wait()

    def fill() -> None:
        for number in range(LANE * 2):
            lane.send(stuck)
            sent.append(number)

    thread = threading.Thread(target=fill)
    thread.start()
    until(lambda: len(sent) == LANE)
    # Another lane is free, and nothing more is sent on this one.
    done = threading.Event()

    async def free() -> None:
        done.set()

    other.send(free)
    assert done.wait(TIMEOUT)
    loop.call(lambda: None)
    assert len(sent) == LANE
    loop.call(gate.set)
    thread.join(TIMEOUT)
    assert len(sent) == LANE * 2


def test_ctrl_c_leaves_no_coroutine_that_the_loop_did_not_get(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    async def nothing() -> None:
        """Is done at once."""

    def call() -> Coroutine[Any, Any, None]:
        made.append(1)
        return nothing()

    def interrupted(_call: object) -> None:
        raise KeyboardInterrupt

    lane = Lane(loop)
    with monkeypatch.context() as patched:
        patched.setattr(loop, "post", interrupted)
        with pytest.raises(KeyboardInterrupt):
            lane.send(call)
    loop.call(lambda: None)
    assert not made
    lane.send(call)
    loop.call(lambda: None)
    assert made


def test_large_payloads_fill_a_lane_sooner(loop: Loop) -> None:
    lane = Lane(loop)
    gate = loop.call(asyncio.Event)
    sent: list[int] = []

    async def stuck() -> None:
        await gate.wait()

    def fill() -> None:
        for number in range(20):
            lane.send(stuck, 1 << 20)
            sent.append(number)

    thread = threading.Thread(target=fill)
    thread.start()
    until(lambda: len(sent) == 8)
    loop.call(lambda: None)
    assert len(sent) == 8
    loop.call(gate.set)
    thread.join(TIMEOUT)
    assert len(sent) == 20


def test_a_burst_that_is_queued_once_too_often_is_nothing(loop: Loop) -> None:
    said: list[list[int]] = []

    class Says:
        def put_all(self, payloads: Sequence[int]) -> list[Waiting]:
            said.append([*payloads])
            return []

    burst = Burst(Lane(loop), Says())
    burst.items += (1, 2, 3)
    loop.call(burst.take)
    loop.call(burst.take)
    assert said == [[1, 2, 3]]
    assert not burst.items


def test_what_nobody_waits_for_is_told_when_it_fails(
    loop: Loop, caplog: pytest.LogCaptureFixture
) -> None:
    lane = Lane(loop)

    async def fails(*, later: bool) -> None:
        if later:
            await asyncio.sleep(0)
        raise ValueError("told")

    with caplog.at_level(logging.ERROR, logger="zenwire"):
        lane.send(partial(fails, later=False))
        lane.send(partial(fails, later=True))
        until(lambda: caplog.text.count("ValueError: told") == 2)


def test_in_its_own_thread_nothing_waits(loop: Loop) -> None:
    async def at_once() -> int:
        await asyncio.sleep(0)
        return 3

    async def never() -> None:
        await asyncio.get_running_loop().create_future()

    def call() -> int:
        with pytest.raises(ZError, match="indirect"):
            loop.run(never())
        return loop.run(at_once())

    assert loop.call(call) == 3


def test_after_the_end(loop: Loop) -> None:
    async def nothing() -> None:
        pass

    loop.stop()
    loop.stop()
    with pytest.raises(ZError, match="ends"):
        loop.run(nothing())
    loop.later(nothing)


def test_one_for_a_process() -> None:
    assert current() is current()
