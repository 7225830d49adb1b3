"""Whose rows are whose: the keys of one neighbour, each found once, and the rows of a run by key.

A key is known by how it is written: a scope and a mapping, mostly, or those and a suffix. What it
stands for is asked for when it comes first, and holds until `Routes.clear`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from zenwire.columns import kernels_receive
from zenwire.columns.kept import Kept
from zenwire.columns.layout import NETWORK
from zenwire.columns.receive import Run
from zenwire.columns.scan import Bytes, Int32
from zenwire.wire.network import NetworkMessage

__all__ = ["MESSAGES", "NOBODY", "Find", "Keys", "Part", "Routes"]

NOBODY: Final = 0
"""The group of keys that nobody wants."""
MESSAGES: Final = -1
"""That of keys whose samples have to be looked at one by one."""

Find = Callable[[int, str, bool], tuple[str, int]]
"""Gives the key and the group for a scope, a suffix, and whether the scope is the sender's."""

_ALL: Final = np.empty(0, np.int32)
_PADDING: Final = 64
_BYTES: Final = 2**24
"""What all keys of a neighbour may take."""
_SCOPE, _SUFFIX, _MAPPING = (
    NETWORK.columns[f"key_{name}"] for name in ("scope", "suffix", "mapping")
)
_KNOWN: Final = np.array(
    [_SCOPE.slot, _SUFFIX.slot, _SUFFIX.slot + 1, 1 << _MAPPING.bit, 1 << _SUFFIX.bit], np.uint64
)
_SEED: Final = int.from_bytes(os.urandom(8), "little")


def _grown(array: npt.NDArray[np.generic], size: int, fill: int = 0) -> npt.NDArray[np.generic]:
    """A larger one that begins alike; those who have the old one keep it."""
    made = np.full((*array.shape[:-1], size), fill, array.dtype)
    made[..., : array.shape[-1]] = array
    return made


class Keys:
    """The keys of routes, back to back. Whoever has it keeps it: more are only added."""

    __slots__ = ("ends", "longest", "text", "texts", "used")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.ends: Int32 = np.zeros(64, np.int32)
        self.text: Bytes = np.zeros(4096, np.uint8)
        self.used = 0
        self.longest = 0

    def add(self, key: str) -> int:
        """Gives the number of its route."""
        number, raw = len(self.texts), key.encode()
        self.texts.append(key)
        self.longest = max(self.longest, len(raw))
        end = self.used + len(raw)
        if number + 2 > len(self.ends):
            self.ends = _grown(self.ends, 2 * len(self.ends))  # type: ignore[assignment]
        if end + _PADDING > len(self.text):
            self.text = _grown(self.text, 2 * (end + _PADDING))  # type: ignore[assignment]
        self.text[self.used : end] = np.frombuffer(raw, np.uint8)
        self.ends[number + 1] = self.used = end
        return number


@dataclass(slots=True)
class Part:
    """Rows of a run whose keys are known, for the groups ``low`` to ``high``.

    ``route`` is that of each row, ``least`` and ``most`` bound it. Valid as long as the run.
    """

    run: Run
    first: int
    stop: int
    low: int
    high: int
    least: int
    most: int
    route: Int32
    groups: Int32
    keys: Keys

    @property
    def reliable(self) -> bool:
        return self.run.reliable

    def __len__(self) -> int:
        return self.stop - self.first

    def rows(self, takes: Callable[[int], bool]) -> tuple[Int32, int]:
        """The rows of the groups that somebody takes, and how many: no rows stand for all."""
        if self.low == self.high:
            return _ALL, len(self) if takes(self.low) else 0
        groups = self.groups[: self.most + 1]
        # The last one stands for MESSAGES, which is before the first.
        numbers = (*range(int(groups.max()) + 1), MESSAGES)
        wanted = np.array([group > 0 and takes(group) for group in numbers], np.uint8)
        chosen = wanted[groups]
        rows = np.empty(len(self) + 1, np.int32)
        count = kernels_receive.select(self.route, self.first, self.stop, chosen, rows)
        return (_ALL, count) if count == len(self) else (rows[:count], count)

    def key_texts(self, rows: Int32, count: int) -> list[str]:
        """The keys of rows."""
        texts = self.keys.texts
        if self.least == self.most:
            return [texts[self.least]] * count
        route = self.route[rows] if len(rows) else self.route[self.first : self.stop]
        return [texts[number] for number in route.tolist()]

    def keep(self, rows: Int32, count: int) -> Kept:
        """A copy of rows that stays valid."""
        return Kept(self, rows, count)

    def messages(self) -> list[NetworkMessage]:
        """All rows as objects."""
        return self.run.messages(self.first, self.stop)

    def objects(self) -> tuple[list[NetworkMessage], list[int], list[str]]:
        """All rows as objects, with their groups and keys."""
        groups: list[int] = self.groups[self.route[self.first : self.stop]].tolist()
        return self.messages(), groups, self.key_texts(_ALL, len(self))

    def groups_there(self) -> list[int]:
        """The groups that there are rows for."""
        there = np.zeros(len(self.keys.texts), np.bool_)
        there[self.route[self.first : self.stop]] = True
        found: list[int] = np.unique(self.groups[: len(there)][there]).tolist()
        return found


class Routes:
    """The keys of one neighbour. ``limit`` bounds how many are known at a time."""

    def __init__(self, find: Find, limit: int) -> None:
        self._find = find
        self._limit = limit
        self._route: Int32 = np.empty(0, np.int32)
        self._state = np.zeros(6, np.int64)
        self.clear()

    def clear(self) -> None:
        """Nothing holds any more."""
        self._keys = Keys()
        self._groups: Int32 = np.zeros(64, np.int32)
        self._plain: Int32 = np.full(64, -1, np.int32)
        self._buckets: Int32 = np.full(64, -1, np.int32)
        self._entries: Int32 = np.zeros((4, 32), np.int32)
        self._suffixes: Bytes = np.zeros(1024, np.uint8)
        self._suffixes_used = 0
        self._count = 0

    def resolve(self, run: Run, first: int) -> Part:
        """The rows of a run from ``first`` on: all of them, unless too many keys are known then.

        After such a part, `clear`.
        """
        scan, state = run.scan, self._state
        rows = scan.network
        if len(self._route) < len(rows.present):
            self._route = np.empty(len(rows.present), np.int32)
        state[:] = first, run.stop, 2**31, -(2**31), 2**31, -1
        while True:
            kernels_receive.resolve(
                scan.buffer,
                rows.int32,
                rows.present,
                _KNOWN,
                self._plain,
                self._buckets,
                self._entries,
                self._suffixes,
                _SEED,
                self._groups,
                self._route,
                state,
            )
            at, _, low, high, least, most = state.tolist()
            if at == run.stop or (at > first and self.full):
                break
            self._learn(run, at)
        route, groups, keys = self._route, self._groups, self._keys
        return Part(run, first, at, low, high, least, most, route, groups, keys)

    @property
    def full(self) -> bool:
        """As many keys are known as may be."""
        return (
            len(self._keys.texts) >= self._limit
            or self._keys.used > _BYTES
            or self._suffixes_used > _BYTES
        )

    def _learn(self, run: Run, row: int) -> None:
        table, word = run.scan.network.int32, int(run.scan.network.present[row])
        scope, mapped = int(table[_SCOPE.slot, row]), bool(word >> _MAPPING.bit & 1)
        start, size = table[_SUFFIX.slot : _SUFFIX.slot + 2, row].tolist()
        if not word >> _SUFFIX.bit & 1:
            size = 0
        suffix = run.scan.buffer[start : start + size] if size else run.scan.buffer[:0]
        key, group = self._find(scope, suffix.tobytes().decode(), mapped)
        number = self._keys.add(key)
        if number >= len(self._groups):
            self._groups = _grown(self._groups, 2 * number)  # type: ignore[assignment]
        self._groups[number] = group
        written = 2 * scope + mapped
        if size:
            self._keep(written, suffix, number)
            return
        if written >= len(self._plain):
            self._plain = _grown(self._plain, 2 * written, -1)  # type: ignore[assignment]
        self._plain[written] = number

    def _keep(self, written: int, suffix: Bytes, number: int) -> None:
        """Add a key with a suffix to the table by hash."""
        entry, end = self._count, self._suffixes_used + len(suffix)
        if end > len(self._suffixes):
            self._suffixes = _grown(self._suffixes, 2 * end)  # type: ignore[assignment]
        self._suffixes[self._suffixes_used : end] = suffix
        if entry >= self._entries.shape[1]:
            self._entries = _grown(self._entries, 2 * entry)  # type: ignore[assignment]
        self._entries[:, entry] = written, self._suffixes_used, len(suffix), number
        self._suffixes_used = end
        self._count += 1
        if 2 * self._count > len(self._buckets):
            self._buckets = np.full(2 * len(self._buckets), -1, np.int32)
            for one in range(self._count):
                self._place(one)
        else:
            self._place(entry)

    def _place(self, entry: int) -> None:
        written, start, size, _ = self._entries[:, entry].tolist()
        seed = _SEED ^ written
        top = len(self._buckets) - 1
        at = kernels_receive.hash_of(self._suffixes, start, size, seed) & top
        while self._buckets[at] >= 0:
            at = at + 1 & top
        self._buckets[at] = entry
