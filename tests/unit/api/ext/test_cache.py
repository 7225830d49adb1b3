from __future__ import annotations

import pytest

from tests.unit.api.ext.scenes import sample
from zenwire.api.ext.cache import Cache, CacheConfig
from zenwire.api.ext.sequence import SN_MAX
from zenwire.api.values import NTP64, Parameters


def filled(*numbers: int, size: int = 9) -> Cache:
    cache = Cache(CacheConfig(size))
    for sn in numbers:
        cache.add(sample(sn))
    return cache


def found(cache: Cache, parameters: str, now: float = 0) -> list[str]:
    return [one.payload.to_string() for one in cache.select(Parameters(parameters), now)]


def test_the_oldest_give_way() -> None:
    cache = filled(1, 2, 3, 4, size=3)
    assert len(cache) == 3
    assert found(cache, "") == ["2", "3", "4"]
    assert len(Cache(CacheConfig())._samples) == 0
    one = filled(1, 2, size=1)
    assert found(one, "_anyke") == ["2"]


@pytest.mark.parametrize(
    ("parameters", "wanted"),
    [
        ("_sn=2..", "2345"),
        ("_sn=..2", "12"),
        ("_sn=2..4", "234"),
        ("_sn=3", "3"),
        ("_sn=..", "12345"),
        ("_sn=9..", ""),
        ("_sn=x..3", "123"),
        ("_sn=3..x", "345"),
        ("_sn=x", "12345"),
        ("_sn", "12345"),
        ("_sn=-1..2", "12"),
        (f"_sn=..{2**32}", "12345"),
        ("_sn=" + "9" * 5000 + "..", "12345"),
        ("_max=2", "45"),
        ("_max=0", ""),
        ("_max=9", "12345"),
        ("_max=x", "12345"),
        ("_max=-1", "12345"),
        ("_max=" + "9" * 5000, "12345"),
        ("_sn=..4;_max=2", "34"),
        ("_time=nonsense", "12345"),
        ("_time=[now()..]", "12345"),
    ],
)
def test_what_is_asked_for(parameters: str, wanted: str) -> None:
    assert found(filled(1, 2, 3, 4, 5), parameters) == list(wanted)


def test_numbers_wrap_around() -> None:
    cache = filled(SN_MAX - 1, SN_MAX, 0, 1)
    assert found(cache, f"_sn={SN_MAX}..0") == [str(SN_MAX), "0"]


def test_without_numbers_none_is_asked_for() -> None:
    cache = Cache(CacheConfig(3))
    cache.add(sample(time=1))
    assert found(cache, "") == ["1"]
    assert found(cache, "_sn=0..") == []


def test_times() -> None:
    cache = Cache(CacheConfig(9))
    for second in range(10, 15):
        cache.add(sample(time=int(NTP64(second, 0)), payload=str(second).encode()))
    now = 15.0
    assert found(cache, "_time=[now(-3s)..]", now) == ["12", "13", "14"]
    assert found(cache, "_time=]now(-3s)..]", now) == ["13", "14"]
    assert found(cache, "_time=[..now(-3s)]", now) == ["10", "11", "12"]
    assert found(cache, "_time=[..now(-3s)[", now) == ["10", "11"]
    assert found(cache, "_time=[now(-1m)..];_max=1", now) == ["14"]
    assert found(cache, "_time=[1970-01-01T00:00:11Z..1970-01-01T00:00:12Z]") == ["11", "12"]


@pytest.mark.parametrize("count", [0, -1])
def test_a_cache_has_room(count: int) -> None:
    with pytest.raises(ValueError, match="max_samples"):
        CacheConfig(count)


def test_those_alone_that_came_since() -> None:
    cache = filled(1, 2, 3, 4, size=3)
    assert cache.added == 4
    cache.add(sample(5))
    every = Parameters("")
    assert [one.payload.to_string() for one in cache.select(every, 0, 4)] == ["5"]
    # Also when more came than there is room for.
    assert [one.payload.to_string() for one in cache.select(every, 0, 1)] == ["3", "4", "5"]
    assert cache.select(every, 0, 5) == []
