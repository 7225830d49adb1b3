"""What a link received, many batches at once: runs of publications as rows, the rest as batches.

A batch is plain if it holds FRAMEs of publications and nothing else, all of them new. Plain batches
that follow one another are a `Run`; any other is for who reads message by message, so that one
place knows what is rare: fragments, declarations, duplicates, faults.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from zenwire.columns import kernels, kernels_receive
from zenwire.columns.layout import NETWORK, TRANSPORT
from zenwire.columns.scan import ROWS, Int32, Int64, Scan, Scanner, Spans, as_buffer
from zenwire.wire.batch import STREAM_PREFIX
from zenwire.wire.buffer import Reader
from zenwire.wire.define import spec_of
from zenwire.wire.network import NetworkMessage, Push
from zenwire.wire.objects import read_message
from zenwire.wire.transport import Frame, KeepAlive
from zenwire.wire.values import Priority

__all__ = ["Lanes", "Receiving", "Run"]

_LANES: Final = 2 * len(Priority)
_AT, _END = (NETWORK.fixed.index(name) for name in ("at", "end"))


def _bit(layout: object, name: str) -> int:
    assert layout is NETWORK or layout is TRANSPORT
    return 1 << layout.columns[name].bit


_KNOWN: Final = np.array(
    [
        spec_of(Frame).id,
        spec_of(KeepAlive).id,
        spec_of(Push).id,
        # What routing counts or stamps, message by message.
        _bit(NETWORK, "shm") | _bit(NETWORK, "timestamp_stack"),
        NETWORK.fixed.index("frame"),
        TRANSPORT.fixed.index("batch"),
        TRANSPORT.columns["sn"].slot,
        TRANSPORT.columns["priority"].slot,
        _bit(TRANSPORT, "priority"),
        _bit(TRANSPORT, "reliable"),
        Priority.DATA,
    ],
    np.uint64,
)


class Lanes(Protocol):
    """The sequence numbers of a session, and what a link counts."""

    @property
    def mask(self) -> int:
        """The greatest number there is."""

    @property
    def qos(self) -> bool:
        """Whether there are priorities."""

    def numbers(self) -> list[int]:
        """The newest number of each lane, -1 where that is not all there is to know."""

    def took(
        self, newest: dict[int, int], batches: int, frames: int, messages: int, missing: int
    ) -> None:
        """So much was taken, and these are the newest numbers of lanes."""


@dataclass(slots=True)
class Run:
    """Publications in a row, of one reliability. Valid until the next bytes are received."""

    scan: Scan
    first: int
    stop: int
    reliable: bool

    def __len__(self) -> int:
        return self.stop - self.first

    def some(self, first: int, stop: int) -> Run:
        """Those of them from row ``first`` to ``stop``."""
        return Run(self.scan, first, stop, self.reliable)

    def messages(self, first: int | None = None, stop: int | None = None) -> list[NetworkMessage]:
        """They, or some of them, as objects."""
        rows = self.scan.network.int32
        begin = self.first if first is None else first
        end = self.stop if stop is None else stop
        at, ends = rows[_AT, begin:end].tolist(), rows[_END, begin:end].tolist()
        if not at:
            return []
        # One copy for all: the buffer is used again.
        start = at[0]
        data = self.scan.buffer[start : ends[-1]].tobytes()
        found: list[NetworkMessage] = []
        for one, to in zip(at, ends, strict=True):
            found.append(read_message(Reader(data[one - start : to - start]), "network"))
        return found


class Receiving:
    """Reads what links of one event loop receive, one after the other: what it gave before is void."""

    def __init__(self) -> None:
        self._rows = ROWS
        self._scanner = Scanner(self._rows)
        self._split = np.zeros(2, np.int64)
        self._starts: Int32 = np.empty(4096, np.int32)
        self._ends: Int32 = np.empty(4096, np.int32)
        self._odd = np.empty(4096, np.uint8)
        self._newest: Int64 = np.empty(_LANES + 3, np.int64)
        self._before: Int64 = np.empty(_LANES, np.int64)
        self._state: Int64 = np.zeros(7, np.int64)
        self._buffer = as_buffer(b"")
        self._count = 0
        self._faulty = False

    def split(self, data: memoryview, limit: int) -> int:
        """Find the batches of a stream. Gives where the rest begins.

        What is longer than ``limit`` is left in the rest, and so is what comes after it.
        """
        self._buffer = as_buffer(data)
        state = self._split
        state[:] = 0
        size = len(data)
        if size >= self._rows:
            # All of it at once, since what comes of it is looked at when all was read. No message
            # is shorter than a byte; memory that is not used is free.
            self._rows = 2 * size
            self._scanner = Scanner(self._rows)
        if len(self._starts) <= size // STREAM_PREFIX:
            # As many as there may be, of those that are empty.
            self._starts = np.empty(size, np.int32)
            self._ends = np.empty(size, np.int32)
            self._odd = np.empty(size, np.uint8)
        self._count = kernels.split(
            self._buffer, 0, size, STREAM_PREFIX, limit, self._starts, self._ends, state
        )
        rest, fault = state.tolist()
        self._faulty = bool(fault)
        return int(rest)

    @property
    def faulty(self) -> bool:
        """What is left is no batch."""
        return self._faulty

    def parts(self, lanes: Lanes) -> Iterator[Run | tuple[int, int]]:
        """What was split: runs, and where other batches are. Each is to be done with in turn."""
        spans = Spans(self._starts[: self._count], self._ends[: self._count])
        scan = next(self._scanner.scan(self._buffer, spans), None)
        if scan is not None:
            yield from self._parts(scan, lanes)
            # There is more only behind a great many faults, and the first of them is the end.
            yield from zip(*(some[scan.stop :].tolist() for some in spans), strict=True)

    def _parts(self, scan: Scan, lanes: Lanes) -> Iterator[Run | tuple[int, int]]:
        rows, frames, bad, odd, state = (
            scan.network,
            scan.transport,
            scan.bad,
            self._odd,
            self._state,
        )
        starts, ends = scan.spans
        kernels_receive.classify(
            starts,
            ends,
            scan.first,
            scan.stop,
            rows.int32,
            rows.present,
            rows.count,
            frames.int32,
            frames.present,
            frames.count,
            bad.batch,
            _KNOWN,
            odd,
        )
        k = scan.first
        state[:] = 0
        while k < scan.stop:
            if odd[k]:
                yield int(starts[k]), int(ends[k])
                k += 1
                continue
            state[0] = k
            newest = self._load(lanes)
            kernels_receive.admit(
                scan.stop,
                odd,
                rows.int32,
                rows.count,
                frames.int32,
                frames.present,
                frames.count,
                _KNOWN,
                self._newest,
                self._before,
                state,
            )
            begin = k
            k, _, stop, many, missing, reliable, first = state.tolist()
            if k > begin:
                changed = zip(newest, self._newest.tolist(), strict=False)
                taken = {at: now for at, (then, now) in enumerate(changed) if now != then}
                lanes.took(taken, k - begin, many, stop - first, missing)
                if stop > first:
                    yield Run(scan, first, stop, bool(reliable))

    def _load(self, lanes: Lanes) -> list[int]:
        numbers, mask = lanes.numbers(), lanes.mask
        self._newest[:] = (*numbers, mask, mask >> 1, lanes.qos)
        return numbers
