"""Packets to flows, and TCP segments to ordered pieces of streams.

A flow is a pair of endpoints. Side 0 is the lower endpoint of the two, side 1 the higher one. A
TCP flow has one connection after another, each with a stream for each side: stream
``2 * connection + side`` is what that side sent.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from zenwire.capture import kernels as k
from zenwire.capture.packets import Packets

__all__ = ["Endpoint", "Flow", "Flows", "Limits", "Pieces", "Reassembly"]

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

_ROWS: Final = 65_536
_NOTHING: Final[Bytes] = np.empty(0, np.uint8)


@dataclass(frozen=True, slots=True)
class Limits:
    """How long segments wait for one that is missing before it."""

    bytes: int = 4 << 20
    """Of one stream."""
    segments: int = 1024
    time: int = 60 * 10**9
    """Nanoseconds of the capture."""
    held_bytes: int = 256 << 10
    """Of a stream whose begin was not captured, while an earlier segment may still come."""
    held_segments: int = 32
    held_time: int = 10**9
    all_bytes: int = 256 << 20
    """Of all streams together."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One end of a flow."""

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Flow:
    """Two endpoints and the protocol between them; ``id`` depends on nothing else."""

    id: int
    link: str
    sides: tuple[Endpoint, Endpoint]


@dataclass(frozen=True, slots=True)
class Pieces:
    """Rows (``kernels.O_*``) that follow one another in each stream: data, gaps, ends.

    Data is in ``buffer`` or, where the row says so, in ``pool``. All of it is used again.
    """

    table: Int64
    count: int
    buffer: Bytes
    pool: Bytes


class Flows:
    """Numbers flows in order of their first packet."""

    def __init__(self) -> None:
        self._keys: UInt64 = np.empty((256, 5), np.uint64)
        self._slots: Int64 = np.full(1024, -1, np.int64)
        self._count = np.zeros(1, np.int64)
        self._known: list[Flow] = []

    def __len__(self) -> int:
        return int(self._count[0])

    def __getitem__(self, number: int) -> Flow:
        while len(self._known) <= number:
            self._known.append(_flow(self._keys[len(self._known)]))
        return self._known[number]

    def assign(self, packets: Packets) -> tuple[Int64, Int64]:
        """(flow, sending side) of each packet; flow -1 where it is neither TCP nor UDP."""
        flow: Int64 = np.empty(packets.count, np.int64)
        side: Int64 = np.zeros(packets.count, np.int64)
        at = 0
        while at < packets.count:
            at = k.assign(
                packets.table,
                packets.addresses,
                at,
                packets.count,
                self._keys,
                self._slots,
                self._count,
                flow,
                side,
            )
            if at < packets.count:
                self._grow()
        return flow, side

    def _grow(self) -> None:
        self._keys = np.concatenate([self._keys, np.empty_like(self._keys)])
        self._slots = np.full(4 * len(self._keys), -1, np.int64)
        k.rehash(self._keys, len(self), self._slots)


def _flow(key: UInt64) -> Flow:
    words = [int(word) for word in key]
    ports = words[4]
    low = Endpoint(_address(words[0] << 64 | words[1]), ports >> 16 & 0xFFFF)
    high = Endpoint(_address(words[2] << 64 | words[3]), ports & 0xFFFF)
    digest = hashlib.blake2b(key.astype(">u8").tobytes(), digest_size=8).digest()
    link = "tcp" if ports >> 32 == k.TCP else "udp"
    return Flow(int.from_bytes(digest, "big", signed=True), link, (low, high))


def _address(number: int) -> str:
    address = ipaddress.IPv6Address(number)
    return str(address.ipv4_mapped or address)


class Reassembly:
    """TCP over any number of packets, in memory bounded by ``limits`` and the number of flows."""

    def __init__(self, limits: Limits | None = None) -> None:
        limits = limits or Limits()
        self._limits = np.array(
            [
                limits.bytes,
                limits.segments,
                limits.time,
                limits.held_bytes,
                limits.held_segments,
                limits.held_time,
            ],
            np.int64,
        )
        self._all = limits.all_bytes
        self._most = 2 * (limits.segments + limits.held_segments) + 16
        self._state = np.zeros(k.REASSEMBLY_STATE, np.int64)
        self._state[k.T_FREE] = -1
        self._current: Int64 = np.full(256, -1, np.int64)
        self._connections: Int64 = np.empty((64, k.CONNECTION_COLUMNS), np.int64)
        self._streams: Int64 = np.empty((128, k.STREAM_COLUMNS), np.int64)
        self._nodes: Int64 = np.empty((0, k.WAITING_COLUMNS), np.int64)
        self._out: Int64 = np.empty((k.OUT_COLUMNS, _ROWS + 4 * self._most + 8), np.int64)
        self._pool = _NOTHING
        self._time = 0

    @property
    def connections(self) -> Int64:
        """Rows of ``kernels.C_*``."""
        return self._connections[: self._state[k.T_CONNECTIONS]]

    @property
    def streams(self) -> Int64:
        """Rows of ``kernels.S_*``, two for each connection."""
        return self._streams[: 2 * self._state[k.T_CONNECTIONS]]

    def feed(self, packets: Packets, flow: Int64, side: Int64) -> Iterator[Pieces]:
        """What the packets add to streams. Each piece is to be used before the next is asked for."""
        state = self._state
        n = packets.count
        if not n:
            return
        most = int(flow.max()) + 1
        if most > len(self._current):
            self._current = _longer(self._current, most, -1)
        state[k.T_PACKET] = 0
        while state[k.T_PACKET] < n:
            self._make_room()
            state[k.T_ROWS] = 0
            k.reassemble(
                packets.table,
                n,
                flow,
                side,
                self._current,
                self._connections,
                self._streams,
                self._nodes,
                self._out,
                state,
                self._limits,
                self._all,
            )
            if state[k.T_ROWS]:
                yield self._pieces(packets.buffer)
        self._time = int(packets.table[k.P_TIME, n - 1])
        self._retain(packets.buffer)

    def finish(self) -> Iterator[Pieces]:
        """No more packets come: what waits is sent out, with its gaps, and every stream ends."""
        state = self._state
        last = 2 * int(state[k.T_CONNECTIONS])
        at = 0
        while at < last:
            state[k.T_ROWS] = 0
            k.finish_all(at, last, self._streams, self._nodes, self._out, state, self._time)
            at = int(state[k.T_PACKET])
            yield self._pieces(_NOTHING)

    def _pieces(self, buffer: Bytes) -> Pieces:
        return Pieces(self._out, int(self._state[k.T_ROWS]), buffer, self._pool)

    def _make_room(self) -> None:
        state = self._state
        if state[k.T_FREE_COUNT] < self._most:
            old = len(self._nodes)
            new = max(2 * old, 2 * self._most)
            self._nodes = np.concatenate(
                [self._nodes, np.zeros((new - old, k.WAITING_COLUMNS), np.int64)]
            )
            self._nodes[old:, k.W_NEXT] = np.arange(old + 1, new + 1)
            self._nodes[new - 1, k.W_NEXT] = state[k.T_FREE]
            state[k.T_FREE] = old
            state[k.T_FREE_COUNT] += new - old
        if state[k.T_CONNECTIONS] >= len(self._connections):
            self._connections = np.concatenate([self._connections] * 2)
            self._streams = np.concatenate([self._streams] * 2)

    def _retain(self, buffer: Bytes) -> None:
        waiting = int(self._state[k.T_WAITING])
        if not waiting:
            self._pool = _NOTHING
            return
        kept: Bytes = np.empty(waiting, np.uint8)
        used = k.retain(self._streams, len(self.streams), self._nodes, buffer, self._pool, kept)
        self._pool = kept[:used]


def _longer(array: Int64, least: int, fill: int) -> Int64:
    grown: Int64 = np.full(max(2 * len(array), least), fill, np.int64)
    grown[: len(array)] = array
    return grown
