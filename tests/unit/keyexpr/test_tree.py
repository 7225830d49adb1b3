"""The tree finds what a scan finds, forgets without trace, and does not slow down as it grows."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

import pytest

from zenwire.errors import KeyExprError
from zenwire.keyexpr import KeyExpr, KeyExprTree, canonize, includes, intersects

STORED = [
    "a",
    "a/b",
    "a/b/c",
    "a/*",
    "a/**",
    "a/**/c",
    "a/*/c",
    "*",
    "**",
    "**/c",
    "*/b",
    "*/**",
    "a/b$*",
    "a/$*b",
    "a/$*b$*/c",
    "a/**/b/**/c",
    "**/b/**",
    "@a",
    "@a/**",
    "@a$*",
    "**/@a/**",
    "a/@b/c",
    "a/*/@b",
    "x/y/z",
]


def tree_of(keys: list[str]) -> KeyExprTree[int]:
    tree: KeyExprTree[int] = KeyExprTree()
    for value, key in enumerate(keys):
        tree.insert(key, value)
    return tree


def names(found: Iterator[tuple[str, int]]) -> list[str]:
    return sorted(key for key, _ in found)


def test_it_maps_keys_to_values() -> None:
    tree = tree_of(STORED)
    assert len(tree) == len(STORED)
    assert sorted(tree) == sorted(STORED)
    assert dict(tree.items()) == {key: value for value, key in enumerate(STORED)}
    for value, key in enumerate(STORED):
        assert tree.get(key) == value
        assert tree.get(KeyExpr(key)) == value
        assert key in tree
        assert KeyExpr(key) in tree
    for key in ("b", "a/b/c/d", "x", "x/y", "@b", "a/c$*", "a/b/*", "a/**/@b", "", "a//b", "#"):
        assert tree.get(key) is None
        assert tree.get(key, -1) == -1
        assert key not in tree


def test_an_empty_tree_finds_nothing() -> None:
    tree: KeyExprTree[int] = KeyExprTree()
    assert len(tree) == 0
    assert list(tree) == []
    for key in ("a", "**", "a/*/b$*"):
        assert list(tree.intersecting(key)) == []
        assert list(tree.including(key)) == []
        assert list(tree.included_by(key)) == []


def test_insert_replaces_and_checks() -> None:
    tree = tree_of(["a/*"])
    tree.insert("a/*", 7)
    assert len(tree) == 1
    assert tree.get("a/*") == 7
    tree.insert(KeyExpr("a/**"), 8)
    assert list(tree.intersecting("a/b/c")) == [("a/**", 8)]
    for wrong in ("", "a//b", "a/**/*", "$*"):
        with pytest.raises(KeyExprError):
            tree.insert(wrong, 1)
    assert len(tree) == 2


def test_a_value_may_be_none() -> None:
    tree: KeyExprTree[None] = KeyExprTree()
    tree.insert("a", None)
    assert "a" in tree
    assert len(tree) == 1
    assert list(tree.intersecting("*")) == [("a", None)]
    assert tree.remove("a") is None
    assert "a" not in tree


@pytest.mark.parametrize("query", [*STORED, "a/b/c/d", "b", "a/xbx/c", "*/*", "**/b/**/c", "**/@b"])
def test_it_finds_what_a_scan_finds(query: str) -> None:
    tree = tree_of(STORED)
    assert names(tree.intersecting(query)) == sorted(k for k in STORED if intersects(k, query))
    assert names(tree.including(query)) == sorted(k for k in STORED if includes(k, query))
    assert names(tree.included_by(query)) == sorted(k for k in STORED if includes(query, k))
    assert names(tree.intersecting(KeyExpr(query))) == names(tree.intersecting(query))


def test_nothing_is_found_twice() -> None:
    # Many ways lead through these to the same node.
    keys = ["**", "**/a/**", "**/a/**/a/**", "**/a/**/a/**/a/**", "a/**/a"]
    tree = tree_of(keys)
    for query in ("a/a/a/a/a/a", "**/a/**/a/**", "*/*/*/*", "**"):
        assert names(tree.intersecting(query)) == sorted(k for k in keys if intersects(k, query))
        assert names(tree.including(query)) == sorted(k for k in keys if includes(k, query))
        assert names(tree.included_by(query)) == sorted(k for k in keys if includes(query, k))


def test_remove_forgets_the_key_and_its_nodes() -> None:
    tree = tree_of(STORED)
    for value, key in enumerate(STORED):
        assert tree.remove(key) == value
        assert key not in tree
        assert len(tree) == len(STORED) - value - 1
        assert sorted(tree) == sorted(STORED[value + 1 :])
    assert tree._root.is_bare()


def test_remove_keeps_what_others_need() -> None:
    tree = tree_of(["a/b", "a/b/c", "a/b/*"])
    tree.remove("a/b")
    assert sorted(tree) == ["a/b/*", "a/b/c"]
    tree.remove("a/b/c")
    assert sorted(tree) == ["a/b/*"]
    assert names(tree.intersecting("a/b/c")) == ["a/b/*"]


@pytest.mark.parametrize("absent", ["a", "a/b/c/d", "b", "*", "a/*", "@a", "a/b$*", "", "a//c"])
def test_removing_what_is_not_there_is_an_error(absent: str) -> None:
    tree = tree_of(["a/b/c"])
    with pytest.raises(KeyError):
        tree.remove(absent)
    assert list(tree) == ["a/b/c"]


def test_deep_keys_do_not_recurse() -> None:
    deep = "/".join(["a"] * 10_000)
    keys = [deep, f"{deep}/**", f"**/{deep}", f"{deep}/*/b$*/@c"]
    tree = tree_of(keys)
    assert names(tree.intersecting(deep)) == sorted(keys[:3])
    assert names(tree.including(deep)) == sorted(keys[:3])
    assert names(tree.included_by(f"{deep}/**")) == sorted(keys[:2])
    assert names(tree.intersecting("**/a")) == sorted(keys[:3])
    assert names(tree.intersecting(f"{deep}/x/*/@c")) == [keys[3]]
    assert len(list(tree)) == 4
    for key in keys:
        tree.remove(key)
    assert tree._root.is_bare()


def test_hostile_keys_are_answered_at_once() -> None:
    # Half as long as the wire allows. A walk that takes each way by itself would take minutes.
    many = 16_000
    block = "**/" + "a/" * many
    keys = [f"{block}b/**", f"{block}*/$*", "**/" + "a/**/" * (many // 3) + "b"]
    tree = tree_of([canonize(key) for key in keys])
    start = time.perf_counter()
    assert list(tree.intersecting("a/" * many + "c")) == []
    assert names(tree.intersecting("a/" * many + "a/b")) == sorted(tree)
    assert list(tree.including("a/" * many + "@a/b")) == []
    assert time.perf_counter() - start < 5.0


def steps(run: Callable[[], object]) -> int:
    """How many lines of zenwire.keyexpr run: the work, where time would be noise."""
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        if "keyexpr" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


def test_a_lookup_does_not_slow_down_as_the_tree_grows() -> None:
    tree: KeyExprTree[int] = KeyExprTree()
    watchers = ["**", "site/*/temp/*", "site/$*7/**", "site/**/7", "site/7/*/7", "site/@7/**"]
    for value, key in enumerate(watchers):
        tree.insert(key, value)

    def work() -> list[int]:
        return [
            steps(lambda: list(tree.intersecting("site/7/temp/7"))),
            steps(lambda: list(tree.intersecting("site/7/humidity/nobody"))),
            steps(lambda: list(tree.intersecting("nowhere"))),
            steps(lambda: list(tree.intersecting("site/7/temp/*"))),
            steps(lambda: list(tree.including("site/7/temp/*"))),
            steps(lambda: list(tree.included_by("site/7/**"))),
            steps(lambda: tree.get("site/7/temp/7")),
            steps(lambda: tree.insert("site/7/temp/7", 0)),
        ]

    costs = []
    inserted = 0
    for size in (100, 1_000, 10_000, 100_000):
        while inserted < size:
            # Ten keys at each of very many sites: the node `site` has most of the children.
            tree.insert(f"site/{inserted // 10}/temp/{inserted % 10}", inserted)
            inserted += 1
        assert len(tree) == size + len(watchers)
        costs.append(work())
    assert costs[0] == costs[1] == costs[2] == costs[3]
    assert max(costs[0]) < 2_000


def looked_up(tree: KeyExprTree[int], key: str) -> list[tuple[str, int]]:
    return list(tree.intersecting(key))


PATTERNS: dict[str, Callable[[int], str]] = {
    "tails": lambda n: f"$*{n}",
    "heads": lambda n: f"{n}a$*",
    "pieces": lambda n: f"$*{n}a$*",
    "one tail": lambda n: f"a{n}$*x",
    "one head": lambda n: f"s$*{n}a$*",
    "one piece": lambda n: f"$*7$*{n}",
    "three pieces": lambda n: f"$*{n % 27}a$*{n // 27 % 27}a$*{n // 729}a$*",
    "a last piece": lambda n: f"$*a$*b$*c$*d$*e$*f$*{n}$*",
    "many pieces": lambda n: "$*a" * 20 + f"$*{n}",
}


@pytest.mark.parametrize("family", PATTERNS)
def test_patterns_that_do_not_match_do_not_slow_a_lookup_down(family: str) -> None:
    tree: KeyExprTree[int] = KeyExprTree()
    keys = ["site/sensor-7b3e/x", "site/sensor-7b3e/y", "site/zzz/x", "site/*/x"]
    costs: list[list[int]] = []
    for number in range(20_000):
        tree.insert(f"site/{PATTERNS[family](number)}/x", number)
        if number in {999, 19_999}:
            costs.append([steps(partial(looked_up, tree, key)) for key in keys[:3]])
    for key in keys:
        found = names(tree.intersecting(key))
        assert found == sorted(one for one in tree if intersects(one, key))
    # A text has more places to look at where there are literals of more lengths.
    assert max(costs[1]) < 2 * max(costs[0]) + 100
    assert max(costs[1]) < 2_000


def test_many_patterns_leave_nothing_behind() -> None:
    tree: KeyExprTree[int] = KeyExprTree()
    texts = [f"site/{pattern(n)}/x" for pattern in PATTERNS.values() for n in range(300)]
    for text in texts:
        tree.insert(text, 0)
    assert sorted(tree) == sorted(set(texts))
    for text in set(texts):
        tree.remove(text)
    assert tree._root.is_bare()
