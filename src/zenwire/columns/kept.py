"""Rows that outlive the buffer they came in: copied once, made objects one by one when asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from zenwire.columns import kernels
from zenwire.columns.layout import NETWORK
from zenwire.columns.scan import Int32
from zenwire.wire.buffer import Reader
from zenwire.wire.network import Push
from zenwire.wire.objects import read_message

if TYPE_CHECKING:
    from zenwire.columns.routes import Part

__all__ = ["Kept"]

_AT, _END = (NETWORK.fixed.index(name) for name in ("at", "end"))
_PAYLOAD: Final = NETWORK.columns["payload"]


class Kept:
    """Some rows of a part, those in ``rows`` or, if that is empty, all of them."""

    def __init__(self, part: Part, rows: Int32, count: int) -> None:
        scan, table = part.run.scan, part.run.scan.network
        chosen = rows if len(rows) else slice(part.first, part.first + count)
        at, end = table.int32[_AT, chosen], table.int32[_END, chosen]
        start, stop = int(at[0]), int(end[-1])
        self.reliable = part.reliable
        self._keys = part.key_texts(rows, count)
        there = table.present[chosen] >> np.uint64(_PAYLOAD.bit) & np.uint64(1)
        sizes = np.where(there, table.int32[_PAYLOAD.slot + 1, chosen], 0)
        starts = table.int32[_PAYLOAD.slot, chosen]
        ends = np.concatenate([np.zeros(1, np.int32), np.cumsum(end - at, dtype=np.int32)])
        if stop - start > 2 * int(ends[-1]):
            # Others have most of it: nobody shall hold what is not his.
            data = np.empty(int(ends[-1]) + 64, np.uint8)
            kernels.gather(scan.buffer, np.ascontiguousarray(at), ends, count, data)
            self._data = data[: ends[-1]].tobytes()
            moved = at - ends[:-1]
        else:
            self._data = scan.buffer[start:stop].tobytes()
            moved = np.int32(start)
        self._at, self._end = at - moved, end - moved
        self._payload, self._sizes = starts - moved, sizes

    @cached_property
    def _payloads(self) -> list[tuple[int, int]]:
        return list(
            zip(self._payload.tolist(), (self._payload + self._sizes).tolist(), strict=True)
        )

    def payload(self, row: int) -> bytes:
        """That of a PUT; nothing of a DEL."""
        start, end = self._payloads[row]
        return self._data[start:end]

    @cached_property
    def _lengths(self) -> list[int]:
        lengths: list[int] = (self._end - self._at).tolist()
        return lengths

    def size(self, row: int) -> int:
        """The bytes of its message."""
        return self._lengths[row]

    def message(self, row: int) -> tuple[str, Push]:
        """Its key, and all of it."""
        data = self._data[self._at[row] : self._end[row]]
        push: Push = read_message(Reader(data), "network")
        return self._keys[row], push
