"""Capture files to records: pcap and pcapng, whole or from any place that a reader has been at."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from zenwire.capture import kernels as k
from zenwire.capture.source import END, WINDOW, Window
from zenwire.errors import CaptureError

__all__ = ["FileFault", "Part", "Place", "RecordReader", "Records"]

RECORD_MAX: Final = 262_144
"""Bytes of a packet, where the file does not announce more."""
RECORD_LIMIT: Final = 16 << 20
"""Bytes of a packet, whatever the file announces."""
INTERFACES: Final = 4096
"""Interfaces of a section; packets of those beyond have no link type."""

_ROWS: Final = 65_536
_PCAP: Final = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}

Int64 = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


class FileFault(NamedTuple):
    """Bytes of the file that are no record, or are missing; ``offset`` in the (expanded) file."""

    fault: str
    offset: int
    skipped: int
    missing: int = 0


@dataclass(frozen=True, slots=True)
class Records:
    """Packets of a file as columns (``kernels.R_*``), with the buffer that holds them.

    Buffer and table are used again for the next one. ``faults`` came before or between them.
    """

    buffer: Bytes
    table: Int64
    count: int
    size: int
    """Bytes of the file since the ones before."""
    faults: tuple[FileFault, ...] = ()
    bad: int = 0
    """Bytes of pcapng blocks that contradict themselves."""

    @property
    def bytes(self) -> int:
        """What was captured of them."""
        return int(self.table[k.R_CAPTURED, : self.count].sum())


class Part(NamedTuple):
    """A file of a capture: all of it or, while it is ``growing``, its first ``size`` bytes."""

    path: str
    size: int = END
    growing: bool = False


class Place(NamedTuple):
    """Where the reader of a file is: all that it needs to go on there."""

    offset: int
    window: int
    next_generation: bool
    state: Int64
    interfaces: Int64


def _pcap_format(head: bytes) -> tuple[bool, int, int, int] | None:
    """(big endian, nanoseconds of a unit, largest record, link type) of a pcap header."""
    if len(head) < 24:
        return None
    for order in "<>":
        magic, major, _, _, _, snap, link = struct.unpack(order + "IHHiIII", head[:24])
        unit = _PCAP.get(magic)
        if unit is not None and major == 2:
            most = min(max(snap, RECORD_MAX), RECORD_LIMIT)
            return order == ">", unit, most, link & 0xFFFF
    return None


class RecordReader:
    """One pass over a file. Formats may change in it, where files were put one after another.

    Memory is a few windows, whatever the file's size. Raises CaptureError for a file that is no
    capture or cannot be read; everything else that is wrong with it is a ``FileFault``. Of a
    growing file, a record is read once all of it is there.
    """

    def __init__(
        self, part: Part | str | Path, *, place: Place | None = None, window: int = WINDOW
    ) -> None:
        self._part = part if isinstance(part, Part) else Part(str(part))
        start = place.offset if place else 0
        self._next_generation = place.next_generation if place else False
        self._state: Int64 = np.zeros(k.FILE_STATE, np.int64)
        self._interfaces: Int64 = np.zeros((INTERFACES, 4), np.int64)
        if place:
            window = place.window
            self._state[:] = place.state
            self._interfaces[: len(place.interfaces)] = place.interfaces
        self._begun = place is not None
        self._done = start
        self._rows: Int64 = np.empty((k.RECORD_COLUMNS, _ROWS + 8), np.int64)
        self._faults: list[FileFault] = []
        self._view = Window(self._part.path, start, window, self._part.size)

    @property
    def offset(self) -> int:
        """Where the next record begins, as far as is known."""
        return self._done

    @property
    def compression(self) -> str | None:
        """What the file is compressed with, if it is."""
        return self._view.compression

    @property
    def leavable(self) -> bool:
        """Whether another reader may go on after the records that came last."""
        if not self._begun:
            return True
        return self._view.compression is None and bool(self._state[k.F_WHY] == k.MORE)

    def place(self) -> Place | None:
        """Where it is after the records that came last; None before the first."""
        if not self._begun:
            return None
        state = self._state.copy()
        state[[k.F_POS, k.F_ROWS]] = 0
        count = min(int(state[k.F_INTERFACES]), INTERFACES)
        interfaces = self._interfaces[:count].copy()
        return Place(self._done, len(self._view.data), self._next_generation, state, interfaces)

    def close(self) -> None:
        self._view.close()

    def __iter__(self) -> Iterator[Records]:
        """Window after window."""
        try:
            if self.begin():
                yield from self._records()
        finally:
            self.close()

    def begin(self) -> bool:
        """Reads what the file begins with. False if that is not there yet. Raises CaptureError."""
        view = self._view
        if not view.size:
            view.advance(0)
        if self._begun:
            return True
        if not self._take_header(0):
            if self._part.growing and view.size < 24:
                return False
            why = "neither pcap nor pcapng" if view.size else "the file is empty"
            raise CaptureError(view.path, view.damage or why)
        self._begun = True
        return True

    def _take_header(self, at: int) -> bool:
        """A file header at this place of the window sets the format."""
        state, view = self._state, self._view
        head = view.data[at : min(at + 24, view.size)].tobytes()
        found = _pcap_format(head)
        if found:
            big, unit, most, link = found
            state[k.F_BIG], state[k.F_UNIT], state[k.F_HEADER] = big, unit, 16
            state[k.F_LINK], state[k.F_LIMIT] = link, most
            self._next_generation = False
            state[k.F_POS] = at + 24
        elif (
            len(head) >= 12
            and k.ready(k.is_section)(view.data, at)
            and k.ready(k.block_end)(view.data, at, view.size, 0)
        ):
            self._next_generation = True
            state[k.F_POS] = at
        else:
            return False
        return True

    def _records(self) -> Iterator[Records]:
        state, growing = self._state, self._part.growing
        while True:
            self._parse()
            if state[k.F_ROWS]:
                yield self._taken()
            why = state[k.F_WHY]
            if why == k.GARBAGE:
                if not self._resynchronise():
                    break
            elif why == k.MORE and not self._advance() and (growing or not self._is_misled()):
                break
        if growing:
            state[k.F_WHY] = k.MORE
        else:
            if self._take_cut():
                yield self._taken()
            self._last()
        yield self._taken()

    def _taken(self) -> Records:
        view, state = self._view, self._state
        count = int(state[k.F_ROWS])
        if count and not self._next_generation:
            state[k.F_TIME] = self._rows[k.R_TIME, count - 1]
        size = view.base + int(state[k.F_POS]) - self._done
        self._done += size
        faults, bad = tuple(self._faults), int(state[k.F_BAD])
        self._faults.clear()
        state[k.F_BAD] = state[k.F_ROWS] = 0
        return Records(view.data, self._rows, count, size, faults, bad)

    def _parse(self) -> None:
        view, state = self._view, self._state
        if self._next_generation:
            k.ready(k.pcapng_records)(
                view.data, view.size, view.base, state, self._interfaces, self._rows
            )
        else:
            k.ready(k.pcap_records)(
                view.data, view.size, int(view.ended), view.base, state, self._rows
            )

    def _advance(self) -> bool:
        """More of the file; once it has ended, the kernel gets to know."""
        ended = self._view.ended
        moved = self._view.advance(int(self._state[k.F_POS]))
        self._state[k.F_POS] = 0
        return moved or not ended

    # Where no record is.

    def _resynchronise(self) -> bool:
        """At a place that is no record: another header, or bytes to be skipped.

        False if what comes after a growing file must tell.
        """
        state, view = self._state, self._view
        at = int(state[k.F_POS])
        while view.size - at < 24 and not view.ended:
            view.advance(at)
            at = 0
        state[k.F_POS] = at
        if self._take_header(at):
            return True
        if self._part.growing and view.size - at < 24:
            return False
        if not self._next_generation and k.ready(k.pcap_header_fits)(view.data, at, state):
            # Either its length is wrong, and a record begins inside of it, or what follows it is.
            found = self._skip_into(at + 16 + self._u32(at + 8))
            if found == 0:
                state[k.F_FORCE] = 1
            return found >= 0
        begin = view.base + at
        if not self._find(at + 1):
            return False
        self._faults.append(FileFault("garbage", begin, view.base + int(state[k.F_POS]) - begin))
        return True

    def _u32(self, at: int) -> int:
        order = ">" if self._state[k.F_BIG] else "<"
        found: int = struct.unpack(order + "I", self._view.data[at : at + 4].tobytes())[0]
        return found

    def _skip_into(self, stop: int) -> int:
        """Goes to a record that begins within the one at ``F_POS``: 1, or 0 if there is none.

        -1 if what comes after a growing file must tell.
        """
        state, view, growing = self._state, self._view, self._part.growing
        at = found = int(state[k.F_POS])
        found += 16
        while True:
            ended = int(view.ended and not growing)
            found = int(k.ready(k.pcap_find)(view.data, found, view.size, stop, ended, state))
            if found >= 0:
                break
            if view.ended and growing:
                return -1
            found = -1 - found
            view.advance(0)
        if found >= min(stop, view.size):
            return 0
        self._faults.append(FileFault("garbage", view.base + at, found - at))
        state[k.F_POS] = found
        return 1

    def _find(self, at: int) -> bool:
        """Sets ``F_POS`` to the next record from ``at`` on, or to the end of the file.

        False, and ``F_POS`` where it was, if what comes after a growing file must tell.
        """
        find = k.ready(k.pcapng_find if self._next_generation else k.pcap_find)
        view, state, growing = self._view, self._state, self._part.growing
        begin = view.base + int(state[k.F_POS])
        while True:
            ended = int(view.ended and not growing)
            found = int(find(view.data, at, view.size, END, ended, state))
            if found >= 0:
                state[k.F_POS] = found
                return True
            if view.ended and growing:
                # Before the window, perhaps: a growing file is left here, and read again.
                state[k.F_POS] = begin - view.base
                return False
            view.advance(-1 - found)
            at = 0

    def _is_misled(self) -> bool:
        """Whether the record at the end seems cut because its length is wrong."""
        state, view = self._state, self._view
        at = int(state[k.F_POS])
        if self._next_generation:
            if at >= view.size:
                return False
            self._find(at + 1)
            found = int(state[k.F_POS])
            if found >= view.size:
                state[k.F_POS] = at
                return False
            self._faults.append(FileFault("garbage", view.base + at, found - at))
            return True
        if view.size - at <= 16 or not k.ready(k.pcap_header_fits)(view.data, at, state):
            return False
        return self._skip_into(view.size) > 0

    def _take_cut(self) -> bool:
        """The last record of a pcap file, of which some bytes are there."""
        state, view, rows = self._state, self._view, self._rows
        at = int(state[k.F_POS])
        if self._next_generation or view.size - at <= 16:
            return False
        if not k.ready(k.pcap_header_fits)(view.data, at, state):
            return False
        seconds, part, captured, original = (self._u32(at + 4 * i) for i in range(4))
        rows[k.R_DATA, 0] = at + 16
        rows[k.R_CAPTURED, 0] = view.size - at - 16
        rows[k.R_ORIGINAL, 0] = max(captured, original)
        rows[k.R_TIME, 0] = seconds * 10**9 + part * int(state[k.F_UNIT])
        rows[k.R_LINK, 0] = state[k.F_LINK]
        rows[k.R_AT, 0] = view.base + at
        state[k.F_ROWS] = 1
        state[k.F_POS] = view.size
        missing = captured - (view.size - at - 16)
        self._faults.append(FileFault("truncated", view.base + view.size, 0, missing))
        return True

    def _last(self) -> None:
        """What is left at the end, and what was noted on the way."""
        view, state = self._view, self._state
        at = int(state[k.F_POS])
        if at < view.size:
            self._faults.append(FileFault("truncated", view.base + at, view.size - at))
            state[k.F_POS] = view.size
        if view.damage:
            self._faults.append(FileFault(view.damage, view.base + view.size, 0))
