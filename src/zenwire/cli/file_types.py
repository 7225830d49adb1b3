"""Files of other formats, recognised by their first bytes: what they are, and what reads them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

__all__ = ["other_directory", "other_file"]

_SPOOL: Final = (
    'zenwire ingest --spool DIR makes tables of a spool, Spark reads it as format("zenoh")'
)
_TABLES: Final = "pyarrow, pandas and Spark read it, and zenwire report a directory of tables"
_UNPACK: Final = "decompress it, and inspect the result"
_TYPES: Final[tuple[tuple[bytes, str, str], ...]] = (
    (rb"\x89MCAP\d\r\n", "an MCAP file", "the mcap command and package read it"),
    (rb"#ROSBAG V", "a ROS 1 bag", "rosbag reads it"),
    (rb"ZWSPOOL\d", "the index of a segment of a spool", _SPOOL),
    # Continuation mark, length of the metadata, and the begin of its flatbuffer.
    (rb"\xff\xff\xff\xff[^\x00]..\x00\x10\x00\x00\x00", "an Arrow stream, as in a spool", _SPOOL),
    (rb"ARROW1\x00\x00", "an Arrow file", _TABLES),
    (rb"PAR1", "a Parquet file", _TABLES),
    (rb"SQLite format 3\x00", "an SQLite database", "sqlite3 reads it, ros2 bag if it is a bag"),
    (rb"\x1f\x8b\x08", "compressed with gzip, and no capture", _UNPACK),
    (rb"\x28\xb5\x2f\xfd", "compressed with zstd, and no capture", _UNPACK),
    (rb"\x04\x22\x4d\x18[\x40-\x7f]", "compressed with lz4, and no capture", _UNPACK),
    (rb"PK\x03\x04", "a ZIP archive", _UNPACK),
)
"""How a file begins, what it is, and what to do with it. No batch of Zenoh begins so."""
_PATTERNS: Final = tuple((re.compile(begin, re.DOTALL), what, use) for begin, what, use in _TYPES)


def other_file(head: bytes) -> str | None:
    """What a file is and what reads it, if its first bytes are those of another format."""
    found = (f"{what}: {use}" for begin, what, use in _PATTERNS if begin.match(head))
    return next(found, None)


def other_directory(path: Path) -> str | None:
    """The same for a directory."""
    if (path / "manifest.json").is_file() and (path / "samples").is_dir():
        return f"a spool: {_SPOOL}"
    return None
