"""Recorded captures, damaged in ways that real ones are."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

__all__ = ["KINDS", "Damaged", "Packet", "damaged", "records"]

HEADER = 24
_ETHERNET = 14


@dataclass(frozen=True)
class Packet:
    """A record of a pcap file; ``time`` in nanoseconds."""

    time: int
    data: bytes
    original: int

    @property
    def payload(self) -> int:
        """Where the payload of TCP or UDP begins: these captures have IPv4 on Ethernet."""
        ip = _ETHERNET
        ip_end = ip + 4 * (self.data[ip] & 15)
        if self.data[ip + 9] == 17:
            return ip_end + 8
        return ip_end + 4 * (self.data[ip_end + 12] >> 4)

    @property
    def ports(self) -> tuple[int, int]:
        at = _ETHERNET + 4 * (self.data[_ETHERNET] & 15)
        source, target = struct.unpack_from(">HH", self.data, at)
        return source, target


@dataclass(frozen=True)
class Damaged:
    """A damaged capture. ``flips`` are the packets whose payload was changed."""

    kind: str
    content: bytes
    flips: tuple[Packet, ...] = ()


def records(raw: bytes) -> list[Packet]:
    """The packets of a little-endian pcap file with microseconds."""
    assert raw[:4] == b"\xd4\xc3\xb2\xa1"
    found, at = [], HEADER
    while at < len(raw):
        seconds, micros, size, original = struct.unpack_from("<IIII", raw, at)
        data = raw[at + 16 : at + 16 + size]
        found.append(Packet(1_000_000_000 * seconds + 1000 * micros, data, original))
        at += 16 + size
    return found


def _file(raw: bytes, packets: list[Packet]) -> bytes:
    parts = [raw[:HEADER]]
    for p in packets:
        seconds, nanos = divmod(p.time, 1_000_000_000)
        parts.append(struct.pack("<IIII", seconds, nanos // 1000, len(p.data), p.original))
        parts.append(p.data)
    return b"".join(parts)


def _dropped(raw: bytes, rng: random.Random) -> Damaged:
    packets = [p for p in records(raw) if rng.random() > 0.05]
    return Damaged("dropped", _file(raw, packets))


def _duplicated(raw: bytes, rng: random.Random) -> Damaged:
    """A copy follows within some packets, as when two interfaces were captured."""
    packets = records(raw)
    for i in sorted(rng.sample(range(len(packets)), len(packets) // 10), reverse=True):
        at = min(len(packets), i + 1 + rng.randrange(4))
        packets.insert(at, replace(packets[i], time=packets[at - 1].time))
    return Damaged("duplicated", _file(raw, packets))


def _reordered(raw: bytes, rng: random.Random) -> Damaged:
    """Neighbours change places; the times stay in order, as a capture has them."""
    packets = records(raw)
    times = [p.time for p in packets]
    for i in rng.sample(range(len(packets) - 1), len(packets) // 10):
        packets[i], packets[i + 1] = packets[i + 1], packets[i]
    packets = [replace(p, time=time) for p, time in zip(packets, times, strict=True)]
    return Damaged("reordered", _file(raw, packets))


def _truncated(raw: bytes, rng: random.Random) -> Damaged:
    snap = rng.choice([68, 96, 128, 200, 400])
    packets = [replace(p, data=p.data[:snap]) for p in records(raw)]
    return Damaged("truncated", _file(raw, packets))


def _flipped(raw: bytes, rng: random.Random) -> Damaged:
    """Bits of payload change: checksums of loopback traffic are not filled in, nobody notices."""
    packets = records(raw)
    full = [i for i, p in enumerate(packets) if len(p.data) > p.payload]
    flips = []
    for i in rng.sample(full, 4):
        p, data = packets[i], bytearray(packets[i].data)
        data[rng.randrange(p.payload, len(data))] ^= 1 << rng.randrange(8)
        packets[i] = replace(p, data=bytes(data))
        flips.append(p)
    return Damaged("flipped", _file(raw, packets), tuple(flips))


def _scrambled(raw: bytes, rng: random.Random) -> Damaged:
    """Bytes change anywhere: headers of records, of packets, payload."""
    data = bytearray(raw)
    for _ in range(8):
        data[rng.randrange(HEADER, len(data))] = rng.randrange(256)
    return Damaged("scrambled", bytes(data))


def _beheaded(raw: bytes, rng: random.Random) -> Damaged:
    packets = records(raw)
    return Damaged("beheaded", _file(raw, packets[len(packets) // 2 - rng.randrange(9) :]))


_WAYS: dict[str, Callable[[bytes, random.Random], Damaged]] = {
    "dropped": _dropped,
    "duplicated": _duplicated,
    "reordered": _reordered,
    "truncated": _truncated,
    "flipped": _flipped,
    "scrambled": _scrambled,
    "beheaded": _beheaded,
}
KINDS = (*_WAYS, "joined")


def damaged(kind: str, path: Path, other: Path, seed: int) -> Damaged:
    """``path`` damaged; what is joined has all of ``other`` behind it, with its own header."""
    raw = path.read_bytes()
    if kind == "joined":
        return Damaged(kind, raw + other.read_bytes())
    return _WAYS[kind](raw, random.Random(f"{kind} {path.name} {seed}"))
