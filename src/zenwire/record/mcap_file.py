"""MCAP files that were not closed: cut to what is whole, and ended as the format wants it."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import BinaryIO, Final

from zenwire.errors import ZError

__all__ = ["complete", "is_complete", "set_aside"]

_MAGIC: Final = b"\x89MCAP0\r\n"
_HEAD: Final = struct.Struct("<BQ")
"""Of a record: its kind, and how many bytes follow."""
_HEADER, _FOOTER, _METADATA, _DATA_END = 0x01, 0x02, 0x0C, 0x0F
_KINDS: Final = range(_HEADER, _DATA_END + 1)
_NAME: Final = "zenwire"


def is_complete(path: Path) -> bool:
    """Whether it was closed. Raises OSError."""
    with path.open("rb") as f:
        size = f.seek(0, os.SEEK_END)
        f.seek(max(size - len(_MAGIC), 0))
        return size > 2 * len(_MAGIC) and f.read() == _MAGIC


def complete(path: Path, why: str) -> int:
    """Ends a file behind its last whole record; gives the bytes that were cut off.

    It has no summary then: readers go through it from its beginning. ``why`` stands in its
    metadata. Raises OSError, and ZError for what is no such file.
    """
    with path.open("r+b") as f:
        if f.read(len(_MAGIC)) != _MAGIC:
            raise ZError(f"{path}: is no MCAP file; give another name")
        size = f.seek(0, os.SEEK_END)
        end = _whole(f, size)
        f.truncate(end)
        f.seek(end)
        if end == len(_MAGIC):
            f.write(_record(_HEADER, _text("") + _text(_NAME)))
        said = _text("unclosed") + _text(f"{why}; {size - end} bytes were no whole record")
        f.write(_record(_METADATA, _text(_NAME) + struct.pack("<I", len(said)) + said))
        f.write(_record(_DATA_END, bytes(4)))
        f.write(_record(_FOOTER, bytes(20)))
        f.write(_MAGIC)
        f.flush()
        os.fsync(f.fileno())
        return size - end


def _whole(f: BinaryIO, size: int) -> int:
    """Where the last whole record of the data ends."""
    at = len(_MAGIC)
    while at + _HEAD.size <= size:
        f.seek(at)
        kind, length = _HEAD.unpack(f.read(_HEAD.size))
        # What follows the data is written anew.
        if kind not in _KINDS or kind in (_DATA_END, _FOOTER) or length > size - at - _HEAD.size:
            break
        at += _HEAD.size + length
    return at


def _record(kind: int, content: bytes) -> bytes:
    return _HEAD.pack(kind, len(content)) + content


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data


def set_aside(path: Path) -> Path | None:
    """A file that its recorder did not close is completed, and gets out of the way of the next.

    Gives its new name: ``robot-1.mcap`` for ``robot.mcap``. None if there is no such file. Raises
    OSError, and ZError for one that is complete, or no MCAP file.
    """
    if not path.exists():
        return None
    if path.stat().st_size and is_complete(path):
        raise ZError(f"{path}: is there, and complete; give another name")
    if path.stat().st_size < len(_MAGIC):
        # Its recorder was killed before it wrote anything.
        path.unlink()
        return None
    complete(path, "its recorder did not close it")
    number = 1
    while (other := path.with_name(f"{path.stem}-{number}{path.suffix}")).exists():
        number += 1
    return path.rename(other)
