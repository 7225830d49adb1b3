"""The object codec: headers, flags, and the rules of extensions."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from tests.strategies import SCOPES, label, message_specs, specs
from zenwire.errors import DecodeError, EncodeError, Fault
from zenwire.wire import decode, encode
from zenwire.wire.buffer import Reader
from zenwire.wire.data import Del, Put, Query
from zenwire.wire.declare import DeclareFinal, DeclareSubscriber
from zenwire.wire.define import Spec, Unknown, messages, spec_of
from zenwire.wire.encoding import Encoding
from zenwire.wire.limits import EXTENSIONS_MAX
from zenwire.wire.network import Declare, Interest, Push
from zenwire.wire.objects import OneOf, codec_of, dispatch
from zenwire.wire.structs import SourceInfo
from zenwire.wire.transport import Frame, InitSyn, KeepAlive
from zenwire.wire.values import InterestMode, QoS, UnknownExt, WhatAmI, WireExpr, ZenohId

KEY = WireExpr(1)


def of(text: str, scope: str = "network") -> Any:
    return decode(bytes.fromhex(text), scope)


def fault(text: str, scope: str = "network") -> tuple[Fault, int]:
    with pytest.raises(DecodeError) as caught:
        of(text, scope)
    return caught.value.fault, caught.value.offset


# Headers.


@pytest.mark.parametrize("scope", SCOPES)
def test_every_header_finds_its_message_or_none(scope: str) -> None:
    table = dispatch(messages(scope))
    for header in range(256):
        codec = table[header]
        found = [s for s in messages(scope) if s.matches(header)]
        assert len(found) <= 1
        assert (codec.spec if codec else None) == (found[0] if found else None)
        if codec is None:
            assert fault(f"{header:02x}", scope) == (Fault.UNKNOWN_ID, 0)


def test_ids_of_the_protocol() -> None:
    ids = {s.cls.__name__: (s.scope, s.id) for s in message_specs()}
    assert ids == {
        "Scout": ("scouting", 0x01),
        "Hello": ("scouting", 0x02),
        "TransportOam": ("transport", 0x00),
        "InitSyn": ("transport", 0x01),
        "InitAck": ("transport", 0x01),
        "OpenSyn": ("transport", 0x02),
        "OpenAck": ("transport", 0x02),
        "Close": ("transport", 0x03),
        "KeepAlive": ("transport", 0x04),
        "Frame": ("transport", 0x05),
        "Fragment": ("transport", 0x06),
        "Join": ("transport", 0x07),
        "Interest": ("network", 0x19),
        "ResponseFinal": ("network", 0x1A),
        "Response": ("network", 0x1B),
        "Request": ("network", 0x1C),
        "Push": ("network", 0x1D),
        "Declare": ("network", 0x1E),
        "Oam": ("network", 0x1F),
        "DeclareKeyExpr": ("declare", 0x00),
        "UndeclareKeyExpr": ("declare", 0x01),
        "DeclareSubscriber": ("declare", 0x02),
        "UndeclareSubscriber": ("declare", 0x03),
        "DeclareQueryable": ("declare", 0x04),
        "UndeclareQueryable": ("declare", 0x05),
        "DeclareToken": ("declare", 0x06),
        "UndeclareToken": ("declare", 0x07),
        "DeclareFinal": ("declare", 0x1A),
        "Put": ("data", 0x01),
        "Del": ("data", 0x02),
        "Query": ("data", 0x03),
        "Reply": ("data", 0x04),
        "Err": ("data", 0x05),
    }


def test_transport_and_network_ids_do_not_overlap() -> None:
    transport = {s.id for s in messages("transport")}
    network = {s.id for s in messages("network")}
    assert transport == set(range(8))
    assert network == set(range(0x19, 0x20))


# The header, encoding and M of every extension of the protocol.
EXTENSIONS = {
    "TransportOam": {"priority": 0x31},
    "InitSyn": {
        "qos": 0x01,
        "qos_link": 0x21,
        "shm": 0x42,
        "auth": 0x43,
        "multilink": 0x44,
        "lowlatency": 0x05,
        "compression": 0x06,
        "patch": 0x27,
        "region_name": 0x48,
    },
    "InitAck": {
        "qos": 0x01,
        "qos_link": 0x21,
        "shm": 0x42,
        "auth": 0x43,
        "multilink": 0x44,
        "lowlatency": 0x05,
        "compression": 0x06,
        "patch": 0x27,
        "region_name": 0x48,
    },
    "OpenSyn": {"shm": 0x42, "auth": 0x43, "multilink": 0x44, "remote_bound": 0x27},
    "OpenAck": {"shm": 0x42, "auth": 0x43, "multilink": 0x04, "remote_bound": 0x27},
    "Frame": {"priority": 0x31},
    "Fragment": {"priority": 0x31, "first": 0x02, "drop": 0x03},
    "Join": {"lanes": 0x51, "shm": 0x42, "patch": 0x27},
    "Interest": {"qos": 0x21, "timestamp": 0x42, "node_id": 0x33},
    "ResponseFinal": {"qos": 0x21, "timestamp": 0x42},
    "Response": {"qos": 0x21, "timestamp": 0x42, "responder": 0x43, "timestamp_stack": 0x47},
    "Request": {
        "qos": 0x21,
        "timestamp": 0x42,
        "target": 0x34,
        "budget": 0x25,
        "timeout": 0x26,
        "node_id": 0x33,
        "timestamp_stack": 0x47,
    },
    "Push": {"qos": 0x21, "timestamp": 0x42, "node_id": 0x33, "timestamp_stack": 0x47},
    "Declare": {"qos": 0x21, "timestamp": 0x42, "node_id": 0x33},
    "Oam": {"qos": 0x21, "timestamp": 0x42},
    "UndeclareSubscriber": {"key": 0x5F},
    "DeclareQueryable": {"info": 0x21},
    "UndeclareQueryable": {"key": 0x5F},
    "UndeclareToken": {"key": 0x5F},
    "Put": {"source_info": 0x41, "shm": 0x12, "attachment": 0x43},
    "Del": {"source_info": 0x41, "attachment": 0x42},
    "Query": {"source_info": 0x41, "shm": 0x04, "body": 0x43, "attachment": 0x45},
    "Err": {"source_info": 0x41, "shm": 0x12},
    "AuthInitSyn": {"public_key": 0x41, "user_password": 0x02},
    "AuthInitAck": {"public_key": 0x41, "user_password": 0x22},
    "AuthOpenSyn": {"public_key": 0x41, "user_password": 0x42},
    "AuthOpenAck": {"public_key": 0x01, "user_password": 0x02},
}


@pytest.mark.parametrize("spec", specs(), ids=label)
def test_extensions_of_the_protocol_in_the_order_of_the_reference(spec: Spec) -> None:
    found = [(e.name, e.header) for e in spec.exts]
    assert found == list(EXTENSIONS.get(spec.cls.__name__, {}).items())


def test_only_data_messages_keep_what_they_do_not_know() -> None:
    keeping = {s.name for s in specs() if any(isinstance(e, Unknown) for e in s.elements)}
    assert keeping == {"PUT", "DEL", "QUERY", "REPLY", "ERR"}


# Extensions: the rules one by one.


@pytest.mark.parametrize("spec", message_specs(), ids=label)
def test_every_message_may_announce_extensions(spec: Spec) -> None:
    """Z alone means a chain, also where no extension is defined."""
    header = 0x80 | spec.id | spec.variant[1]
    table = dispatch((spec,))
    codec = table[header]
    assert codec is not None
    with pytest.raises(DecodeError) as caught:
        codec.read(Reader(b""), header)
    assert caught.value.fault is Fault.TRUNCATED
    assert caught.value.message == spec.name


def test_a_chain_ends_with_the_first_extension_without_z() -> None:
    assert of("dd01" + "8a" + "ab05" + "4c0100" + "02") == Push(key=KEY, body=Del())
    assert fault("dd01" + "8a") == (Fault.TRUNCATED, 3)


@pytest.mark.parametrize("ext", ["0a", "2a05", "2affffffffffffffffff", "4a00", "4a03010203"])
def test_an_unknown_optional_extension_is_skipped_by_its_encoding(ext: str) -> None:
    push = of("dd01" + ext + "02")
    assert push == Push(key=KEY, body=Del())
    assert encode(push).hex() == "5d0102"
    assert of("84" + ext, "transport") == KeepAlive()
    assert of("9a" + ext, "declare") == DeclareFinal()


@pytest.mark.parametrize(
    ("ext", "kept"),
    [
        ("0a", UnknownExt(0x0A, None)),
        ("2a05", UnknownExt(0x2A, 5)),
        ("2affffffffffffffffff", UnknownExt(0x2A, 2**64 - 1)),
        ("4a00", UnknownExt(0x4A, b"")),
        ("4a03010203", UnknownExt(0x4A, b"\1\2\3")),
    ],
)
def test_an_unknown_optional_extension_of_data_is_kept_and_written_again(
    ext: str, kept: UnknownExt
) -> None:
    put = of("81" + ext + "0178", "data")
    assert put == Put(unknown=(kept,), payload=b"x")
    assert encode(put).hex() == "81" + ext + "0178"


def test_unknown_extensions_are_written_after_the_known_ones_in_their_order() -> None:
    put = of("81" + "aa05" + "c30161" + "8b" + "2a06" + "00", "data")
    assert [u.header for u in put.unknown] == [0x2A, 0x0B, 0x2A]
    assert encode(put).hex() == "81" + "c30161" + "aa05" + "8b" + "2a06" + "00"


@pytest.mark.parametrize("header", ["1a", "3a", "5a", "9a"])
def test_an_unknown_mandatory_extension_is_a_fault(header: str) -> None:
    assert fault("dd01" + header + "0002") == (Fault.MANDATORY_EXTENSION, 2)
    assert fault("81" + header + "0000", "data") == (Fault.MANDATORY_EXTENSION, 1)
    assert fault("84" + header + "00", "transport") == (Fault.MANDATORY_EXTENSION, 1)
    assert fault("8109" + "02cc" + header + "00", "transport") == (Fault.MANDATORY_EXTENSION, 4)


def test_the_first_fault_of_a_chain_counts() -> None:
    assert fault("dd01" + "8a" + "9a" + "6a" + "02") == (Fault.MANDATORY_EXTENSION, 3)
    assert fault("dd01" + "8a" + "ea" + "1a" + "02") == (Fault.RESERVED_ENCODING, 3)


@pytest.mark.parametrize("header", ["6a", "ea", "61", "6f"])
def test_the_reserved_encoding_is_a_fault(header: str) -> None:
    assert fault("dd01" + header + "0002") == (Fault.RESERVED_ENCODING, 2)
    assert fault("81" + header + "0000", "data") == (Fault.RESERVED_ENCODING, 1)


def test_the_reserved_encoding_with_m_is_an_unknown_mandatory_extension() -> None:
    assert fault("dd01" + "7a" + "02") == (Fault.MANDATORY_EXTENSION, 2)


@pytest.mark.parametrize("ext", ["01", "41010d"])
def test_the_same_id_with_another_encoding_is_another_extension(ext: str) -> None:
    """QoS of a network message is id 1 with a number."""
    assert of("dd01" + ext + "02") == Push(key=KEY, body=Del())


def test_the_same_id_with_another_encoding_is_kept_by_data() -> None:
    put = of("81" + "a107" + "2306" + "00", "data")
    assert put == Put(unknown=(UnknownExt(0x21, 7), UnknownExt(0x23, 6)), payload=b"")
    assert put.source_info is put.attachment is None


def test_the_same_id_with_another_m_is_another_extension() -> None:
    assert fault("dd01" + "310d" + "02") == (Fault.MANDATORY_EXTENSION, 2)
    assert of("dd01" + "2301" + "02") == Push(key=KEY, body=Del())
    assert of("a507" + "2106", "transport") == Frame(reliable=True, sn=7)
    assert of("81" + "02" + "00", "data") == Put(unknown=(UnknownExt(0x02, None),), payload=b"")


def test_qos_and_qos_link_have_one_id_and_two_encodings() -> None:
    init = of("810902cc" + "81" + "2101", "transport")
    assert init.qos
    assert init.qos_link is not None


def test_extensions_come_in_any_order() -> None:
    text = "81" + "c30161" + "92" + "410400010203" + "00"
    put = of(text, "data")
    assert put == Put(
        source_info=SourceInfo(zid=ZenohId(b"\1"), eid=2, sn=3),
        shm=True,
        attachment=b"a",
        payload=b"",
    )
    assert encode(put).hex() == "81" + "c10400010203" + "92" + "430161" + "00"


def test_of_two_equal_extensions_the_last_counts() -> None:
    assert of("dd01" + "a10d" + "2119" + "02").qos == QoS(0x19)
    assert of("dd01" + "a10d" + "2105" + "02").qos == QoS()
    assert of("81" + "c30161" + "430162" + "00", "data").attachment == b"b"
    # The first is read all the same.
    assert fault("dd01" + "b3808004" + "3301" + "02") == (Fault.OVERFLOW, 3)


STRUCTURED = {
    "timestamp": ("dd01", 0x42, "000101", "02", "network"),
    "timestamp_stack": ("dd01", 0x47, "0100", "02", "network"),
    "responder": ("db0102", 0x43, "000105", "0402", "network"),
    "source_info": ("81", 0x41, "00010203", "00", "data"),
    "lanes": ("a7091110aa0a0000", 0x51, "00" * 16, "", "transport"),
    "auth": ("810902cc", 0x43, "02", "", "transport"),
    "multilink": ("810902cc", 0x44, "01230103", "", "transport"),
}


@pytest.mark.parametrize("case", STRUCTURED.values(), ids=STRUCTURED)
def test_a_structured_extension_fills_its_length(case: tuple[str, int, str, str, str]) -> None:
    before, header, body, after, scope = case
    start = len(before) // 2
    size = len(body) // 2
    exact = f"{before}{header:02x}{size:02x}{body}{after}"
    assert encode(of(exact, scope)).hex() == exact

    longer = f"{before}{header:02x}{size + 1:02x}{body}00{after}"
    assert fault(longer, scope) == (Fault.TRAILING, start + 2 + size)

    shorter = f"{before}{header:02x}{size - 1:02x}{body}{after}"
    if header == 0x43 and body == "02":
        assert fault(shorter, scope) == (Fault.TRAILING, start + 2)  # an empty inner chain
    else:
        assert fault(shorter, scope) == (Fault.TRUNCATED, start + 1 + size)


def test_an_extension_ends_within_the_message() -> None:
    assert fault("dd01" + "4a05" + "0102") == (Fault.TRUNCATED, 4)
    assert fault("dd01" + "42ff" + "01" + "02") == (Fault.TRUNCATED, 5)
    assert fault("dd01" + "4a8080808010" + "02") == (Fault.LIMIT, 3)


@pytest.mark.parametrize(
    ("scope", "before"),
    [("network", "dd01"), ("data", "81"), ("transport", "84"), ("declare", "9a")],
)
def test_ten_thousand_extensions_are_too_many(scope: str, before: str) -> None:
    start = len(before) // 2
    for ext in ("8a", "aa05", "ca00"):
        chain = ext * 10_000
        where = start + EXTENSIONS_MAX * len(ext) // 2
        assert fault(before + chain, scope) == (Fault.LIMIT, where)


def test_as_many_extensions_as_the_limit_are_read() -> None:
    chain = "8a" * (EXTENSIONS_MAX - 1) + "0a"
    put = of("81" + chain + "00", "data")
    assert len(put.unknown) == EXTENSIONS_MAX
    assert encode(put).hex() == "81" + chain + "00"
    with pytest.raises(EncodeError, match="over 128 extensions"):
        encode(Put(shm=True, unknown=put.unknown, payload=b""))


def test_an_unknown_extension_is_not_written_as_a_known_one() -> None:
    with pytest.raises(EncodeError, match="PUT knows the extension 0x43"):
        encode(Put(unknown=(UnknownExt(0x43, b""),), payload=b""))
    assert encode(Del(unknown=(UnknownExt(0x43, b""),))).hex() == "824300"


# Fields and flags.


def test_a_default_is_not_sent() -> None:
    assert encode(Put(payload=b"")).hex() == "0100"
    assert encode(Put(encoding=Encoding(), payload=b"")).hex() == "0100"
    assert encode(Frame(sn=7)).hex() == "0507"
    assert encode(Push(key=KEY, qos=QoS(5), node_id=0, body=Del())).hex() == "5d0102"


def test_bits_that_nobody_defined_mean_nothing() -> None:
    assert of("64", "transport") == KeepAlive()
    assert of("4507", "transport") == Frame(sn=7)
    assert of("5e1a") == Declare(body=DeclareFinal())


def test_an_interest_that_ends_has_no_options() -> None:
    final = Interest(mode=InterestMode.FINAL, id=1)
    assert encode(final).hex() == "1901"
    assert of("1901") == final
    for options in ({"subscribers": True}, {"key": KEY}, {"aggregate": True}):
        with pytest.raises(EncodeError, match="options without a place"):
            encode(Interest(mode=InterestMode.FINAL, id=1, **options))


def test_a_message_fills_its_bytes() -> None:
    assert fault("0400", "transport") == (Fault.TRAILING, 1)
    assert fault("", "transport") == (Fault.TRUNCATED, 0)
    assert fault("5d010200") == (Fault.TRAILING, 3)


def test_an_error_names_the_innermost_message() -> None:
    with pytest.raises(DecodeError) as caught:
        of("9e21086201ff")
    assert caught.value.message == "D_SUBSCRIBER"
    assert str(caught.value) == "TRUNCATED at byte 6 in D_SUBSCRIBER"
    with pytest.raises(DecodeError) as caught:
        of("dd01420000")
    assert caught.value.message == "Timestamp"
    with pytest.raises(DecodeError) as caught:
        of("1e08")
    assert (caught.value.message, caught.value.offset) == ("DECLARE", 1)


def test_one_of_reads_its_messages_alone() -> None:
    one = OneOf[Put | Del](Put, Del)
    assert one.label == "PUT or DEL"
    assert one.read(Reader(b"\x02")) == Del()
    with pytest.raises(DecodeError) as caught:
        one.read(Reader(b"\x00\x03", 1))
    assert (caught.value.fault, caught.value.offset) == (Fault.UNKNOWN_ID, 1)


def test_what_is_no_message_is_not_encoded() -> None:
    with pytest.raises(TypeError):
        encode("PUT")
    with pytest.raises(TypeError):
        codec_of(int)


def test_messages_are_values() -> None:
    init = InitSyn(version=9, zid=ZenohId(b"\1"), whatami=WhatAmI.PEER)
    assert of(encode(init).hex(), "transport") == init
    assert len({init, of(encode(init).hex(), "transport")}) == 1
    for message in (init, Query(), DeclareSubscriber(id=1, key=KEY)):
        assert pickle.loads(pickle.dumps(message)) == message
    assert spec_of(type(init)).cls is InitSyn
