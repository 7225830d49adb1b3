"""Writes captures of every kind, out of packets of the recorded ones or made up."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tests.recorded import Batch, Flow
from zenwire.capture import SCHEMA, CaptureReader, Summary
from zenwire.capture.source import compression_of
from zenwire.wire.batch import expand_batch

FIN, SYN, RST, ACK = 1, 2, 4, 16


@dataclass(frozen=True)
class Packet:
    """``data`` is a link-layer frame; ``original`` its length on the wire, if it was cut."""

    time: int
    data: bytes
    original: int = 0

    @property
    def length(self) -> int:
        return max(self.original, len(self.data))


def packets_of(path: Path) -> list[Packet]:
    """The Ethernet frames of a recorded capture."""
    raw = path.read_bytes()
    found = []
    pos = 24
    while pos < len(raw):
        seconds, part, size, original = struct.unpack_from("<IIII", raw, pos)
        data = raw[pos + 16 : pos + 16 + size]
        found.append(Packet(seconds * 10**9 + part * 1000, data, original))
        pos += 16 + size
    return found


# Files.


def pcap(
    packets: Iterable[Packet], *, order: str = "<", nano: bool = False, link: int = 1, snap: int = 0
) -> bytes:
    magic, unit = (0xA1B23C4D, 1) if nano else (0xA1B2C3D4, 1000)
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap or 262_144, link)]
    for p in packets:
        data = p.data[: snap or None]
        seconds, part = divmod(p.time, 10**9)
        out.append(struct.pack(order + "IIII", seconds, part // unit, len(data), p.length))
        out.append(data)
    return b"".join(out)


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def option(order: str, code: int, value: bytes) -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order: str = "<") -> bytes:
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(
    order: str = "<", link: int = 1, resolution: int | None = None, offset: int | None = None
) -> bytes:
    options = option(order, 2, b"lo")
    if resolution is not None:
        options += option(order, 9, bytes([resolution]))
    if offset is not None:
        options += option(order, 14, struct.pack(order + "q", offset))
    options += option(order, 0, b"")
    return block(order, 1, struct.pack(order + "HHI", link, 0, 0) + options)


def units(time: int, resolution: int | None, offset: int | None) -> int:
    time -= (offset or 0) * 10**9
    if resolution is None:
        return time // 1000
    if resolution & 0x80:
        return (time << (resolution & 0x7F)) // 10**9
    return time * 10**resolution // 10**9


def enhanced(order: str, p: Packet, stamp: int, number: int = 0) -> bytes:
    head = struct.pack(
        order + "IIIII", number, stamp >> 32, stamp & 0xFFFFFFFF, len(p.data), p.length
    )
    return block(order, 6, head + p.data + bytes(-len(p.data) % 4) + option(order, 1, b"note"))


def pcapng(
    packets: Iterable[Packet],
    *,
    order: str = "<",
    link: int = 1,
    resolution: int | None = None,
    offset: int | None = None,
) -> bytes:
    out = [section(order), interface(order, link, resolution, offset)]
    out.append(block(order, 0x0BAD, b"unknown"))
    out += [enhanced(order, p, units(p.time, resolution, offset)) for p in packets]
    return b"".join(out)


# Packets.


def relink(packets: Iterable[Packet], wrap: Callable[[bytes], bytes]) -> list[Packet]:
    """The same IP packets on another link."""
    return [Packet(p.time, wrap(p.data[14:])) for p in packets]


def ip4(
    protocol: int,
    source: bytes,
    target: bytes,
    body: bytes,
    *,
    options: bytes = b"",
    part: int = 0,
    ident: int = 0,
) -> bytes:
    head = 20 + len(options)
    return (
        struct.pack(
            ">BBHHHBBH", 0x40 | head // 4, 0, head + len(body), ident, part, 64, protocol, 0
        )
        + source
        + target
        + options
        + body
    )


def ip6(protocol: int, source: bytes, target: bytes, body: bytes) -> bytes:
    return struct.pack(">IHBB", 0x60000000, len(body), protocol, 64) + source + target + body


def tcp(
    source: int, target: int, seq: int, body: bytes = b"", *, flags: int = ACK, ack: int = 0
) -> bytes:
    return (
        struct.pack(
            ">HHIIBBHHH", source, target, seq % 2**32, ack % 2**32, 0x50, flags, 65535, 0, 0
        )
        + body
    )


def udp(source: int, target: int, body: bytes) -> bytes:
    return struct.pack(">HHHH", source, target, 8 + len(body), 0) + body


def ethernet(ip: bytes, tags: bytes = b"") -> bytes:
    kind = b"\x08\x00" if ip[0] >> 4 == 4 else b"\x86\xdd"
    return bytes(12) + tags + kind + ip


def addresses(flow: Flow) -> tuple[bytes, bytes]:
    return bytes(map(int, flow[0].split("."))), bytes(map(int, flow[2].split(".")))


def to_ip6(ip: bytes, extensions: bytes = b"", first: int | None = None) -> bytes:
    """An IPv4 packet as IPv6, with extension headers before its body."""
    head = (ip[0] & 15) * 4
    body = ip[head : struct.unpack_from(">H", ip, 2)[0]]
    wide = bytes.fromhex("fd00000000000000000000000000")
    protocol = ip[9] if first is None else first
    return ip6(protocol, wide + ip[14:16], wide + ip[18:20], extensions + body)


def shift_sequences(packets: Sequence[Packet], shift: int) -> list[Packet]:
    """TCP with all sequence numbers moved, so that they wrap elsewhere."""
    moved = []
    for p in packets:
        data = bytearray(p.data)
        if data[23] == 6:
            at = 14 + (data[14] & 15) * 4
            for field in (4, 8):
                value = struct.unpack_from(">I", data, at + field)[0]
                struct.pack_into(">I", data, at + field, (value + shift) % 2**32)
        moved.append(replace(p, data=bytes(data)))
    return moved


# What is read.


BOOKS = {"overhead", "repeated"}
"""Rows of captures that nothing is wrong with."""


@dataclass(frozen=True)
class Read:
    """The rows of a capture that has no faults, or has them."""

    batches: dict[tuple[object, ...], list[dict[str, object]]]
    faults: list[dict[str, object]]
    summary: Summary

    @property
    def bytes(self) -> dict[tuple[object, ...], list[bytes]]:
        """The batches of each direction of each connection, expanded, without empty ones."""
        found: dict[tuple[object, ...], list[bytes]] = {}
        for flow, rows in self.batches.items():
            found[flow] = [data for row in rows if (data := content(row))]
        return found

    @property
    def fault_names(self) -> set[object]:
        return {fault["fault"] for fault in self.faults}


def content(row: dict[str, object]) -> bytes:
    data = row["bytes"]
    assert isinstance(data, bytes)
    return expand_batch(data) if row["compression"] else data


def read(path: Path, window: int = 1 << 20) -> Read:
    """All rows, checked for what holds for every capture."""
    reader = CaptureReader(path, window=window)
    table = pa.Table.from_batches(list(reader), SCHEMA)
    table.validate(full=True)
    check_books(table, reader.summary)
    batches: dict[tuple[object, ...], list[dict[str, object]]] = {}
    faults = []
    for row in table.to_pylist():
        if row["fault"]:
            if row["fault"] not in BOOKS:
                faults.append(row)
            continue
        ends = (row["source"], row["source_port"], row["target"], row["target_port"])
        batches.setdefault((*ends, row["connection"]), []).append(row)
    for rows in batches.values():
        assert [row["sequence"] for row in rows] == list(range(len(rows)))
    if not compression_of(path.read_bytes()[:8]):
        assert total(table) == path.stat().st_size
    return Read(batches, faults, reader.summary)


def total(table: pa.Table) -> int:
    """Bytes in batches, and bytes of rows that say why there are none."""
    sizes = pc.fill_null(pc.binary_length(table.column("bytes")), 0)
    return int(pc.sum(sizes).as_py() or 0) + int(pc.sum(table.column("skipped")).as_py() or 0)


def check_books(table: pa.Table, summary: Summary) -> None:
    assert summary.balance == 0
    assert summary.overhead >= 0
    skipped = table.filter(pc.is_valid(table.column("fault"))).to_pylist()
    assert all(row["skipped"] >= 0 and row["missing"] >= 0 for row in skipped)
    assert all(row["skipped"] or row["missing"] or "file_" in row["fault"] for row in skipped)


def read_bytes(folder: Path, data: bytes, window: int = 1 << 20) -> Read:
    path = folder / "made.pcap"
    path.write_bytes(data)
    return read(path, window)


def expected(batches: Iterable[Batch]) -> dict[tuple[object, ...], list[bytes]]:
    """What the recorded captures hold, as ``Read.bytes`` gives it."""
    found: dict[tuple[object, ...], list[bytes]] = {}
    for batch in batches:
        found.setdefault((*batch.flow, 0), []).append(batch.data)
    return found
