"""Gaps in the numbers that publishers give their samples. No I/O."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["MODULUS", "Gap", "Numbers", "SourceNumbers"]

Numbers: TypeAlias = Literal["check", "learn", "skip"]
"""What to do with the numbers of rows: ``check`` them, gaps are losses; ``learn`` them only, for
whoever writes looks for gaps elsewhere; or ``skip`` them, they are of older samples."""

MODULUS: Final = 1 << 32
"""Of the numbers that publishers give."""
_SOURCES_MAX: Final = 1 << 16
"""Publishers that are remembered; then the one that was silent longest is forgotten."""


class Gap(NamedTuple):
    """Numbers ``first`` to ``last`` did not come before the row."""

    row: int
    zid: bytes
    eid: int
    first: int
    last: int

    @property
    def missing(self) -> int:
        return (self.last - self.first) % MODULUS + 1


class SourceNumbers:
    """The last number of each publisher that was heard."""

    def __init__(self) -> None:
        self._last: dict[tuple[bytes, int], int] = {}
        self._lock = threading.Lock()

    def learn(self, numbers: Mapping[tuple[bytes, int], int]) -> None:
        """Numbers that were heard elsewhere; any thread may call. What goes back is passed over."""
        with self._lock:
            for source, number in numbers.items():
                last = self._last.get(source, number)
                if (number - last) % MODULUS <= MODULUS // 2:
                    self._last[source] = number
            self._forget()

    def _forget(self) -> None:
        while len(self._last) > _SOURCES_MAX:
            del self._last[next(iter(self._last))]

    def gaps(self, samples: pa.RecordBatch) -> list[Gap]:
        """A number that goes back came late, or its publisher began again: no gap."""
        numbers = samples.column("source_sn")
        if numbers.null_count == len(numbers):
            return []
        with self._lock:
            return self._gaps(samples, numbers)

    def _gaps(self, samples: pa.RecordBatch, numbers: pa.Array) -> list[Gap]:
        have = np.flatnonzero(np.asarray(pc.is_valid(numbers)))
        sn = np.asarray(numbers.take(pa.array(have)).to_numpy(zero_copy_only=False), np.int64)
        zids = pc.fill_null(samples.column("source_zid").take(pa.array(have)), b"")
        eids = pc.fill_null(samples.column("source_eid").take(pa.array(have)), 0)
        zid, eid = zids.dictionary_encode(), eids.dictionary_encode()
        wide = np.asarray(zid.indices, np.int64) * len(eid.dictionary) + np.asarray(eid.indices)
        # Stable: rows of one publisher stay in their order.
        order = np.argsort(wide, kind="stable")
        group, number, row = wide[order], sn[order], have[order]
        begins = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
        before = np.empty_like(number)
        before[1:] = number[:-1]
        known = np.ones(len(number), np.bool_)
        ends = np.append(begins[1:], len(number)) - 1
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            of_zid, of_eid = divmod(int(group[begin]), len(eid.dictionary))
            source = zid.dictionary[of_zid].as_py(), eid.dictionary[of_eid].as_py()
            last = self._last.pop(source, None)
            known[begin] = last is not None
            before[begin] = 0 if last is None else last
            self._last[source] = int(number[end])
        self._forget()
        step = (number - before) % MODULUS
        found = []
        for i in np.flatnonzero(known & (step > 1) & (step <= MODULUS // 2)).tolist():
            of_zid, of_eid = divmod(int(group[i]), len(eid.dictionary))
            whose = zid.dictionary[of_zid].as_py(), eid.dictionary[of_eid].as_py()
            first, last = (int(before[i]) + 1) % MODULUS, (int(number[i]) - 1) % MODULUS
            found.append(Gap(int(row[i]), *whose, first, last))
        return sorted(found)
