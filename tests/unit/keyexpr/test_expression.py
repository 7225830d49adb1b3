"""`KeyExpr` as a value: equality, joining, splitting."""

from __future__ import annotations

import copy
import pickle

import pytest

import zenwire.keyexpr
from zenwire.errors import KeyExprError
from zenwire.keyexpr import KeyExpr, SetIntersectionLevel


def test_it_is_made_of_canonical_text_only() -> None:
    assert str(KeyExpr("a/*/**")) == "a/*/**"
    with pytest.raises(KeyExprError):
        KeyExpr("a/**/*")
    assert str(KeyExpr.autocanonize("a/**/*")) == "a/*/**"
    with pytest.raises(KeyExprError):
        KeyExpr.autocanonize("a$*$*b")


def test_it_equals_and_hashes_as_its_text() -> None:
    key = KeyExpr("a/b")
    assert key == KeyExpr("a/b")
    assert key == "a/b"
    assert "a/b" == key  # noqa: SIM300  the reflected comparison is the point
    assert key != KeyExpr("a/c")
    assert key != "a/c"
    assert key != 3
    assert {key: 1}["a/b"] == 1  # type: ignore[index]
    assert repr(key) == "ke`a/b`"
    assert f"{key}" == "a/b"


def test_it_cannot_be_changed() -> None:
    key = KeyExpr("a/b")
    with pytest.raises(AttributeError):
        key.chunks = ("c",)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        key.extra = 1  # type: ignore[attr-defined]
    assert not hasattr(key, "__dict__")


def test_it_can_be_copied_and_pickled() -> None:
    key = KeyExpr("a/**")
    for other in (copy.copy(key), copy.deepcopy(key), pickle.loads(pickle.dumps(key))):
        assert other == key
        assert type(other) is KeyExpr


def test_methods_take_values_and_texts() -> None:
    key = KeyExpr("a/*")
    for other in ("a/b", KeyExpr("a/b")):
        assert key.intersects(other)
        assert key.includes(other)
        assert key.relation_to(other) is SetIntersectionLevel.INCLUDES
    for method in (key.intersects, key.includes, key.relation_to):
        with pytest.raises(KeyExprError):
            method("a//b")
        with pytest.raises(TypeError):
            method(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("a", "b", "level"),
    [
        ("a/b", "a/b", SetIntersectionLevel.EQUALS),
        ("a/**", "a/**", SetIntersectionLevel.EQUALS),
        ("a/*", "a/b", SetIntersectionLevel.INCLUDES),
        ("a/b", "a/*", SetIntersectionLevel.INTERSECTS),
        ("a/*", "*/b", SetIntersectionLevel.INTERSECTS),
        ("a/b", "a/c", SetIntersectionLevel.DISJOINT),
        ("**", "@a", SetIntersectionLevel.DISJOINT),
    ],
)
def test_relation(a: str, b: str, level: SetIntersectionLevel) -> None:
    assert KeyExpr(a).relation_to(b) is level


def test_levels_are_ordered() -> None:
    assert sorted(SetIntersectionLevel) == [
        SetIntersectionLevel.DISJOINT,
        SetIntersectionLevel.INTERSECTS,
        SetIntersectionLevel.INCLUDES,
        SetIntersectionLevel.EQUALS,
    ]
    assert str(SetIntersectionLevel.EQUALS) == "SetIntersectionLevel.EQUALS"


@pytest.mark.parametrize(
    ("a", "b", "joined"),
    [
        ("a", "b", "a/b"),
        ("a/b", "c/d", "a/b/c/d"),
        ("a/**", "*", "a/*/**"),
        ("a/**", "**", "a/**"),
        ("a", "**/*", "a/*/**"),
        ("a", "$*", "a/*"),
        ("a$*", "$*b", "a$*/$*b"),
        ("@a", "@b", "@a/@b"),
    ],
)
def test_join_is_canonical(a: str, b: str, joined: str) -> None:
    assert KeyExpr(a).join(b) == joined
    assert KeyExpr(a) / b == joined
    assert KeyExpr(a) / KeyExpr.autocanonize(b) == joined


@pytest.mark.parametrize("tail", ["", "/b", "b/", "b#", "b$*$*c"])
def test_join_refuses_what_has_no_canonical_form(tail: str) -> None:
    with pytest.raises(KeyExprError):
        KeyExpr("a").join(tail)
    with pytest.raises(KeyExprError):
        KeyExpr("a") / tail


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ("a", "b", "ab"),
        ("a", "/b", "a/b"),
        ("a", "", "a"),
        ("a", "$*", "a$*"),
        ("*", "/**", "*/**"),
    ],
)
def test_concat_is_concatenation(a: str, b: str, text: str) -> None:
    assert KeyExpr(a).concat(b) == text


@pytest.mark.parametrize(
    ("a", "b", "position"),
    [
        ("a/*", "*", 3),
        ("a$*", "*", 3),
        ("a", "*", 1),
        ("a/**", "/*", 5),
        ("a/*", "a", 2),
        ("a", "/", 1),
        ("a", "$*$*", 3),
        ("a", "/$*", 2),
    ],
)
def test_concat_refuses_what_is_not_canonical(a: str, b: str, position: int) -> None:
    with pytest.raises(KeyExprError) as caught:
        KeyExpr(a).concat(b)
    assert caught.value.text == a + b
    assert caught.value.position == position


def test_concat_takes_a_value_and_no_other_object() -> None:
    assert KeyExpr("a").concat(KeyExpr("b")) == "ab"
    for wrong in (3, None, b"b"):
        with pytest.raises(TypeError):
            KeyExpr("a").concat(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            KeyExpr("a").join(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            KeyExpr("a") / wrong  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "prefix", "rest"),
    [
        ("a", "a", ""),
        ("a/b/c", "a/b/c", ""),
        ("a/b/*", "a/b", "/*"),
        ("a/b/**/c", "a/b", "/**/c"),
        ("a/b/c$*", "a/b", "/c$*"),
        ("a/$*c", "a", "/$*c"),
        ("*/a", "", "*/a"),
        ("**", "", "**"),
        ("a$*/b", "", "a$*/b"),
        ("@a/@b$*", "@a", "/@b$*"),
    ],
)
def test_prefix_split(text: str, prefix: str, rest: str) -> None:
    key = KeyExpr(text)
    assert key.prefix_split() == (prefix, rest)
    assert prefix + rest == text
    assert key.is_wild is (rest != "")


def test_chunks() -> None:
    assert KeyExpr("a").chunks == ("a",)
    assert KeyExpr("a/**/b$*").chunks == ("a", "**", "b$*")


def test_public_names_are_there() -> None:
    for name in zenwire.keyexpr.__all__:
        assert hasattr(zenwire.keyexpr, name)
