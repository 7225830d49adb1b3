"""Capture files to records: pcap and pcapng, whole or a range of bytes."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from zenwire.capture import kernels as k
from zenwire.capture.source import WINDOW, Window, compression_of
from zenwire.errors import CaptureError

__all__ = ["FileFault", "Records", "Split", "read_records", "splits"]

RECORD_MAX: Final = 262_144
"""Bytes of a packet, where the file does not announce more."""
RECORD_LIMIT: Final = 16 << 20
"""Bytes of a packet, whatever the file announces."""
INTERFACES: Final = 4096
"""Interfaces of a section; packets of those beyond have no link type."""
SPLIT: Final = 128 << 20

_ROWS: Final = 65_536
_PCAP: Final = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}
_END: Final = 2**63 - 1

Int64 = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


class FileFault(NamedTuple):
    """Bytes of the file that are no record: ``offset`` in the (expanded) file."""

    fault: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Records:
    """Packets of a file as columns (``kernels.R_*``), with the buffer that holds them.

    Buffer and table are used again for the next one. ``faults`` came before or between them.
    """

    buffer: Bytes
    table: Int64
    count: int
    faults: tuple[FileFault, ...] = ()

    @property
    def bytes(self) -> int:
        """What was captured of them."""
        return int(self.table[k.R_CAPTURED, : self.count].sum())


class Split(NamedTuple):
    """A range of a file. A record belongs to the range that it begins in."""

    path: str
    start: int
    end: int


def splits(path: str | Path, size: int = SPLIT) -> list[Split]:
    """Ranges of about ``size`` bytes that together give every packet once.

    pcapng and compressed files are one range: what a block means is said before it. Raises
    CaptureError.
    """
    path = str(path)
    try:
        length = os.stat(path).st_size  # noqa: PTH116 - also takes what is not a Path
        with Path(path).open("rb") as file:
            head = file.read(24)
    except OSError as e:
        raise CaptureError(path, e.strerror or str(e)) from None
    if compression_of(head) or _pcap_format(head) is None:
        return [Split(path, 0, _END)]
    count = max(1, length // max(size, 64))
    edges = [length * i // count for i in range(count)]
    return [Split(path, a, b) for a, b in zip(edges, [*edges[1:], _END], strict=True)]


def read_records(
    path: str | Path, start: int = 0, end: int = _END, *, window: int = WINDOW
) -> Iterator[Records]:
    """The records that begin in a range of a file.

    Memory is a few windows, whatever the file's size. Raises CaptureError for a file that is no
    capture or cannot be read; everything else that is wrong with it is a ``FileFault``.
    """
    reader = _Reader(Window(path, 0, 64 if start else window), end)
    try:
        reader.open()
        if start > reader.header_end:
            reader.seek(start, window)
        yield from reader.records()
    finally:
        reader.view.close()


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


class _Reader:
    """One pass over a file. Formats may change in it, where files were put one after another."""

    def __init__(self, view: Window, end: int) -> None:
        self.view = view
        self.header_end = 0
        self._end = end
        self._state = np.zeros(k.FILE_STATE, np.int64)
        self._interfaces = np.zeros((INTERFACES, 4), np.int64)
        self._rows = np.empty((k.RECORD_COLUMNS, _ROWS + 8), np.int64)
        self._faults: list[FileFault] = []
        self._next_generation = False

    def open(self) -> None:
        """Reads what the file begins with."""
        self.view.advance(0)
        path = self.view.path
        if not self.view.size:
            raise CaptureError(path, self.view.damage or "the file is empty")
        if not self._take_header(0):
            raise CaptureError(path, "neither pcap nor pcapng")

    def seek(self, start: int, window: int) -> None:
        """Goes on elsewhere in the file, at the first record that can be found there."""
        state, head = self._state, self.view
        # What the first record says of time tells records from other bytes.
        head.advance(0)
        if self.header_end + 16 <= head.size:
            state[k.F_TIME] = k.u32(head.data, self.header_end, state[k.F_BIG]) * 10**9
        self.view = Window(head.path, start, window)
        head.close()
        self.view.advance(0)
        self._find(0)

    def _take_header(self, at: int) -> bool:
        """A file header at this place of the window sets the format."""
        state, view = self._state, self.view
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
            and k.is_section(view.data, at)
            and k.block_end(view.data, at, view.size, 0)
        ):
            self._next_generation = True
            state[k.F_POS] = at
        else:
            return False
        self.header_end = int(state[k.F_POS])
        return True

    def records(self) -> Iterator[Records]:
        """Window after window."""
        state, view = self._state, self.view
        while True:
            self._parse()
            if state[k.F_ROWS]:
                yield self._taken()
            why = state[k.F_WHY]
            if why == k.BEYOND:
                break
            if why == k.GARBAGE:
                self._resynchronise()
            elif why == k.MORE and not self._advance() and not self._is_misled():
                break
        if why != k.BEYOND and self._take_cut():
            yield self._taken()
        self._last()
        if self._faults:
            yield Records(view.data, self._rows, 0, tuple(self._faults))

    def _taken(self) -> Records:
        faults = tuple(self._faults)
        self._faults.clear()
        count = int(self._state[k.F_ROWS])
        if not self._next_generation:
            self._state[k.F_TIME] = self._rows[k.R_TIME, count - 1]
        return Records(self.view.data, self._rows, count, faults)

    def _parse(self) -> None:
        view, state = self.view, self._state
        if self._next_generation:
            k.pcapng_records(view.data, view.size, view.base, state, self._interfaces, self._rows)
        else:
            k.pcap_records(
                view.data, view.size, int(view.ended), view.base, self._end, state, self._rows
            )

    def _advance(self) -> bool:
        """More of the file; once it has ended, the kernel gets to know."""
        ended = self.view.ended
        moved = self.view.advance(int(self._state[k.F_POS]))
        self._state[k.F_POS] = 0
        return moved or not ended

    def _resynchronise(self) -> None:
        """At a place that is no record: another header, or bytes to be skipped."""
        state, view = self._state, self.view
        at = int(state[k.F_POS])
        while view.size - at < 24 and not view.ended:
            view.advance(at)
            at = 0
        state[k.F_POS] = at
        if self._take_header(at):
            return
        if not self._next_generation and k.pcap_header_fits(view.data, at, state):
            # Either its length is wrong, and a record begins inside of it, or what follows it is.
            length = int(k.u32(view.data, at + 8, state[k.F_BIG]))
            if not self._skip_into(at + 16 + length):
                state[k.F_FORCE] = 1
            return
        begin = view.base + at
        self._find(at + 1)
        self._faults.append(FileFault("garbage", begin, view.base + int(state[k.F_POS]) - begin))

    def _skip_into(self, stop: int) -> bool:
        """Goes to a record that begins within the one at ``F_POS``, if there is one."""
        state, view = self._state, self.view
        at = found = int(state[k.F_POS])
        found += 16
        while True:
            found = int(k.pcap_find(view.data, found, view.size, stop, int(view.ended), state))
            if found >= 0:
                break
            found = -1 - found
            view.advance(0)
        if found >= min(stop, view.size):
            return False
        self._faults.append(FileFault("garbage", view.base + at, found - at))
        state[k.F_POS] = found
        return True

    def _find(self, at: int) -> None:
        """Sets ``F_POS`` to the next record from ``at`` on, or to the end of the range."""
        find = k.pcapng_find if self._next_generation else k.pcap_find
        view, state = self.view, self._state
        while True:
            stop = max(self._end - view.base, 0)
            found = int(find(view.data, at, view.size, stop, int(view.ended), state))
            if found >= 0:
                state[k.F_POS] = found
                return
            view.advance(-1 - found)
            at = 0

    def _is_misled(self) -> bool:
        """Whether the record at the end seems cut because its length is wrong."""
        state, view = self._state, self.view
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
        if view.size - at <= 16 or not k.pcap_header_fits(view.data, at, state):
            return False
        return self._skip_into(view.size)

    def _take_cut(self) -> bool:
        """The last record of a pcap file, of which some bytes are there."""
        state, view, rows = self._state, self.view, self._rows
        at = int(state[k.F_POS])
        if self._next_generation or view.size - at <= 16 or view.base + at >= self._end:
            return False
        if not k.pcap_header_fits(view.data, at, state):
            return False
        seconds, part, captured, original = (
            int(k.u32(view.data, at + 4 * i, state[k.F_BIG])) for i in range(4)
        )
        rows[k.R_DATA, 0] = at + 16
        rows[k.R_CAPTURED, 0] = view.size - at - 16
        rows[k.R_ORIGINAL, 0] = max(captured, original)
        rows[k.R_TIME, 0] = seconds * 10**9 + part * int(state[k.F_UNIT])
        rows[k.R_LINK, 0] = state[k.F_LINK]
        rows[k.R_AT, 0] = view.base + at
        state[k.F_ROWS] = 1
        state[k.F_POS] = view.size
        missing = captured - (view.size - at - 16)
        self._faults.append(FileFault("truncated", view.base + view.size, missing))
        return True

    def _last(self) -> None:
        """What is left at the end, and what was noted on the way."""
        view, state = self.view, self._state
        at = int(state[k.F_POS])
        if state[k.F_WHY] != k.BEYOND and at < view.size:
            self._faults.append(FileFault("truncated", view.base + at, view.size - at))
        if view.damage:
            self._faults.append(FileFault(view.damage, view.base + view.size, 0))
        if state[k.F_BAD]:
            self._faults.append(FileFault("blocks", 0, int(state[k.F_BAD])))
