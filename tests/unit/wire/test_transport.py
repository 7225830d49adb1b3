from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from zenwire.errors import DecodeError, EncodeError, Fault
from zenwire.wire import VERSION, decode, encode
from zenwire.wire.transport import (
    Close,
    Fragment,
    Frame,
    InitAck,
    InitSyn,
    Join,
    KeepAlive,
    LaneSn,
    OpenAck,
    OpenSyn,
    TransportOam,
)
from zenwire.wire.values import CloseReason, Priority, Resolution, WhatAmI, ZenohId

CC07 = ZenohId.parse("cc07")
SYN = InitSyn(version=VERSION, zid=CC07, whatami=WhatAmI.CLIENT)
ACK = InitAck(version=VERSION, zid=CC07, whatami=WhatAmI.CLIENT, cookie=b"\x20\x21")
JOIN = Join(
    version=VERSION,
    zid=CC07,
    whatami=WhatAmI.PEER,
    lease=10_000,
    next_sn=LaneSn(reliable=1, best_effort=2),
)


def of(raw: bytes) -> Any:
    return decode(raw, "transport")


def test_the_version_is_9() -> None:
    assert VERSION == 0x09
    assert encode(SYN)[1] == 0x09


@pytest.mark.parametrize(("index", "whatami"), list(enumerate(WhatAmI)))
@pytest.mark.parametrize("message", [SYN, ACK, JOIN], ids=lambda m: type(m).__name__)
def test_length_of_the_id_and_node_share_a_byte(message: Any, index: int, whatami: WhatAmI) -> None:
    raw = encode(dataclasses.replace(message, whatami=whatami))
    assert raw[2] == 1 << 4 | index
    assert raw[3:5] == CC07.raw
    assert of(raw).whatami is whatami


@pytest.mark.parametrize("message", [SYN, ACK, JOIN], ids=lambda m: type(m).__name__)
def test_s_is_set_for_sizes_that_are_not_the_default(message: Any) -> None:
    assert not encode(message)[0] & 0x40
    sizes = {"resolution": Resolution.of(8, 16), "batch_size": 96}
    raw = encode(dataclasses.replace(message, **sizes))
    assert raw[0] & 0x40
    assert raw[5:8] == b"\x04\x60\x00"
    assert (of(raw).resolution.sn_modulus, of(raw).batch_size) == (2**7, 96)
    for name, value in sizes.items():
        alone = encode(dataclasses.replace(message, **{name: value}))
        assert alone[0] & 0x40
        assert getattr(of(alone), name) == value


def test_default_sizes() -> None:
    assert (SYN.resolution, SYN.batch_size) == (Resolution.of(32, 32), 65_535)
    assert (ACK.resolution, ACK.batch_size) == (Resolution.of(32, 32), 65_535)
    assert (JOIN.resolution, JOIN.batch_size) == (Resolution.of(32, 32), 8_192)


def test_the_cookie_of_init_stands_between_sizes_and_extensions() -> None:
    raw = encode(dataclasses.replace(ACK, batch_size=49_152, qos=True, patch=1))
    assert raw.hex() == "e1" + "09" + "12" + "07cc" + "0a00c0" + "022021" + "81" + "2701"


def test_the_cookie_of_open_stands_after_the_sequence_number() -> None:
    raw = encode(OpenSyn(lease=10_000, initial_sn=128, cookie=b"\x20\x21", remote_bound=1))
    assert raw.hex() == "c2" + "0a" + "8001" + "022021" + "2701"


def test_only_init_ack_and_open_syn_have_a_cookie() -> None:
    with_cookie = [
        cls
        for cls in (InitSyn, InitAck, OpenSyn, OpenAck)
        if "cookie" in {f.name for f in dataclasses.fields(cls)}
    ]
    assert with_cookie == [InitAck, OpenSyn]


@pytest.mark.parametrize(
    ("message", "bit"),
    [
        (OpenSyn(lease=0, initial_sn=0, cookie=b""), 0x40),
        (OpenAck(lease=0, initial_sn=0), 0x40),
        (JOIN, 0x20),
    ],
    ids=["OpenSyn", "OpenAck", "Join"],
)
def test_t_says_that_the_lease_is_in_seconds(message: Any, bit: int) -> None:
    for lease in (0, 1, 999, 1_000, 2_500, 10_000, 3_600_000):
        raw = encode(dataclasses.replace(message, lease=lease))
        assert bool(raw[0] & bit) == (lease % 1000 == 0)
        assert of(raw).lease == lease


def test_init_extensions_stand_in_the_order_of_the_reference() -> None:
    raw = encode(
        dataclasses.replace(
            SYN, qos=True, shm=b"", lowlatency=True, compression=True, patch=1, region_name="r"
        )
    )
    assert raw.hex() == "81091207cc" + "81" + "c200" + "85" + "86" + "a701" + "480172"


@pytest.mark.parametrize("reason", CloseReason)
def test_close_reasons(reason: CloseReason) -> None:
    assert encode(Close(reason=reason)) == bytes([0x03, reason])
    assert encode(Close(session=True, reason=reason)) == bytes([0x23, reason])
    assert of(bytes([0x23, reason])) == Close(session=True, reason=reason)


def test_keep_alive_is_a_header() -> None:
    assert encode(KeepAlive()) == b"\x04"


@pytest.mark.parametrize("priority", Priority)
def test_the_lane_of_a_frame_is_a_mandatory_extension(priority: Priority) -> None:
    frame = Frame(reliable=True, sn=7, priority=priority)
    expected = "2507" if priority is Priority.DATA else f"a50731{priority:02x}"
    assert encode(frame).hex() == expected
    assert of(encode(frame)) == frame


def test_a_fragment_carries_the_rest_of_the_batch() -> None:
    first = Fragment(
        reliable=True, more=True, sn=7, priority=Priority.BACKGROUND, first=True, payload=b"\x04"
    )
    assert encode(first).hex() == "e607" + "b107" + "02" + "04"
    assert of(encode(first)) == first
    assert encode(Fragment(sn=8, drop=True, payload=b"")).hex() == "8608" + "03"


def test_join_with_qos_has_eight_lanes() -> None:
    lanes = tuple(LaneSn(reliable=i, best_effort=i + 8) for i in range(8))
    raw = encode(dataclasses.replace(JOIN, lanes=lanes, patch=1))
    body = "".join(f"{i:02x}{i + 8:02x}" for i in range(8))
    assert raw.hex() == "a7" + "091107cc" + "0a" + "0102" + "d110" + body + "2701"
    assert of(raw).lanes == lanes
    with pytest.raises(EncodeError, match="8 items, not 7"):
        encode(dataclasses.replace(JOIN, lanes=lanes[:7]))


@pytest.mark.parametrize(("body", "text"), [(None, "0001"), (5, "200105"), (b"ab", "4001026162")])
def test_transport_oam_has_three_kinds_of_body(body: int | bytes | None, text: str) -> None:
    assert encode(TransportOam(id=1, body=body)).hex() == text
    assert of(bytes.fromhex(text)) == TransportOam(id=1, body=body)


def test_sequence_numbers_have_32_bits() -> None:
    for raw in ("2580808080107f", "26808080801000", "620a8080808010", "420a808080801000"):
        with pytest.raises(DecodeError) as caught:
            of(bytes.fromhex(raw))
        assert caught.value.fault is Fault.OVERFLOW
    with pytest.raises(EncodeError, match="wider than z32"):
        encode(Frame(sn=2**32))
