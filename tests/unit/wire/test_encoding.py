from __future__ import annotations

import pytest

from zenwire.errors import EncodeError
from zenwire.wire.encoding import CUSTOM, ENCODINGS, Encoding


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (0, "zenoh/bytes"),
        (1, "zenoh/string"),
        (4, "text/plain"),
        (5, "application/json"),
        (12, "application/python-serialized-object"),
        (26, "text/javascript"),
        (36, "application/soap+xml"),
        (52, "video/vp9"),
    ],
)
def test_registered_names(number: int, name: str) -> None:
    assert Encoding.parse(name) == Encoding(number)
    assert str(Encoding(number)) == Encoding(number).name == name


def test_the_table_has_53_names() -> None:
    assert len(ENCODINGS) == len(set(ENCODINGS)) == 53
    assert all(name == name.lower() and "/" in name and ";" not in name for name in ENCODINGS)


@pytest.mark.parametrize(
    ("text", "encoding", "shown"),
    [
        ("text/plain;utf-8", Encoding(4, b"utf-8"), "text/plain;utf-8"),
        ("text/plain;a;b", Encoding(4, b"a;b"), "text/plain;a;b"),
        ("text/plain;", Encoding(4), "text/plain"),
        ("", Encoding(), "zenoh/bytes"),
        (";", Encoding(CUSTOM, b";"), ";"),
        (";a", Encoding(CUSTOM, b";a"), ";a"),
        ("my/encoding", Encoding(CUSTOM, b"my/encoding"), "my/encoding"),
        ("my/encoding;x", Encoding(CUSTOM, b"my/encoding;x"), "my/encoding;x"),
        ("Text/Plain", Encoding(CUSTOM, b"Text/Plain"), "Text/Plain"),
        ("zenoh/bytes;s", Encoding(0, b"s"), "zenoh/bytes;s"),
    ],
)
def test_text(text: str, encoding: Encoding, shown: str) -> None:
    assert Encoding.parse(text) == encoding
    assert str(encoding) == shown


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        (Encoding(53), "unknown(53)"),
        (Encoding(1023, b"s"), "unknown(1023);s"),
        (Encoding(CUSTOM), ""),
        (Encoding(4, b"\xff"), "text/plain;�"),
    ],
)
def test_numbers_that_are_not_registered_are_shown(encoding: Encoding, shown: str) -> None:
    assert str(encoding) == shown


def test_the_default_is_bytes() -> None:
    assert Encoding() == Encoding(0, None)
    assert Encoding() != Encoding(0, b"")


@pytest.mark.parametrize("number", [-1, 65_536])
def test_a_number_has_16_bits(number: int) -> None:
    with pytest.raises(EncodeError, match="16 bits"):
        Encoding(number)


def test_a_schema_has_255_bytes() -> None:
    assert Encoding(1, b"s" * 255).schema == b"s" * 255
    with pytest.raises(EncodeError, match="255 bytes"):
        Encoding(1, b"s" * 256)
    with pytest.raises(EncodeError, match="255 bytes"):
        Encoding.parse("é" * 128)


def test_a_name_is_utf8() -> None:
    for text in ("\ud800", "text/plain;\ud800"):
        with pytest.raises(EncodeError, match="not UTF-8"):
            Encoding.parse(text)
