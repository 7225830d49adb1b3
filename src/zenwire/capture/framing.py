"""Ordered pieces of streams to batches, many streams at once.

Streams in their usual course are framed by one compiled call; ``phases`` sees to the others.
What becomes no batch yet is carried on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from zenwire.capture import kernels as k
from zenwire.capture.flows import Pieces
from zenwire.capture.phases import Phases
from zenwire.capture.runs import Framed, Run, Saved

__all__ = ["Framer"]

_COLUMNS: Final = 7

Int64 = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


class Framer:
    """Takes pieces of any number of streams. Memory is bounded by what streams wait for."""

    def __init__(self) -> None:
        self.phases = Phases()
        self._carry: Bytes = np.empty(0, np.uint8)
        self._carried: Int64 = np.empty((_COLUMNS, 0), np.int64)
        self._work: Bytes = np.empty(0, np.uint8)

    def feed(self, pieces: Pieces) -> Iterator[Framed]:
        """The batches that these pieces complete, each to be used before the next is asked for."""
        rows = self.phases.drop_foreign(pieces.table[:, : pieces.count])
        if rows.shape[1]:
            yield self._frame(rows, pieces.buffer, pieces.pool)
        elif self.phases.faults:
            yield self.phases.framed(self._work)
        # What one direction said may be what the other waited for.
        for release in (self.phases.released, self.phases.overdue):
            streams = release()
            if streams:
                again = self._take_carried(np.array(sorted(streams), np.int64))
                yield self._frame(again, pieces.buffer, pieces.pool)

    def finish(self) -> Iterator[Framed]:
        """No pieces come any more; every stream has had its end."""
        streams = self.phases.overdue(0)
        if streams:
            again = self._take_carried(np.array(sorted(streams), np.int64))
            yield self._frame(again, self._work[:0], self._work[:0])

    def abandon(self, streams: npt.NDArray[np.bool_]) -> Iterator[Framed]:
        """Nothing more comes of these streams, nor of those that they may wait for."""
        late = self.phases.abandoned(streams)
        if late:
            again = self._take_carried(np.array(sorted(late), np.int64))
            yield self._frame(again, self._work[:0], self._work[:0])

    def drop(self, kept: npt.NDArray[np.bool_]) -> None:
        """Forgets streams but those that are True."""
        numbers = np.cumsum(kept) - 1
        self.phases.drop(kept, numbers)
        self._carried[k.G_STREAM] = numbers[self._carried[k.G_STREAM]]

    def save(self, streams: int) -> Saved:
        return self._carry.copy(), self._carried.copy(), self.phases.save(streams)

    def load(self, saved: Saved) -> None:
        self._carry, self._carried, phases = saved
        self.phases.load(phases)

    def _take_carried(self, streams: Int64) -> Int64:
        chosen = np.isin(self._carried[k.G_STREAM], streams)
        taken: Int64 = np.ascontiguousarray(self._carried[:, chosen])
        self._carried = np.ascontiguousarray(self._carried[:, ~chosen])
        return taken

    def _frame(self, rows: Int64, buffer: Bytes, pool: Bytes) -> Framed:
        """Batches of these rows and of what was carried for their streams."""
        phases = self.phases
        if self._carried.shape[1]:
            waiting = self._take_carried(np.unique(rows[k.G_STREAM]))
            rows = np.ascontiguousarray(np.concatenate([waiting, rows], axis=1))
        else:
            rows = np.ascontiguousarray(rows)
        order: Int64 = np.argsort(rows[k.G_STREAM], kind="stable")
        data = rows[k.G_KIND] == k.DATA
        total = int(rows[k.G_LENGTH, data].sum())
        if total > len(self._work):
            self._work = np.empty(total + (total >> 3), np.uint8)
        work = self._work
        k.ready(k.gather)(rows, order, buffer, pool, self._carry, work)
        runs: Int64 = np.empty((len(order), k.RUN_COLUMNS), np.int64)
        count = k.ready(k.find_runs)(rows, order, runs)
        runs = runs[:count]
        phases.begin(work, rows, order, int(rows[k.G_STREAM].max()) + 1)
        phases.frame_simple(runs)
        simple = runs[:, k.U_DONE] == 1
        left = [runs[simple][:, (k.U_FIRST, k.U_STOP, k.U_START)]]
        rest = runs[~simple]
        of_streams = np.split(rest, np.flatnonzero(np.diff(rest[:, k.U_STREAM])) + 1)
        left += [
            phases.frame_stream([Run(*run) for run in some.tolist()])
            for some in of_streams
            if len(some)
        ]
        self._keep(np.concatenate(left), rows, order)
        return phases.framed(work)

    def _keep(self, left: Int64, rows: Int64, order: Int64) -> None:
        """Copies what became no batch yet, and what was carried of other streams."""
        old = self._carried
        columns = [np.ascontiguousarray(column) for column in left.T]
        pieces = int((left[:, 1] - left[:, 0]).sum())
        others: Int64 = np.arange(old.shape[1], dtype=np.int64)
        kept: Int64 = np.empty((_COLUMNS, pieces + len(others)), np.int64)
        # An upper bound; memory that is not touched costs nothing.
        size = int(rows[k.G_LENGTH][rows[k.G_KIND] == k.DATA].sum())
        size += int(old[k.G_LENGTH][old[k.G_KIND] == k.DATA].sum())
        carry: Bytes = np.empty(size, np.uint8)
        everything = [np.array([x], np.int64) for x in (0, len(others), 0)]
        keep = k.ready(k.keep)
        r, q = keep(self._carry, old, others, *everything, 1, kept, carry, 0, 0)
        r, q = keep(self._work, rows, order, *columns, len(left), kept, carry, r, q)
        self._carried = np.ascontiguousarray(kept[:, :r])
        self._carry = carry[:q].copy()
