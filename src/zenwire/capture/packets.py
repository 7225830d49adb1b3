"""Records to packets: addresses, ports, TCP fields and where the payload is, as columns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, unique

import numpy as np
import numpy.typing as npt

from zenwire.capture import kernels as k
from zenwire.capture.fragments import Fragments
from zenwire.capture.records import FileFault, Records

__all__ = ["PacketFault", "PacketReader", "Packets"]

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]


@unique
class PacketFault(IntEnum):
    """Why a packet gives no payload."""

    OTHER_LINK = k.OTHER_LINK
    """A link type that is not read here."""
    OTHER_NETWORK = k.OTHER_NETWORK
    """Not IP, such as ARP."""
    OTHER_TRANSPORT = k.OTHER_TRANSPORT
    """Neither TCP nor UDP, such as ICMP."""
    CUT = k.CUT
    """The snap length took part of a header."""
    MALFORMED = k.MALFORMED
    """Lengths that contradict one another."""
    FRAGMENT = k.FRAGMENT
    """Part of an IP datagram; the packet that completes it has the payload of all."""
    INCOMPLETE = k.INCOMPLETE
    """Part of an IP datagram that was never completed."""


@dataclass(frozen=True, slots=True)
class Packets:
    """Packets as columns (``kernels.P_*``) in order of capture, with the buffer of their payload.

    ``addresses`` are source and target, two words each, IPv4 mapped into IPv6. All of it is used
    again for the next one.
    """

    buffer: Bytes
    table: Int64
    addresses: UInt64
    count: int
    captured: int
    """Bytes of the packets, with all their headers."""
    overhead: int
    """Bytes of the file that are neither payload nor at fault: its own, and headers and padding."""
    faults: tuple[FileFault, ...] = ()
    bad: int = 0
    """As in ``Records``."""


class PacketReader:
    """What is in records. Fragments of IP datagrams are put together, within limits."""

    def __init__(self) -> None:
        self.fragments = Fragments()
        self._table: Int64 = np.empty((k.PACKET_COLUMNS, 0), np.int64)
        self._addresses: UInt64 = np.empty((4, 0), np.uint64)

    def read(self, records: Records) -> Packets:
        n, buffer = records.count, records.buffer
        if n > self._table.shape[1]:
            # As many as come at most, unless that is far from what comes.
            size = min(4 * n + 64, records.table.shape[1])
            self._table = np.empty((k.PACKET_COLUMNS, size), np.int64)
            self._addresses = np.zeros((4, size), np.uint64)
        table, addresses = self._table, self._addresses
        k.ready(k.packets)(buffer, records.table, n, table, addresses)
        before = self.fragments.held
        parts = np.flatnonzero(table[k.P_FAULT, :n] == k.FRAGMENT)
        if len(parts):
            buffer = self.fragments.add(buffer, table, addresses, parts)
        counted = table[k.P_FAULT, :n] != k.FRAGMENT
        overhead = records.size - sum(fault.skipped for fault in records.faults) - records.bad
        overhead -= int(table[k.P_LENGTH, :n][counted].sum()) + self.fragments.held - before
        return Packets(
            buffer, table, addresses, n, records.bytes, overhead, records.faults, records.bad
        )
