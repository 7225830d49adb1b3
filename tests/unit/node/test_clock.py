from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenwire.node.clock import Clock, FutureTimestamp, ntp64_from_ns
from zenwire.wire.structs import Timestamp
from zenwire.wire.values import ZenohId

ME, OTHER = ZenohId.parse("a1"), ZenohId.parse("b2")
SECOND = 10**9
HALF = ntp64_from_ns(SECOND // 2)


class Now:
    def __init__(self, ns: int = 1_700_000_000 * SECOND) -> None:
        self.ns = ns

    def __call__(self) -> int:
        return self.ns


def test_ntp64() -> None:
    assert ntp64_from_ns(1_500_000_000) == 3 << 31
    assert ntp64_from_ns(5) == 21


def test_a_reading_leaves_the_counter_free() -> None:
    now = Now(1_700_000_000 * SECOND + 123_456_789)
    stamp = Clock(ME, now).new_timestamp()
    assert stamp == Timestamp(time=ntp64_from_ns(now.ns) & ~0xF, id=ME)


def test_times_rise_while_the_clock_stands_or_goes_back() -> None:
    now = Now()
    clock = Clock(ME, now)
    first = clock.new_time()
    assert [clock.new_time() for _ in range(40)] == list(range(first + 1, first + 41))
    now.ns -= SECOND
    assert clock.new_time() == first + 41
    now.ns += 3 * SECOND
    assert clock.new_time() == ntp64_from_ns(now.ns)


def test_what_is_heard_pulls_forward_up_to_the_drift() -> None:
    now = Now()
    clock = Clock(ME, now)
    limit = ntp64_from_ns(now.ns) + HALF
    clock.update_with_timestamp(Timestamp(time=limit, id=OTHER))
    assert clock.new_time() == limit + 2
    with pytest.raises(FutureTimestamp, match=r"0\.500 s are allowed"):
        clock.update_with_timestamp(Timestamp(time=limit + 1, id=OTHER))
    assert clock.new_time() == limit + 3


def test_an_old_time_is_learnt_without_effect_on_order() -> None:
    now = Now()
    clock = Clock(ME, now)
    first = clock.new_time()
    clock.update_with_timestamp(Timestamp(time=1, id=OTHER))
    assert clock.new_time() > first


def test_a_clock_before_1970_still_goes() -> None:
    clock = Clock(ME, Now(-5 * SECOND))
    assert [clock.new_time(), clock.new_time()] == [1, 2]


@given(st.lists(st.tuples(st.integers(-SECOND, SECOND), st.integers(-SECOND, SECOND) | st.none())))
def test_times_rise_whatever_happens(steps: list[tuple[int, int | None]]) -> None:
    now = Now()
    clock = Clock(ME, now)
    last = clock.new_time()
    for step, heard in steps:
        now.ns += step
        if heard is not None:
            other = Timestamp(time=ntp64_from_ns(now.ns + heard), id=OTHER)
            try:
                clock.update_with_timestamp(other)
            except FutureTimestamp:
                assert other.time - ntp64_from_ns(now.ns) > HALF - 16
            else:
                last = max(last, other.time)
        time = clock.new_time()
        assert time > last
        last = time
