"""IP datagrams that came in fragments. The slow path: few packets come this way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from zenwire.capture import kernels as k
from zenwire.capture.runs import Saved

__all__ = ["Fragments"]

DATAGRAMS_MAX: Final = 1024
"""Datagrams that are waited for at once; the oldest goes first."""
LIFETIME: Final = 30 * 10**9
"""Nanoseconds that a datagram is waited for."""
DATAGRAM_MAX: Final = 65_535
PARTS_MAX: Final = 8192

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

_Key = tuple[int, ...]


@dataclass(slots=True)
class _Datagram:
    begun: int
    parts: dict[int, bytes] = field(default_factory=dict)
    end: int = -1
    size: int = 0

    def whole(self) -> bytes | None:
        """All of it, once it is there. Where parts overlap, the first byte of each place stays."""
        if self.end < 0:
            return None
        out = bytearray()
        for at in sorted(self.parts):
            if at > len(out):
                return None
            out += self.parts[at][len(out) - at :]
        return bytes(out[: self.end]) if len(out) >= self.end else None


class Fragments:
    """Collects fragments over many packets, in memory of 64 MiB at most."""

    def __init__(self) -> None:
        self._datagrams: dict[_Key, _Datagram] = {}
        self.dropped = 0
        """Bytes of fragments that became nothing."""
        self.waiting = 0
        """Bytes of datagrams that are not complete."""

    @property
    def held(self) -> int:
        """Bytes that came and went no further."""
        return self.dropped + self.waiting

    def save(self) -> Saved:
        """What is waited for; the books start again."""
        return tuple((key, d.begun, d.parts, d.end, d.size) for key, d in self._datagrams.items())

    def load(self, saved: Saved) -> None:
        self._datagrams = {key: _Datagram(*state) for key, *state in saved}
        self.waiting = sum(d.size for d in self._datagrams.values())

    def add(self, buffer: Bytes, table: Int64, addresses: UInt64, rows: Int64) -> Bytes:
        """Takes the fragments at ``rows``; those that complete a datagram become its packet.

        Gives the buffer, with the complete datagrams behind it.
        """
        done: list[tuple[int, bytes]] = []
        for row in rows.tolist():
            found = self._take(buffer, table, addresses, row)
            if found is not None:
                done.append((row, found))
        if not done:
            return buffer
        sizes = np.array([len(data) for _, data in done], np.int64)
        ends = np.cumsum(sizes) + len(buffer)
        longer = np.concatenate([buffer, np.frombuffer(b"".join(d for _, d in done), np.uint8)])
        which = np.array([row for row, _ in done], np.int64)
        k.ready(k.reassembled)(longer, which, ends - sizes, ends, len(which), table)
        return longer

    def _take(self, buffer: Bytes, table: Int64, addresses: UInt64, row: int) -> bytes | None:
        column = table[:, row]
        time, length = int(column[k.P_TIME]), int(column[k.P_LENGTH])
        part = int(column[k.P_FRAGMENT])
        at, more = part & ~k.MORE_FRAGMENTS, bool(part & k.MORE_FRAGMENTS)
        self._expire(time)
        if column[k.P_MISSING] or at + length > DATAGRAM_MAX + 8:
            self.dropped += length
            return None
        key = (*addresses[:, row].tolist(), int(column[k.P_FRAGMENT_ID]), int(column[k.P_PROTOCOL]))
        datagram = self._datagrams.setdefault(key, _Datagram(time))
        start = int(column[k.P_PAYLOAD])
        if at in datagram.parts or len(datagram.parts) >= PARTS_MAX:
            self.dropped += length
            return None
        datagram.parts[at] = buffer[start : start + length].tobytes()
        datagram.size += length
        self.waiting += length
        if not more:
            datagram.end = at + length
        if datagram.end < 0 or datagram.size < datagram.end:
            return None
        whole = datagram.whole()
        if whole is not None:
            self.dropped += datagram.size - len(whole)
            self.waiting -= datagram.size
            del self._datagrams[key]
        return whole

    def _expire(self, now: int) -> None:
        """Entries are in order of their begin."""
        while self._datagrams:
            key, oldest = next(iter(self._datagrams.items()))
            if now - oldest.begun <= LIFETIME and len(self._datagrams) <= DATAGRAMS_MAX:
                return
            self.dropped += oldest.size
            self.waiting -= oldest.size
            del self._datagrams[key]
