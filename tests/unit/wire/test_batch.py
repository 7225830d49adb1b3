from __future__ import annotations

from typing import Any

import pytest

from zenwire.errors import DecodeError, EncodeError, Fault
from zenwire.wire import (
    BATCH_MAX,
    LOW_LATENCY_PREFIX,
    STREAM_PREFIX,
    compress_batch,
    decode_batch,
    encode_batch,
    expand_batch,
    frame_stream,
    split_stream,
    walk,
    walk_low_latency,
)
from zenwire.wire.data import Del
from zenwire.wire.network import Push, ResponseFinal
from zenwire.wire.transport import Close, Fragment, Frame, KeepAlive
from zenwire.wire.values import Priority, WireExpr

PUSH = Push(key=WireExpr(1), body=Del())
DATA = Frame(reliable=True, sn=1)
CONTROL = Frame(reliable=True, sn=2, priority=Priority.CONTROL)


def fault(call: Any, *args: Any, **kwargs: Any) -> tuple[Fault, int]:
    with pytest.raises(DecodeError) as caught:
        list(call(*args, **kwargs))
    return caught.value.fault, caught.value.offset


# Batches.


def test_a_batch_holds_several_transport_messages() -> None:
    messages = [DATA, PUSH, PUSH, KeepAlive(), CONTROL, ResponseFinal(request_id=7), KeepAlive()]
    raw = encode_batch(messages)
    assert raw.hex() == "2501" + "5d0102" * 2 + "04" + "a5023100" + "1a07" + "04"
    assert decode_batch(raw) == messages


def test_messages_are_located() -> None:
    raw = encode_batch([DATA, PUSH, KeepAlive()])
    assert [(f.start, f.end) for f in walk(raw)] == [(0, 2), (2, 5), (5, 6)]
    assert [(f.start, f.end) for f in walk(b"\xff" + raw + b"\xff", 1, 7)] == [
        (1, 3),
        (3, 6),
        (6, 7),
    ]


def test_a_frame_may_be_empty() -> None:
    assert decode_batch(b"\x25\x01") == [DATA]
    assert decode_batch(b"\x25\x01\x25\x01\x04") == [DATA, DATA, KeepAlive()]


def test_an_empty_batch_has_no_messages() -> None:
    assert decode_batch(b"") == []
    assert list(walk(b"\x04", 1)) == []
    assert list(walk_low_latency(b"")) == []
    assert expand_batch(b"") == b""
    assert encode_batch([]) == b""


def test_nothing_is_read_after_close() -> None:
    assert decode_batch(bytes.fromhex("2501" + "0300" + "ffffff")) == [DATA, Close(reason=0)]
    assert decode_batch(bytes.fromhex("0302" + "2501" + "5d0102")) == [Close(reason=2)]


def test_a_network_message_stands_in_a_frame() -> None:
    assert fault(walk, bytes.fromhex("5d0102")) == (Fault.UNKNOWN_ID, 0)
    assert fault(walk, bytes.fromhex("04" + "5d0102")) == (Fault.UNKNOWN_ID, 1)
    assert fault(walk, bytes.fromhex("2501" + "04" + "5d0102")) == (Fault.UNKNOWN_ID, 3)


@pytest.mark.parametrize("id", range(0x08, 0x19))
def test_no_message_has_an_id_between_the_layers(id: int) -> None:
    assert fault(walk, bytes([id])) == (Fault.UNKNOWN_ID, 0)
    assert fault(walk, bytes([0x25, 0x01, id])) == (Fault.UNKNOWN_ID, 2)


def test_what_came_before_a_fault_was_given() -> None:
    messages = walk(bytes.fromhex("2501" + "5d0102" + "5d0107"))
    assert [next(messages).message, next(messages).message] == [DATA, PUSH]
    with pytest.raises(DecodeError) as caught:
        next(messages)
    assert (caught.value.fault, caught.value.offset) == (Fault.UNKNOWN_ID, 7)
    assert caught.value.message == "PUSH"


def test_a_fragment_takes_the_rest() -> None:
    raw = bytes.fromhex("04" + "2607" + "0425")
    assert decode_batch(raw) == [KeepAlive(), Fragment(reliable=True, sn=7, payload=b"\x04\x25")]


# Low latency.


@pytest.mark.parametrize("message", [PUSH, KeepAlive(), Close(reason=0)])
def test_low_latency_carries_a_bare_message(message: Any) -> None:
    raw = encode_batch([message])
    assert [f.message for f in walk_low_latency(raw)] == [message]
    shifted = list(walk_low_latency(b"\xff" + raw + b"\xff", 1, 1 + len(raw)))
    assert [(f.start, f.end) for f in shifted] == [(1, 1 + len(raw))]


@pytest.mark.parametrize("header", ["25", "26", "01", "02", "07", "00", "08", "18"])
def test_low_latency_carries_no_other_transport_message(header: str) -> None:
    assert fault(walk_low_latency, bytes.fromhex(header + "0100")) == (Fault.UNKNOWN_ID, 0)


def test_low_latency_carries_one_message() -> None:
    assert fault(walk_low_latency, bytes.fromhex("5d0102" + "04")) == (Fault.TRAILING, 3)
    assert fault(walk_low_latency, bytes.fromhex("04" + "04")) == (Fault.TRAILING, 1)
    junk = list(walk_low_latency(bytes.fromhex("0300" + "0200" + "0300")))
    assert [f.message for f in junk] == [Close(reason=0)]


# Streams.


def test_a_stream_has_a_length_before_each_batch() -> None:
    assert frame_stream(b"\x04") == b"\x01\x00\x04"
    assert frame_stream(b"\x04", LOW_LATENCY_PREFIX) == b"\x01\x00\x00\x00\x04"
    assert frame_stream(b"") == b"\x00\x00"
    assert (STREAM_PREFIX, LOW_LATENCY_PREFIX, BATCH_MAX) == (2, 4, 65_535)


def test_a_batch_has_65535_bytes() -> None:
    assert frame_stream(bytes(65_535))[:2] == b"\xff\xff"
    with pytest.raises(EncodeError, match="65536 bytes"):
        frame_stream(bytes(65_536))
    assert frame_stream(bytes(65_536), LOW_LATENCY_PREFIX)[:4] == b"\x00\x00\x01\x00"


def test_a_stream_is_split() -> None:
    stream = bytes.fromhex("0000" + "010004" + "02000300" + "0500ff")
    assert list(split_stream(stream)) == [(2, 2), (4, 5), (7, 9)]
    assert list(split_stream(stream, start=5)) == [(7, 9)]
    assert list(split_stream(stream, start=9)) == []
    assert list(split_stream(memoryview(stream)[:9])) == [(2, 2), (4, 5), (7, 9)]


@pytest.mark.parametrize("n", range(4))
def test_half_a_length_waits_for_more(n: int) -> None:
    assert list(split_stream(b"\xff" * n, LOW_LATENCY_PREFIX)) == []


def test_a_stream_has_a_limit() -> None:
    assert fault(split_stream, b"\x00\x00\x01\x00", LOW_LATENCY_PREFIX) == (Fault.LIMIT, 0)
    assert fault(split_stream, b"\xff\xff\xff\xff", LOW_LATENCY_PREFIX) == (Fault.LIMIT, 0)
    assert fault(split_stream, b"\x01\x00\x04\x61\x00", limit=96) == (Fault.LIMIT, 3)
    assert list(split_stream(b"\x60\x00", limit=96)) == []


# Compression.


def test_a_batch_is_compressed_where_that_gains() -> None:
    content = b"a" * 100
    batch = compress_batch(content)
    assert batch[0] == 0x01
    assert len(batch) < len(content)
    assert expand_batch(batch) == content
    assert compress_batch(b"abc") == b"\x00abc"
    assert compress_batch(b"") == b"\x00"
    assert expand_batch(b"\x00") == b""


def test_a_block_of_the_reference() -> None:
    batch = bytes.fromhex("01ef25f6c3cc157d0003792f3101286101000e60616161616161")
    content = expand_batch(batch)
    assert content.hex() == "25f6c3cc15" + "7d0003792f31" + "0128" + "61" * 40
    assert len(decode_batch(content)) == 2


@pytest.mark.parametrize(
    ("text", "offset"),
    [("02", 0), ("ff04", 0), ("01", 1), ("01f0", 1), ("0110040500", 1), ("01" + "1f61010000", 1)],
)
def test_a_damaged_block_is_a_fault(text: str, offset: int) -> None:
    assert fault(expand_batch, bytes.fromhex(text)) == (Fault.COMPRESSION, offset)


def test_a_block_expands_to_its_limit() -> None:
    batch = compress_batch(b"a" * 1000)
    assert len(expand_batch(batch, 1000)) == 1000
    assert fault(expand_batch, batch, 999) == (Fault.COMPRESSION, 1)


def test_a_stored_batch_has_the_limit_too() -> None:
    assert expand_batch(b"\0" + bytes(100), limit=100) == bytes(100)
    with pytest.raises(DecodeError) as e:
        expand_batch(b"\0" + bytes(101), limit=100)
    assert (e.value.fault, e.value.offset) == (Fault.LIMIT, 1)


def test_a_stream_starts_in_its_data() -> None:
    with pytest.raises(ValueError, match="outside"):
        list(split_stream(b"\0\0", start=-1))
