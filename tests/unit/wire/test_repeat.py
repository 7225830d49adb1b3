from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest

from zenwire.wire.batch import decode_batch, encode_batch
from zenwire.wire.data import Del, Put
from zenwire.wire.encoding import Encoding
from zenwire.wire.network import Push
from zenwire.wire.objects import encode
from zenwire.wire.repeat import (
    HEAD_MAX,
    LEARN_MAX,
    FrameHeads,
    KnownReader,
    KnownWriter,
    with_body,
    with_payload,
)
from zenwire.wire.structs import Timestamp
from zenwire.wire.transport import Frame, KeepAlive
from zenwire.wire.values import Mapping, Priority, QoS, WireExpr, ZenohId

ZID = ZenohId(bytes(range(1, 17)))
TIME = Timestamp(time=2**61 + 12345, id=ZID)
LATER = Timestamp(time=2**61 + 99_999_999, id=ZenohId(b"\x05\x06"))
PUTS: list[dict[str, Any]] = [
    {},
    {"encoding": Encoding.parse("application/json;schema")},
    {"attachment": b"with it"},
    {"timestamp": TIME},
    {"timestamp": TIME, "encoding": Encoding.parse("text/plain"), "attachment": b"and more"},
]
KEYS = [WireExpr(1), WireExpr(300, "/suffix", Mapping.RECEIVER), WireExpr(0, "a/whole/key")]
SIZES = [0, 1, 127, 128, 200, 20_000]


def push(
    key: WireExpr = KEYS[0], payload: bytes = b"x", qos: QoS | None = None, **put: Any
) -> Push:
    return Push(key=key, qos=qos or QoS(), body=Put(payload=payload, **put))


def batch(message: Push, sn: int = 7, priority: Priority = Priority.DATA) -> bytes:
    return encode_batch([Frame(reliable=True, sn=sn, priority=priority), message])


def taught(*contents: bytes) -> KnownReader:
    reader = KnownReader()
    for content in contents:
        reader.learn(content, decode_batch(content), tag=0)
    return reader


@pytest.mark.parametrize("priority", [Priority.DATA, Priority.REAL_TIME])
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("put", PUTS)
def test_what_differs_in_number_time_and_payload_is_known(
    put: dict[str, Any], key: WireExpr, priority: Priority
) -> None:
    reader = taught(batch(push(key, b"first", **put), priority=priority))
    later = put | ({"timestamp": LATER} if "timestamp" in put else {})
    for sn, size in enumerate(SIZES, start=127):
        other = push(key, bytes(size), **later)
        assert reader.read(batch(other, sn, priority), sn) == other


def test_the_others_are_not_known() -> None:
    reader = taught(batch(push()))
    two = encode_batch([Frame(reliable=True, sn=8), push(), push()])
    followed = batch(push(), 8) + encode(KeepAlive())
    unreliable = encode_batch([Frame(reliable=False, sn=8), push()])
    for content in (
        b"",
        two,
        followed,
        unreliable,
        batch(push(), 8, Priority.DATA_HIGH),
        batch(push(KEYS[1]), 8),
        batch(push(qos=QoS.of(express=True)), 8),
        batch(push(timestamp=TIME), 8),
        batch(push(), 9),
        encode(KeepAlive()),
    ):
        assert reader.read(content, 8) is None


def test_every_cut_of_a_known_batch_is_left_to_the_codec() -> None:
    for put in PUTS:
        content = batch(push(payload=bytes(300), **put), 8)
        reader = taught(batch(push(payload=bytes(300), **put)))
        assert reader.read(content, 8) is not None
        for end in range(len(content)):
            assert reader.read(content[:end], 8) is None


def test_a_length_in_more_bytes_than_it_needs_teaches_nothing() -> None:
    # The payload's length is 80 00: read as 0, but its first byte must not be taken for a head.
    content = batch(push(payload=b""))[:-1] + b"\x80\x00"
    assert decode_batch(content)[1] == push(payload=b"")
    reader = taught(content)
    assert reader.last is None
    assert reader.read(content, 7) is None


def test_a_timestamp_in_more_bytes_than_it_needs_teaches_nothing() -> None:
    small = Timestamp(time=1, id=ZID)
    content = batch(push(timestamp=small))
    at = content.index(encode(small))
    long = content[:at] + b"\x81\x00" + content[at + 1 :]
    assert decode_batch(long) == decode_batch(content)
    reader = taught(long)
    assert reader.last is None


def test_several_publishers_of_a_link_are_known() -> None:
    contents = [batch(push(WireExpr(scope)), scope) for scope in range(1, 20)]
    reader = taught(*contents)
    for scope in (5, 1, 19, 5):
        other = push(WireExpr(scope), b"new")
        assert reader.read(batch(other, 99), 99) == other


def test_no_more_is_learnt_than_may_be() -> None:
    reader = taught(batch(push(WireExpr(0, "k" * HEAD_MAX))))
    assert reader.last is None
    for scope in range(LEARN_MAX + 10):
        content = batch(push(WireExpr(scope + 1)))
        reader.learn(content, decode_batch(content), 0)
    last = LEARN_MAX + 10
    assert reader.read(batch(push(WireExpr(last)), 8), 8) is None


def test_other_batches_teach_nothing() -> None:
    reader = taught(
        encode(KeepAlive()),
        encode_batch([Frame(reliable=True, sn=1), push(), push()]),
        encode_batch([Frame(reliable=True, sn=1), Push(key=KEYS[0], body=Del())]),
    )
    assert reader.last is None


@pytest.mark.parametrize("put", PUTS)
@pytest.mark.parametrize("key", KEYS)
def test_what_is_known_is_written_as_by_the_codec(key: WireExpr, put: dict[str, Any]) -> None:
    writer = KnownWriter()
    first = push(key, b"first", **put)
    for size in SIZES:
        like = with_payload(first.body, bytes(size))  # type: ignore[arg-type] # it is a Put
        message = with_body(first, like)
        assert writer.write(message) == encode(message)


def test_messages_that_differ_elsewhere_are_told_apart() -> None:
    writer = KnownWriter()
    first = push(KEYS[0])
    assert writer.write(first) == encode(first)
    for other in (
        dataclasses.replace(first, qos=QoS.of(express=True)),
        dataclasses.replace(first, node_id=3),
        dataclasses.replace(first, body=Del()),
        push(KEYS[0], encoding=Encoding.parse("text/plain")),
        push(KEYS[0], timestamp=TIME),
        push(KEYS[0], attachment=b""),
        first,
    ):
        assert writer.write(other) == encode(other)


@pytest.mark.parametrize("priority", list(Priority))
@pytest.mark.parametrize("reliable", [True, False])
def test_heads_of_frames(priority: Priority, reliable: bool) -> None:
    heads = FrameHeads(priority, reliable)
    for sn in (
        0,
        1,
        127,
        128,
        129,
        255,
        256,
        16_383,
        16_384,
        16_385,
        2**21,
        2**28 - 1,
        0,
        2**32 - 1,
    ):
        assert heads.head(sn) == encode(Frame(reliable=reliable, sn=sn, priority=priority))


@pytest.mark.parametrize("put", PUTS)
@pytest.mark.parametrize("key", KEYS)
def test_of_mutilated_bytes_it_reads_what_the_codec_reads_or_nothing(
    key: WireExpr, put: dict[str, Any]
) -> None:
    rng = random.Random(f"{key} {put}")
    reader = taught(batch(push(key, bytes(20), **put)))
    assert reader.last is not None
    whole = batch(push(key, bytes(20), **put), 8)
    known = 0
    for _ in range(3000):
        content = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(content))
            change = rng.randrange(3)
            if change == 0:
                content[at] = rng.randrange(256)
            elif change == 1:
                content[at:at] = rng.randbytes(rng.randrange(1, 3))
            else:
                del content[at : at + rng.randrange(1, 3)]
        found = reader.read(bytes(content), 8)
        if found is not None:
            known += 1
            assert decode_batch(content) == [Frame(reliable=True, sn=8), found]
    assert known
