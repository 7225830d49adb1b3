"""Columns of payloads, each read by its encoding."""

from __future__ import annotations

import json
import struct
from typing import Any

import pyarrow as pa

from zenwire.lake.payloads.messages import load
from zenwire.lake.payloads.values import PAYLOAD_MAX, values


def read(encoding: str | None, schema: str | None, payload: bytes | None) -> Any:
    schemas = pa.array([schema], pa.string())
    return values(pa.array([encoding]), schemas, pa.array([payload]), load())[0].as_py()


def value(encoding: str, schema: str | None, payload: bytes) -> Any:
    found = read(encoding, schema, payload)
    assert found["fault"] is None
    return json.loads(found["json"])


def test_each_encoding_is_read() -> None:
    twist = b"\0\1\0\0" + struct.pack("<6d", *range(6))
    assert value("application/cdr", "geometry_msgs/Twist", twist)["angular"]["z"] == 5.0
    assert value("application/cbor", None, b"\xa1\x61a\x01") == {"a": 1}
    pair = struct.pack("<dI", 1.5, 3)
    assert value("zenoh/serialized", "(f64, u32)", pair) == [1.5, 3]
    assert value("zenoh/serialized", "(float64,uint32)", pair) == [1.5, 3]


def test_what_is_none_of_them_or_has_no_type_is_null() -> None:
    assert read("application/json", None, b"{}") is None
    assert read(None, None, None) is None
    assert read("zenoh/serialized", None, b"\1") == {"json": None, "fault": None}


def test_why_there_is_no_value() -> None:
    for encoding, schema, payload in (
        ("application/cbor", None, b"\xff"),
        ("application/cdr", None, b"\0\1\0\0"),
        ("application/cdr", "a/B", b"\0\1\0\0"),
        ("zenoh/serialized", "u32", b"\1"),
        ("zenoh/serialized", "(" * 10_000, b"\1"),
        ("application/cbor", None, bytes(PAYLOAD_MAX + 1)),
    ):
        found = read(encoding, schema, payload)
        assert found["json"] is None
        assert found["fault"].startswith(f"{encoding}: ")
