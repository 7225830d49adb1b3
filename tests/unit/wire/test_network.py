from __future__ import annotations

from typing import Any

import pytest

from zenwire.wire import decode, encode
from zenwire.wire.data import Del, Err, Put, Query, Reply
from zenwire.wire.declare import DeclareFinal
from zenwire.wire.network import Declare, Interest, Oam, Push, Request, Response, ResponseFinal
from zenwire.wire.structs import ResponderId, StackEntry, Timestamp, TimestampStack
from zenwire.wire.values import (
    CongestionControl,
    InterestMode,
    Mapping,
    Priority,
    QoS,
    QueryTarget,
    WireExpr,
    ZenohId,
)

AA01 = ZenohId.parse("aa01")
STAMP = Timestamp(time=0, id=AA01)
STAMPED = "000201aa"


def of(raw: bytes) -> Any:
    return decode(raw, "network")


KEYS = [
    (WireExpr(0, "a"), 0x60, "000161"),
    (WireExpr(2), 0x40, "02"),
    (WireExpr(2, "/1", Mapping.RECEIVER), 0x20, "02022f31"),
    (WireExpr(300, "", Mapping.RECEIVER), 0x00, "ac02"),
]


@pytest.mark.parametrize(("key", "flags", "text"), KEYS)
def test_push_request_and_response_have_the_same_flags(
    key: WireExpr, flags: int, text: str
) -> None:
    messages: list[tuple[Any, int, str, str]] = [
        (Push(key=key, body=Del()), 0x1D, "", "02"),
        (Request(request_id=1, key=key, body=Query()), 0x1C, "01", "03"),
        (Response(request_id=1, key=key, body=Reply(body=Del())), 0x1B, "01", "0402"),
    ]
    for message, id, before, after in messages:
        raw = encode(message)
        assert raw.hex() == f"{flags | id:02x}" + before + text + after
        assert of(raw) == message


def test_bodies() -> None:
    key = WireExpr(1)
    assert of(encode(Push(key=key, body=Put(payload=b"x")))).body == Put(payload=b"x")
    response = Response(request_id=1, key=key, body=Err(payload=b"x"))
    assert of(encode(response)).body == Err(payload=b"x")


def test_request_writes_its_extensions_in_the_order_of_the_reference() -> None:
    request = Request(
        request_id=1,
        key=WireExpr(2),
        qos=QoS(0x0D),
        timestamp=STAMP,
        target=QueryTarget.ALL,
        budget=3,
        timeout=10_000,
        node_id=1,
        timestamp_stack=TimestampStack(record=7, entries=()),
        body=Query(),
    )
    exts = ["a10d", "c204" + STAMPED, "b401", "a503", "a6904e", "b301", "47020700"]
    assert encode(request).hex() == "dc0102" + "".join(exts) + "03"
    assert of(encode(request)) == request


def test_response_says_who_answers() -> None:
    response = Response(
        request_id=1,
        key=WireExpr(0, "k"),
        qos=QoS(0x0D),
        responder=ResponderId(zid=AA01, eid=7),
        body=Reply(body=Put(payload=b"x")),
    )
    assert encode(response).hex() == "fb01" + "00016b" + "a10d" + "43041001aa07" + "04" + "010178"


def test_response_final() -> None:
    assert encode(ResponseFinal(request_id=300, qos=QoS(0x0D))).hex() == "9aac02210d"


def test_timestamp_stack_holds_sized_stamps() -> None:
    stack = TimestampStack(record=7, entries=(StackEntry(point=1, stamp=encode(STAMP)),))
    raw = encode(Push(key=WireExpr(1), timestamp_stack=stack, body=Del()))
    assert raw.hex() == "dd01" + "4708" + "0701" + "0104" + STAMPED + "02"
    assert of(raw).timestamp_stack == stack


@pytest.mark.parametrize("mode", InterestMode)
def test_interest_has_its_mode_in_the_header(mode: InterestMode) -> None:
    raw = encode(Interest(mode=mode, id=1))
    assert raw[0] == 0x19 | mode << 5
    assert len(raw) == (2 if mode is InterestMode.FINAL else 3)
    assert of(raw).mode is mode


@pytest.mark.parametrize(
    ("option", "bit"),
    [("keyexprs", 0), ("subscribers", 1), ("queryables", 2), ("tokens", 3), ("aggregate", 7)],
)
def test_interest_options(option: str, bit: int) -> None:
    interest = Interest(id=1, **{option: True})  # type: ignore[arg-type] # all are booleans
    assert encode(interest) == bytes([0x79, 0x01, 1 << bit])
    assert of(encode(interest)) == interest


@pytest.mark.parametrize(("key", "flags", "text"), KEYS)
def test_interest_is_restricted_by_r(key: WireExpr, flags: int, text: str) -> None:
    raw = encode(Interest(id=1, subscribers=True, key=key))
    assert raw.hex() == "7901" + f"{0x02 | 0x10 | flags:02x}" + text
    assert of(raw).key == key


def test_declare_names_the_interest_it_answers() -> None:
    assert encode(Declare(body=DeclareFinal())).hex() == "1e1a"
    assert encode(Declare(interest_id=0, body=DeclareFinal())).hex() == "3e001a"
    assert of(bytes.fromhex("3e001a")).interest_id == 0
    assert of(bytes.fromhex("1e1a")).interest_id is None


@pytest.mark.parametrize(("body", "text"), [(None, "1f01"), (5, "3f0105"), (b"ab", "5f01026162")])
def test_oam_has_three_kinds_of_body(body: int | bytes | None, text: str) -> None:
    assert encode(Oam(id=1, body=body)).hex() == text
    assert of(bytes.fromhex(text)) == Oam(id=1, body=body)


@pytest.mark.parametrize("priority", Priority)
@pytest.mark.parametrize("congestion_control", CongestionControl)
@pytest.mark.parametrize("express", [False, True])
def test_qos_is_the_low_byte_of_its_extension(
    priority: Priority, congestion_control: CongestionControl, express: bool
) -> None:
    qos = QoS.of(priority, congestion_control, express)
    raw = encode(ResponseFinal(request_id=1, qos=qos))
    assert raw.hex() == ("1a01" if qos == QoS() else f"9a0121{qos.raw:02x}")
    found = of(raw).qos
    assert (found.priority, found.congestion_control, found.express) == (
        priority,
        congestion_control,
        express,
    )
