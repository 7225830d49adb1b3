"""Threads of callbacks: one call at a time each, and as few threads as can be."""

from __future__ import annotations

import threading

from tests.unit.sync.places import TIMEOUT, until
from zenwire.api.channel import Channel
from zenwire.api.handlers import Callback, on_callback_error
from zenwire.sync.workers import Strand


def test_items_one_after_the_other() -> None:
    heard: list[int] = []
    running = threading.Semaphore(1)

    def call(item: int) -> None:
        assert running.acquire(blocking=False)
        heard.append(item)
        running.release()

    channel: Channel[int] = Channel(10_000)
    channel.put(-1)
    dropped = threading.Event()
    strand = Strand(channel, Callback(call, dropped.set))
    strand.start()
    for number in range(5000):
        channel.put(number)
    strand.close(TIMEOUT)
    assert strand.done.is_set()
    assert dropped.is_set()
    assert heard == list(range(-1, 5000))


def test_a_channel_that_is_closed_already() -> None:
    channel: Channel[int] = Channel(1)
    channel.close()
    dropped = threading.Event()
    strand: Strand[int] = Strand(channel, Callback(print, dropped.set))
    ended: list[Strand[int]] = []
    strand.start(told=ended.append)
    assert dropped.wait(TIMEOUT)
    until(lambda: ended == [strand])


def test_errors_of_calls_and_of_the_end_are_told() -> None:
    told: list[str] = []
    failed: list[int] = []
    before = on_callback_error(lambda error, _callback: told.append(str(error)))

    def fails(item: int) -> None:
        raise ValueError(item)

    def drop() -> None:
        raise ValueError("end")

    try:
        channel: Channel[int] = Channel(8)
        strand = Strand(
            channel,
            Callback(fails, drop),
            made=lambda item: item * 10,
            failed=lambda item, _error: failed.append(item),
        )
        strand.start()
        for number in (1, 2):
            channel.put(number)
        strand.close(TIMEOUT)
    finally:
        on_callback_error(before)
    assert told == ["10", "20", "end"]
    assert failed == [10, 20]


def test_one_that_is_stuck_keeps_nobody_waiting() -> None:
    gate, heard = threading.Event(), threading.Event()
    stuck: Channel[int] = Channel(8)
    free: Channel[int] = Channel(8)
    Strand(stuck, Callback(lambda _item: gate.wait(TIMEOUT))).start()
    Strand(free, Callback(lambda _item: heard.set())).start()
    stuck.put(1)
    free.put(1)
    assert heard.wait(TIMEOUT)
    gate.set()
    stuck.close()
    free.close()
