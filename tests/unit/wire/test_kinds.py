from __future__ import annotations

from typing import Any

import pytest

from zenwire.errors import DecodeError, EncodeError, Fault
from zenwire.wire import kinds as k
from zenwire.wire.buffer import Reader, Writer
from zenwire.wire.encoding import CUSTOM, Encoding
from zenwire.wire.locator import Locator
from zenwire.wire.values import (
    ConsolidationMode,
    Mapping,
    Priority,
    QoS,
    QoSLink,
    QueryableInfo,
    QueryTarget,
    Resolution,
    WhatAmI,
    WhatAmIMatcher,
    WireExpr,
    ZenohId,
)

AA01 = ZenohId(b"\x01\xaa")


def read(kind: k.Kind[Any], text: str) -> Any:
    r = Reader(bytes.fromhex(text))
    value = kind.read(r)
    assert r.pos == r.end
    return value


def write(kind: k.Kind[Any] | k.FlaggedKind[Any], value: Any) -> str:
    w = Writer()
    kind.write(w, value)
    return w.out.hex()


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (k.u8, "ff", 255),
        (k.u8_not_zero, "01", 1),
        (k.u16, "c8ff", 65_480),
        (k.z16, "ffff03", 65_535),
        (k.z32, "ffffffff0f", 2**32 - 1),
        (k.z64, "ff" * 9, 2**64 - 1),
        (k.z32_or_none, "05", 5),
        (k.unit, "", True),
        (k.payload, "03616263", b"abc"),
        (k.payload, "00", b""),
        (k.cookie, "0120", b"\x20"),
        (k.schema, "0161", b"a"),
        (k.parameters, "03613d31", "a=1"),
        (k.rest, "616263", b"abc"),
        (k.rest, "", b""),
        (k.region_name, "61", "a"),
        (k.plain_zid, "0201aa", AA01),
        (k.packed_zid, "1001aa", AA01),
        (k.packed_zid, "f0" + "01" * 16, ZenohId(b"\1" * 16)),
        (k.optional_packed_zid, "1801aa", AA01),
        (k.optional_packed_zid, "00", None),
        (k.encoding, "00", Encoding()),
        (k.encoding, "09057574662d38", Encoding(4, b"utf-8")),
        (k.encoding, "ffff070161", Encoding(CUSTOM, b"a")),
        (
            k.locators,
            "02" + "057463702f61" + "057564702f62",
            (Locator("tcp", "a"), Locator("udp", "b")),
        ),
        (k.locators, "00", ()),
        (k.whatami_bitmap, "04", WhatAmI.CLIENT),
        (k.resolution, "0a", Resolution()),
        (k.qos, "0d", QoS(0x0D)),
        (k.qos_link, "8ef020", QoSLink(False, (Priority.REAL_TIME, Priority.BACKGROUND), True)),
        (k.priority, "07", Priority.BACKGROUND),
        (k.query_target, "02", QueryTarget.ALL_COMPLETE),
        (k.consolidation, "03", ConsolidationMode.LATEST),
        (k.queryable_info, "8102", QueryableInfo(True, 1)),
        (k.wire_expr_ext, "0000", WireExpr(0, "", Mapping.RECEIVER)),
        (k.wire_expr_ext, "0204", WireExpr(4)),
        (k.wire_expr_ext, "03012f2a2a", WireExpr(1, "/**")),
        (k.wire_expr_ext, "01ffff0361", WireExpr(65_535, "a", Mapping.RECEIVER)),
        (k.Sequence(k.z16, 3), "020105", (1, 5)),
        (k.Repeat(k.u8, 2), "0105", (1, 5)),
    ],
)
def test_read_and_write(kind: k.Kind[Any], text: str, value: Any) -> None:
    assert read(kind, text) == value
    assert write(kind, value) == text


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (k.z16, "8100", 1),
        (k.packed_zid, "1f01aa", AA01),
        (k.optional_packed_zid, "f0", None),
        (k.plain_zid, "0401aa0000", AA01),
        (k.resolution, "fa", Resolution()),
        (k.qos, "8d02", QoS(0x0D)),
        (k.priority, "fd01", Priority.DATA),
        (k.consolidation, "04", ConsolidationMode.AUTO),
        (k.consolidation, "ff" * 9, ConsolidationMode.AUTO),
        (k.queryable_info, "ff01", QueryableInfo(True, 0)),
        (k.wire_expr_ext, "ff0061", WireExpr(0, "a")),
        (k.wire_expr_ext, "0301", WireExpr(1)),
    ],
)
def test_other_spellings_are_read_and_not_written(kind: k.Kind[Any], text: str, value: Any) -> None:
    assert read(kind, text) == value
    written = write(kind, value)
    assert written != text
    assert len(written) <= len(text)
    assert read(kind, written) == value


@pytest.mark.parametrize(
    ("kind", "text", "fault", "offset"),
    [
        (k.u8, "", Fault.TRUNCATED, 0),
        (k.u8_not_zero, "00", Fault.INVALID, 0),
        (k.u16, "01", Fault.TRUNCATED, 1),
        (k.z16, "808004", Fault.OVERFLOW, 0),
        (k.z32, "8080808010", Fault.OVERFLOW, 0),
        (k.z32_or_none, "8080808010", Fault.OVERFLOW, 0),
        (k.payload, "8080808010", Fault.LIMIT, 0),
        (k.payload, "0361", Fault.TRUNCATED, 1),
        (k.cookie, "808004", Fault.LIMIT, 0),
        (k.schema, "8002", Fault.LIMIT, 0),
        (k.parameters, "81808008", Fault.LIMIT, 0),
        (k.parameters, "01ff", Fault.UTF8, 1),
        (k.key_suffix, "808004", Fault.LIMIT, 0),
        (k.region_name, "", Fault.LIMIT, 0),
        (k.region_name, "61" * 33, Fault.LIMIT, 0),
        (k.region_name, "ff", Fault.UTF8, 0),
        (k.plain_zid, "11" + "01" * 17, Fault.LIMIT, 0),
        (k.plain_zid, "00", Fault.INVALID, 1),
        (k.plain_zid, "020000", Fault.INVALID, 1),
        (k.packed_zid, "0000", Fault.INVALID, 1),
        (k.packed_zid, "10aa", Fault.TRUNCATED, 1),
        (k.encoding, "808008", Fault.OVERFLOW, 0),
        (k.encoding, "018002", Fault.LIMIT, 1),
        (k.locators, "818020", Fault.LIMIT, 0),
        (k.locators, "018002", Fault.LIMIT, 1),
        (k.locators, "0101612f", Fault.INVALID, 1),
        (k.locators, "01056123622f63", Fault.INVALID, 1),
        (k.whatami_bitmap, "03", Fault.INVALID, 0),
        (k.qos_link, "4a", Fault.INVALID, 0),
        (k.query_target, "03", Fault.INVALID, 0),
        (k.wire_expr_ext, "", Fault.TRUNCATED, 0),
        (k.wire_expr_ext, "00808004", Fault.OVERFLOW, 1),
        (k.wire_expr_ext, "0300ff", Fault.UTF8, 2),
        (k.Sequence(k.z16, 3), "04", Fault.LIMIT, 0),
        (k.Sequence(k.z16, 3), "0201", Fault.TRUNCATED, 2),
        (k.Repeat(k.u8, 2), "01", Fault.TRUNCATED, 1),
    ],
)
def test_faults(kind: k.Kind[Any], text: str, fault: Fault, offset: int) -> None:
    with pytest.raises(DecodeError) as caught:
        kind.read(Reader(bytes.fromhex(text)))
    assert (caught.value.fault, caught.value.offset) == (fault, offset)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (k.u8, 256),
        (k.u8, -1),
        (k.u8_not_zero, 0),
        (k.u16, 65_536),
        (k.z16, 65_536),
        (k.z32, 2**32),
        (k.z32, -1),
        (k.z64, 2**64),
        (k.z32_or_none, 0),
        (k.z32_or_none, 2**32),
        (k.cookie, bytes(65_536)),
        (k.schema, bytes(256)),
        (k.key_suffix, "é" * 32_768),
        (k.parameters, "\ud800"),
        (k.region_name, ""),
        (k.region_name, "é" * 17),
        (k.region_name, "\ud800"),
        (k.qos, QoS(256)),
        (k.priority, 8),
        (k.query_target, 3),
        (k.queryable_info, QueryableInfo(True, 65_536)),
        (k.resolution, Resolution(16)),
        (k.whatami_matcher, WhatAmIMatcher(8)),
        (k.Sequence(k.z16, 1), (1, 2)),
        (k.Repeat(k.u8, 2), (1,)),
    ],
)
def test_what_cannot_be_read_back_is_not_written(kind: k.Kind[Any], value: Any) -> None:
    with pytest.raises(EncodeError):
        write(kind, value)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (k.whatami_index, [WhatAmI.ROUTER, WhatAmI.PEER, WhatAmI.CLIENT]),
        (k.whatami_matcher, [WhatAmIMatcher(bits) for bits in range(8)]),
    ],
)
def test_a_nibble_shares_the_byte_of_the_zenoh_id(kind: k.Nibble[Any], values: list[Any]) -> None:
    for index, value in enumerate(values):
        w = Writer()
        k.packed_zid.write(w, AA01)
        kind.write(w, value)
        assert w.out == bytes([0x10 | index]) + AA01.raw
        r = Reader(w.out)
        assert (k.packed_zid.read(r), kind.read(r)) == (AA01, value)


def test_the_two_codings_of_what_am_i_differ() -> None:
    """An index beside a ZenohID in INIT, HELLO and JOIN; a bit in SCOUT and link state."""
    w = Writer()
    k.packed_zid.write(w, AA01)
    k.whatami_index.write(w, WhatAmI.CLIENT)
    assert w.out[0] & 0x03 == 2
    assert write(k.whatami_bitmap, WhatAmI.CLIENT) == "04"


def test_what_am_i_has_no_index_3() -> None:
    r = Reader(b"\x03\xaa")
    k.packed_zid.read(r)
    with pytest.raises(DecodeError) as caught:
        k.whatami_index.read(r)
    assert (caught.value.fault, caught.value.offset) == (Fault.INVALID, 2)


def test_a_budget_of_0_is_none() -> None:
    assert read(k.z32_or_none, "00") is None


N, M = k.Bits(5), k.Bits(6)


@pytest.mark.parametrize(
    ("expr", "bits", "text"),
    [
        (WireExpr(0, "a/b"), 0x60, "0003612f62"),
        (WireExpr(2), 0x40, "02"),
        (WireExpr(2, "/1", Mapping.RECEIVER), 0x20, "02022f31"),
        (WireExpr(65_535, "", Mapping.RECEIVER), 0x00, "ffff03"),
    ],
)
def test_wire_expr(expr: WireExpr, bits: int, text: str) -> None:
    kind = k.WireExprKind(N, M)
    assert kind.mask == 0x60
    assert kind.bits(expr) == bits
    assert write(kind, expr) == text
    assert kind.read(Reader(bytes.fromhex(text)), bits | 0x80) == expr


def test_wire_expr_without_mapping_refers_to_the_receiver() -> None:
    kind = k.WireExprKind(N, None)
    assert kind.mask == 0x20
    assert kind.read(Reader(b"\x02"), 0x40) == WireExpr(2, "", Mapping.RECEIVER)
    assert kind.read(Reader(b"\x00\x01a"), 0x20) == WireExpr(0, "a", Mapping.SENDER)
    for expr in (WireExpr(2), WireExpr(0, "a", Mapping.RECEIVER)):
        with pytest.raises(EncodeError, match="no mapping"):
            write(kind, expr)


@pytest.mark.parametrize(
    ("lease", "bits", "text"),
    [
        (10_000, 0x40, "0a"),
        (2_500, 0x00, "c413"),
        (0, 0x40, "00"),
        (999, 0x00, "e707"),
        ((2**64 - 1) * 1000, 0x40, "ff" * 9),
    ],
)
def test_a_lease_is_in_seconds_where_it_can_be(lease: int, bits: int, text: str) -> None:
    kind = k.Lease(M)
    assert kind.bits(lease) == bits
    assert write(kind, lease) == text
    assert kind.read(Reader(bytes.fromhex(text)), bits) == lease


@pytest.mark.parametrize(
    ("body", "bits", "text"),
    [
        (None, 0x00, ""),
        (300, 0x20, "ac02"),
        (0, 0x20, "00"),
        (b"ab", 0x40, "026162"),
        (b"", 0x40, "00"),
    ],
)
def test_oam_body(body: int | bytes | None, bits: int, text: str) -> None:
    kind = k.OamBody(k.Bits(5, 2))
    assert kind.mask == 0x60
    assert kind.bits(body) == bits
    assert write(kind, body) == text
    assert kind.read(Reader(bytes.fromhex(text)), bits) == body


def test_oam_body_has_no_fourth_encoding() -> None:
    with pytest.raises(DecodeError) as caught:
        k.OamBody(k.Bits(5, 2)).read(Reader(b"\x00"), 0x60)
    assert (caught.value.fault, caught.value.offset) == (Fault.RESERVED_ENCODING, 0)


def test_kinds_without_a_wire_form_say_so() -> None:
    for abstract in (k.Kind[int](), k.FlaggedKind[int]()):
        with pytest.raises(NotImplementedError):
            abstract.write(Writer(), 1)
    with pytest.raises(NotImplementedError):
        k.Kind[int]().read(Reader(b""))
    with pytest.raises(NotImplementedError):
        k.FlaggedKind[int]().read(Reader(b""), 0)
    with pytest.raises(NotImplementedError):
        k.FlaggedKind[int]().bits(0)
