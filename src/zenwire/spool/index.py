"""The index beside a segment: a header, then an entry of 64 bytes for each record batch.

No I/O. The header says how far readers may go: it is written after both files were synced, so that
no reader sees what a crash of the machine could take away. It is the only thing that is ever
overwritten, and stands there twice, the second time inverted, so that half a write is seen.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple

__all__ = [
    "ENTRY_SIZE",
    "HEADER_SIZE",
    "PUBLISHED_AT",
    "Entry",
    "Header",
    "IndexFault",
    "entries_of",
    "header_of",
    "pack_entry",
    "pack_header",
    "pack_published",
]

_MAGIC: Final = b"ZWSPOOL1"
_STATIC: Final = struct.Struct("<8sqqI")
_PUBLISHED: Final = struct.Struct("<qq")
_ENTRY: Final = struct.Struct("<qqqqqqqI")
_CHECK: Final = struct.Struct("<I")
HEADER_SIZE: Final = 64
ENTRY_SIZE: Final = _ENTRY.size + _CHECK.size
PUBLISHED_AT: Final = 32
"""Where the header says how far readers may go."""

assert ENTRY_SIZE == 64


class IndexFault(ValueError):  # noqa: N818 - becomes SpoolDamaged, which knows the file
    """Bytes that are no index."""


class Header(NamedTuple):
    """``first`` is the segment's first offset, ``published`` the first that may not be read yet."""

    first: int
    created: int
    published: int


class Entry(NamedTuple):
    """One record batch: its offsets, where its bytes are, when its rows were received.

    ``written`` is when the recorder wrote it, ``crc`` the CRC-32 of its bytes.
    """

    first: int
    rows: int
    position: int
    length: int
    time_min: int
    time_max: int
    written: int
    crc: int

    @property
    def end(self) -> int:
        """The first offset after it."""
        return self.first + self.rows


def pack_header(first: int, created: int) -> bytes:
    """Of a segment without rows."""
    static = _STATIC.pack(_MAGIC, first, created, 0)
    static = _STATIC.pack(_MAGIC, first, created, zlib.crc32(static))
    return (static.ljust(PUBLISHED_AT, b"\0") + pack_published(first)).ljust(HEADER_SIZE, b"\0")


def pack_published(end: int) -> bytes:
    """For ``PUBLISHED_AT``."""
    return _PUBLISHED.pack(end, ~end)


def header_of(data: bytes) -> Header:
    """Raises IndexFault."""
    if len(data) < HEADER_SIZE:
        raise IndexFault("it ends within its header")
    magic, first, created, crc = _STATIC.unpack_from(data)
    if magic != _MAGIC:
        raise IndexFault("it does not begin as an index does")
    if zlib.crc32(_STATIC.pack(magic, first, created, 0)) != crc or first < 0:
        raise IndexFault("the header's checksum is wrong")
    end, inverse = _PUBLISHED.unpack_from(data, PUBLISHED_AT)
    if end != ~inverse or end < first:
        raise IndexFault("it does not say how far it was published")
    return Header(first, created, end)


def pack_entry(entry: Entry) -> bytes:
    """With its own checksum."""
    data = _ENTRY.pack(*entry)
    return data + _CHECK.pack(zlib.crc32(data))


def entries_of(data: bytes | memoryview, first: int, position: int) -> Sequence[Entry]:
    """The entries that continue one another from that offset and place on.

    Whatever does not ends them: what is behind it was never published, or is damaged.
    """
    found: list[Entry] = []
    for at in range(0, len(data) - ENTRY_SIZE + 1, ENTRY_SIZE):
        (check,) = _CHECK.unpack_from(data, at + _ENTRY.size)
        if zlib.crc32(data[at : at + _ENTRY.size]) != check:
            break
        entry = Entry(*_ENTRY.unpack_from(data, at))
        if entry.first != first or entry.position != position:
            break
        if entry.rows <= 0 or entry.length <= 0:
            break
        found.append(entry)
        first, position = entry.end, position + entry.length
    return found
