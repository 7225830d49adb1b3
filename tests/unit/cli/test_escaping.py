"""Text from the network on its way to stdout and stderr."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest

from zenwire.cli.escaping import escape, escape_lines, json_text

BIDIRECTIONAL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("grün 日本 \U0001f600", "grün 日本 \U0001f600"),
        ("\x1b]0;title\x07\x1b[2J", r"\x1b]0;title\x07\x1b[2J"),
        ("one\ntwo\r\tthree\0", r"one\ntwo\r\tthree\x00"),
        ("\x7f\x85\x9b31m", r"\x7f\x85\x9b31m"),
        ("a\u202eb\u2066c\u2028d", r"a\u202eb\u2066c\u2028d"),
        (r"C:\new", r"C:\new"),
        # A family: joined by a character that is no control.
        ("\U0001f468\u200d\U0001f469", "\U0001f468\u200d\U0001f469"),
    ],
)
def test_control_characters_are_written_out(text: str, escaped: str) -> None:
    assert escape(text) == escaped


def test_lines_of_our_own_stay() -> None:
    assert escape_lines("one\n\ttwo\x1b\r\u202e\n") == "one\n\ttwo\\x1b\\r\\u202e\n"


def test_no_control_character_is_left() -> None:
    text = "".join(map(chr, range(sys.maxunicode + 1)))
    controls = {c for c in text if unicodedata.category(c) in ("Cc", "Zl", "Zp")}
    assert not (controls | set(BIDIRECTIONAL)) & set(escape(text))
    assert (controls | set(BIDIRECTIONAL)) & set(escape_lines(text)) == {"\n", "\t"}


@pytest.mark.parametrize("ascii_only", [False, True])
def test_json_means_the_same(ascii_only: bool) -> None:
    text = "".join(map(chr, range(0x300))) + BIDIRECTIONAL + "\u2028\u2029\U0001f600"
    made = json_text({text: [text]}, ascii_only=ascii_only)
    assert json.loads(made) == {text: [text]}
    assert escape(made) == made
    assert ascii_only == made.isascii()


def test_json_with_an_indent() -> None:
    assert json_text({"a": "\x9b"}, indent=1) == '{\n "a": "\\u009b"\n}'
