"""UDP: each datagram is a batch, if its flow is Zenoh."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from zenwire.capture import kernels as k
from zenwire.capture.packets import Packets
from zenwire.capture.runs import Saved
from zenwire.errors import DecodeError
from zenwire.wire import decode, encode
from zenwire.wire.batch import expand_batch, walk, walk_low_latency
from zenwire.wire.scouting import Hello, Scout
from zenwire.wire.specialise import Z_FLAG
from zenwire.wire.transport import VERSION, InitAck, InitSyn, Join, OpenAck, OpenSyn

__all__ = ["Datagrams", "FlowFault", "Held"]

ENOUGH: Final = 3
"""Datagrams of a session that tell a flow to be Zenoh, or others that tell it not to be."""
HELD_MAX: Final = 64
"""Datagrams of a flow that is not decided yet."""
SIZE_MIN: Final = 8
"""Bytes that a flow decided at the end of the capture must have decoded."""
SCOUTING: Final = 8
"""Added to the mode of a datagram that belongs to no session."""

Int64 = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


class FlowFault(NamedTuple):
    """Bytes of a UDP flow that are in no batch."""

    flow: int
    side: int
    fault: str
    skipped: int
    missing: int
    time: int


@dataclass(slots=True)
class _Kept:
    row: tuple[int, int]
    data: bytes
    missing: int
    mode: int


@dataclass(slots=True)
class _Undecided:
    kept: list[_Kept] = field(default_factory=list)
    good: int = 0
    bad: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class Held:
    """Batches of UDP flows: [flow, side, sequence, start, end, time, mode] over ``work``."""

    work: Bytes
    table: Int64
    faults: tuple[FlowFault, ...] = ()


class Datagrams:
    """Decides by looking which flows are Zenoh, and how their batches are wrapped."""

    def __init__(self) -> None:
        self._zenoh: npt.NDArray[np.int8] = np.zeros(0, np.int8)
        self._sequence: Int64 = np.zeros(0, np.int64)
        self._modes: Int64 = np.zeros(0, np.int64)
        self._undecided: dict[int, _Undecided] = {}
        # Bytes, missing bytes and last time of each side of each flow that is not Zenoh.
        self._foreign: Int64 = np.zeros((3, 0), np.int64)
        self._openers: dict[int, int] = {}

    def opener(self, flow: int) -> int:
        """The side that sent InitSyn, -1 if that was not seen."""
        return self._openers.get(flow, -1)

    def feed(self, packets: Packets, flow: Int64, side: Int64) -> list[Held]:
        """The batches that can be told now, in order for each flow."""
        table = packets.table[:, : packets.count]
        chosen = (table[k.P_PROTOCOL] == k.UDP) & (table[k.P_FAULT] == 0)
        rows = np.flatnonzero(chosen & (table[k.P_LENGTH] + table[k.P_MISSING] > 0))
        if not len(rows):
            return []
        self._grow(int(flow[rows].max()) + 1)
        state = self._zenoh[flow[rows]]
        found = self._look(packets, rows[state == 0], flow, side)
        # Those that were decided just now have their rows in ``found`` already.
        self._count_foreign(table, rows[state < 0], flow, side)
        found.append(self._known(packets, rows[state > 0], flow, side))
        return found

    def _grow(self, flows: int) -> None:
        more = flows - len(self._zenoh)
        if more > 0:
            more += len(self._zenoh)
            self._zenoh = np.concatenate([self._zenoh, np.zeros(more, np.int8)])
            self._modes = np.concatenate([self._modes, np.full(more, -1, np.int64)])
            self._sequence = np.concatenate([self._sequence, np.zeros(2 * more, np.int64)])
            self._foreign = np.concatenate([self._foreign, np.zeros((3, 2 * more), np.int64)], 1)

    def _known(self, packets: Packets, rows: Int64, flow: Int64, side: Int64) -> Held:
        """Datagrams of flows that are known to be Zenoh, all at once."""
        table, buffer = packets.table, packets.buffer
        missing = table[k.P_MISSING, rows]
        cut = rows[missing > 0]
        faults = tuple(
            FlowFault(
                int(flow[i]),
                int(side[i]),
                "lost",
                int(table[k.P_LENGTH, i]),
                int(table[k.P_MISSING, i]),
                int(table[k.P_TIME, i]),
            )
            for i in cut
        )
        rows = rows[missing == 0]
        out: Int64 = np.empty((7, len(rows)), np.int64)
        start = table[k.P_PAYLOAD, rows]
        out[0], out[1] = flow[rows], side[rows]
        out[3], out[4] = start, start + table[k.P_LENGTH, rows]
        out[5] = table[k.P_TIME, rows]
        out[6] = self._modes[flow[rows]]
        self._number(out)
        # INIT and OPEN are plain whatever was agreed, and what they agree holds for what follows.
        first = buffer[start] if len(rows) else np.empty(0, np.uint8)
        for i in np.flatnonzero((first & 0x1F == 1) | (first & 0x1F == 2)).tolist():
            data = buffer[out[3, i] : out[4, i]].tobytes()
            mode = self._handshake(int(out[0, i]), int(out[1, i]), data)
            if mode >= 0:
                out[6, i] = mode
                later = np.flatnonzero(out[0] == out[0, i])
                later = later[later > i]
                out[6, later] = self._modes[out[0, i]]
        return Held(buffer, out, faults)

    def _number(self, out: Int64) -> None:
        key = 2 * out[0] + out[1]
        order = np.argsort(key, kind="stable")
        ordered = key[order]
        begins = np.flatnonzero(np.diff(ordered, prepend=-1))
        counts = np.diff(np.append(begins, len(ordered)))
        out[2, order] = (
            self._sequence[ordered] + np.arange(len(ordered)) - np.repeat(begins, counts)
        )
        self._sequence[ordered[begins]] += counts

    def _handshake(self, flow: int, side: int, data: bytes) -> int:
        """The mode of a datagram that is none of the session's: plain, or scouting; else -1."""
        if _is_scouting(data):
            return k.PLAIN + SCOUTING
        try:
            message = next(walk(data)).message
        except (DecodeError, StopIteration):
            return -1
        if not isinstance(message, InitSyn | InitAck | OpenSyn | OpenAck):
            return -1
        if isinstance(message, InitSyn):
            self._openers[flow] = side
        if isinstance(message, InitAck):
            self._openers[flow] = 1 - side
            mode = k.COMPRESSED if message.compression else k.PLAIN
            self._modes[flow] = k.LOW_LATENCY if message.lowlatency else mode
        return k.PLAIN

    # Flows that go, and a state that can be left and gone on from.

    def drop(self, kept: npt.NDArray[np.bool_]) -> None:
        """Forgets flows but those that are True."""
        zenoh, sequence, modes, undecided, foreign, openers = self._state(len(kept))
        twice = np.repeat(kept, 2)
        names = {flow: number for number, flow in enumerate(np.flatnonzero(kept).tolist())}
        self._zenoh, self._sequence, self._modes = zenoh[kept], sequence[twice], modes[kept]
        self._foreign = foreign[:, twice]
        self._undecided = {names[f]: state for f, state in undecided.items() if f in names}
        self._openers = {names[f]: side for f, side in openers.items() if f in names}

    def _state(
        self, flows: int
    ) -> tuple[npt.NDArray[np.int8], Int64, Int64, dict[int, _Undecided], Int64, dict[int, int]]:
        self._grow(flows)
        return (
            self._zenoh[:flows].copy(),
            self._sequence[: 2 * flows].copy(),
            self._modes[:flows].copy(),
            {flow: state for flow, state in self._undecided.items() if state.kept},
            self._foreign[:, : 2 * flows].copy(),
            self._openers,
        )

    def save(self, flows: int) -> Saved:
        return self._state(flows)

    def load(self, saved: Saved) -> None:
        self._zenoh, self._sequence, self._modes, *rest = saved
        self._undecided, self._foreign, self._openers = rest

    # Flows that are not decided.

    def _look(self, packets: Packets, rows: Int64, flow: Int64, side: Int64) -> list[Held]:
        table, buffer = packets.table, packets.buffer
        done: list[_Kept] = []
        which: list[tuple[int, int]] = []
        for i in rows.tolist():
            number, sent = int(flow[i]), int(side[i])
            length = int(table[k.P_LENGTH, i])
            if self._zenoh[number] < 0:
                self._count_foreign(table, np.array([i]), flow, side)
                continue
            start = int(table[k.P_PAYLOAD, i])
            data = buffer[start : start + length].tobytes()
            state = self._undecided.setdefault(number, _Undecided())
            kept = _Kept((sent, int(table[k.P_TIME, i])), data, int(table[k.P_MISSING, i]), -1)
            state.kept.append(kept)
            if self._zenoh[number] > 0:
                kept.mode = self._handshake(number, sent, data)
            else:
                self._judge(number, state, kept)
            if self._zenoh[number] > 0:
                done += state.kept
                which += [(number, kept.row[0]) for kept in state.kept]
                state.kept = []
        if not done:
            return []
        return [self._decided(done, which)]

    def _decided(self, done: list[_Kept], which: list[tuple[int, int]]) -> Held:
        whole = [j for j, kept in enumerate(done) if not kept.missing]
        faults = tuple(
            FlowFault(*where, "lost", len(kept.data), kept.missing, kept.row[1])
            for where, kept in zip(which, done, strict=True)
            if kept.missing
        )
        out: Int64 = np.empty((7, len(whole)), np.int64)
        sizes = np.array([len(done[j].data) for j in whole], np.int64)
        ends = np.cumsum(sizes)
        out[0] = [which[j][0] for j in whole]
        out[1] = [which[j][1] for j in whole]
        out[3], out[4] = ends - sizes, ends
        out[5] = [done[j].row[1] for j in whole]
        out[6] = [done[j].mode for j in whole]
        unsaid = out[6] < 0
        out[6, unsaid] = self._modes[out[0, unsaid]]
        self._number(out)
        work = np.frombuffer(bytearray(b"".join(done[j].data for j in whole)), np.uint8)
        return Held(work, out, faults)

    def _judge(self, flow: int, state: _Undecided, kept: _Kept) -> None:
        """What one datagram says of its flow."""
        if kept.missing:
            return
        mode = self._handshake(flow, kept.row[0], kept.data)
        if mode >= 0 or _is_join(kept.data):
            kept.mode = max(mode, k.PLAIN)
            self._zenoh[flow] = 1
            return
        mode = _mode_of(kept.data)
        if mode < 0:
            state.bad += 1
        else:
            state.good += 1
            state.size += len(kept.data)
            kept.mode = mode
        if state.good >= ENOUGH and not state.bad:
            self._zenoh[flow] = 1
            self._modes[flow] = max(kept.mode for kept in state.kept)
        elif state.bad >= ENOUGH or len(state.kept) > HELD_MAX:
            self._reject(flow, state)

    def _reject(self, flow: int, state: _Undecided) -> None:
        self._zenoh[flow] = -1
        for kept in state.kept:
            side, time = kept.row
            self._foreign[:2, 2 * flow + side] += (len(kept.data), kept.missing)
            self._foreign[2, 2 * flow + side] = time
        state.kept = []

    def _count_foreign(self, table: Int64, rows: Int64, flow: Int64, side: Int64) -> None:
        which = 2 * flow[rows] + side[rows]
        np.add.at(self._foreign[0], which, table[k.P_LENGTH, rows])
        np.add.at(self._foreign[1], which, table[k.P_MISSING, rows])
        self._foreign[2, which] = table[k.P_TIME, rows]

    def finish(self) -> Held:
        """Decides what is not decided yet, by what there is."""
        done: list[_Kept] = []
        which: list[tuple[int, int]] = []
        for flow, state in self._undecided.items():
            if not state.kept:
                continue
            if state.good and not state.bad and state.size >= SIZE_MIN:
                self._zenoh[flow] = 1
                self._modes[flow] = max(kept.mode for kept in state.kept)
                done += state.kept
                which += [(flow, kept.row[0]) for kept in state.kept]
                state.kept = []
            else:
                self._reject(flow, state)
        held = self._decided(done, which)
        foreign = tuple(
            FlowFault(*divmod(i, 2), "not_zenoh", *self._foreign[:, i].tolist())
            for i in np.flatnonzero(self._foreign[0] + self._foreign[1]).tolist()
        )
        return Held(held.work, held.table, held.faults + foreign)


def _is_scouting(data: bytes) -> bool:
    """A SCOUT or HELLO of this version that fills the datagram.

    The id in an INIT may be read as extensions of a SCOUT, to the last byte. But it has flags that
    a SCOUT does not have.
    """
    if len(data) < 3 or data[1] != VERSION:
        return False
    try:
        message = decode(data, "scouting")
    except DecodeError:
        return False
    return isinstance(message, Scout | Hello) and encode(message)[0] | Z_FLAG == data[0] | Z_FLAG


def _is_join(data: bytes) -> bool:
    try:
        return isinstance(next(walk(data)).message, Join) and data[1] == VERSION
    except (DecodeError, StopIteration):
        return False


def _mode_of(data: bytes) -> int:
    """How a batch that decodes to its end is wrapped, -1 if it does not."""
    for mode in (k.PLAIN, k.COMPRESSED, k.LOW_LATENCY):
        try:
            if mode == k.LOW_LATENCY:
                count = sum(1 for _ in walk_low_latency(data))
            else:
                content = expand_batch(data) if mode == k.COMPRESSED else data
                count = sum(1 for _ in walk(content))
        except DecodeError:
            continue
        if count:
            return mode
    return -1
