from __future__ import annotations

import random
from typing import Any

import pytest

from zenwire.wire.batch import decode_batch, encode_batch
from zenwire.wire.data import Del, Err, Put, Query, Reply
from zenwire.wire.encoding import Encoding
from zenwire.wire.network import NetworkMessage, Push, Request, Response, ResponseFinal
from zenwire.wire.objects import encode
from zenwire.wire.repeat import (
    HEAD_MAX,
    LEARN_MAX,
    LIKE_MAX,
    TOGETHER_MAX,
    FrameHeads,
    KnownReader,
)
from zenwire.wire.structs import ResponderId, Timestamp
from zenwire.wire.transport import Frame, KeepAlive
from zenwire.wire.values import (
    ConsolidationMode,
    Mapping,
    Priority,
    QoS,
    QueryTarget,
    WireExpr,
    ZenohId,
)

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


def batch(*messages: NetworkMessage, sn: int = 7, priority: Priority = Priority.DATA) -> bytes:
    return encode_batch([Frame(reliable=True, sn=sn, priority=priority), *messages])


def request(number: int, key: WireExpr = KEYS[0], **query: Any) -> Request:
    return Request(request_id=number, key=key, timeout=10_000, body=Query(**query))


def response(number: int, payload: bytes = b"x", **put: Any) -> Response:
    who = ResponderId(zid=ZID, eid=3)
    body = Reply(body=Put(payload=payload, **put))
    return Response(request_id=number, key=KEYS[2], responder=who, body=body)


def final(number: int, qos: QoS | None = None) -> ResponseFinal:
    return ResponseFinal(request_id=number, qos=qos or QoS())


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
        assert reader.read(batch(other, sn=sn, priority=priority), sn) == [other]


def test_the_others_are_not_known() -> None:
    reader = taught(batch(push()))
    many = encode_batch([Frame(reliable=True, sn=8), *[push()] * (TOGETHER_MAX + 1)])
    followed = batch(push(), sn=8) + encode(KeepAlive())
    unreliable = encode_batch([Frame(reliable=False, sn=8), push()])
    for content in (
        b"",
        many,
        followed,
        unreliable,
        batch(push(), sn=8, priority=Priority.DATA_HIGH),
        batch(push(KEYS[1]), sn=8),
        batch(push(qos=QoS.of(express=True)), sn=8),
        batch(push(timestamp=TIME), sn=8),
        batch(push(), sn=9),
        encode(KeepAlive()),
    ):
        assert reader.read(content, 8) is None


def test_every_cut_of_a_known_batch_is_left_to_the_codec() -> None:
    for put in PUTS:
        content = batch(push(payload=bytes(300), **put), sn=8)
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
    contents = [batch(push(WireExpr(scope)), sn=scope) for scope in range(1, 20)]
    reader = taught(*contents)
    for scope in (5, 1, 19, 5):
        other = push(WireExpr(scope), b"new")
        assert reader.read(batch(other, sn=99), 99) == [other]


def test_no_more_is_learnt_than_may_be() -> None:
    reader = taught(batch(push(WireExpr(0, "k" * HEAD_MAX))))
    assert reader.last is None
    for scope in range(LEARN_MAX + 10):
        content = batch(push(WireExpr(scope + 1)))
        reader.learn(content, decode_batch(content), 0)
    last = LEARN_MAX + 10
    assert reader.read(batch(push(WireExpr(last)), sn=8), 8) is None


def test_other_batches_teach_nothing() -> None:
    reader = taught(
        encode(KeepAlive()),
        encode_batch([Frame(reliable=True, sn=1), *[push()] * (TOGETHER_MAX + 1)]),
        encode_batch([Frame(reliable=True, sn=1), push(), Push(key=KEYS[0], body=Del())]),
        encode_batch([Frame(reliable=True, sn=1), Push(key=KEYS[0], body=Del())]),
    )
    assert reader.last is None


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
    whole = batch(push(key, bytes(20), **put), sn=8)
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
            assert decode_batch(content) == [Frame(reliable=True, sn=8), *found]
    assert known


NUMBERS = [0, 1, 2, 127, 128, 129, 130, 300, 5, 16_384, 2**32 - 1, 0, 77]


@pytest.mark.parametrize("put", PUTS)
def test_requests_responses_and_finals_are_known_by_any_number(put: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"parameters": "a=1;b", "consolidation": ConsolidationMode.LATEST}
    block = QoS.of(Priority.DATA)
    reader = taught(
        batch(request(7, **asked)),
        batch(response(9, b"", **put), final(9, block)),
        batch(final(9)),
    )
    later = put | ({"timestamp": LATER} if "timestamp" in put else {})
    for sn, number in enumerate(NUMBERS, start=120):
        for messages in (
            [request(number, **asked)],
            [response(number, bytes(number % 300), **later)],
            [final(number, block)],
            [final(number)],
            [response(number, bytes(200), **later), final(number, block)],
            [request(number, **asked), final(3), request(number + 1 & 0xFFFF_FFFF, **asked)],
        ):
            assert reader.read(batch(*messages, sn=sn), sn) == messages


def test_messages_with_numbers_that_differ_elsewhere_are_not_known() -> None:
    reader = taught(batch(request(7)), batch(response(7), final(7, QoS.of(express=True))))
    who = ResponderId(zid=ZID, eid=4)
    error = Response(request_id=8, key=KEYS[2], responder=who, body=Err(payload=b"no"))
    gone = Response(request_id=8, key=KEYS[2], responder=who, body=Reply(body=Del()))
    for message in (
        request(8, KEYS[1]),
        request(8, parameters="x"),
        Request(request_id=8, key=KEYS[0], target=QueryTarget.ALL, timeout=10_000, body=Query()),
        Response(request_id=8, key=KEYS[2], responder=who, body=Reply(body=Put(payload=b"x"))),
        error,
        gone,
        final(8, QoS.of(Priority.REAL_TIME)),
    ):
        assert reader.read(batch(message, sn=8), 8) is None
    for sn, message in enumerate((error, gone), start=9):
        reader.learn(batch(message, sn=sn), decode_batch(batch(message, sn=sn)), 0)
        assert reader.read(batch(message, sn=8), 8) is None


def test_several_that_begin_alike_are_known_and_no_more_than_may_be() -> None:
    keys = [WireExpr(0, f"key/{n}") for n in range(LIKE_MAX + 1)]
    reader = taught(*(batch(request(1, key)) for key in keys))
    for key in keys[1:]:
        assert reader.read(batch(request(300, key), sn=8), 8) == [request(300, key)]
    assert reader.read(batch(request(300, keys[0]), sn=8), 8) is None


def test_a_number_in_more_bytes_than_it_needs_is_read_but_teaches_nothing() -> None:
    content = batch(final(5))
    at = content.index(encode(final(5))) + 1
    long = content[:at] + b"\x85\x00" + content[at + 1 :]
    assert decode_batch(long) == decode_batch(content)
    assert taught(long).last is None
    assert taught(content).read(long, 7) == [final(5)]


def test_of_mutilated_queries_it_reads_what_the_codec_reads_or_nothing() -> None:
    rng = random.Random(5)
    reader = taught(batch(request(500)), batch(response(500, bytes(20)), final(500)))
    known = 0
    for turn in range(6000):
        whole = [request(501)] if turn % 2 else [response(501, bytes(20)), final(501)]
        content = bytearray(batch(*whole, sn=8))
        for _ in range(rng.randrange(1, 3)):
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
            assert decode_batch(content) == [Frame(reliable=True, sn=8), *found]
    assert known
