"""Two directories change places, for whoever lists them in one moment."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path
from typing import Final

__all__ = ["exchange"]

_AT_FDCWD: Final = -100
_EXCHANGE: Final = 2
"""The same flag on Linux (renameat2) and macOS (renamex_np)."""
_UNKNOWN: Final = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EXDEV)


def exchange(a: Path, b: Path) -> None:
    """Raises OSError. Where the system cannot do it at once, ``b`` is away for a moment."""
    if not _at_once(os.fsencode(a), os.fsencode(b)):
        aside = a.with_name(f"{a.name}.aside")
        if b.exists():
            b.rename(aside)
        a.rename(b)
        aside.rename(a)


def _at_once(a: bytes, b: bytes) -> bool:
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            done = libc.renamex_np(a, b, _EXCHANGE)
        else:
            done = libc.renameat2(_AT_FDCWD, a, _AT_FDCWD, b, _EXCHANGE)
    except (AttributeError, OSError, TypeError):
        return False
    if done == 0:
        return True
    error = ctypes.get_errno()
    if error in _UNKNOWN:
        return False
    raise OSError(error, os.strerror(error), os.fsdecode(b))
