"""Bytes of capture files: plain or compressed, in windows of bounded size."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import Final, Protocol, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zenwire.errors import CaptureError

__all__ = ["END", "WINDOW", "Window", "compression_of"]

WINDOW: Final = 16 << 20
"""Bytes of a file that are looked at together."""
END: Final = 2**63 - 1
"""Farther than any file goes."""

Bytes = npt.NDArray[np.uint8]

_MAGICS: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}


# What was expanded before an error in the same call is lost.
_EXPANDED: Final = 4096


class _Readable(Protocol):
    def readinto(self, buffer: memoryview, /) -> int | None: ...

    def close(self) -> None: ...


class _Gzip:
    """Reads no further than one call of the decompressor, so that an error loses nothing."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file

    def readinto(self, buffer: memoryview, /) -> int:
        piece = self._file.read1(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._file.close()


def compression_of(head: bytes) -> str | None:
    """What a file that begins like this is compressed with: gzip, zstd, lz4 or nothing."""
    return next((name for magic, name in _MAGICS.items() if head.startswith(magic)), None)


class Window:
    """A sliding view of a file: ``data[:size]`` are its bytes from ``base`` on.

    ``data`` is written over by ``advance``. Nothing is read from ``limit`` on. A compressed file
    that breaks off or is damaged ends there, and ``damage`` says why.
    """

    def __init__(
        self, path: str | Path, start: int = 0, window: int = WINDOW, limit: int = END
    ) -> None:
        self.path = str(path)
        self.base = start
        self._limit = limit
        self.size = 0
        self.ended = False
        self.damage: str | None = None
        self.data: Bytes = np.empty(max(window, 64), np.uint8)
        self._file = self._open(start)

    def _open(self, start: int) -> _Readable:
        try:
            raw = Path(self.path).open("rb", buffering=0)  # noqa: SIM115 - closed by close()
        except OSError as e:
            raise CaptureError(self.path, e.strerror or str(e)) from None
        try:
            head = raw.read(8)
            raw.seek(start)
        except OSError as e:
            raw.close()
            raise CaptureError(self.path, e.strerror or str(e)) from None
        self._raw = raw
        self.compression = compression_of(head)
        if self.compression is None:
            return cast(_Readable, raw)
        if start:
            raw.close()
            raise CaptureError(self.path, f"a {self.compression} file is read from its beginning")
        if self.compression == "gzip":
            return _Gzip(gzip.GzipFile(fileobj=io.BufferedReader(raw)))
        if not pa.Codec.is_available(self.compression):
            raw.close()
            raise CaptureError(self.path, f"this pyarrow cannot read {self.compression}")
        return cast(_Readable, pa.CompressedInputStream(pa.PythonFile(raw, "r"), self.compression))

    def advance(self, used: int) -> bool:
        """Drops ``used`` bytes and reads on; more than fit make the window larger.

        False if nothing more came.
        """
        left = self.size - used
        if used:
            self.data[:left] = self.data[used : self.size].copy()
            self.base += used
            self.size = left
        if self.ended:
            return False
        if left == len(self.data):
            grown: Bytes = np.empty(2 * left, np.uint8)
            grown[:left] = self.data
            self.data = grown
        before = self.size
        while self.size < len(self.data) and self._read_some():
            pass
        return self.size > before

    def _read_some(self) -> bool:
        end = min(len(self.data), self._limit - self.base)
        if end <= self.size:
            self.ended = True
            return False
        if self.compression:
            end = min(end, self.size + _EXPANDED)
        try:
            count = self._file.readinto(self.data.data[self.size : end])
        except (OSError, EOFError, zlib.error, pa.ArrowException) as e:
            if self.compression is None:
                raise CaptureError(self.path, str(e)) from None
            self.damage = f"{self.compression}: {e}"
            count = 0
        if not count:
            self.ended = True
            return False
        self.size += count
        return True

    def close(self) -> None:
        try:
            self._file.close()
        finally:
            self._raw.close()
