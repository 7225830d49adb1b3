from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from zenwire.errors import EncodeError
from zenwire.wire.data import Del, Err, Put, Query, Reply
from zenwire.wire.encoding import Encoding
from zenwire.wire.network import Interest, Push, Request, Response, ResponseFinal
from zenwire.wire.objects import encode
from zenwire.wire.repeat import LEARN_MAX, with_body, with_payload
from zenwire.wire.rewrite import KnownWriter
from zenwire.wire.structs import QueryBody, ResponderId, Timestamp
from zenwire.wire.values import Mapping, QoS, QueryTarget, WireExpr, ZenohId

ZID = ZenohId(bytes(range(1, 17)))
TIME = Timestamp(time=2**61 + 12345, id=ZID)
PUTS: list[dict[str, Any]] = [
    {},
    {"encoding": Encoding.parse("application/json;schema")},
    {"attachment": b"with it"},
    {"timestamp": TIME},
]
KEYS = [WireExpr(1), WireExpr(300, "/suffix", Mapping.RECEIVER), WireExpr(0, "a/whole/key")]
SIZES = [0, 1, 127, 128, 200, 20_000]
NUMBERS = [0, 1, 127, 128, 129, 300, 16_383, 16_384, 5, 2**32 - 1]


def push(key: WireExpr = KEYS[0], payload: bytes = b"x", **put: Any) -> Push:
    return Push(key=key, body=Put(payload=payload, **put))


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


@pytest.mark.parametrize("key", KEYS)
def test_queries_and_their_answers_are_written_as_by_the_codec(key: WireExpr) -> None:
    writer = KnownWriter()
    who = ResponderId(zid=ZID, eid=300)
    asked = Request(request_id=7, key=key, timeout=10_000, body=Query(parameters="a=1"))
    plain = Put(payload=b"", encoding=Encoding.parse("text/plain"))
    body = Reply(body=plain)
    answer = Response(request_id=7, key=key, responder=who, body=body)
    for number, size in zip(NUMBERS, SIZES * 2, strict=False):
        value = Reply(body=dataclasses.replace(plain, payload=bytes(size)))
        for message in (
            dataclasses.replace(asked, request_id=number),
            dataclasses.replace(answer, request_id=number, body=value),
            ResponseFinal(request_id=number, qos=QoS.of(express=True)),
            ResponseFinal(request_id=number),
        ):
            assert writer.write(message) == encode(message)


def test_queries_and_answers_that_differ_elsewhere_are_told_apart() -> None:
    writer = KnownWriter()
    key = KEYS[2]
    asked = Request(request_id=7, key=key, timeout=10_000, body=Query())
    body = Reply(body=Put(payload=b"x"))
    answer = Response(request_id=7, key=key, body=body)
    final = ResponseFinal(request_id=7)
    for message in (
        asked,
        dataclasses.replace(asked, target=QueryTarget.ALL),
        dataclasses.replace(asked, timeout=5),
        dataclasses.replace(asked, budget=1),
        dataclasses.replace(asked, body=Query(parameters="p")),
        dataclasses.replace(asked, body=Query(attachment=b"")),
        dataclasses.replace(asked, body=Query(body=QueryBody(encoding=Encoding(), payload=b"v"))),
        asked,
        answer,
        dataclasses.replace(answer, responder=ResponderId(zid=ZID, eid=1)),
        dataclasses.replace(answer, body=Err(payload=b"no")),
        dataclasses.replace(answer, body=Reply(body=Del())),
        dataclasses.replace(answer, body=Reply(body=Put(payload=b"x", timestamp=TIME))),
        dataclasses.replace(answer, body=Reply(body=Put(payload=b"x", attachment=b"y"))),
        answer,
        final,
        dataclasses.replace(final, timestamp=TIME),
        final,
        Interest(id=3),
    ):
        assert writer.write(message) == encode(message)


def test_no_more_is_learnt_than_may_be() -> None:
    writer = KnownWriter()
    for number in range(LEARN_MAX + 10):
        message = Request(request_id=number, key=WireExpr(0, f"k/{number}"), body=Query())
        assert writer.write(message) == encode(message)
        assert writer.write(message) == encode(message)


def test_a_number_that_has_no_room_is_refused() -> None:
    writer = KnownWriter()
    for number in (300, 2**32 - 1):
        assert writer.write(ResponseFinal(request_id=number))
    with pytest.raises(EncodeError):
        writer.write(ResponseFinal(request_id=2**32))
