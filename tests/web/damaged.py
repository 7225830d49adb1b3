"""A capture with packets left out and bytes changed."""

from __future__ import annotations

import struct
from pathlib import Path

_HEADERS = 16 + 66
"""Bytes of a record before the TCP payload, in the captures that are used."""


def damaged(capture: Path, into: Path) -> None:
    """Leaves out every fiftieth packet, and makes some batches begin with an unknown id."""
    raw = capture.read_bytes()
    kept, at, i = [raw[:24]], 24, 0
    while at < len(raw):
        record = bytearray(raw[at : at + 16 + struct.unpack_from("<I", raw, at + 8)[0]])
        at += len(record)
        if i > 60 and i % 37 == 3 and len(record) > _HEADERS + 12:
            record[_HEADERS + 2] ^= 0x1F
        if i <= 30 or i % 50 != 20:
            kept.append(bytes(record))
        i += 1
    into.write_bytes(b"".join(kept))
