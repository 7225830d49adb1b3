"""Lines of text: every byte once, values as people read them, the fault under its byte."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.recorded import CAPTURES, batches
from tests.strategies import SCOPES
from tests.vectors import Vector, vectors
from zenwire.wire.batch import frame_stream
from zenwire.wire.encoding import CUSTOM, Encoding
from zenwire.wire.inspect.dissect import Form, Section, dissect
from zenwire.wire.inspect.dump import Dump, value_text
from zenwire.wire.linkstate import Link
from zenwire.wire.locator import Locator
from zenwire.wire.values import (
    Mapping,
    Priority,
    QoS,
    QueryableInfo,
    Resolution,
    WhatAmIMatcher,
    WireExpr,
    ZenohId,
)

LINE = re.compile(r"([0-9a-f]{4,}| {4,})  ((?:[0-9a-f]{2} ?)*)(?:\.\.)? *(.*)")
MESSAGES = [v for v in vectors() if v.scope in SCOPES and v.raw]


def lines(data: bytes, form: Form, *, full: bool = False) -> list[str]:
    return [
        line
        for section in dissect(data, form)
        for line in Dump(full=full).lines(section, section.entries)
    ]


def texts(digits: str, form: Form) -> list[str]:
    """What stands right of the bytes."""
    return [line[40:].strip() for line in lines(bytes.fromhex(digits), form)]


def hexadecimal(shown: list[str]) -> bytes:
    """The bytes of the hexadecimal column, which must stand where the offsets say."""
    found = bytearray()
    for line in shown:
        if line.lstrip().startswith("^^"):
            continue
        offset, digits, _ = LINE.fullmatch(line).groups()  # type: ignore[union-attr]
        if digits:
            assert int(offset, 16) == len(found)
        found += bytes.fromhex(digits)
    return bytes(found)


def full(section: Section) -> bytes:
    return hexadecimal(
        [line for line in Dump(full=True).lines(section, section.entries) if line[:2] != "--"]
    )


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_recorded_batches_show_every_byte_once(path: Path) -> None:
    step = 40 if path.stem == "thousands" else 1
    for batch in batches(path)[::step]:
        # Megabytes of payload are lines of the same kind.
        if len(batch.data) > 20_000:
            continue
        if batch.lowlatency:
            data, form = frame_stream(batch.data, 4), Form.LOWLATENCY
        else:
            data, form = batch.data, Form.BATCH
        first, *derived = dissect(data, form)
        assert full(first) == data
        for section in derived:
            assert full(section) == section.data
        assert len(lines(data, form)) <= len(lines(data, form, full=True))


@pytest.mark.parametrize("vector", MESSAGES, ids=lambda v: v.name)
def test_vectors_show_every_byte_once(vector: Vector) -> None:
    raw, form = vector.raw, Form(vector.scope if vector.scope != "transport" else "batch")
    shown = lines(raw, form, full=True)
    assert hexadecimal(shown) == raw
    marks = [line for line in shown if line.lstrip().startswith("^^")]
    assert len(marks) == (vector.fault is not None)


def test_a_frame_with_declarations() -> None:
    data = bytes.fromhex("a59bd2b00b31009e21082001000664656d6f2f619e2108620101032f2a2a")
    assert lines(data, Form.BATCH) == [
        "0000  a5                                FRAME  Z|R  reliable",
        "0001  9b d2 b0 0b                         sn  23865627",
        "0005  31 00                               ext priority (M)  CONTROL",
        "0007  9e                                  DECLARE  Z",
        "0008  21 08                                 ext qos  CONTROL BLOCK",
        "000a  20                                    D_KEYEXPR  N",
        "000b  01                                      expr_id  1",
        '000c  00 06 64 65 6d 6f 2f 61                 key  "demo/a"',
        "0014  9e                                  DECLARE  Z",
        "0015  21 08                                 ext qos  CONTROL BLOCK",
        "0017  62                                    D_SUBSCRIBER  M|N",
        "0018  01                                      id  1",
        '0019  01 03 2f 2a 2a                          key  scope 1 of the sender + "/**"',
    ]


@pytest.mark.parametrize(
    ("digits", "form", "told"),
    [
        ("f9025302 2108", Form.NETWORK, "INTEREST  Z|MOD=3  mode CURRENT_FUTURE"),
        ("f9025302 2108", Form.NETWORK, "options  M|R|subscribers|keyexprs"),
        ("0300", Form.BATCH, "reason  0 GENERIC"),
        ("03ff", Form.BATCH, "reason  255"),
        ("2300", Form.BATCH, "CLOSE  S  session"),
        ("420a0100", Form.BATCH, "lease  10000 ms"),
        ("420a0100", Form.BATCH, "OPEN (OpenSyn)  T"),
        ("010907", Form.SCOUTING, "zid  none"),
        ("010907", Form.SCOUTING, "what  ROUTER|PEER|CLIENT"),
        ("df0121080100", Form.NETWORK, "id  1 link state"),
        ("df0221080100", Form.NETWORK, "id  2"),
        ("df0121080100", Form.NETWORK, "entries  0"),
        ("1f02", Form.NETWORK, "body  none"),
        ("21c0fee1e3a7bd81fd6a0201aa00", Form.DATA, "timestamp.id  aa01"),
        (
            "21c0fee1e3a7bd81fd6a0201aa00",
            Form.DATA,
            "timestamp.time  2026-11-15T19:20:10.486213Z (7708480216866783040)",
        ),
        ("814904abcdef0100", Form.DATA, "ext 0x9 (unknown)  4 bytes"),
        ("81090178", Form.DATA, "ext 0x9 (unknown)"),
        ("8129ff010178", Form.DATA, "ext 0x9 (unknown)  255"),
        ("8141051001aa070000", Form.DATA, "ext source_info  5 bytes"),
        ("1d0007", Form.NETWORK, "body  header 0x07"),
    ],
)
def test_what_is_told(digits: str, form: Form, told: str) -> None:
    assert told in texts(digits, form)


def test_sequences_and_structs() -> None:
    assert texts("01070002 02 02bb 02 01 07 7463702f613a31 00", Form.LINKSTATE) == [
        "entries  1",
        "[0].options  LOC|WAI|PID",
        "[0].psid  0",
        "[0].sn  2",
        "[0].zid  bb02",
        "[0].whatami  PEER",
        "[0].locators  1",
        "[0]  tcp/a:1",
        "[0].links  none",
    ]


def test_long_fields_are_cut() -> None:
    shown = lines(bytes.fromhex("01 ac02") + bytes(300), Form.DATA)
    assert shown[1:] == ["0001  ac 02 00 00 00 00 00 00 00 00 ..    payload  300 bytes"]


def test_derived_sections_say_so() -> None:
    shown = lines(bytes.fromhex("000300"), Form.COMPRESSED)
    assert shown == [
        "0000  00 03 00                          stored  3 bytes",
        "-- expanded batch: 2 bytes; offsets count from its start",
        "0000  03                                CLOSE",
        "0001  00                                  reason  0 GENERIC",
    ]


@pytest.mark.parametrize(
    ("digits", "form", "expected"),
    [
        (
            "0105706c61",
            Form.DATA,
            [
                "0000  01                                PUT",
                "0001  05 70 6c 61                         payload",
                "         ^^ TRUNCATED at 0x0002 in PUT: 5 bytes declared, 3 left",
            ],
        ),
        (
            "21",
            Form.DATA,
            [
                "0000  21                                PUT  T",
                "0001                                      timestamp.time",
                "      ^^ TRUNCATED at 0x0001 in Timestamp",
            ],
        ),
        (
            "0a",
            Form.BATCH,
            [
                "0000  0a                                ?  header 0x0a",
                "      ^^ UNKNOWN_ID at 0x0000 in transport: no transport message has id 0x0a",
            ],
        ),
        (
            "811f00",
            Form.DATA,
            [
                "0000  81                                PUT  Z",
                "0001  1f 00                               ext 0xf (unknown)",
                "      ^^ MANDATORY_EXTENSION at 0x0001 in PUT: header 0x1f",
            ],
        ),
        (
            "010000",
            Form.DATA,
            [
                "0000  01                                PUT",
                "0001  00                                  payload  0 bytes",
                "0002  00                                not read  1 byte",
                "      ^^ TRAILING at 0x0002 in PUT",
            ],
        ),
    ],
)
def test_faults_stand_under_their_byte(digits: str, form: Form, expected: list[str]) -> None:
    assert lines(bytes.fromhex(digits), form) == expected


def test_a_fault_far_inside_a_long_field_is_shown_where_it_is() -> None:
    # A link state of 60 links, of which 45 are there.
    data = bytes.fromhex("0100000060") + bytes(range(45))
    shown = lines(data, Form.LINKSTATE)
    assert shown[-4:] == [
        "0004  60 00 01 02 03 04 05 06 07 08 ..    [0].links",
        "0022  1d 1e 1f 20 21 22 23 24 25 26",
        "002c  27 28 29 2a 2b 2c",
        "                        ^^ TRUNCATED at 0x0032 in LinkState",
    ]


def test_colours_are_the_callers() -> None:
    painted = Dump(paint=lambda role, text: f"<{role}:{text}>")
    section = next(iter(dissect(bytes.fromhex("03"), Form.BATCH)))
    assert list(painted.lines(section, section.entries)) == [
        "<offset:0000>  03                                <message:CLOSE>",
        "<offset:0001>                                      <name:reason>",
        "      <fault:^^ TRUNCATED at 0x0001 in CLOSE>",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"),
        (True, "yes"),
        (False, "no"),
        (7, "7"),
        (Priority.DATA, "DATA"),
        (WhatAmIMatcher(6), "PEER|CLIENT"),
        (ZenohId(b"\x01\xaa"), "aa01"),
        (QoS(), "DATA DROP"),
        (b"", "0 bytes"),
        (b"x", '1 byte  "x"'),
        (b"plain", '5 bytes  "plain"'),
        (b"tab\tnew\n", '8 bytes  "tab\\tnew\\n"'),
        (b'{"a": [1]}', '10 bytes  JSON {"a": [1]}'),
        (b"{not json", '9 bytes  "{not json"'),
        (b"[" * 100_000, "100000 bytes  " + f'"{"[" * 58}.."'),
        (b"\x00\x01", "2 bytes"),
        (b"\xff\xfe", "2 bytes"),
        (b"\x1b[31mred", "8 bytes"),
        ("é".encode() * 200, '400 bytes  "' + "é" * 58 + '.."'),
        ("a\x1b[2Jb", '"a\\x1b[2Jb"'),
        ("right\u202eleft", '"right\\u202eleft"'),
        (WireExpr(0, "a/b"), '"a/b"'),
        (WireExpr(3), "scope 3 of the sender"),
        (WireExpr(3, "/x", Mapping.RECEIVER), 'scope 3 of the receiver + "/x"'),
        (Encoding(5), "application/json"),
        (Encoding(CUSTOM, b"my\x07enc"), "my\\x07enc"),
        (Locator("tcp", "h:1"), "tcp/h:1"),
        (Resolution(), "sequence numbers of 32 bits, request ids of 32"),
        (QueryableInfo(complete=True, distance=2), "complete yes distance 2"),
        ((Link(1), Link(2, 5)), "1, 2 weight 5"),
        ((), "none"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_values(value: object, text: str) -> None:
    assert value_text(value) == text
    assert value_text(value).isprintable()
