"""Whole captures: the recorded ones, undamaged in any form, give the same batches."""

from __future__ import annotations

import gzip
import random
import struct
from pathlib import Path
from typing import Any

import lz4.frame
import pyarrow as pa
import pytest

from tests import recorded
from tests.recorded import CAPTURES
from tests.unit.capture import writer as w
from zenwire.capture import read_capture, table
from zenwire.errors import CaptureError
from zenwire.wire import decode, encode
from zenwire.wire.scouting import Scout
from zenwire.wire.transport import InitAck, InitSyn, OpenSyn
from zenwire.wire.values import Resolution, WhatAmI, ZenohId

NAMES = [path.stem for path in CAPTURES]
BY_NAME = dict(zip(NAMES, CAPTURES, strict=True))
SMALL = ["advanced", "compression", "liveliness", "lowlatency", "udp", "three_routers"]
CLOSE = b"\x03\x00"


def truth(name: str) -> dict[tuple[object, ...], list[bytes]]:
    return w.expected(recorded.batches(BY_NAME[name]))


def without_close(
    found: dict[tuple[object, ...], list[bytes]],
) -> dict[tuple[object, ...], list[bytes]]:
    """The recorded truth leaves out the CLOSE that ends a low-latency stream."""
    return {flow: data[:-1] if data[-1] == CLOSE else data for flow, data in found.items()}


def same(found: w.Read, name: str) -> None:
    if name == "lowlatency":
        assert without_close(found.bytes) == truth(name)
    else:
        assert found.bytes == truth(name)


@pytest.mark.parametrize("name", NAMES)
def test_recorded_captures_give_their_batches(name: str) -> None:
    found = w.read(BY_NAME[name])
    same(found, name)
    assert not found.faults
    packets = w.packets_of(BY_NAME[name])
    assert found.summary.packets == len(packets)
    assert found.summary.captured == sum(len(packet.data) for packet in packets)
    assert found.summary.missing == found.summary.skipped == found.summary.foreign == 0


def test_low_latency_and_compression_are_told() -> None:
    for name, column in (("lowlatency", "lowlatency"), ("compression", "compression")):
        for rows in w.read(BY_NAME[name]).batches.values():
            flags = [row[column] for row in rows]
            assert flags[:2] == [False, False]
            assert all(flags[2:-1])
    for rows in w.read(BY_NAME["udp"]).batches.values():
        assert {row["compression"] for row in rows} == {False}


def test_direction_is_that_of_the_handshake() -> None:
    rows = w.read(BY_NAME["usrpwd"]).batches
    for flow, batches in rows.items():
        expected = "to_connector" if flow[1] < flow[3] else "to_acceptor"  # type: ignore[operator]
        assert {row["direction"] for row in batches} == {expected}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("window", [64, 1000, 4096, 65_536])
def test_window_size_does_not_matter(name: str, window: int) -> None:
    assert w.read(BY_NAME[name], window).batches == w.read(BY_NAME[name]).batches


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nano", [False, True])
def test_pcap_byte_orders_and_resolutions(tmp_path: Path, order: str, nano: bool) -> None:
    packets = w.packets_of(BY_NAME["liveliness"])
    found = w.read_bytes(tmp_path, w.pcap(packets, order=order, nano=nano))
    assert found.batches.keys() == w.read(BY_NAME["liveliness"]).batches.keys()
    for flow, rows in w.read(BY_NAME["liveliness"]).batches.items():
        assert [(r["time"], r["bytes"]) for r in rows] == [
            (r["time"], r["bytes"]) for r in found.batches[flow]
        ]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("resolution", "offset"),
    [
        (None, None),
        (9, None),
        (3, None),
        (12, 1_785_000_000),
        (0x80 | 20, None),
        (0x80 | 40, 1_785_000_000),
        (6, -7),
    ],
)
def test_pcapng(tmp_path: Path, order: str, resolution: int | None, offset: int | None) -> None:
    packets = w.packets_of(BY_NAME["advanced"])
    data = w.pcapng(packets, order=order, resolution=resolution, offset=offset)
    for window in (1 << 20, 100):
        found = w.read_bytes(tmp_path, data, window)
        same(found, "advanced")
        assert not found.faults
        first = min(int(str(row["time"])) for rows in found.batches.values() for row in rows)
        true = min(
            int(str(row["time"]))
            for rows in w.read(BY_NAME["advanced"]).batches.values()
            for row in rows
        )
        assert abs(first - true) <= (10**6 if resolution == 3 else 1000)


def test_pcapng_sections_interfaces_and_packet_blocks(tmp_path: Path) -> None:
    packets = w.packets_of(BY_NAME["advanced"])
    third = len(packets) // 3
    old = []
    for p in packets[third : 2 * third]:
        stamp = p.time // 1000
        head = struct.pack(">HHIIII", 1, 0, stamp >> 32, stamp & 0xFFFFFFFF, len(p.data), p.length)
        old.append(w.block(">", 2, head + p.data))
    data = b"".join(
        [
            w.section(),
            w.interface(link=101, resolution=9),
            *(w.enhanced("<", w.Packet(p.time, p.data[14:]), p.time) for p in packets[:third]),
            w.section(">"),
            w.interface(">", link=0),
            w.interface(">", link=1),
            *old,
            w.section("<"),
            w.interface("<"),
            *(
                w.block("<", 3, struct.pack("<I", len(p.data)) + p.data)
                for p in packets[2 * third :]
            ),
        ]
    )
    found = w.read_bytes(tmp_path, data)
    same(found, "advanced")
    assert not found.faults


LINKS = {
    "raw": (101, bytes),
    "raw12": (12, bytes),
    "raw14": (14, bytes),
    "ipv4": (228, bytes),
    "null": (0, lambda ip: b"\x02\0\0\0" + ip),
    "null-big": (0, lambda ip: b"\0\0\0\x02" + ip),
    "loop": (108, lambda ip: b"\0\0\0\x02" + ip),
    "sll": (113, lambda ip: bytes(14) + b"\x08\0" + ip),
    "sll2": (276, lambda ip: b"\x08\0" + bytes(18) + ip),
    "vlan": (1, lambda ip: w.ethernet(ip, b"\x81\x00\x00\x05")),
    "qinq": (1, lambda ip: w.ethernet(ip, b"\x88\xa8\x00\x01\x81\x00\x00\x05")),
    "padded": (1, lambda ip: w.ethernet(ip) + bytes(30)),
}


@pytest.mark.parametrize("kind", LINKS)
def test_link_types(tmp_path: Path, kind: str) -> None:
    link, wrap = LINKS[kind]
    for name in ("advanced", "udp"):
        packets = w.relink(w.packets_of(BY_NAME[name]), wrap)
        found = w.read_bytes(tmp_path, w.pcap(packets, link=link))
        same(found, name)
        assert not found.faults


EXTENSIONS = {
    "none": (b"", None),
    "hop": (b"\x06\0" + bytes(6), 0),
    "several": (b"\x2b\x01" + bytes(14) + b"\x3c\0" + bytes(6) + b"\x06\0" + bytes(6), 0),
    "authentication": (b"\x06\x02" + bytes(14), 51),
    "lone fragment": (b"\x06\0\0\0\0\0\0\x01", 44),
}


@pytest.mark.parametrize("kind", EXTENSIONS)
def test_ip6(tmp_path: Path, kind: str) -> None:
    extensions, first = EXTENSIONS[kind]
    for link, head in ((1, bytes(12) + b"\x86\xdd"), (0, b"\x1e\0\0\0"), (229, b"")):
        packets = [
            w.Packet(p.time, head + w.to_ip6(p.data[14:], extensions, first))
            for p in w.packets_of(BY_NAME["advanced"])
        ]
        found = w.read_bytes(tmp_path, w.pcap(packets, link=link))
        assert sorted(found.bytes.values()) == sorted(truth("advanced").values())
        assert {str(flow[0]) for flow in found.bytes} == {"fd00::1"}


@pytest.mark.parametrize("version", [4, 6])
def test_fragmented_datagrams(tmp_path: Path, version: int) -> None:
    chance = random.Random(version)
    packets = []
    for number, p in enumerate(w.packets_of(BY_NAME["udp"])):
        ip = p.data[14:]
        body, step = ip[20:], 8 * chance.randint(1, 60)
        parts = []
        for at in range(0, len(body), step):
            more = at + step < len(body)
            piece = body[at : at + step]
            if version == 4:
                bits = at // 8 | (0x2000 if more else 0)
                whole = w.ip4(ip[9], ip[12:16], ip[16:20], piece, part=bits, ident=number)
            else:
                head = struct.pack(">BBHI", ip[9], 0, at | more, number)
                wide = bytes(12)
                whole = w.ip6(44, wide + ip[12:16], wide + ip[16:20], head + piece)
            parts.append(w.Packet(p.time, w.ethernet(whole)))
        if number % 3 == 0:
            chance.shuffle(parts)
        packets += parts
    found = w.read_bytes(tmp_path, w.pcap(packets))
    assert sorted(found.bytes.values()) == sorted(truth("udp").values())
    assert not found.faults


def test_fragments_that_never_complete_are_counted(tmp_path: Path) -> None:
    piece = w.ip4(17, b"abcd", b"efgh", bytes(64), part=0x2000, ident=1)
    found = w.read_bytes(tmp_path, w.pcap([w.Packet(1, w.ethernet(piece))]))
    assert found.fault_names == {"file_fragments"}
    assert found.faults[0]["skipped"] == 64


@pytest.mark.parametrize("name", ["advanced", "udp"])
def test_compressed_files(tmp_path: Path, name: str) -> None:
    raw = BY_NAME[name].read_bytes()
    forms = {
        "gz": gzip.compress(raw),
        "zst": pa.compress(raw, "zstd", asbytes=True),
        "lz4": lz4.frame.compress(raw),
    }
    for data in forms.values():
        same(w.read_bytes(tmp_path, data), name)
        if name == "advanced":
            continue
        cut = w.read_bytes(tmp_path, data[: len(data) // 2])
        assert 0 < cut.summary.packets < len(w.packets_of(BY_NAME[name]))
        assert any(str(fault).startswith("file_") for fault in cut.fault_names)


def test_what_is_no_capture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="No such file"):
        list(read_capture(tmp_path / "none.pcap"))
    with pytest.raises(CaptureError, match="directory"):
        list(read_capture(tmp_path))
    for data, why in ((b"", "empty"), (b"hello, world, this is text", "neither"), (b"x", "neith")):
        path = tmp_path / "x"
        path.write_bytes(data)
        with pytest.raises(CaptureError, match=why):
            list(read_capture(path))


def test_flows_that_are_not_zenoh_are_reported(tmp_path: Path) -> None:
    chance = random.Random(1)
    body = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    junk = chance.randbytes(400_000)
    packets = [w.Packet(1, w.ethernet(w.ip4(6, b"aaaa", b"bbbb", w.tcp(80, 9, 1, body))))]
    for at in range(0, len(junk), 1000):
        segment = w.tcp(81, 9, 1 + at, junk[at : at + 1000])
        packets.append(w.Packet(2, w.ethernet(w.ip4(6, b"aaaa", b"bbbb", segment))))
    for number in range(9):
        datagram = w.udp(53, 9, chance.randbytes(50 + number))
        packets.append(w.Packet(3, w.ethernet(w.ip4(17, b"aaaa", b"bbbb", datagram))))
    arp = bytes(12) + b"\x08\x06" + bytes(28)
    packets.append(w.Packet(4, arp))
    packets += w.packets_of(BY_NAME["advanced"])
    for window in (1 << 20, 2000):
        found = w.read_bytes(tmp_path, w.pcap(packets), window)
        same(found, "advanced")
        assert found.fault_names == {"not_zenoh", "packet_other_network"}
        assert sorted(int(str(fault["skipped"])) for fault in found.faults) == [
            len(body),
            len(arp),
            sum(50 + number for number in range(9)),
            len(junk),
        ]
        assert found.summary.foreign_flows == 3
        assert found.summary.others["OTHER_NETWORK"] == (1, len(arp))


def test_scouting_is_recognised(tmp_path: Path) -> None:
    scout, hello = bytes.fromhex("010903"), bytes.fromhex("0209310102030405")[:3] + b"abcd"
    packets = [
        w.Packet(1, w.ethernet(w.ip4(17, b"aaaa", b"\xe0\0\0\xe0", w.udp(40000, 7446, scout)))),
        w.Packet(2, w.ethernet(w.ip4(17, b"bbbb", b"aaaa", w.udp(7446, 40000, hello)))),
    ]
    found = w.read_bytes(tmp_path, w.pcap(packets))
    rows = [row for rows in found.batches.values() for row in rows]
    assert [(row["bytes"], row["scouting"]) for row in rows] == [(scout, True), (hello, True)]


@pytest.mark.parametrize(
    "zid", ["c0136934e507aaeb9d7e013dc871b99a", "c513d551a5c1800e1b089ce697e12d2a"]
)
def test_a_session_is_not_taken_for_scouting(zid: str, tmp_path: Path) -> None:
    """With these ids, an INIT is a SCOUT with extensions, if its flags are not looked at."""
    ends: dict[str, Any] = {
        "version": 9,
        "resolution": Resolution(),
        "batch_size": 65_487,
        "qos": True,
        "patch": 1,
    }
    one, other = ZenohId(bytes.fromhex(zid)), ZenohId(b"\1")
    syn = encode(InitSyn(zid=one, whatami=WhatAmI.CLIENT, **ends))
    assert isinstance(decode(syn, "scouting"), Scout)
    ack = encode(InitAck(zid=other, whatami=WhatAmI.ROUTER, cookie=b"cookie", **ends))
    opened = encode(OpenSyn(lease=10_000, initial_sn=7, cookie=b"cookie"))
    packets = [
        w.Packet(1, w.ethernet(w.ip4(17, b"aaaa", b"bbbb", w.udp(40000, 7447, syn)))),
        w.Packet(2, w.ethernet(w.ip4(17, b"bbbb", b"aaaa", w.udp(7447, 40000, ack)))),
        w.Packet(3, w.ethernet(w.ip4(17, b"aaaa", b"bbbb", w.udp(40000, 7447, opened)))),
    ]
    found = w.read_bytes(tmp_path, w.pcap(packets))
    rows = [row for rows in found.batches.values() for row in rows]
    assert {row["bytes"] for row in rows} == {syn, ack, opened}
    assert not any(row["scouting"] for row in rows)


def test_the_schema_has_types_that_spark_takes() -> None:
    types = set(table.SCHEMA.types)
    assert types == {pa.string(), pa.int64(), pa.int32(), pa.binary(), pa.bool_()}
