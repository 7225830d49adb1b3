"""Aliases: two tables, read and written in both directions."""

from __future__ import annotations

import pytest

from tests.unit.routing.scene import peer, put, raw
from zenwire.routing.resources import ALIAS_MAX, Aliases, split_wild
from zenwire.wire.values import Mapping, WireExpr


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("demo/a/**", ("demo/a", "/**")),
        ("demo/b/1", ("demo/b/1", "")),
        ("demo/b$*/c", ("demo", "/b$*/c")),
        ("**", ("", "**")),
        ("*/a", ("", "*/a")),
    ],
)
def test_split(key: str, parts: tuple[str, str]) -> None:
    assert split_wild(key) == parts


def test_the_same_number_is_two_keys() -> None:
    aliases = Aliases()
    assert aliases.declare("ours") == 1
    assert aliases.learn(1, "theirs")
    assert aliases.resolve(WireExpr(1, "/x", Mapping.SENDER)) == "theirs/x"
    assert aliases.resolve(WireExpr(1, "/x", Mapping.RECEIVER)) == "ours/x"
    assert aliases.resolve(WireExpr(0, "k")) == "k"
    assert aliases.resolve(WireExpr(2, "/x")) is None


def test_the_suffix_is_joined_verbatim() -> None:
    aliases = Aliases()
    aliases.learn(7, "k/a")
    assert aliases.resolve(WireExpr(7, "zz")) == "k/azz"


def test_shortest_takes_the_longest_prefix_of_whole_chunks() -> None:
    aliases = Aliases()
    aliases.declare("a")
    aliases.declare("a/b")
    assert aliases.shortest("a/b/c") == WireExpr(2, "/c")
    assert aliases.shortest("a/bc") == WireExpr(1, "/bc")
    assert aliases.shortest("ab") == WireExpr(0, "ab")
    aliases.learn(9, "a/b")
    assert aliases.shortest("a/b") == WireExpr(9, "", Mapping.RECEIVER), "theirs go first"
    assert aliases.forget(9)
    assert aliases.shortest("a/b") == WireExpr(2, "")
    assert not aliases.forget(9)


def test_a_live_number_is_never_another_key() -> None:
    aliases = Aliases()
    assert aliases.learn(3, "a")
    assert aliases.learn(3, "a")
    assert not aliases.learn(3, "b")
    assert not aliases.learn(0, "b")
    assert aliases.resolve(WireExpr(3)) == "a"
    assert aliases.forget(3)
    assert aliases.learn(3, "b")


def test_two_numbers_for_one_key() -> None:
    aliases = Aliases()
    aliases.learn(1, "a")
    aliases.learn(2, "a")
    aliases.forget(2)
    assert aliases.shortest("a") == WireExpr(1, "", Mapping.RECEIVER)
    assert aliases.resolve(WireExpr(1)) == "a"


def test_numbers_run_out() -> None:
    aliases = Aliases()
    numbers = {aliases.declare(f"k{n}") for n in range(ALIAS_MAX)}
    assert numbers == set(range(1, ALIAS_MAX + 1))
    assert aliases.declare("more") is None


def test_a_route_follows_aliases_as_they_come_and_go() -> None:
    scene = peer()
    other = scene.peer()
    scene.hear(other, 'be 00 21 08 1a 9e 21 08 62 01 00 02 "**"')
    scene.forget()
    scene.session.push("a/b", put())
    assert scene.sent(other) == raw('7d 00 03 "a/b" 01 01 "x"')
    scene.hear(other, '9e 21 08 20 05 00 03 "a/b"')
    scene.session.push("a/b", put())
    assert scene.sent(other) == raw('1d 05 01 01 "x"')
    scene.hear(other, "9e 21 08 01 05")
    scene.session.push("a/b", put())
    assert scene.sent(other) == raw('7d 00 03 "a/b" 01 01 "x"')
