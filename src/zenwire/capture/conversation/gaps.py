"""Sequence numbers that did not come, found in whole columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from zenwire.capture.conversation.link import Link, Loss
from zenwire.capture.conversation.subscriptions import GAP, NOT_SENT
from zenwire.wire.values import Mapping, WireExpr

__all__ = ["Gap", "Lanes", "Numbered", "Sources"]

SOURCE_MODULUS: Final = 1 << 32
SOURCES: Final = 1 << 18
"""Publishers whose last number is remembered; the oldest are forgotten first."""

Int64 = npt.NDArray[np.int64]
Source = tuple[int, int, bytes, int]
"""(link, side, ZenohID, entity)"""
Key = tuple[int, str | None, int]
"""(scope, suffix, mapping) of a WireExpr, which is made of few of them."""


class Numbered(NamedTuple):
    """A sample with the number that its publisher gave it, and its row and offset."""

    row: int
    offset: int
    source: Source
    sn: int
    key: Key


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
        self._last: dict[Source, tuple[int, int]] = {}
        """Number and time of the last sample."""

    def find(
        self, samples: Sequence[Numbered], times: Sequence[int], links: Sequence[Link]
    ) -> list[Gap]:
        """Gaps in the numbers of samples, which come in order. ``times`` has one for each row.

        A gap is a loss while the receiver had subscribed, and ``not_sent`` otherwise.
        """
        found = []
        for sample in samples:
            time = times[sample.row]
            last = self._last.pop(sample.source, None)
            self._last[sample.source] = sample.sn, time
            if len(self._last) > SOURCES:
                del self._last[next(iter(self._last))]
            if last is not None and sample.sn != last[0] + 1:
                loss = _loss("source", last[0], sample.sn, SOURCE_MODULUS)
                if loss is not None:
                    link, side = links[sample.source[0]], sample.source[1]
                    is_lost = _is_lost(link, side, sample.key, (last[1], time))
                    kind, reason = GAP if is_lost else NOT_SENT
                    loss = replace(loss, kind=kind, reason=reason)
                    found.append(Gap(sample.row, sample.offset, loss))
        return found


def _is_lost(link: Link, side: int, key: Key, span: tuple[int, int]) -> bool:
    """Return True if the receiver had subscribed to the key for the whole span of time."""
    scope, suffix, mapping = key
    name, _ = link.resolve(WireExpr(scope, suffix or "", Mapping(mapping)), side)
    return link.subscriptions[1 - side].count(name, *span, opened=link.opened)
