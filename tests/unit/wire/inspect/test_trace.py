"""Spans: they tile the bytes, and agree with the object codec on values, faults and offsets."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.strategies import SCOPES
from tests.vectors import Vector, vectors
from zenwire.errors import DecodeError
from zenwire.wire.buffer import Reader
from zenwire.wire.define import spec_of
from zenwire.wire.inspect.trace import Span, trace_message, trace_struct
from zenwire.wire.linkstate import LinkStateList
from zenwire.wire.objects import read_message

MESSAGES = [v for v in vectors() if v.scope in SCOPES]


def spans_of(span: Span) -> Iterator[Span]:
    yield span
    for child in span.children:
        yield from spans_of(child)


def assert_tiles(span: Span) -> None:
    """Own bytes first, then the children, each where the one before ended."""
    for s in spans_of(span):
        assert 0 <= s.start <= s.own_end <= s.end
        at = s.own_end
        for child in s.children:
            assert child.start == at
            at = child.end
        assert at == s.end


def assert_agrees(raw: bytes, scope: str) -> None:
    """With the codec, on a message or on why there is none."""
    r = Reader(raw)
    span, fault = trace_message(r, scope)
    assert_tiles(span)
    check = Reader(raw)
    message, expected = codec(check, scope)
    assert str(fault) == str(expected)
    assert span.whole == (fault is None)
    if fault is not None:
        assert span.end == len(raw)
        return
    assert span.end == check.pos == r.pos
    assert span.spec is spec_of(type(message))
    assert_values(span, message)


def codec(r: Reader, scope: str) -> tuple[object, DecodeError | None]:
    try:
        return read_message(r, scope), None
    except DecodeError as fault:
        return None, fault


def assert_values(span: Span, message: object) -> None:
    # Of an extension that comes twice, the last one counts.
    for child in {child.name: child for child in span.children}.values():
        if not child.name or not hasattr(message, child.name):
            continue  # an unknown extension, or the options
        value = getattr(message, child.name)
        if child.spec is not None:
            assert child.spec is spec_of(type(value))
            assert_values(child, value)
        elif isinstance(value, tuple) and isinstance(child.value, int):
            assert child.value == len(value) == len(child.children)
            for item, one in zip(child.children, value, strict=True):
                if item.spec is not None:
                    assert_values(item, one)
                else:
                    assert item.value == one
        else:
            assert child.value == value


@pytest.mark.parametrize("vector", MESSAGES, ids=lambda v: v.name)
def test_vectors(vector: Vector) -> None:
    assert_agrees(vector.raw, vector.scope)


@pytest.mark.parametrize("scope", SCOPES)
def test_cut_at_every_byte(scope: str) -> None:
    for vector in MESSAGES:
        if vector.scope == scope and len(vector.raw) < 80:
            for n in range(len(vector.raw)):
                assert_agrees(vector.raw[:n], scope)


@pytest.mark.parametrize("scope", SCOPES)
def test_changed_bytes(scope: str) -> None:
    rng = random.Random(scope)
    raws = [v.raw for v in MESSAGES if v.scope == scope and len(v.raw) < 200]
    for _ in range(1500):
        raw = bytearray(rng.choice(raws))
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(raw) + 1)
            match rng.randrange(3):
                case 0 if raw:
                    raw[at - 1] = rng.choice((0, 0x7F, 0x80, 0xFF, rng.randrange(256)))
                case 1:
                    raw[at:at] = rng.randbytes(rng.randint(1, 4))
                case _:
                    del raw[at : at + rng.randint(1, 4)]
        assert_agrees(bytes(raw), scope)


@pytest.mark.parametrize("scope", SCOPES)
def test_random_bytes(scope: str) -> None:
    rng = random.Random(scope)
    for _ in range(500):
        assert_agrees(rng.randbytes(rng.randint(0, 40)), scope)


def test_offsets_count_from_the_start_of_the_buffer() -> None:
    raw = b"\xff\xff" + bytes.fromhex("0105706c61696e") + b"\xff"
    r = Reader(raw, 2, len(raw) - 1)
    span, fault = trace_message(r, "data")
    assert fault is None
    payload = span.find("payload")
    assert payload is not None
    assert (span.start, payload.start, span.end) == (2, 3, len(raw) - 1)
    assert span.find("attachment") is None


def test_what_was_read_before_a_fault_is_kept() -> None:
    raw = bytes.fromhex("7d00036b2f3101") + b"\x05ab"
    span, fault = trace_message(Reader(raw), "network")
    assert fault is not None
    assert (fault.fault.name, fault.offset, fault.message) == ("TRUNCATED", 8, "PUT")
    key, body = span.children
    assert key.whole
    assert str(key.value) == "k/1"
    assert not body.whole
    assert body.spec is not None
    assert body.spec.name == "PUT"
    (payload,) = body.children
    assert (payload.name, payload.start, payload.end, payload.whole) == ("payload", 7, 10, False)


def test_what_a_fault_leaves_between_fields_has_a_span() -> None:
    # SourceInfo says five bytes and needs four.
    raw = bytes.fromhex("81 41 05 00 01 02 03 04 00")
    span, fault = trace_message(Reader(raw), "data")
    assert fault is not None
    assert (fault.fault.name, fault.offset) == ("TRAILING", 7)
    assert_tiles(span)
    source = span.find("source_info")
    assert source is not None
    assert [(c.name, c.start, c.end) for c in source.children] == [
        ("zid", 3, 5),
        ("eid", 5, 6),
        ("sn", 6, 7),
        ("", 7, 9),
    ]


def test_struct() -> None:
    raw = bytes.fromhex("020700020202bb0200000301000202aa0200")
    span, fault = trace_struct(Reader(raw), LinkStateList)
    assert fault is None
    assert_tiles(span)
    (entries,) = span.children
    assert entries.value == 2
    assert [c.name for c in entries.children[0].children] == [
        "options",
        "psid",
        "sn",
        "zid",
        "whatami",
        "locators",
        "links",
    ]
    span, fault = trace_struct(Reader(raw + b"\0"), LinkStateList, "body")
    assert span.name == "body"
    assert fault is not None
    assert (fault.fault.name, fault.offset) == ("TRAILING", len(raw))
    assert_tiles(span)


def test_extensions() -> None:
    # QoS, an unknown one, then NodeId with M.
    span, fault = trace_message(Reader(bytes.fromhex("9da10da90533012a01")), "network")
    assert fault is not None
    span, fault = trace_message(Reader(bytes.fromhex("9d01a10da905330102")), "network")
    assert fault is None
    found = [(c.name, c.header, c.ext is not None) for c in span.children if c.header is not None]
    assert found == [
        ("qos", 0xA1, True),
        ("", 0xA9, False),
        ("node_id", 0x33, True),
        ("body", 0x02, False),
    ]
