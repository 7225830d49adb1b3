"""Which files the arguments of a command mean, found before anything slow is loaded."""

from __future__ import annotations

import glob
import gzip
import os
from pathlib import Path
from typing import Final

from zenwire.errors import CaptureError

__all__ = ["MAGICS", "capture_files", "is_capture"]

MAGICS: Final = frozenset(
    bytes.fromhex(magic) for magic in ("d4c3b2a1", "a1b2c3d4", "4d3cb2a1", "a1b23c4d", "0a0d0d0a")
)
"""pcap in both orders, with micro- and nanoseconds, and pcapng."""
_GZIP: Final = b"\x1f\x8b"
_OTHERS: Final = (b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")
"""zstd and lz4, which the standard library cannot look into."""


def is_capture(path: Path) -> bool | None:
    """Whether it begins as a capture does, plain or compressed; None if that cannot be told here.

    Raises CaptureError for what cannot be read.
    """
    try:
        with path.open("rb") as file:
            head = file.read(8)
        if head.startswith(_GZIP):
            with gzip.open(path) as expanded:
                head = expanded.read(4)
    except EOFError:
        return False
    except OSError as e:
        # A file that only begins like a compressed one is none, and no failure.
        if isinstance(e, gzip.BadGzipFile):
            return False
        raise CaptureError(str(path), e.strerror or str(e)) from None
    if head.startswith(_OTHERS):
        return None
    return head[:4] in MAGICS


def capture_files(given: list[str]) -> tuple[list[Path], list[Path]]:
    """The captures that files, directories and patterns mean, and files that were passed over.

    What is in a directory and is no capture is passed over; what is named must be one. Raises
    CaptureError.
    """
    found: dict[Path, None] = {}
    passed: list[Path] = []
    for name in given:
        path = Path(name)
        if path.is_dir():
            inside = _in_directory(path)
            captures = [file for file in inside if is_capture(file) is not False]
            passed += [file for file in inside if file not in captures]
            if not captures:
                raise CaptureError(name, "no captures in this directory; give pcap or pcapng files")
        elif glob.has_magic(name) and not path.exists():
            captures = sorted(Path(p) for p in glob.glob(name, recursive=True) if Path(p).is_file())  # noqa: PTH207 - absolute too
            if not captures:
                raise CaptureError(name, "no file matches this pattern")
        else:
            captures = [path]
        for file in captures:
            _check(file)
        found |= dict.fromkeys(captures)
    return list(found), passed


def _in_directory(path: Path) -> list[Path]:
    try:
        return sorted(file for file in path.iterdir() if file.is_file())
    except OSError as e:
        raise CaptureError(str(path), e.strerror or str(e)) from None


def _check(path: Path) -> None:
    if not path.exists():
        raise CaptureError(str(path), "no such file; check the path")
    if not os.access(path, os.R_OK):
        raise CaptureError(str(path), "permission denied; captures of tcpdump often belong to root")
    if not path.stat().st_size:
        raise CaptureError(str(path), "the file is empty; was the capture stopped too early?")
    if is_capture(path) is False:
        raise CaptureError(
            str(path),
            "neither pcap nor pcapng, plain or compressed; `zenwire inspect` shows other bytes",
        )
