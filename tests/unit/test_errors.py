from __future__ import annotations

import pickle

import pytest

from zenwire.errors import DecodeError, EncodeError, Fault, KeyExprError, ZError
from zenwire.wire import decode


def test_all_are_zerrors_and_bad_values_are_value_errors() -> None:
    assert all(issubclass(e, ZError) for e in (DecodeError, EncodeError, KeyExprError))
    assert all(issubclass(e, ValueError) for e in (EncodeError, KeyExprError))


def test_a_decode_error_says_what_where_and_why() -> None:
    with pytest.raises(DecodeError) as e:
        decode(b"\x01\x05abc", "data")
    assert str(e.value) == "TRUNCATED at byte 2 in PUT: 5 bytes declared, 3 left"
    assert (e.value.fault, e.value.offset, e.value.message) == (Fault.TRUNCATED, 2, "PUT")


def test_a_decode_error_crosses_processes_whole() -> None:
    with pytest.raises(DecodeError) as e:
        decode(b"\x01\x05abc", "data")
    copy = pickle.loads(pickle.dumps(e.value))
    assert type(copy) is DecodeError
    assert str(copy) == str(e.value)


def test_a_key_expression_error_points_at_the_character() -> None:
    error = KeyExprError("a#b", 1, "'#' is not allowed")
    assert str(error) == "'a#b' is not a key expression: '#' is not allowed (at character 1)"
