from __future__ import annotations

import pytest

from zenwire.api.namespace import Namespace
from zenwire.keyexpr import KeyExpr


def test_none_changes_nothing() -> None:
    space = Namespace(None)
    assert space.outward("a/b") == "a/b"
    assert space.inward("a/*") == "a/*"


@pytest.mark.parametrize("key", ["a", "a/b", "**", "*/x$*", "@v/a"])
def test_what_goes_out_comes_back(key: str) -> None:
    space = Namespace(KeyExpr("ns/one"))
    assert space.outward(key) == f"ns/one/{key}"
    assert space.inward(space.outward(key)) == key


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("ns/two/a", None),
        ("ns/one", None),
        ("ns", None),
        ("ns/onex/a", None),
        ("*/one/a", "a"),
        ("ns/o$*/a/*", "a/*"),
        ("ns/t$*/a", None),
        ("**", "**"),
        ("ns/**", "**"),
        ("ns/**/a", "**/a"),
        ("ns/*/**", "**"),
        ("*/*", None),
        ("other/**", None),
    ],
)
def test_wild_keys_of_others(key: str, expected: str | None) -> None:
    assert Namespace(KeyExpr("ns/one")).inward(key) == expected
