"""Batches of the recorded traffic in ``tests/captures``.

A reader for these files alone: Ethernet, IPv4 on loopback, nothing lost. What reads captures of
any kind is another matter.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from zenwire.wire.batch import (
    LOW_LATENCY_PREFIX,
    STREAM_PREFIX,
    decode_batch,
    expand_batch,
    split_stream,
)
from zenwire.wire.transport import InitAck

CAPTURES = sorted((Path(__file__).parent / "captures").glob("*.pcap"))

Flow = tuple[str, int, str, int]


@dataclass(frozen=True)
class Batch:
    """``data`` is after decompression; ``lowlatency`` says that it is a bare message."""

    flow: Flow
    data: bytes
    lowlatency: bool = False


def packets(path: Path) -> Iterator[tuple[int, Flow, int, bytes]]:
    """(IP protocol, flow, TCP sequence number, payload) of each packet."""
    raw = path.read_bytes()
    assert raw[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1")
    pos = 24
    while pos < len(raw):
        size = struct.unpack_from("<I", raw, pos + 8)[0]
        frame = raw[pos + 16 : pos + 16 + size]
        pos += 16 + size
        ip = frame[14:]
        assert frame[12:14] == b"\x08\x00"
        ip = ip[: struct.unpack_from(">H", ip, 2)[0]]
        l4 = ip[(ip[0] & 15) * 4 :]
        source, target = struct.unpack_from(">HH", l4)
        flow = (_dotted(ip[12:16]), source, _dotted(ip[16:20]), target)
        if ip[9] == 6:
            yield 6, flow, struct.unpack_from(">I", l4, 4)[0], l4[(l4[12] >> 4) * 4 :]
        elif ip[9] == 17:
            yield 17, flow, 0, l4[8:]


def _dotted(raw: bytes) -> str:
    return ".".join(map(str, raw))


def _streams(path: Path) -> dict[Flow, bytes]:
    """Each direction of each TCP connection; loopback delivers in order but may repeat."""
    streams: dict[Flow, bytearray] = {}
    expected: dict[Flow, int] = {}
    for protocol, flow, seq, payload in packets(path):
        if protocol != 6 or not payload:
            continue
        stream = streams.setdefault(flow, bytearray())
        repeated = (expected.get(flow, seq) - seq) % 2**32
        if repeated < len(payload):
            stream += payload[repeated:]
            expected[flow] = (seq + len(payload)) % 2**32
    return {flow: bytes(stream) for flow, stream in streams.items()}


@cache
def batches(path: Path) -> tuple[Batch, ...]:
    """Every batch of every TCP and UDP flow of a capture that is not empty."""
    found = [Batch(flow, payload) for protocol, flow, _, payload in packets(path) if protocol == 17]
    streams = _streams(path)
    for flow, stream in streams.items():
        back = streams.get((flow[2], flow[3], flow[0], flow[1]), b"")
        found += _stream_batches(flow, stream, _accepted(stream) or _accepted(back))
    return tuple(b for b in found if b.data)


def _accepted(stream: bytes) -> InitAck | None:
    """The InitAck, if this is the direction of the acceptor."""
    first = next(split_stream(stream), (0, 0))
    messages = decode_batch(stream[slice(*first)])
    return messages[0] if messages and isinstance(messages[0], InitAck) else None


def _stream_batches(flow: Flow, stream: bytes, ack: InitAck | None) -> Iterator[Batch]:
    """INIT and OPEN are plain; what was agreed holds for what follows."""
    handshake = list(split_stream(stream))[:2]
    for start, end in handshake:
        yield Batch(flow, stream[start:end])
    if not handshake or ack is None:
        return
    lowlatency = ack.lowlatency
    prefix = LOW_LATENCY_PREFIX if lowlatency else STREAM_PREFIX
    rest = handshake[-1][1]
    if lowlatency:
        # The reference ends with a CLOSE that has the other prefix.
        stream = stream.removesuffix(b"\x02\x00\x03\x00")
    for start, end in split_stream(stream, prefix, start=rest):
        data = stream[start:end]
        yield Batch(flow, expand_batch(data) if ack.compression else data, lowlatency)
