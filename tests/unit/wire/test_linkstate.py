from __future__ import annotations

import pytest

from zenwire.errors import DecodeError, Fault
from zenwire.wire import decode, decode_linkstate, encode
from zenwire.wire.linkstate import OAM_LINKSTATE, Link, LinkState, LinkStateList
from zenwire.wire.locator import Locator
from zenwire.wire.network import Oam
from zenwire.wire.values import QoS, WhatAmI, ZenohId

BB02 = ZenohId.parse("bb02")


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (LinkState(psid=0, sn=2), "00" + "0002" + "00"),
        (LinkState(psid=0, sn=2, zid=BB02), "01" + "0002" + "0202bb" + "00"),
        (LinkState(psid=0, sn=2, whatami=WhatAmI.CLIENT), "02" + "0002" + "04" + "00"),
        (LinkState(psid=0, sn=2, locators=()), "04" + "0002" + "00" + "00"),
        (
            LinkState(psid=0, sn=2, locators=(Locator("tcp", "h:1"),)),
            "04" + "0002" + "01077463702f683a31" + "00",
        ),
        (LinkState(psid=0, sn=2, links=(Link(1), Link(2))), "00" + "0002" + "020102"),
        (
            LinkState(psid=0, sn=2, links=(Link(1, 100), Link(2))),
            "08" + "0002" + "020102" + "6400",
        ),
        (LinkState(psid=0, sn=2, gateway=True), "10" + "0002" + "00"),
    ],
)
def test_options_say_what_is_there(entry: LinkState, text: str) -> None:
    raw = bytes.fromhex("01" + text)
    assert encode(LinkStateList(entries=(entry,))) == raw
    assert decode_linkstate(raw) == LinkStateList(entries=(entry,))


def test_link_state_is_the_body_of_oam_1() -> None:
    raw = bytes.fromhex("df01210812" + "02" + "070002" + "0202bb" + "02" + "00" + "00" + "030100")
    raw += bytes.fromhex("0202aa" + "02" + "00")
    oam = decode(raw, "network")
    assert oam == Oam(id=OAM_LINKSTATE, qos=QoS(0x08), body=raw[5:])
    entries = decode_linkstate(oam.body).entries
    assert [str(entry.zid) for entry in entries] == ["bb02", "aa02"]
    assert encode(decode_linkstate(oam.body)) == oam.body


def test_absent_parts_are_not_empty_ones() -> None:
    absent, empty = (
        decode_linkstate(bytes.fromhex(t)).entries[0] for t in ("0100000200", "010400020000")
    )
    assert absent.locators is None
    assert empty.locators == ()


@pytest.mark.parametrize("whatami", ["00", "03", "05", "08", "ff"])
def test_a_node_is_1_2_or_4(whatami: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_linkstate(bytes.fromhex("01020002" + whatami + "00"))
    assert (caught.value.fault, caught.value.offset) == (Fault.INVALID, 4)


def test_the_list_fills_its_bytes() -> None:
    with pytest.raises(DecodeError) as caught:
        decode_linkstate(b"\0\0")
    assert (caught.value.fault, caught.value.message) == (Fault.TRAILING, "LinkStateList")
