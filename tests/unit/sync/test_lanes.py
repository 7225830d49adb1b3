"""What nobody waits for: order, back pressure, and what becomes of it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from tests.unit.sync.places import TIMEOUT, until
from zenwire.node.neighbour import Waiting
from zenwire.sync.lanes import LANE, Burst, Lane
from zenwire.sync.thread import Loop


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.stop()


def test_the_order_is_that_of_the_calls(loop: Loop) -> None:
    said: list[int] = []
    lane = Lane(loop)

    async def say(number: int) -> None:
        said.append(number)

    for number in range(1000):
        lane.send(partial(say, number))
    loop.run(partial(say, 1000))
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
