from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenwire.errors import ConfigError
from zenwire.node.config.json5 import parse_json5
from zenwire.node.config.nodes import DEPTH_MAX, TEXT_MAX, Node


def plain(node: Node) -> Any:
    if node.entries is not None:
        return {entry.key: plain(entry.node) for entry in node.entries}
    return [plain(item) for item in node.items] if node.items is not None else node.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        ("[]", []),
        ("[1,]", [1]),
        (
            "{a:1,'b':2,\"c\":3,$_d:4,\\u0065:5,é:6,}",
            {"a": 1, "b": 2, "c": 3, "$_d": 4, "e": 5, "é": 6},
        ),
        ("// c\n/* * / ** */ 1 // end", 1),
        ("\ufeff\u00a0\u2028 1", 1),
        ("[0x1F,-0x1f,+1,-1,.5,5.,5.e1,1e-3,+.5E+1]", [31, -31, 1, -1, 0.5, 5.0, 50.0, 0.001, 5.0]),
        ("[Infinity,+Infinity,-Infinity]", [math.inf, math.inf, -math.inf]),
        ("[true,false,null]", [True, False, None]),
        (r"'\b\f\n\r\t\v\0\x41\u0042\'\"\q\\'", "\b\f\n\r\t\v\0AB'\"q\\"),
        ("'a\\\nb\\\r\nc\\\u2028d'", "abcd"),
        ("'\u2028\t'", "\u2028\t"),
        (r"'\ud83d\ude00'", "\U0001f600"),
        ("'\"' ", '"'),
    ],
)
def test_values(text: str, value: object) -> None:
    assert plain(parse_json5(text)) == value


def test_nan_is_a_number() -> None:
    assert math.isnan(plain(parse_json5("-NaN")))


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("", 1, 1),
        ("{a}", 1, 3),
        ("{a:1", 1, 5),
        ("{\n  a: 1\n  b: 2}", 3, 3),
        ("[1,,]", 1, 4),
        ("[05]", 1, 2),
        ("[1.2.3]", 1, 2),
        ("[0x]", 1, 2),
        ("[1a]", 1, 2),
        ("[1e999]", 1, 2),
        ("'a", 1, 1),
        ("'a\nb'", 1, 1),
        (r"'\u12'", 1, 2),
        (r"'\1'", 1, 2),
        (r"'\01'", 1, 2),
        (r"'\ud83d'", 1, 1),
        ("\r\n\r/*", 3, 1),
        ("{a:b}", 1, 4),
        ("{1:2}", 1, 2),
        ("1 2", 1, 3),
        ("\\", 1, 1),
        ("+", 1, 1),
        ("[" + "1" * 500 + "]", 1, 2),
    ],
)
def test_an_error_has_its_place(text: str, line: int, column: int) -> None:
    with pytest.raises(ConfigError) as e:
        parse_json5(text)
    (problem,) = e.value.problems
    assert (problem.line, problem.column) == (line, column)


def test_values_know_their_place() -> None:
    node = parse_json5("{\n  a: [1,\r\n 'x'],\n}")
    assert node.entries is not None
    (entry,) = node.entries
    assert (entry.line, entry.column) == (2, 3)
    assert entry.node.items is not None
    assert [(n.line, n.column) for n in entry.node.items] == [(2, 7), (3, 2)]


def test_depth_and_size_are_bounded() -> None:
    parse_json5("[" * DEPTH_MAX + "]" * DEPTH_MAX)
    for text in ("[" * 100_000, "{a:" * 100_000, " " * (TEXT_MAX + 1), "[" + "1," * 300_000 + "]"):
        with pytest.raises(ConfigError):
            parse_json5(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values, st.booleans())
def test_json_is_json5(value: object, ascii_only: bool) -> None:
    assert plain(parse_json5(json.dumps(value, ensure_ascii=ascii_only))) == value


@given(st.text(st.sampled_from("{}[]:,'\"\\/*\n 0x1.eu+-aNI\u2028\ud800")))
def test_any_text_is_a_value_or_a_config_error(text: str) -> None:
    with suppress(ConfigError):
        parse_json5(text)
