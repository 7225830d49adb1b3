"""CBOR as JSON: the examples of RFC 8949, and bytes that mean harm."""

from __future__ import annotations

import contextlib
import json
import random
from typing import Any

import pytest

from zenwire.lake.payloads.cbor import DEPTH_MAX, decode
from zenwire.lake.payloads.fault import Fault

# RFC 8949, appendix A.
EXAMPLES: list[tuple[str, Any]] = [
    ("00", 0),
    ("17", 23),
    ("1818", 24),
    ("1903e8", 1000),
    ("1a000f4240", 1_000_000),
    ("1bffffffffffffffff", 18446744073709551615),
    ("c249010000000000000000", 18446744073709551616),
    ("3bffffffffffffffff", -18446744073709551616),
    ("c349010000000000000000", -18446744073709551617),
    ("20", -1),
    ("3903e7", -1000),
    ("f90000", 0.0),
    ("f93c00", 1.0),
    ("fb3ff199999999999a", 1.1),
    ("f97bff", 65504.0),
    ("fa47c35000", 100000.0),
    ("fa7f7fffff", 3.4028234663852886e38),
    ("f90001", 5.960464477539063e-8),
    ("f97c00", "Infinity"),
    ("f97e00", "NaN"),
    ("f9fc00", "-Infinity"),
    ("f4", False),
    ("f5", True),
    ("f6", None),
    ("f7", None),
    ("f0", "simple(16)"),
    ("f8ff", "simple(255)"),
    ("c074323031332d30332d32315432303a30343a30305a", "2013-03-21T20:04:00Z"),
    ("c11a514b67b0", 1363896240),
    ("4401020304", "01020304"),
    ("6449455446", "IETF"),
    ("62c3bc", "ü"),
    ("80", []),
    ("8301820203820405", [1, [2, 3], [4, 5]]),
    ("a0", {}),
    ("a201020304", {"1": 2, "3": 4}),
    ("a26161016162820203", {"a": 1, "b": [2, 3]}),
    ("5f42010243030405ff", "0102030405"),
    ("7f657374726561646d696e67ff", "streaming"),
    ("9fff", []),
    ("9f018202039f0405ffff", [1, [2, 3], [4, 5]]),
    ("bf61610161629f0203ffff", {"a": 1, "b": [2, 3]}),
    ("bf6346756ef563416d7421ff", {"Fun": True, "Amt": -2}),
]


@pytest.mark.parametrize(("data", "value"), EXAMPLES)
def test_examples(data: str, value: Any) -> None:
    found = decode(bytes.fromhex(data))
    assert found == value
    assert type(found) is type(value)
    assert json.loads(json.dumps(found)) == value


@pytest.mark.parametrize(("data", "value"), EXAMPLES)
def test_cut_short_or_with_a_tail(data: str, value: Any) -> None:
    whole = bytes.fromhex(data)
    for end in range(len(whole)):
        with pytest.raises(Fault):
            decode(whole[:end])
    with pytest.raises(Fault, match="1 bytes are left over"):
        decode(whole + b"\0")
    del value


@pytest.mark.parametrize(
    "data",
    [
        "",
        "9bffffffffffffffff",  # an array of 2 to the power of 64 items
        "bbffffffffffffffff",
        "5bffffffffffffffff00",  # a string as long
        "7affffffff61",
        "1c",  # reserved
        "ff",  # a break alone
        "9f",
        "5f61ffff",  # text among pieces of bytes
        "5f5fffff",
        "62c328",  # no UTF-8
        "f818",  # a simple value that has a shorter form
        "df",
        "1f",
    ],
)
def test_what_is_no_cbor(data: str) -> None:
    with pytest.raises(Fault):
        decode(bytes.fromhex(data))


def test_nesting_has_a_limit() -> None:
    assert decode(b"\x81" * DEPTH_MAX + b"\0")
    for opening in (b"\x81", b"\xa1\0", b"\xc1", b"\x9f"):
        with pytest.raises(Fault, match="nested deeper"):
            decode(opening * 100_000 + b"\0")


def test_large_numbers_are_text() -> None:
    assert decode(b"\xc2\x58\x20" + b"\xff" * 32) == "0x" + "ff" * 32


def test_random_bytes_give_a_value_or_a_fault() -> None:
    chance = random.Random(5)
    for _ in range(20_000):
        with contextlib.suppress(Fault):
            json.dumps(decode(chance.randbytes(chance.randrange(24))))
