"""The grammar of PROTOCOL.md 6.1, rule by rule, and what a person is told."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from zenwire.errors import KeyExprError, ZError
from zenwire.keyexpr import canonize, is_canonical, validate

CANONICAL = [
    "a",
    "a/b/c",
    "demo/example/zenoh-python",
    "*",
    "**",
    "a/*",
    "*/a",
    "a/**",
    "**/a",
    "*/**",
    "*/*/**/a",
    "a/**/b/**/c",
    "**/@a/**",
    "a$*",
    "$*a",
    "a$*b",
    "$*a$*b$*",
    "a/b$*/c",
    # Verbatim chunks.
    "@",
    "@a",
    "@/a",
    "@a$*",
    "@$*",
    "$*@",
    "a@b",
    # Everything else is allowed.
    " ",
    "a b",
    ".",
    "a/../b",
    "\0",
    "a\nb\n",
    "\x85\u2028",
    "é/日本/🚀",
    "a&b=c;d",
]

# text, index of the wrong character, part of the reason
WRONG = [
    ("", 0, "it is empty"),
    ("/", 0, "starts with '/'"),
    ("//", 0, "starts with '/'"),
    ("/a", 0, "starts with '/'"),
    ("a/", 1, "ends with '/'"),
    ("a/b/", 3, "ends with '/'"),
    ("**/", 2, "ends with '/'"),
    ("a//b", 2, "two slashes in a row"),
    ("a/b//", 4, "two slashes in a row"),
    ("**//*", 3, "two slashes in a row"),
    ("#", 0, "'#' is not allowed"),
    ("a/b#c", 3, "'#' is not allowed"),
    ("a?b", 1, "'?' is not allowed"),
    ("a/**/*?x=1", 6, "'?' is not allowed"),
    ("a/b?x=1", 3, "selector"),
    ("$", 0, "only in '$*'"),
    ("a$", 1, "only in '$*'"),
    ("a/$b", 2, "only in '$*'"),
    ("a$$*", 1, "only in '$*'"),
    ("a$*$", 3, "only in '$*'"),
    ("a*", 1, "only as a whole chunk"),
    ("*a", 0, "only as a whole chunk"),
    ("a/b**", 3, "only as a whole chunk"),
    ("***", 0, "only as a whole chunk"),
    ("a/***", 2, "only as a whole chunk"),
    ("$**", 2, "only as a whole chunk"),
    ("*$*", 0, "only as a whole chunk"),
    ("@*", 1, "only as a whole chunk"),
    ("@**", 1, "only as a whole chunk"),
    ("\ud800", 0, "surrogate"),
    ("a/b\udfff", 3, "surrogate"),
    # Repeated '$*' that the reference refuses, or panics on.
    ("a$*$*", 3, "write 'a$*'"),
    ("a$*$*b", 3, "write 'a$*b'"),
    ("x/a$*$*b", 5, "write 'x/a$*b'"),
    ("a$*$*$*bb", 3, "write 'a$*bb'"),
    ("a$*$*bb$*c", 3, "write 'a$*bb$*c'"),
    ("a$*$*é$*c", 3, "write 'a$*é$*c'"),
    ("a$*$*/b$*c", 3, "write 'a$*/b$*c'"),
]

# text, index of the wrong character, part of the reason, canonical form
UNTIDY = [
    ("$*", 0, "only '$*' is written '*'", "*"),
    ("a/$*/b", 2, "only '$*' is written '*'", "a/*/b"),
    ("$*$*", 2, "'$*$*' repeats", "*"),
    ("a/$*$*$*", 4, "'$*$*' repeats", "a/*"),
    ("$*$*$*b", 2, "'$*$*' repeats", "$*b"),
    ("a$*$*bb", 3, "'$*$*' repeats", "a$*bb"),
    ("a$*$*é", 3, "'$*$*' repeats", "a$*é"),
    ("a$*$*/b", 3, "'$*$*' repeats", "a$*/b"),
    ("**/**", 3, "'**/**' repeats", "**"),
    ("a/**/**/**/b", 5, "'**/**' repeats", "a/**/b"),
    ("**/*", 3, "'*' goes before '**'", "*/**"),
    ("a/**/*", 5, "'*' goes before '**'", "a/*/**"),
    ("*/**/*", 5, "'*' goes before '**'", "*/*/**"),
    ("**/$*/a", 3, "only '$*' is written '*'", "*/**/a"),
    ("a/**/*/**/*/b", 5, "'*' goes before '**'", "a/*/*/**/b"),
    ("**/@a/**/**", 9, "'**/**' repeats", "**/@a/**"),
]


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_text_is_accepted_and_left_alone(text: str) -> None:
    validate(text)
    assert is_canonical(text)
    assert canonize(text) is text


@pytest.mark.parametrize(("text", "position", "reason"), WRONG)
def test_wrong_text_is_refused_with_the_place_and_the_reason(
    text: str, position: int, reason: str
) -> None:
    assert not is_canonical(text)
    for check in (validate, canonize):
        with pytest.raises(KeyExprError) as caught:
            check(text)
        assert caught.value.text == text
        assert caught.value.position == position
        assert reason in caught.value.reason
        assert "autocanonize" not in caught.value.reason


@pytest.mark.parametrize(("text", "position", "reason", "canonical"), UNTIDY)
def test_untidy_text_is_refused_with_its_canonical_form(
    text: str, position: int, reason: str, canonical: str
) -> None:
    assert not is_canonical(text)
    with pytest.raises(KeyExprError) as caught:
        validate(text)
    assert caught.value.position == position
    assert reason in caught.value.reason
    assert f"write {canonical!r} or use autocanonize" in caught.value.reason
    assert canonize(text) == canonical
    validate(canonical)


def test_what_cannot_be_repaired_is_told_before_what_can() -> None:
    with pytest.raises(KeyExprError) as caught:
        validate("**/*/a#")
    assert caught.value.position == 6


def test_the_message_is_for_a_person() -> None:
    with pytest.raises(KeyExprError) as caught:
        validate("a/**/*")
    assert str(caught.value) == (
        "'a/**/*' is not a key expression: '*' goes before '**'; "
        "write 'a/*/**' or use autocanonize (at character 5)"
    )
    assert isinstance(caught.value, ZError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("wrong", [b"a", 3, None])
def test_only_text_is_taken(wrong: Any) -> None:
    for check in (validate, canonize, is_canonical):
        with pytest.raises(TypeError):
            check(wrong)


@pytest.mark.parametrize("unit", ["a/", "$*a", "**/a/", "*/", "a$*b/", "**/", "$*", "/", "$", "*"])
def test_long_text_is_read_without_recursion(unit: str) -> None:
    text = unit * 100_000
    for candidate in (text + "a", text + "#", text):
        with contextlib.suppress(KeyExprError):
            assert is_canonical(canonize(candidate))
