"""A tap: every batch of every session, with direction and time, into a pcapng file.

What links carry is written as if it had been captured on the wire, so that everything that reads
captures reads it: batches of streams as TCP, datagrams as UDP, with the addresses of the link.
Links that are encrypted are written in the clear; those without addresses get some.

A thread writes. What it cannot write in time is left out, and counted: in the file, bytes of that
stream are missing.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import struct
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from zenwire.node.carrier import Carrier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from zenwire.links import Link, LinkError
    from zenwire.wire.locator import Locator

__all__ = ["Counted", "Tap", "TappedCarrier"]

_log = logging.getLogger("zenwire.node")

BUFFER: Final = 32 * 2**20
"""Bytes that may wait for the disk."""
_PIECE: Final = 60_000
"""Bytes of a stream in one packet: an IP packet has at most 65,535."""
_SYN, _FIN, _PSH_ACK = 0x02, 0x11, 0x18
_TCP, _UDP = 6, 17
_UNKNOWN: Final = "-"
"""The address of a link that does not stand yet."""

_SECTION: Final = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
# Link type RAW: packets begin with IP. Times in nanoseconds.
_INTERFACE: Final = struct.pack("<IIHHIHHB3xHHI", 1, 32, 101, 0, 0, 9, 1, 9, 0, 0, 32)

_Address = tuple[bytes, int]
_SELF: Final[_Address] = bytes([127, 1, 0, 0]), 1
_GROUP: Final[_Address] = bytes([224, 0, 0, 225]), 7447
"""For datagrams of and to a group without addresses."""
Packet = tuple[int, bytes, bytes]
"""When, its headers, and what it carries."""


@dataclass(slots=True)
class Counted:
    """What was written so far, and what was not."""

    packets: int = 0
    bytes: int = 0
    files: int = 0
    lost_packets: int = 0
    lost_bytes: int = 0
    """What found no room, or could not be written."""


class Tap:
    """Writes to ``path``; with ``rotate``, to another file after so many bytes.

    Those are numbered: ``tap.pcapng``, ``tap.1.pcapng`` and so on. Of more than ``keep`` the oldest
    are deleted. Raises OSError if the first cannot be made.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        rotate: int | None = None,
        keep: int | None = None,
        buffer: int = BUFFER,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._path = Path(path)
        self._rotate = rotate
        self._keep = keep
        self._buffer = buffer
        self.now_ns = now_ns
        self.counted = Counted()
        self._waiting: deque[Packet] = deque()
        self._size = 0
        self._ready = threading.Condition()
        self._closing = False
        self._failed = False
        self._made: deque[Path] = deque()
        self._places = 0
        self._file: BinaryIO | None = self._next()
        self._thread = threading.Thread(target=self._run, name="zenwire-tap", daemon=True)
        self._thread.start()

    # What comes, in the thread of the loop.

    def place(self) -> _Address:
        """An address for something that has none: another one each time."""
        self._places += 1
        number = self._places
        return bytes([127, 1, number >> 16 & 0xFF, number >> 8 & 0xFF]), number & 0xFF or 1

    def put(self, when: int, header: bytes, body: bytes) -> None:
        """A packet. It is lost, and counted, if too many wait."""
        size = len(header) + len(body)
        with self._ready:
            if self._closing or self._size + size > self._buffer:
                self.counted.lost_packets += 1
                self.counted.lost_bytes += len(body)
                return
            self._size += size
            self._waiting.append((when, header, body))
            self._ready.notify()

    def carrier(self, link: Link, *args: Any, **more: Any) -> TappedCarrier:
        """A Carrier for a link, whose bytes are written down."""
        return TappedCarrier(self, link, *args, **more)

    def datagram(self, source: Locator | None, target: Locator, data: bytes) -> None:
        """One datagram of a group; without a source it is of this node."""
        a = _SELF if source is None else address_of(source) or _SELF
        b = address_of(target) or _GROUP
        self.put(self.now_ns(), _udp(a, b, len(data)), bytes(data))

    def close(self) -> None:
        """Write what waits, and end. Takes as long as the disk does."""
        with self._ready:
            self._closing = True
            self._ready.notify()
        self._thread.join()

    # The thread.

    def _run(self) -> None:
        while True:
            with self._ready:
                while not self._waiting and not self._closing:
                    self._ready.wait()
                packets, self._waiting = self._waiting, deque()
                self._size = 0
            if not packets:
                break
            self._write(packets)
        if self._file is not None:
            self._file.close()

    def _write(self, packets: Iterable[Packet]) -> None:
        blocks: list[bytes] = []
        sizes: list[int] = []
        room = 0
        for when, header, body in packets:
            if room <= 0 and blocks and self._rotate is not None:
                self._append(blocks, sizes)
                blocks, sizes = [], []
            if not blocks:
                room = self._room()
            block = _block(when, header, body)
            blocks += block
            room -= sum(map(len, block))
            sizes.append(len(body))
        self._append(blocks, sizes)

    def _room(self) -> int:
        """Bytes for which there is room before another file begins."""
        if self._rotate is None or self._file is None:
            return self._rotate or 0
        return self._rotate - self._file.tell()

    def _append(self, blocks: list[bytes], sizes: list[int]) -> None:
        """Write these, and end the file if it is large enough, or cannot be written."""
        before = None
        try:
            if self._file is None:
                self._file = self._next()
            before = self._file.tell()
            self._file.write(b"".join(blocks))
            self._file.flush()
            if self._rotate is not None and self._file.tell() >= self._rotate:
                self._file.close()
                self._file = None
        except OSError as e:
            if not self._failed:
                _log.error("%s: %s; what is not written is counted", self._path, e)
            self._failed = True
            self._abandon(before)
            with self._ready:
                self.counted.lost_packets += len(sizes)
                self.counted.lost_bytes += sum(sizes)
        else:
            self.counted.packets += len(sizes)
            self.counted.bytes += sum(sizes)

    def _abandon(self, size: int | None) -> None:
        """Leave a file with whole packets alone. What can be written goes to another one."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                file.close()
            if size is not None:
                with suppress(OSError):
                    os.truncate(self._made[-1], size)

    def _next(self) -> BinaryIO:
        path, number = self._path, self.counted.files
        if number:
            path = path.with_name(f"{path.stem}.{number}{path.suffix}")
        file = path.open("wb")
        file.write(_SECTION + _INTERFACE)
        file.flush()
        self.counted.files += 1
        self._made.append(path)
        while self._keep is not None and len(self._made) > self._keep:
            self._made.popleft().unlink(missing_ok=True)
        return file


def _block(when: int, header: bytes, body: bytes) -> tuple[bytes, ...]:
    """An enhanced packet block."""
    length = len(header) + len(body)
    padding = -length % 4
    size = 32 + length + padding
    start = struct.pack("<IIIIIII", 6, size, 0, when >> 32, when & 0xFFFF_FFFF, length, length)
    return start, header, body, bytes(padding) + struct.pack("<I", size)


# Packets.


def address_of(locator: Locator) -> _Address | None:
    """The IP address and port of a locator; None if it has none."""
    host, _, port = locator.address.rpartition(":")
    try:
        ip = ipaddress.ip_address(host.strip("[]").partition("%")[0])
        return ip.packed, int(port)
    except ValueError:
        return None


def _ip(protocol: int, a: bytes, b: bytes, size: int) -> bytes:
    if len(a) != len(b):
        # One of both is no IP address.
        a, b = a.rjust(16, b"\0"), b.rjust(16, b"\0")
    if len(a) == 4:
        head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + size, 0, 0, 64, protocol, 0, a, b)
        total = sum(struct.unpack(">10H", head))
        total = (total & 0xFFFF) + (total >> 16)
        total = (total & 0xFFFF) + (total >> 16)
        return head[:10] + struct.pack(">H", total ^ 0xFFFF) + head[12:]
    return struct.pack(">IHBB16s16s", 0x6000_0000, size, protocol, 64, a, b)


def _udp(a: _Address, b: _Address, size: int) -> bytes:
    return _ip(_UDP, a[0], b[0], 8 + size) + struct.pack(">HHHH", a[1], b[1], 8 + size, 0)


class _Flow:
    """One link as a conversation of two addresses."""

    __slots__ = ("_addresses", "_early", "_link", "_next", "_tap")

    def __init__(self, tap: Tap, link: Link) -> None:
        self._tap = tap
        self._link = link
        self._next = [0, 0]
        """The sequence numbers of TCP, of this side and of the other."""
        self._addresses: tuple[_Address, _Address] | None = None
        self._early: list[tuple[int, int, bytes]] = []
        """What was said before the link had its addresses."""

    def went(self, data: bytes | bytearray | memoryview) -> None:
        """Said by this node."""
        self._said(0, bytes(data))

    def came(self, data: bytes | bytearray | memoryview) -> None:
        """Said by the other side."""
        self._said(1, bytes(data))

    def end(self) -> None:
        """The link is gone."""
        if self._began(last=True) and self._is_stream:
            for side in (0, 1):
                self._segment(self._tap.now_ns(), side, _FIN, b"")

    @property
    def _is_stream(self) -> bool:
        return self._link.facts.streamed or self._link.facts.reliable

    def _said(self, side: int, data: bytes) -> None:
        when = self._tap.now_ns()
        if self._began():
            self._write(when, side, data)
        else:
            self._early.append((when, side, data))

    def _began(self, *, last: bool = False) -> bool:
        """Whether there are addresses, from which on all can be written."""
        if self._addresses is not None:
            return True
        link, tap = self._link, self._tap
        if not last and _UNKNOWN in {link.src.address, link.dst.address}:
            return False
        self._addresses = address_of(link.src) or tap.place(), address_of(link.dst) or tap.place()
        early, self._early = self._early, []
        if self._is_stream:
            # Whoever dialled has spoken first.
            first = early[0][1] if early else 0
            when = early[0][0] if early else tap.now_ns()
            self._segment(when, first, _SYN, b"")
            self._segment(when, 1 - first, _SYN | 0x10, b"")
        for when, side, data in early:
            self._write(when, side, data)
        return True

    def _write(self, when: int, side: int, data: bytes) -> None:
        if not self._is_stream:
            assert self._addresses is not None
            a, b = self._addresses if side == 0 else self._addresses[::-1]
            self._tap.put(when, _udp(a, b, len(data)), data)
            return
        if not self._link.facts.streamed:
            # A message of WebSocket is one batch; on a stream its length stands before it.
            data = struct.pack("<H", len(data)) + data
        for start in range(0, len(data), _PIECE):
            self._segment(when, side, _PSH_ACK, data[start : start + _PIECE])

    def _segment(self, when: int, side: int, flags: int, body: bytes) -> None:
        assert self._addresses is not None
        (a, a_port), (b, b_port) = self._addresses if side == 0 else self._addresses[::-1]
        numbers = self._next[side], self._next[1 - side] if flags != _SYN else 0
        header = struct.pack(">HHIIBBHHH", a_port, b_port, *numbers, 0x50, flags, 65_535, 0, 0)
        self._tap.put(when, _ip(_TCP, a, b, 20 + len(body)) + header, body)
        # SYN and FIN have a number, too.
        moved = len(body) + bool(flags & 0x03)
        self._next[side] = self._next[side] + moved & 0xFFFF_FFFF


class _TappedLink:
    """A link that writes down what it sends."""

    __slots__ = ("_flow", "_link")

    def __init__(self, link: Link, flow: _Flow) -> None:
        self._link = link
        self._flow = flow

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._flow.went(data)
        self._link.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._link, name)

    def __repr__(self) -> str:
        return repr(self._link)


class TappedCarrier(Carrier):
    """The same as a Carrier, and everything is written down."""

    __slots__ = ("_flow", "_within")

    def __init__(self, tap: Tap, link: Link, *args: Any, **more: Any) -> None:
        self._flow = _Flow(tap, link)
        self._within = False
        """What is heard now has been written down."""
        super().__init__(cast("Link", _TappedLink(link, self._flow)), *args, **more)

    def received(self, data: bytes) -> None:
        if not self._within:
            self._flow.came(data)
        super().received(data)

    def received_many(self, data: memoryview, fresh: int) -> int:
        self._flow.came(data[len(data) - fresh :])
        self._within = True
        try:
            return super().received_many(data, fresh)
        finally:
            self._within = False

    def closed(self, error: LinkError | None) -> None:
        super().closed(error)
        self._flow.end()
