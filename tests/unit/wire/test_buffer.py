from __future__ import annotations

from typing import Any

import pytest

from zenwire.errors import DecodeError, EncodeError, Fault
from zenwire.wire.buffer import Reader, Writer, utf8

# Every length there is, at both of its ends.
INTEGERS = {
    0: "00",
    1: "01",
    127: "7f",
    128: "80 01",
    300: "ac 02",
    16_383: "ff 7f",
    16_384: "80 80 01",
    2**21 - 1: "ff ff 7f",
    2**21: "80 80 80 01",
    2**28 - 1: "ff ff ff 7f",
    2**28: "80 80 80 80 01",
    2**32 - 1: "ff ff ff ff 0f",
    2**35 - 1: "ff ff ff ff 7f",
    2**35: "80 80 80 80 80 01",
    2**42: "80 80 80 80 80 80 01",
    2**49: "80 80 80 80 80 80 80 01",
    2**56 - 1: "ff ff ff ff ff ff ff 7f",
    2**56: "80 80 80 80 80 80 80 80 01",
    2**63 - 1: "ff ff ff ff ff ff ff ff 7f",
    2**63: "80 80 80 80 80 80 80 80 80",
    2**64 - 1: "ff ff ff ff ff ff ff ff ff",
}


def fault(call: Any, *args: Any) -> tuple[Fault, int]:
    with pytest.raises(DecodeError) as caught:
        call(*args)
    return caught.value.fault, caught.value.offset


@pytest.mark.parametrize(("value", "text"), INTEGERS.items())
def test_integer(value: int, text: str) -> None:
    raw = bytes.fromhex(text)
    w = Writer()
    w.z(value)
    assert w.out == raw
    r = Reader(raw + b"\xff")
    assert r.z() == value
    assert r.pos == len(raw)


@pytest.mark.parametrize(("value", "text"), INTEGERS.items())
def test_integer_cut_at_each_byte(value: int, text: str) -> None:
    raw = bytes.fromhex(text)
    for n in range(len(raw)):
        assert fault(Reader(raw[:n]).z) == (Fault.TRUNCATED, n)
        assert fault(Reader(raw, 0, n).z) == (Fault.TRUNCATED, n)


@pytest.mark.parametrize(
    ("text", "value"),
    {
        "80 00": 0,
        "81 00": 1,
        "ff 00": 127,
        "80 80 80 80 80 80 80 80 00": 0,
        "85 80 80 80 80 80 80 80 00": 5,
        "ff ff ff ff ff ff ff ff 00": 2**56 - 1,
    }.items(),
)
def test_integers_may_be_longer_than_they_need(text: str, value: int) -> None:
    r = Reader(bytes.fromhex(text))
    assert r.z() == value
    assert r.pos == r.end


def test_the_ninth_byte_ends_an_integer_whatever_it_is() -> None:
    r = Reader(b"\xff" * 10)
    assert r.z() == 2**64 - 1
    assert r.pos == 9


@pytest.mark.parametrize("value", [-1, 2**64])
def test_integers_have_64_bits(value: int) -> None:
    with pytest.raises(EncodeError, match="64 bits"):
        Writer().z(value)


def test_fixed_integers() -> None:
    w = Writer()
    w.u8(0xAB)
    w.u16(0x1234)
    assert w.out == b"\xab\x34\x12"
    r = Reader(w.out)
    assert (r.u8(), r.u16(), r.pos) == (0xAB, 0x1234, 3)
    assert fault(r.u8) == (Fault.TRUNCATED, 3)
    assert fault(Reader(b"\x01").u16) == (Fault.TRUNCATED, 1)


@pytest.mark.parametrize(("put", "top"), [("u8", 0xFF), ("u16", 0xFFFF)])
def test_fixed_integers_have_bounds(put: str, top: int) -> None:
    for value in (-1, top + 1):
        with pytest.raises(EncodeError, match="does not fit"):
            getattr(Writer(), put)(value)


def test_a_length_is_within_its_limit_and_within_what_remains() -> None:
    assert Reader(b"\x02ab").length(2) == 2
    assert fault(Reader(b"\x03abc").length, 2) == (Fault.LIMIT, 0)
    assert fault(Reader(b"\x03ab").length, 9) == (Fault.TRUNCATED, 1)
    assert fault(Reader(b"\x03abc", 0, 3).length, 9) == (Fault.TRUNCATED, 1)
    assert fault(Reader(b"\xff" * 9).length, 9) == (Fault.LIMIT, 0)


def test_take() -> None:
    r = Reader(memoryview(b"abcd"), 1, 3)
    assert r.take(0) == b""
    assert r.take(2) == b"bc"
    assert type(Reader(memoryview(b"a")).take(1)) is bytes
    assert fault(r.take, 1) == (Fault.TRUNCATED, 3)


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview])
def test_text(make: Any) -> None:
    r = Reader(make("é🔑".encode()))
    assert r.text(6) == "é🔑"
    assert r.pos == 6


@pytest.mark.parametrize(
    "text",
    ["ff", "c3", "c328", "eda080", "c080", "f8888080", "f4908080"],
    ids=["no byte", "cut", "no continuation", "surrogate", "overlong", "five bytes", "too high"],
)
def test_text_is_utf8(text: str) -> None:
    raw = bytes.fromhex(text)
    assert fault(Reader(b"a" + raw, 1).text, len(raw)) == (Fault.UTF8, 1)


def test_a_lone_surrogate_is_not_written() -> None:
    assert utf8("é") == b"\xc3\xa9"
    with pytest.raises(EncodeError, match="not UTF-8"):
        utf8("a\ud800")


def test_sized() -> None:
    w = Writer()
    w.sized(b"ab", 2)
    w.text("é", 2)
    assert w.out == b"\x02ab\x02\xc3\xa9"
    with pytest.raises(EncodeError, match="above the limit of 2"):
        w.sized(b"abc", 2)
