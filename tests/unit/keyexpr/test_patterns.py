"""Patterns are found by their literals as by comparing them one by one, also after removals."""

from __future__ import annotations

import itertools
import random

import pytest

from zenwire.keyexpr.match import chunk_includes, chunk_intersects
from zenwire.keyexpr.patterns import BUCKET, LAST, PatternMap

PIECES = ["", "a", "b", "ab", "aab", "é"]
ALL = sorted(
    {
        "$*".join(chosen)
        for count in (2, 3, 4)
        for chosen in itertools.product(PIECES, repeat=count)
        if any(chosen) and all(chosen[1:-1])
    }
)
TEXTS = ["".join(chosen) for n in range(1, 7) for chosen in itertools.product("ab", repeat=n)]
CHUNKS = [*TEXTS, "é", "aé", "éa", "*", "a" * 40, "c" * 40 + "ab", *ALL[::7]]


def map_of(patterns: list[str]) -> PatternMap[str]:
    made: PatternMap[str] = PatternMap()
    for pattern in patterns:
        made.add(pattern, pattern)
    return made


def agrees(found: PatternMap[str], patterns: list[str]) -> None:
    assert len(found) == len(patterns)
    for chunk in CHUNKS:
        including = [pattern for pattern in patterns if chunk_includes(pattern, chunk)]
        assert sorted(found.including(chunk)) == including, chunk
        intersecting = [pattern for pattern in patterns if chunk_intersects(pattern, chunk)]
        assert sorted(found.intersecting(chunk)) == intersecting, chunk


def test_all_small_patterns() -> None:
    assert len(ALL) > 500
    agrees(map_of(ALL), ALL)


@pytest.mark.parametrize("count", [1, BUCKET, BUCKET + 1, 3 * BUCKET, 100])
def test_some_patterns(count: int) -> None:
    rng = random.Random(count)
    for _ in range(3):
        chosen = rng.sample(ALL, count)
        agrees(map_of(chosen), sorted(chosen))


def test_removed_patterns_are_not_found() -> None:
    rng = random.Random(1)
    left = rng.sample(ALL, len(ALL))
    found = map_of(left)
    for size in (200, BUCKET + 1, BUCKET // 2, 1, 0):
        while len(left) > size:
            found.remove(left.pop())
        agrees(found, sorted(left))
    assert found._index is None


def test_patterns_that_differ_only_after_the_last_level() -> None:
    many = "$*".join(["", *"ab" * LAST])
    patterns = [f"{many}$*{n:02}$*" for n in range(3 * BUCKET)] + [f"{many}$*"]
    found = map_of(patterns)
    assert found.including("ab" * LAST) == [f"{many}$*"]
    assert sorted(found.including("ab" * LAST + "1107")) == sorted(
        [f"{many}$*", f"{many}$*10$*", f"{many}$*11$*", f"{many}$*07$*"]
    )
    assert found.including("ab" * (LAST - 1) + "07") == []
    for pattern in patterns:
        found.remove(pattern)
    assert len(found) == 0
    assert found._index is None


def test_literals_do_not_overlap() -> None:
    # Head, tail and pieces each need characters of their own.
    patterns = ["aa$*aa", "aa$*a$*aa", *(f"x{n}$*" for n in range(2 * BUCKET))]
    found = map_of(patterns)
    assert found.including("aaa") == []
    assert found.including("aaaa") == ["aa$*aa"]
    assert sorted(found.including("aaaaa")) == ["aa$*a$*aa", "aa$*aa"]
