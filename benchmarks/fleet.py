"""Large captures: many publishers that are connected to a router, or one that is.

Everything on the wire is made by the codec once, as a template; what differs from message to
message (key, time, payload) is written into copies of it by NumPy. So a gigabyte takes seconds,
and its bytes are always the same.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from zenwire.wire.batch import encode_batch, frame_stream
from zenwire.wire.data import Put
from zenwire.wire.declare import DeclareKeyExpr
from zenwire.wire.network import Declare, Push
from zenwire.wire.structs import Timestamp
from zenwire.wire.transport import VERSION, Close, Frame, InitAck, InitSyn, OpenAck, OpenSyn
from zenwire.wire.values import CloseReason, WhatAmI, WireExpr, ZenohId

__all__ = ["Fleet", "write"]

Bytes = npt.NDArray[np.uint8]
Int64 = npt.NDArray[np.int64]

PORT: Final = 7447
SEGMENT: Final = 1448
"""Payload of a TCP segment, as Ethernet has them."""
KEYS: Final = 20
"""Keys of each publisher."""
PAYLOAD: Final = 72
FIRST_SN: Final = 2**21
"""Sequence numbers have four bytes from here on, as most have."""
START: Final = 1_794_770_400
"""When the capture begins, in seconds since 1970."""

_HEADERS: Final = 16 + 14 + 20 + 20
_FIN, _SYN, _ACK = 1, 2, 16
_NTP: Final = START << 32
_ROUTER: Final = ZenohId(bytes([0xAA] * 16))


@dataclass(frozen=True)
class Fleet:
    """``flows`` publishers; each sends ``bursts`` times ``batches`` of ``messages`` messages."""

    flows: int
    bursts: int
    batches: int
    messages: int

    @classmethod
    def of(cls, flows: int, total: int) -> Fleet:
        """About ``total`` messages: one flow has full batches, many have small ones."""
        batches, messages = (2, 600) if flows == 1 else (3, 20)
        return cls(flows, -(-total // (flows * batches * messages)), batches, messages)

    @property
    def total(self) -> int:
        return self.flows * self.bursts * self.batches * self.messages


def write(path: Path, fleet: Fleet) -> int:
    """Writes the capture; gives its size in bytes."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1))
        clock = 0
        positions = np.zeros((2, fleet.flows), np.int64)
        for flow in range(fleet.flows):
            for packet in _opening(flow, positions, clock):
                file.write(packet)
            clock += 20_000
        for block in _bursts(fleet, positions, clock):
            file.write(block.data)
        clock += 10**6 * fleet.bursts
        for flow in range(fleet.flows):
            closing = frame_stream(encode_batch([Close(reason=CloseReason.GENERIC)]))
            file.write(_packet(flow, 0, closing, positions, clock=clock))
            file.write(_packet(flow, 0, b"", positions, clock=clock, flags=_FIN | _ACK))
            file.write(_packet(flow, 1, b"", positions, clock=clock, flags=_FIN | _ACK))
        return file.tell()


def _zid(flow: int) -> ZenohId:
    return ZenohId((flow + 1).to_bytes(15, "little") + b"\x01")


def _opening(flow: int, positions: Int64, clock: int) -> Iterator[bytes]:
    """TCP's and Zenoh's handshake, then the keys."""
    yield _packet(flow, 0, b"", positions, clock=clock, flags=_SYN)
    yield _packet(flow, 1, b"", positions, clock=clock + 1000, flags=_SYN | _ACK)
    for i, (side, message) in enumerate(
        (
            (0, InitSyn(version=VERSION, whatami=WhatAmI.CLIENT, zid=_zid(flow))),
            (1, InitAck(version=VERSION, whatami=WhatAmI.ROUTER, zid=_ROUTER, cookie=b"cookie")),
            (0, OpenSyn(lease=10_000, initial_sn=FIRST_SN - 1, cookie=b"cookie")),
            (1, OpenAck(lease=10_000, initial_sn=FIRST_SN)),
        )
    ):
        data = frame_stream(encode_batch([message]))
        yield _packet(flow, side, data, positions, clock=clock + 2000 + 1000 * i)
    keys = [
        Declare(body=DeclareKeyExpr(expr_id=1 + i, key=WireExpr(0, f"fleet/{flow}/sensor/{i}")))
        for i in range(KEYS)
    ]
    data = frame_stream(encode_batch([Frame(sn=FIRST_SN - 1, reliable=True), *keys]))
    yield _packet(flow, 0, data, positions, clock=clock + 8000)


def _packet(
    flow: int, side: int, data: bytes, positions: Int64, *, clock: int, flags: int = _ACK
) -> bytes:
    """One packet, which moves the sender's position on."""
    head = _head(flow, side, len(data), flags)
    seconds, nanoseconds = divmod(clock, 10**9)
    head[0:8] = struct.pack("<II", START + seconds, nanoseconds)
    head[58 - 4 : 58] = struct.pack(">I", int(positions[side, flow]) & 0xFFFFFFFF)
    positions[side, flow] += len(data) + bool(flags & (_SYN | _FIN))
    return bytes(head) + data


def _head(flow: int, side: int, size: int, flags: int) -> bytearray:
    """Record, Ethernet, IPv4 and TCP headers; time and sequence number are still to be set."""
    length = size + _HEADERS - 16
    client, router = (10, 1, flow >> 8 & 255, flow & 255), (10, 0, 0, 1)
    addresses = (router, client) if side else (client, router)
    ports = (PORT, 40_000) if side else (40_000, PORT)
    return bytearray(
        struct.pack("<IIII", 0, 0, length, length)
        + bytes(12)
        + b"\x08\x00"
        + struct.pack(">BBHHHBBH", 0x45, 0, length - 14, 0, 0, 64, 6, 0)
        + bytes(addresses[0] + addresses[1])
        + struct.pack(">HHIIBBHHH", *ports, 0, 0, 0x50, flags, 65_535, 0, 0)
    )


def _bursts(fleet: Fleet, positions: Int64, clock: int) -> Iterator[Bytes]:
    """All flows, one burst after another, cut into segments."""
    content = _Content(fleet)
    size = content.size
    starts = list(range(0, size, SEGMENT))
    ends = [*starts[1:], size]
    width = size + _HEADERS * len(starts)
    out: Bytes = np.empty((fleet.flows, width), np.uint8)
    places = [start + _HEADERS * i for i, start in enumerate(starts)]
    for at, start, end in zip(places, starts, ends, strict=True):
        heads = [_head(flow, 0, end - start, _ACK) for flow in range(fleet.flows)]
        out[:, at : at + _HEADERS] = np.frombuffer(b"".join(heads), np.uint8).reshape(-1, _HEADERS)
    step = 10**6 // (fleet.flows * len(starts))
    for burst in range(fleet.bursts):
        data = content.burst(burst)
        for i, (at, start, end) in enumerate(zip(places, starts, ends, strict=True)):
            order = np.arange(fleet.flows) * len(starts) + i
            time = clock + 10**6 * burst + step * order
            _put(out, at, (START + time // 10**9).astype("<u4"))
            _put(out, at + 4, (time % 10**9).astype("<u4"))
            _put(out, at + 54, (positions[0] & 0xFFFFFFFF).astype(">u4"))
            out[:, at + _HEADERS : at + _HEADERS + end - start] = data[:, start:end]
            positions[0] += end - start
        yield out


def _put(out: Bytes, at: int, column: npt.NDArray[np.uint32]) -> None:
    out[:, at : at + 4] = column.view(np.uint8).reshape(-1, 4)


class _Content:
    """What each flow sends in a burst: batches of one FRAME, with a message at every place."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        frame = self._frame(FIRST_SN)
        message = self._message(1, 0, b"")
        self._alias = _differs(message, self._message(2, 0, b""))
        self._time = _differs(message, self._message(1, 2**63 - 1 - _NTP, b""))
        self._payload = len(message) - PAYLOAD
        self._sn = 2 + _differs(frame, self._frame(FIRST_SN + 1))
        self._stride = len(message)
        self._batch = 2 + len(frame) + fleet.messages * len(message)
        head = struct.pack("<H", self._batch - 2) + frame
        self._first = len(head)
        one = np.frombuffer((head + message * fleet.messages) * fleet.batches, np.uint8)
        self._data: Bytes = np.tile(one, (fleet.flows, 1))

    @property
    def size(self) -> int:
        return int(self._data.shape[1])

    @staticmethod
    def _frame(sn: int) -> bytes:
        return encode_batch([Frame(sn=sn, reliable=True)])

    @staticmethod
    def _message(alias: int, time: int, payload: bytes) -> bytes:
        stamp = Timestamp(time=_NTP + time, id=_zid(0))
        body = Put(timestamp=stamp, payload=payload.ljust(PAYLOAD, b"."))
        return encode_batch([Push(key=WireExpr(alias), body=body)])

    def burst(self, number: int) -> Bytes:
        """The bytes of all flows; used again for the next."""
        fleet, data = self._fleet, self._data
        of_flow = np.arange(fleet.flows, dtype=np.int64)
        for batch in range(fleet.batches):
            at = batch * self._batch
            sn = FIRST_SN + number * fleet.batches + batch
            encoded = self._frame(sn)
            data[:, at + 2 : at + 2 + len(encoded)] = np.frombuffer(encoded, np.uint8)
            inside = data[:, at + self._first : at + self._batch]
            messages = inside.reshape(fleet.flows, fleet.messages, self._stride)
            index = np.arange(fleet.messages) + fleet.messages * (number * fleet.batches + batch)
            messages[:, :, self._alias] = 1 + index % KEYS
            time = (number << 22) + (batch << 16) + np.arange(fleet.messages) + _NTP
            messages[:, :, self._time : self._time + 9] = _vle9(time)
            counter = (of_flow[:, None] << 40) + index
            raw = counter.astype("<i8").view(np.uint8).reshape(*counter.shape, 8)
            messages[:, :, self._payload : self._payload + 8] = raw
        return data


def _differs(a: bytes, b: bytes) -> int:
    """The first place where two encodings of the same length differ."""
    return next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)


def _vle9(values: Int64) -> Bytes:
    """Times of this century: they need all nine bytes."""
    shifts = 7 * np.arange(8)
    low = (values[:, None] >> shifts & 0x7F) | 0x80
    return np.concatenate([low, values[:, None] >> 56], axis=1).astype(np.uint8)
