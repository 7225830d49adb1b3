from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.api.ext.scenes import ID, INSTANCE, Scene, sample
from zenwire.api.ext import limits, order, sources
from zenwire.api.ext.history import HistoryConfig
from zenwire.api.ext.order import Miss
from zenwire.api.ext.recovery import RecoveryConfig
from zenwire.api.ext.sequence import SN_MAX
from zenwire.api.values import Sample
from zenwire.wire import values as wire

HEARTBEAT = RecoveryConfig(heartbeat=True)
HISTORY = HistoryConfig(max_samples=3)


def words(first: int, *more: int) -> list[str]:
    return [str(sn) for sn in (first, *more)]


# --- without history and recovery ---------------------------------------------------------------


def test_samples_in_order_are_delivered() -> None:
    scene = Scene()
    assert scene.start() == []
    assert scene.live(5, 6, 7) == words(5, 6, 7)


def test_a_hole_is_reported_at_once() -> None:
    scene = Scene()
    assert scene.live(5, 9) == ["5", "-3", "9"]
    assert scene.live(10) == ["10"]
    assert scene.reception.missed == 3


def test_the_source_of_a_miss_is_named() -> None:
    scene = Scene()
    scene.live(5)
    scene.reception.receive(sample(7), scene.now)
    miss, _ = scene.reception.take()
    assert miss == Miss(ID, 1)


def test_what_was_given_up_is_not_delivered_after_all() -> None:
    scene = Scene()
    assert scene.live(5, 7, 6, 7, 5) == ["5", "-1", "7"]
    assert scene.reception.duplicates == 3


def test_numbers_wrap_around() -> None:
    scene = Scene()
    assert scene.live(SN_MAX - 1, SN_MAX, 0, 2) == [*words(SN_MAX - 1, SN_MAX, 0), "-1", "2"]
    assert scene.live(SN_MAX) == []


def test_each_publisher_has_its_own_numbers() -> None:
    scene = Scene()
    for eid, sn in ((1, 0), (2, 5), (1, 1), (2, 6)):
        scene.reception.receive(sample(sn, eid=eid), scene.now)
    assert scene.out() == words(0, 5, 1, 6)


def test_without_numbers_times_tell_duplicates() -> None:
    scene = Scene()
    for time in (10, 20, 20, 15, 30):
        scene.reception.receive(sample(time=time), scene.now)
    assert scene.out() == words(10, 20, 30)
    assert scene.reception.duplicates == 2


def test_with_neither_everything_passes() -> None:
    scene = Scene(HISTORY, HEARTBEAT)
    scene.start()
    for _ in range(3):
        scene.reception.receive(sample(payload=b"x"), scene.now)
    assert scene.out() == ["x"] * 3


# --- history ------------------------------------------------------------------------------------


def test_history_comes_before_what_is_new() -> None:
    scene = Scene(HISTORY)
    assert scene.start() == ["?_max=3"]
    assert str(scene.asked[0].key_expr) == "k/@adv/**"
    assert scene.live(8, 9) == []
    assert scene.replies(5, 6, 7, 8) == []
    assert scene.finish() == words(5, 6, 7, 8, 9)
    assert scene.live(10) == ["10"]


def test_a_hole_in_history_is_reported_when_it_ends() -> None:
    scene = Scene(HISTORY)
    scene.start()
    scene.live(9)
    scene.replies(5, 6)
    assert scene.finish() == ["5", "6", "-2", "9"]


def test_a_hole_in_history_is_asked_for_where_that_is_wanted() -> None:
    scene = Scene(HISTORY, HEARTBEAT)
    scene.start()
    scene.live(9)
    scene.replies(5, 6)
    assert scene.finish() == ["5", "6", "?_sn=7.."]
    assert scene.replies(7, 8, 9) == words(7, 8, 9)
    assert scene.finish() == []


def test_of_one_sample_the_newest_is_not_delayed() -> None:
    scene = Scene(HistoryConfig(max_samples=1))
    scene.start()
    assert scene.live(8) == ["8"]
    assert scene.replies(7, 8) == []
    assert scene.finish() == []


def test_history_by_time() -> None:
    scene = Scene(HISTORY)
    scene.start()
    scene.reception.receive(sample(time=30), scene.now)
    for time in (10, 20, 30):
        scene.reception.reply(sample(time=time), scene.now)
    assert scene.out() == []
    assert scene.finish() == words(10, 20, 30)


def test_replies_on_other_keys_are_not_ours() -> None:
    scene = Scene(HISTORY)
    scene.start()
    scene.reception.reply(sample(1, key="other"), scene.now)
    assert scene.finish() == []
    assert scene.reception.foreign == 1


def test_parameters_of_history() -> None:
    history = HistoryConfig(max_samples=3, max_age=3600)
    assert history.parameters == "_max=3;_time=[now(-3600s)..]"
    assert HistoryConfig(max_age=0.5).parameters == "_time=[now(-0.5s)..]"
    assert HistoryConfig(max_age=1e-5).parameters == "_time=[now(-0.00001s)..]"
    assert HistoryConfig().parameters == ""


def test_late_publishers_are_asked_for_theirs() -> None:
    scene = Scene(HISTORY)
    scene.start()
    scene.finish()
    assert scene.token() == ["?_max=3"]
    assert str(scene.asked[-1].key_expr) == INSTANCE
    assert scene.live(2) == []
    assert scene.replies(0, 1, 2) == []
    assert scene.finish() == words(0, 1, 2)


def test_late_publishers_without_numbers() -> None:
    scene = Scene(HISTORY)
    scene.start()
    scene.finish()
    assert scene.token("k/@adv/pub/a/uhlc/_") == ["?_max=3"]
    scene.reception.receive(sample(time=20), scene.now)
    scene.reception.reply(sample(time=10), scene.now)
    assert scene.finish() == words(10, 20)


def test_a_token_of_nobody_in_particular_is_asked_too() -> None:
    scene = Scene(HISTORY)
    scene.start()
    scene.finish()
    assert scene.token("k/@adv/pub/nobody/7/_") == ["?_max=3"]
    assert scene.live(2) == []
    assert scene.replies(1) == []
    assert scene.finish() == words(1, 2)


# --- recovery -----------------------------------------------------------------------------------


def test_a_hole_is_asked_for() -> None:
    scene = Scene(recovery=HEARTBEAT)
    assert scene.live(5, 8) == ["5", "?_sn=6.."]
    assert str(scene.asked[0].key_expr) == "k/@adv/*/a/7/**"
    assert scene.live(9, 9) == []
    assert scene.replies(6) == ["6"]
    assert scene.replies(7) == words(7, 8, 9)
    assert scene.replies(8) == []
    assert scene.finish() == []
    assert scene.reception.missed == 0


def test_what_nobody_has_is_missed_once() -> None:
    scene = Scene(recovery=HEARTBEAT)
    scene.live(5, 9)
    assert scene.replies(7) == []
    assert scene.finish() == ["-1", "7", "-1", "9"]
    assert scene.live(6, 8) == []
    assert scene.live(10) == ["10"]
    assert scene.reception.missed == 2


def test_a_hole_behind_a_query_is_asked_for_again() -> None:
    """The answer may have left before the sample that shows the hole."""
    scene = Scene(recovery=HEARTBEAT)
    scene.live(5, 7)
    assert scene.live(9) == []
    assert scene.replies(6) == words(6, 7)
    assert scene.finish() == ["?_sn=8.."]
    assert scene.replies(8) == words(8, 9)
    assert scene.finish() == []


def test_a_query_that_is_lost_is_asked_once_more() -> None:
    scene = Scene(recovery=HEARTBEAT)
    scene.live(5, 7)
    assert scene.finish(answered=False) == ["?_sn=6.."]
    assert scene.replies(6) == words(6, 7)
    # All of it came; only its end did not.
    assert scene.finish(answered=False) == []
    assert scene.live(9) == ["?_sn=8.."]
    assert scene.finish(answered=False) == ["?_sn=8.."]
    assert scene.finish(answered=False) == ["-1", "9"]
    assert scene.live(11) == ["?_sn=10.."]
    assert scene.finish() == ["-1", "11"]
    assert scene.reception.missed == 2


def test_a_query_that_answers_nothing_at_all() -> None:
    scene = Scene(recovery=HEARTBEAT)
    scene.live(5, 7)
    scene.live(10)
    assert scene.finish() == ["-1", "7", "?_sn=8.."]
    assert scene.finish() == ["-2", "10"]


# --- heartbeats ---------------------------------------------------------------------------------


def test_a_heartbeat_shows_that_the_last_is_missing() -> None:
    scene = Scene(recovery=HEARTBEAT)
    scene.live(5)
    assert scene.heartbeat(5) == []
    assert scene.heartbeat(7) == ["?_sn=6..7"]
    assert str(scene.asked[0].key_expr) == INSTANCE
    assert scene.heartbeat(7) == []
    assert scene.replies(6, 7) == words(6, 7)
    assert scene.finish() == []
    assert scene.heartbeat(7) == []


def test_a_heartbeat_of_somebody_unknown_asks_for_all() -> None:
    scene = Scene(recovery=HEARTBEAT)
    assert scene.heartbeat(7) == ["?_sn=..7"]
    assert scene.replies(6, 7) == []
    assert scene.finish() == words(6, 7)


def test_what_two_heartbeats_could_not_bring_is_missed_once() -> None:
    scene = Scene(recovery=HEARTBEAT)
    scene.live(5)
    scene.heartbeat(7)
    assert scene.finish() == []
    assert scene.heartbeat(8) == ["?_sn=6..8"]
    assert scene.finish() == ["-2"]
    assert scene.live(6, 7) == []
    assert scene.live(8) == ["8"]
    assert scene.heartbeat(8) == []


def test_a_heartbeat_may_be_faster_than_its_sample() -> None:
    scene = Scene(recovery=HEARTBEAT)
    scene.live(5)
    scene.heartbeat(6)
    assert scene.finish() == []
    assert scene.live(6) == ["6"]
    assert scene.heartbeat(6) == []


def test_a_heartbeat_waits_for_history() -> None:
    scene = Scene(HISTORY, HEARTBEAT)
    scene.start()
    assert scene.heartbeat(7) == []
    scene.replies(6, 7)
    assert scene.finish() == words(6, 7)


@pytest.mark.parametrize(
    "key",
    ["k", "k/@adv/pub", "k/@adv/pub/a", "k/@adv/pub/A/7/_", "k/@adv/pub/a/x/_", "k/@adv/pub/0/1/_",
     "k/@adv/pub/a/uhlc/_", f"k/@adv/pub/a/{2**32}/_", "k/@adv/pub/a/\u0661/_",
     f"k/@adv/pub/{'a' * 40}/1/_"],
)  # fmt: skip
def test_hostile_heartbeat_keys(key: str) -> None:
    scene = Scene(recovery=HEARTBEAT)
    assert scene.heartbeat(7, key) == []
    assert scene.reception.foreign == 1
    assert len(scene.reception) == 0


@pytest.mark.parametrize("payload", [b"", b"\0\0\0", b"\0" * 5, b"\xff" * 100])
def test_hostile_heartbeats(payload: bytes) -> None:
    scene = Scene(recovery=HEARTBEAT)
    scene.reception.heartbeat(INSTANCE, payload, scene.now)
    assert scene.out() == []
    assert scene.reception.foreign == 1


# --- periodic queries ---------------------------------------------------------------------------


def test_periodic_queries_bring_the_last() -> None:
    scene = Scene(recovery=RecoveryConfig(periodic_queries=10))
    scene.live(5)
    assert scene.reception.deadline == scene.now + 10
    assert scene.wait(9.9) == []
    assert scene.wait(0.1) == ["?_sn=6.."]
    assert scene.replies(6, 7) == words(6, 7)
    assert scene.finish() == []
    assert scene.wait(10) == ["?_sn=8.."]
    # One at a time.
    assert scene.wait(10) == []
    assert scene.finish() == []
    assert scene.wait(10) == ["?_sn=8.."]


# --- restarts -----------------------------------------------------------------------------------


def test_a_clock_shows_that_a_publisher_restarted() -> None:
    scene = Scene()
    for sn, time in ((5, 50), (6, 60), (5, 50), (0, 70), (1, 80)):
        scene.reception.receive(sample(sn, time=time), scene.now)
    assert scene.out() == words(5, 6, 0, 1)
    assert scene.reception.restarts == 1
    assert scene.reception.duplicates == 1


def test_what_was_lost_of_a_restarted_publisher_is_missed() -> None:
    scene = Scene()
    for sn, time in ((5, 50), (2, 60)):
        scene.reception.receive(sample(sn, time=time), scene.now)
    assert scene.out() == ["5", "-2", "2"]


def test_the_clock_of_a_router_shows_nothing() -> None:
    scene = Scene()
    router = wire.ZenohId(b"\x0b")
    for sn, time in ((5, 50), (0, 70)):
        scene.reception.receive(sample(sn, time=time, clock=router), scene.now)
    assert scene.out() == words(5)


def test_a_token_shows_that_a_publisher_restarted() -> None:
    scene = Scene(HISTORY)
    scene.start()
    scene.finish()
    scene.token()
    scene.finish()
    assert scene.live(5, 6) == words(5, 6)
    scene.token(alive=False)
    scene.token()
    # What a cache has of the time before is no sign.
    assert scene.replies(6) == []
    assert scene.finish() == []
    assert scene.live(0, 1) == words(0, 1)
    assert scene.reception.restarts == 1


def test_a_publisher_that_reconnects_goes_on() -> None:
    scene = Scene(HISTORY)
    scene.start()
    scene.finish()
    scene.token()
    scene.finish()
    scene.live(5, 6)
    scene.token(alive=False)
    assert scene.token() == ["?_max=3"]
    assert scene.replies(5, 6, 7) == words(7)
    scene.finish()
    assert scene.live(8) == words(8)
    assert scene.reception.restarts == 0


# --- limits -------------------------------------------------------------------------------------


def test_silent_sources_are_forgotten() -> None:
    scene = Scene(HISTORY)
    scene.start()
    scene.finish()
    scene.token()
    scene.finish()
    scene.live(5)
    scene.reception.receive(sample(5, eid=8), scene.now)
    scene.out()
    assert len(scene.reception) == 2
    assert scene.reception.deadline == scene.now + limits.RETENTION
    scene.wait(limits.RETENTION)
    # The other one has a token.
    assert len(scene.reception) == 1
    scene.token(alive=False)
    scene.wait(limits.RETENTION)
    assert len(scene.reception) == 0
    assert scene.reception.deadline is None


def test_sources_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "SOURCES_MAX", 10)
    scene = Scene()
    for eid in range(25):
        scene.reception.receive(sample(1, eid=eid), scene.now)
    assert len(scene.reception) == 10
    assert scene.reception.forgotten == 15
    assert len(scene.out()) == 25


def test_samples_that_wait_are_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "HELD_MAX", 10)
    scene = Scene(recovery=HEARTBEAT)
    scene.live(0)
    found = scene.live(*range(2, 30))
    assert found[:2] == ["-1", "2"]
    assert found[-1] == "?_sn=1.."
    assert scene.reception.missed == 1
    scene.finish()
    assert scene.reception.held_bytes == 0
    assert scene.live(30) == ["30"]


def test_samples_that_wait_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "HELD_BYTES", 10_000)
    scene = Scene(HISTORY)
    scene.start()
    for sn in range(0, 100, 2):
        scene.reception.receive(sample(sn, payload=bytes(1000)), scene.now)
        assert scene.reception.held_bytes <= 10_000
    for time in range(100):
        scene.reception.receive(sample(time=time, payload=bytes(1000)), scene.now)
        assert scene.reception.held_bytes <= 10_000
    outputs = scene.reception.take()
    scene.reception.finished(1)
    outputs += scene.reception.take()
    assert sum(isinstance(output, Sample) for output in outputs) == 150
    assert sum(output.nb for output in outputs if isinstance(output, Miss)) == 49
    assert scene.reception.held_bytes == 0


def test_queries_are_made_in_turn() -> None:
    scene = Scene(HISTORY)
    scene.start()
    for eid in range(limits.ASKS_MAX + 5):
        scene.token(f"k/@adv/pub/a/{eid}/_")
    assert len(scene.asked) == limits.ASKS_MAX
    scene.finish(0)
    assert len(scene.asked) == limits.ASKS_MAX + 1
    scene.reception.finished(10_000)
    assert scene.out() == []


# --- properties ---------------------------------------------------------------------------------


@given(st.data())
def test_nothing_is_lost_silently(data: st.DataObject) -> None:
    """Whatever is lost, delayed or repeated: each number is delivered, in order, or missed."""
    rng = random.Random(data.draw(st.integers()))
    recovers, history = data.draw(st.booleans()), data.draw(st.booleans())
    scene = Scene(HistoryConfig() if history else None, HEARTBEAT if recovers else None)
    start = data.draw(st.sampled_from([0, SN_MAX - 10]))
    numbers = [(start + i) % (SN_MAX + 1) for i in range(40)]
    outputs: list[str] = scene.start()
    for i, sn in enumerate(numbers):
        # The first one comes, or nobody could know of it.
        if i == 0 or rng.random() < 0.7:
            outputs += scene.live(sn)
        if rng.random() < 0.1:
            outputs += scene.live(rng.choice(numbers[: i + 1]))
        if recovers and rng.random() < 0.2:
            outputs += scene.heartbeat(sn)
        while scene.asked and rng.random() < 0.5:
            cached = [n for n in numbers[max(0, i - 8) : i + 1] if rng.random() < 0.8]
            outputs += scene.replies(*cached)
            ask = scene.asked.pop(0)
            scene.reception.finished(ask.id)
            outputs += scene.out()
    outputs += scene.live((numbers[-1] + 1) % (SN_MAX + 1))
    while scene.asked:
        ask = scene.asked.pop(0)
        scene.reception.finished(ask.id)
        outputs += scene.out()
    expected = iter([*numbers, (numbers[-1] + 1) % (SN_MAX + 1)])
    for output in outputs:
        if output[0] == "-":
            for _ in range(int(output[1:])):
                next(expected)
        elif output[0] != "?":
            assert int(output) == next(expected)
    assert list(expected) == []
    assert scene.reception.held_bytes == 0
