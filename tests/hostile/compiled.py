"""Kernels that take a pointer, called for many places of a buffer.

Tests cannot hand a pointer in, so these loops are compiled too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from zenwire.columns import kernels

Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]
Places = npt.NDArray[np.uint64]

pointer: Any = kernels.pointer
compile_: Any = njit(cache=False)


@compile_
def _vle(buffer: Bytes, starts: Places, ends: Places, values: Places, after: Places) -> None:
    b = pointer(buffer)
    for i in range(len(starts)):
        values[i], after[i] = kernels.vle(b, starts[i], ends[i])


@compile_
def _is_utf8(buffer: Bytes, starts: Places, sizes: Places, out: Bools) -> None:
    b = pointer(buffer)
    for i in range(len(starts)):
        out[i] = kernels.is_utf8(b, starts[i], sizes[i])


@compile_
def _is_ascii(buffer: Bytes, starts: Places, sizes: Places, ends: Places, out: Bools) -> None:
    b = pointer(buffer)
    for i in range(len(starts)):
        out[i] = kernels.is_ascii(b, starts[i], sizes[i], ends[i])


def vle(buffer: Bytes, starts: npt.ArrayLike, ends: npt.ArrayLike) -> tuple[Places, Places]:
    """The integers, and where they end: 0 where the bytes end before."""
    from_, to = _places(starts), _places(ends)
    values, after = np.empty_like(from_), np.empty_like(from_)
    _vle(buffer, from_, to, values, after)
    return values, after


def is_utf8(buffer: Bytes, starts: npt.ArrayLike, sizes: npt.ArrayLike) -> Bools:
    from_, size = _places(starts), _places(sizes)
    out = np.empty(len(from_), np.bool_)
    _is_utf8(buffer, from_, size, out)
    return out


def is_ascii(
    buffer: Bytes, starts: npt.ArrayLike, sizes: npt.ArrayLike, ends: npt.ArrayLike
) -> Bools:
    from_, size, to = _places(starts), _places(sizes), _places(ends)
    out = np.empty(len(from_), np.bool_)
    _is_ascii(buffer, from_, size, to, out)
    return out


def _places(values: npt.ArrayLike) -> Places:
    return np.ascontiguousarray(values, np.uint64)
