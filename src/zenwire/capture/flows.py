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
from zenwire.capture.runs import Saved

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
    """Numbers flows in order of their first packet, of those that there are now.

    Of a flow that was dropped, it is kept how many connections it had.
    """

    def __init__(self) -> None:
        self._keys: UInt64 = np.empty((256, 5), np.uint64)
        self._slots: Int64 = np.full(1024, -1, np.int64)
        self._count = np.zeros(1, np.int64)
        self._known: dict[int, Flow] = {}
        self._before: dict[int, int] = {}

    def __len__(self) -> int:
        return int(self._count[0])

    def __getitem__(self, number: int) -> Flow:
        if number not in self._known:
            self._known[number] = _flow(self._keys[number])
        return self._known[number]

    def assign(self, packets: Packets) -> tuple[Int64, Int64]:
        """(flow, sending side) of each packet; flow -1 where it is neither TCP nor UDP."""
        flow: Int64 = np.empty(packets.count, np.int64)
        side: Int64 = np.zeros(packets.count, np.int64)
        at = 0
        while at < packets.count:
            at = k.ready(k.assign)(
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
        self._rehash()

    def _rehash(self) -> None:
        self._slots = np.full(4 * len(self._keys), -1, np.int64)
        k.ready(k.rehash)(self._keys, len(self), self._slots)

    # Flows that come and go.

    @property
    def is_tcp(self) -> npt.NDArray[np.bool_]:
        """Of each flow."""
        found: npt.NDArray[np.bool_] = self._keys[: len(self), 4] >> np.uint64(32) == k.TCP
        return found

    def connections_before(self, first: int) -> list[tuple[int, int]]:
        """(flow, connections it had when it was dropped) of those from ``first`` on that had some."""
        if not self._before:
            return []
        found = [(i, self._before.pop(_id(self._keys[i]), 0)) for i in range(first, len(self))]
        return [(flow, count) for flow, count in found if count]

    def drop(self, kept: npt.NDArray[np.bool_], had: Int64) -> None:
        """Forgets flows but those ``kept``, which are numbered anew; they had so many connections."""
        for flow in np.flatnonzero(~kept & (had > 0)).tolist():
            self._before[_id(self._keys[flow])] = int(had[flow])
        self._set(self._keys[: len(self)][kept])

    def _set(self, keys: UInt64) -> None:
        size = 256
        while size < len(keys):
            size *= 2
        self._keys = np.empty((size, 5), np.uint64)
        self._keys[: len(keys)] = keys
        self._count[0] = len(keys)
        self._known = {}
        self._rehash()

    def save(self) -> Saved:
        before = (np.array(list(column)) for column in (self._before, self._before.values()))
        return self._keys[: len(self)].copy(), tuple(before)

    def load(self, saved: Saved) -> None:
        keys, (ids, counts) = saved
        self._set(keys)
        self._before = dict(zip(ids.tolist(), counts.tolist(), strict=True))


def _flow(key: UInt64) -> Flow:
    words = [int(word) for word in key]
    ports = words[4]
    low = Endpoint(_address(words[0] << 64 | words[1]), ports >> 16 & 0xFFFF)
    high = Endpoint(_address(words[2] << 64 | words[3]), ports & 0xFFFF)
    return Flow(_id(key), "tcp" if ports >> 32 == k.TCP else "udp", (low, high))


def _id(key: UInt64) -> int:
    digest = hashlib.blake2b(key.astype(">u8").tobytes(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _address(number: int) -> str:
    address = ipaddress.IPv6Address(number)
    return str(address.ipv4_mapped or address)


class Reassembly:
    """TCP over any number of packets, in memory bounded by ``limits`` and the connections open."""

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
    def repeated(self) -> int:
        """Bytes sent again, or overlapping."""
        return int(self._state[k.T_REPEATED])

    @property
    def stray(self) -> int:
        """Bytes of no place in their connection."""
        return int(self._state[k.T_STRAY])

    def feed(self, packets: Packets, flow: Int64, side: Int64) -> Iterator[Pieces]:
        """What the packets add to streams. Each piece is to be used before the next is asked for."""
        state = self._state
        n = packets.count
        if not n:
            return
        self._grow(int(flow.max()) + 1)
        state[k.T_PACKET] = 0
        while state[k.T_PACKET] < n:
            self._make_room()
            state[k.T_ROWS] = 0
            k.ready(k.reassemble)(
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

    def finish(self, *, over_alone: bool = False) -> Iterator[Pieces]:
        """No more packets come: what waits is sent out, with its gaps, and every stream ends.

        ``over_alone``: those of connections that were closed, and of which nothing more came.
        """
        state = self._state
        at = 0
        while at < state[k.T_CONNECTIONS]:
            state[k.T_ROWS] = 0
            k.ready(k.finish_all)(
                at,
                int(over_alone),
                self._connections,
                self._streams,
                self._nodes,
                self._out,
                state,
                self._time,
            )
            at = int(state[k.T_PACKET])
            if state[k.T_ROWS]:
                yield self._pieces(_NOTHING)

    def _grow(self, flows: int) -> None:
        if flows > len(self._current):
            self._current = _longer(self._current, flows, -1)

    # Connections that come and go, and a state that can be left and gone on from.

    def continue_flows(self, had: list[tuple[int, int]]) -> None:
        """Flows that had connections before."""
        for flow, count in had:
            self._grow(flow + 1)
            self._current[flow] = -1 - count

    def gone(self) -> npt.NDArray[np.bool_]:
        """Whether each connection is over, or has another one after it in its flow."""
        out: Int64 = np.empty(len(self.connections), np.int64)
        k.ready(k.gone)(self._connections, self._streams, self._state, self._current, out)
        found: npt.NDArray[np.bool_] = out == 1
        return found

    def had(self, flows: int) -> tuple[Int64, npt.NDArray[np.bool_]]:
        """(connections so far, whether there is one now that is not over) of each flow."""
        self._grow(flows)
        current = self._current[:flows]
        there = current >= 0
        had = -1 - current
        had[there] = self._connections[current[there], k.C_NUMBER] + 1
        alive = there.copy()
        alive[there] = ~self.gone()[current[there]]
        return had, alive

    def drop(self, gone: npt.NDArray[np.bool_], flows: npt.NDArray[np.bool_]) -> None:
        """Forgets connections, and flows but those that are True."""
        numbers = np.cumsum(~gone) - 1
        flow_numbers = np.cumsum(flows) - 1
        current = self._current[: len(flows)][flows]
        there = current >= 0
        current[there] = numbers[current[there]]
        connections = self.connections[~gone]
        connections[:, k.C_FLOW] = flow_numbers[connections[:, k.C_FLOW]]
        streams = self._streams[: 2 * len(gone)][np.repeat(~gone, 2)]
        self._set(current, connections, streams)

    def _set(self, current: Int64, connections: Int64, streams: Int64) -> None:
        count = len(connections)
        self._current = _longer(current, 256, -1)
        room = np.empty((64 + count, k.CONNECTION_COLUMNS), np.int64)
        room[:count] = connections
        self._connections = room
        self._streams = np.empty((2 * len(room), k.STREAM_COLUMNS), np.int64)
        self._streams[: 2 * count] = streams
        self._state[k.T_CONNECTIONS] = count

    def save(self, flows: int) -> Saved:
        """The books start again."""
        state = self._state.copy()
        state[[k.T_PACKET, k.T_ROWS, k.T_FREE_COUNT, k.T_REPEATED, k.T_STRAY]] = 0
        state[k.T_FREE] = -1
        streams = self._streams[: 2 * int(state[k.T_CONNECTIONS])].copy()
        nodes: list[Int64] = []
        for stream in np.flatnonzero(streams[:, k.S_HEAD] >= 0).tolist():
            node = int(streams[stream, k.S_HEAD])
            streams[stream, k.S_HEAD] = len(nodes)
            while node >= 0:
                row = self._nodes[node].copy()
                node = int(row[k.W_NEXT])
                row[k.W_NEXT] = len(nodes) + 1 if node >= 0 else -1
                nodes.append(row)
            streams[stream, k.S_TAIL] = len(nodes) - 1
        self._grow(flows)
        waiting = np.array(nodes, np.int64).reshape(-1, k.WAITING_COLUMNS)
        current = self._current[:flows].copy()
        connections = self.connections.copy()
        return state, current, connections, streams, waiting, self._pool.copy(), self._time

    def load(self, saved: Saved) -> None:
        state, current, connections, streams, nodes, pool, time = saved
        self._state = state
        self._set(current, connections, streams)
        self._nodes, self._pool, self._time = nodes, pool, time

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
        streams = 2 * int(self._state[k.T_CONNECTIONS])
        used = k.ready(k.retain)(self._streams, streams, self._nodes, buffer, self._pool, kept)
        self._pool = kept[:used]


def _longer(array: Int64, least: int, fill: int) -> Int64:
    grown: Int64 = np.full(max(2 * len(array), least), fill, np.int64)
    grown[: len(array)] = array
    return grown
