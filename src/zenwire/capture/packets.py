"""Records to packets: addresses, ports, TCP fields and where the payload is, as columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, unique

import numpy as np
import numpy.typing as npt

from zenwire.capture import kernels as k
from zenwire.capture.fragments import Fragments
from zenwire.capture.records import FileFault, Records

__all__ = ["PacketFault", "Packets", "read_packets"]

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
    faults: tuple[FileFault, ...] = ()


def read_packets(records: Iterator[Records]) -> Iterator[Packets]:
    """What is in the records. Fragments of IP datagrams are put together, within limits."""
    fragments = Fragments()
    table: Int64 = np.empty((k.PACKET_COLUMNS, 0), np.int64)
    addresses: UInt64 = np.empty((4, 0), np.uint64)
    for some in records:
        n = some.count
        if n > table.shape[1]:
            table = np.empty((k.PACKET_COLUMNS, some.table.shape[1] + 8), np.int64)
            addresses = np.zeros((4, some.table.shape[1] + 8), np.uint64)
        k.packets(some.buffer, some.table, n, table, addresses)
        buffer = some.buffer
        parts = np.flatnonzero(table[k.P_FAULT, :n] == k.FRAGMENT)
        if len(parts):
            buffer = fragments.add(buffer, table, addresses, parts)
        yield Packets(buffer, table, addresses, n, some.bytes, some.faults)
    left = fragments.dropped + fragments.waiting
    if left:
        faults = (FileFault("fragments", 0, left),)
        yield Packets(np.empty(0, np.uint8), table, addresses, 0, 0, faults)
