"""The plain form of messages. What it is for each message, the vectors show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.strategies import struct_specs
from zenwire.wire.data import Put
from zenwire.wire.encoding import Encoding
from zenwire.wire.linkstate import Link, LinkState, LinkStateList
from zenwire.wire.locator import Locator
from zenwire.wire.network import Interest, Push, Request
from zenwire.wire.plain import PlainValue, plain_value, to_plain
from zenwire.wire.scouting import Hello, Scout
from zenwire.wire.structs import QueryBody, Timestamp
from zenwire.wire.transport import InitAck, InitSyn, KeepAlive
from zenwire.wire.values import (
    CongestionControl,
    Mapping,
    Priority,
    QoS,
    QoSLink,
    Resolution,
    UnknownExt,
    WhatAmI,
    WhatAmIMatcher,
    WireExpr,
    ZenohId,
)

ZID = ZenohId(b"\x01\xaa")


def test_defaults_are_left_out() -> None:
    assert to_plain(KeepAlive()) == {"message": "KEEP_ALIVE"}
    assert to_plain(Put(payload=b"\x00\xff")) == {"message": "PUT", "payload": "00ff"}


def test_full_has_every_field_at_every_depth() -> None:
    push = to_plain(Push(key=WireExpr(suffix="a"), body=Put(payload=b"")), full=True)
    assert list(push) == [
        "message",
        "key",
        "qos",
        "timestamp",
        "node_id",
        "timestamp_stack",
        "body",
    ]
    assert push["timestamp"] is None
    assert push["body"] == {
        "message": "PUT",
        "timestamp": None,
        "encoding": {"id": 0, "name": "zenoh/bytes", "schema": None},
        "source_info": None,
        "shm": False,
        "attachment": None,
        "unknown": [],
        "payload": "",
    }


def test_fields_stand_in_the_order_of_the_definition() -> None:
    interest = Interest(id=1, tokens=True, keyexprs=True)
    assert list(to_plain(interest)) == ["message", "id", "keyexprs", "tokens"]


def test_two_messages_of_one_name_are_told_apart() -> None:
    common: dict[str, Any] = {"version": 9, "zid": ZID, "whatami": WhatAmI.PEER}
    plain = [to_plain(InitSyn(**common)), to_plain(InitAck(**common, cookie=b"c"))]
    assert [(p["message"], p["variant"]) for p in plain] == [
        ("INIT", "InitSyn"),
        ("INIT", "InitAck"),
    ]


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        (2**64 - 1, 2**64 - 1),
        ("é", "é"),
        (b"\x01\xff", "01ff"),
        (ZID, "aa01"),
        (Priority.DATA_HIGH, "DATA_HIGH"),
        (WhatAmIMatcher(3), ["ROUTER", "PEER"]),
        (WhatAmIMatcher(0), []),
        (WireExpr(1, "/a", Mapping.RECEIVER), {"scope": 1, "suffix": "/a", "mapping": "RECEIVER"}),
        (
            QoS.of(Priority.DATA, CongestionControl.BLOCK_FIRST, express=True),
            {"priority": "DATA", "congestion_control": "BLOCK_FIRST", "express": True},
        ),
        (Resolution.of(8, 64), {"frame_sn": 8, "request_id": 64}),
        (Encoding(4, b"utf-8"), {"id": 4, "name": "text/plain", "schema": "7574662d38"}),
        (
            QoSLink(priorities=(Priority.CONTROL, Priority.DATA), reliable=True),
            {"qos": True, "priorities": ["CONTROL", "DATA"], "reliable": True},
        ),
        (UnknownExt(0x41, b"\x01"), {"header": 0x41, "body": "01"}),
        (Locator("tcp", "h:1", "prio=1"), "tcp/h:1?prio=1"),
        (Timestamp(time=2**63, id=ZID), {"time": 2**63, "id": "aa01"}),
        ((Link(1), Link(2, 3)), [{"psid": 1, "weight": 0}, {"psid": 2, "weight": 3}]),
    ],
    ids=repr,
)
def test_values(value: object, plain: PlainValue) -> None:
    assert plain_value(value) == plain
    assert json.loads(json.dumps(plain)) == plain


@pytest.mark.parametrize("raw", [0x45, 0x80, 0x28])
def test_a_qos_with_bits_that_mean_nothing_keeps_them(raw: int) -> None:
    plain = plain_value(QoS(raw))
    assert isinstance(plain, dict)
    assert plain["raw"] == raw


def test_every_qos_byte_has_its_own_form() -> None:
    assert len({json.dumps(plain_value(QoS(raw))) for raw in range(256)}) == 256


def test_nesting() -> None:
    listed = LinkStateList(entries=(LinkState(psid=0, sn=1, locators=()),))
    assert to_plain(listed) == {"entries": [{"psid": 0, "sn": 1, "locators": []}]}
    hello = Hello(version=9, zid=ZID, whatami=WhatAmI.ROUTER, locators=(Locator("tcp", "h:1"),))
    assert to_plain(hello)["locators"] == ["tcp/h:1"]
    body = QueryBody(encoding=Encoding(), payload=b"x")
    assert to_plain(body)["payload"] == "78"


def test_a_struct_has_no_message_name() -> None:
    for spec in struct_specs():
        assert not spec.scope
    assert "message" not in to_plain(Timestamp(time=1, id=ZID))


def test_scout() -> None:
    scout = Scout(version=9, what=WhatAmIMatcher(7))
    assert to_plain(scout) == {
        "message": "SCOUT",
        "version": 9,
        "what": ["ROUTER", "PEER", "CLIENT"],
    }


@pytest.mark.parametrize("value", [object(), 1.5, {"a": 1}, Request])
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        to_plain(value)
    with pytest.raises(TypeError):
        plain_value(value)
