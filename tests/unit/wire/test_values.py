from __future__ import annotations

import pytest

from zenwire.errors import EncodeError
from zenwire.wire.values import (
    CloseReason,
    CongestionControl,
    ConsolidationMode,
    InterestMode,
    Mapping,
    Priority,
    QoS,
    QoSLink,
    QueryableInfo,
    QueryTarget,
    Resolution,
    UnknownExt,
    WhatAmI,
    WhatAmIMatcher,
    WireExpr,
    ZenohId,
)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("01cc", "cc01"),
        ("01", "1"),
        ("10", "10"),
        ("0001", "100"),
        ("ff" * 16, "ff" * 16),
        ("00" * 15 + "01", "1" + "0" * 30),
        ("01aa0000", "aa01"),
    ],
)
def test_zenoh_id(raw: str, text: str) -> None:
    zid = ZenohId(bytes.fromhex(raw))
    assert str(zid) == text
    assert ZenohId.parse(text) == zid
    assert int(zid) == int(text, 16)
    assert zid.raw == bytes.fromhex(raw).rstrip(b"\0")


@pytest.mark.parametrize("raw", [b"", b"\0", bytes(16), b"\1" * 17])
def test_zenoh_id_has_1_to_16_bytes_and_is_not_zero(raw: bytes) -> None:
    with pytest.raises(EncodeError, match="1 to 16 bytes"):
        ZenohId(raw)


@pytest.mark.parametrize("text", ["", "0", "0a", "AA", "xyz", "0x1", " 1", "1_0", "-1", "٣"])
def test_zenoh_id_text_is_lowercase_hexadecimal_without_leading_zeros(text: str) -> None:
    with pytest.raises(EncodeError, match="lowercase hexadecimal"):
        ZenohId.parse(text)


def test_zenoh_id_text_has_128_bits_at_most() -> None:
    with pytest.raises(EncodeError, match="1 to 16 bytes"):
        ZenohId.parse("1" + "0" * 32)


def test_what_am_i() -> None:
    assert [(w.name, w.value) for w in WhatAmI] == [("ROUTER", 1), ("PEER", 2), ("CLIENT", 4)]
    assert {w.name: w.value for w in WhatAmIMatcher} == {w.name: w.value for w in WhatAmI}
    assert WhatAmIMatcher(WhatAmI.PEER) in WhatAmIMatcher(3)


@pytest.mark.parametrize(
    ("raw", "priority", "congestion_control", "express"),
    [
        (0x05, Priority.DATA, CongestionControl.DROP, False),
        (0x0D, Priority.DATA, CongestionControl.BLOCK, False),
        (0x08, Priority.CONTROL, CongestionControl.BLOCK, False),
        (0x19, Priority.REAL_TIME, CongestionControl.BLOCK, True),
        (0x25, Priority.DATA, CongestionControl.BLOCK_FIRST, False),
        (0x0F, Priority.BACKGROUND, CongestionControl.BLOCK, False),
        (0x16, Priority.DATA_LOW, CongestionControl.DROP, True),
    ],
)
def test_qos(
    raw: int, priority: Priority, congestion_control: CongestionControl, express: bool
) -> None:
    qos = QoS(raw)
    assert (qos.priority, qos.congestion_control, qos.express) == (
        priority,
        congestion_control,
        express,
    )
    assert QoS.of(priority, congestion_control, express) == qos


def test_qos_of_every_choice_is_told_apart() -> None:
    every = {
        QoS.of(priority, congestion_control, express).raw
        for priority in Priority
        for congestion_control in CongestionControl
        for express in (False, True)
    }
    assert len(every) == 8 * 3 * 2
    assert max(every) < 0x40


def test_qos_default_is_data_and_drop() -> None:
    assert QoS() == QoS.of() == QoS(5)
    assert str(QoS(0x19)) == "REAL_TIME BLOCK express"
    assert str(QoS()) == "DATA DROP"


def test_qos_d_wins_over_f() -> None:
    assert QoS(0x2D).congestion_control is CongestionControl.BLOCK


def test_priorities() -> None:
    assert [p.name for p in Priority] == [
        "CONTROL",
        "REAL_TIME",
        "INTERACTIVE_HIGH",
        "INTERACTIVE_LOW",
        "DATA_HIGH",
        "DATA",
        "DATA_LOW",
        "BACKGROUND",
    ]
    assert list(Priority) == list(range(8))


@pytest.mark.parametrize(
    ("value", "link"),
    [
        (538_638, QoSLink(False, (Priority.REAL_TIME, Priority.BACKGROUND), True)),
        (0, QoSLink(False)),
        (1, QoSLink()),
        (3 | 0 << 3 | 2 << 11, QoSLink(True, (Priority.CONTROL, Priority.INTERACTIVE_HIGH))),
        (4, QoSLink(False, None, False)),
        (4 | 1 << 19, QoSLink(False, None, True)),
    ],
)
def test_qos_link(value: int, link: QoSLink) -> None:
    assert QoSLink.parse(value) == link
    assert int(link) == value


def test_qos_link_without_its_marks_says_nothing() -> None:
    assert QoSLink.parse(0xFFFF << 3) == QoSLink(False)


@pytest.mark.parametrize("value", [2 | 8 << 3, 2 | 8 << 11, 2 | 0xFF << 3])
def test_qos_link_has_no_ninth_priority(value: int) -> None:
    with pytest.raises(ValueError, match="Priority"):
        QoSLink.parse(value)


@pytest.mark.parametrize(("bits", "modulus"), [(8, 2**7), (16, 2**14), (32, 2**28), (64, 2**32)])
def test_resolution(bits: int, modulus: int) -> None:
    """Sequence numbers use as many bits as that many bytes of an integer carry."""
    resolution = Resolution.of(frame_sn=bits)
    assert (resolution.frame_sn, resolution.request_id) == (bits, 32)
    assert resolution.sn_modulus == modulus
    assert Resolution.of(request_id=bits).request_id == bits


def test_resolution_byte() -> None:
    assert Resolution() == Resolution.of() == Resolution(0x0A)
    assert Resolution.of(8, 64).raw == 0b1100
    assert Resolution.of(64, 8).raw == 0b0011
    with pytest.raises(EncodeError, match="not 24"):
        Resolution.of(24)


@pytest.mark.parametrize(
    ("value", "info"),
    [
        (0x101, QueryableInfo(True, 1)),
        (0x01, QueryableInfo(True, 0)),
        (0x100, QueryableInfo(False, 1)),
        (0xFF_FF01, QueryableInfo(True, 65_535)),
        (0, QueryableInfo()),
    ],
)
def test_queryable_info_has_its_distance_in_the_second_byte(
    value: int, info: QueryableInfo
) -> None:
    assert QueryableInfo.parse(value) == info
    assert int(info) == value


def test_queryable_info_ignores_the_other_bits() -> None:
    assert QueryableInfo.parse(0x02) == QueryableInfo()
    assert QueryableInfo.parse(0xFE | 1 << 24) == QueryableInfo()


def test_close_reasons() -> None:
    assert {r.value: r.name for r in CloseReason} == {
        0: "GENERIC",
        1: "UNSUPPORTED",
        2: "INVALID",
        3: "MAX_SESSIONS",
        4: "MAX_LINKS",
        5: "EXPIRED",
        6: "UNRESPONSIVE",
        7: "CONNECTION_TO_SELF",
    }


def test_small_enumerations() -> None:
    assert [t.name for t in QueryTarget] == ["BEST_MATCHING", "ALL", "ALL_COMPLETE"]
    assert [m.name for m in ConsolidationMode] == ["AUTO", "NONE", "MONOTONIC", "LATEST"]
    assert [m.name for m in InterestMode] == ["FINAL", "CURRENT", "FUTURE", "CURRENT_FUTURE"]
    assert [m.name for m in Mapping] == ["RECEIVER", "SENDER"]
    for enum in (QueryTarget, ConsolidationMode, InterestMode, Mapping):
        assert [int(member) for member in enum] == list(range(len(enum)))


def test_wire_expr() -> None:
    assert str(WireExpr(0, "a/b")) == "a/b"
    assert str(WireExpr(3, "/**")) == "sender:3/**"
    assert str(WireExpr(3, "", Mapping.RECEIVER)) == "receiver:3"
    assert WireExpr() == WireExpr(0, "", Mapping.SENDER)


@pytest.mark.parametrize("scope", [-1, 65_536])
def test_wire_expr_scope_has_16_bits(scope: int) -> None:
    with pytest.raises(EncodeError, match="16 bits"):
        WireExpr(scope)


def test_wire_expr_suffix_has_65535_bytes() -> None:
    assert len(WireExpr(0, "k" * 65_535).suffix) == 65_535
    with pytest.raises(EncodeError, match="65535 bytes"):
        WireExpr(0, "k" * 65_536)


@pytest.mark.parametrize(
    ("header", "body"), [(0x09, None), (0x29, 5), (0x4F, b""), (0x20, 2**64 - 1)]
)
def test_unknown_ext(header: int, body: int | bytes | None) -> None:
    assert UnknownExt(header, body).body == body


@pytest.mark.parametrize(
    ("header", "body"),
    [(0x19, None), (0x89, None), (0x69, None), (0x09, 1), (0x29, b""), (0x49, None), (0x29, True)],
    ids=["mandatory", "Z", "reserved", "unit", "z64", "zbuf", "bool"],
)
def test_unknown_ext_has_the_body_that_its_header_says(
    header: int, body: int | bytes | None
) -> None:
    with pytest.raises(EncodeError, match="no optional extension"):
        UnknownExt(header, body)
