"""Sequence numbers that did not come, found in whole columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from zenwire.capture.conversation.link import Link, Loss

__all__ = ["Gap", "Lanes", "Sources"]

SOURCE_MODULUS: Final = 1 << 32
SOURCES: Final = 1 << 18
"""Publishers whose last number is remembered; the oldest are forgotten first."""

Int64 = npt.NDArray[np.int64]
Source = tuple[int, int, bytes, int]
"""(link, side, ZenohID, entity)"""


class Gap(NamedTuple):
    """A loss, and the row and offset of the message that shows it."""

    row: int
    offset: int
    loss: Loss


def _loss(kind: str, before: int, sn: int, modulus: int) -> Loss | None:
    """A number that goes back came late, and is none."""
    step = (sn - before) % modulus
    if not 1 < step <= modulus // 2:
        return None
    return Loss(kind, "gap", (before + 1) % modulus, (sn - 1) % modulus, step - 1)


class Lanes:
    """Numbers of FRAMEs and FRAGMENTs in each lane: connection, side, reliability, priority."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, bool]] = {}
        self._counts_on: set[int] = set()

    def find(
        self,
        columns: Sequence[npt.NDArray[np.generic]],
        link_of: Callable[[int], tuple[Link, int]],
    ) -> list[Gap]:
        """Gaps of row, offset, lane, number and whether it is the last piece of a message.

        ``link_of`` gives connection and side of a lane.
        """
        rows, offsets, lanes, sns = (column.astype(np.int64) for column in columns[:4])
        last_pieces = columns[4].astype(np.bool_)
        order = np.lexsort((offsets, rows, lanes))
        lanes, sns, last_pieces = lanes[order], sns[order], last_pieces[order]
        n = len(lanes)
        begins = np.flatnonzero(np.r_[True, lanes[1:] != lanes[:-1]][:n])
        before = np.r_[np.int64(-1), sns[:-1]][:n]
        skips = np.r_[False, last_pieces[:-1]][:n]
        unknown = np.zeros(n, np.bool_)
        for i in begins.tolist():
            lane = int(lanes[i])
            known = self._last.get(lane)
            if known is None:
                link, side = link_of(lane)
                # Every lane begins with the number that OPEN said.
                initial = link.initial_sn[side]
                known = None if initial is None else (initial - 1, False)
            if known is None:
                unknown[i] = True
            else:
                before[i], skips[i] = known
        for i in np.r_[begins[1:] - 1, n - 1].tolist() if n else []:
            self._last[int(lanes[i])] = int(sns[i]), bool(last_pieces[i])
        # The reference leaves out one number after the last piece of a message; who went on with
        # the next one once does not.
        counts_on = skips & (sns == before + 1) & ~unknown
        self._counts_on |= {*(lanes[counts_on] >> 4).tolist()}
        found = []
        for i in np.flatnonzero((sns != before + 1) & ~unknown).tolist():
            lane = int(lanes[i])
            link, _ = link_of(lane)
            left_out = bool(skips[i]) and lane >> 4 not in self._counts_on
            loss = _loss("sequence", int(before[i]) + left_out, int(sns[i]), link.modulus)
            if loss is not None:
                found.append(Gap(int(rows[order[i]]), int(offsets[order[i]]), loss))
        return found


class Sources:
    """Numbers that publishers give their samples, on each connection and side."""

    def __init__(self) -> None:
        self._last: dict[Source, int] = {}

    def find(self, samples: Sequence[tuple[int, int, Source, int]]) -> list[Gap]:
        """Gaps of (row, offset, source, number), in order."""
        found = []
        for row, offset, source, sn in samples:
            before = self._last.pop(source, None)
            self._last[source] = sn
            if len(self._last) > SOURCES:
                del self._last[next(iter(self._last))]
            if before is not None and sn != before + 1:
                loss = _loss("source", before, sn, SOURCE_MODULUS)
                if loss is not None:
                    found.append(Gap(row, offset, loss))
        return found
