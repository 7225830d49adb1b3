"""What a spool already has, to tell what is new in a history, and which numbers are missing.

A sample is known by the number that its source gave it or, without one, by its key and timestamp.
Of the time before a hole, the newest timestamp of each key says how far it is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenwire.spool.sources import MODULUS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zenwire.spool import LogReader

__all__ = ["COLUMNS", "TAIL", "Known", "Missing"]

COLUMNS: Final = ("key", "timestamp", "timestamp_id", "source_zid", "source_eid", "source_sn")
"""What a sample is known by."""

TAIL: Final = 1_000_000
"""Rows before a hole that are looked at."""

Source = tuple[bytes, int]
_Stamp = tuple[int, bytes]


class Missing(NamedTuple):
    """Numbers of a source that nobody had."""

    source: Source
    first: int
    last: int

    @property
    def samples(self) -> int:
        return (self.last - self.first) % MODULUS + 1


class Known:
    """The samples around a hole."""

    def __init__(self) -> None:
        self._newest: dict[str, _Stamp] = {}
        self._since: set[tuple[str, _Stamp]] = set()
        self._before: dict[Source, int] = {}
        self._numbers: dict[Source, set[int]] = {}

    @classmethod
    def read(cls, log: LogReader, mark: int, tail: int = TAIL) -> Known:
        """From the rows of a spool; ``mark`` is the offset of the first after the hole.

        Raises SpoolError.
        """
        known = cls()
        for first, batch in log.read(max(log.earliest(), mark - tail), log.latest()):
            part = batch.select(COLUMNS)
            if first < mark:
                known.before(part.slice(0, mark - first))
            if first + part.num_rows > mark:
                known.since(part.slice(max(mark - first, 0)))
        return known

    def before(self, samples: pa.RecordBatch) -> None:
        """Rows of before the hole, in order."""
        stamped = pa.Table.from_batches([samples]).filter(pc.is_valid(pc.field("timestamp")))
        newest = stamped.group_by(["key", "timestamp_id"]).aggregate([("timestamp", "max")])
        for row in newest.to_pylist():
            stamp = _unsigned(row["timestamp_max"]), row["timestamp_id"] or b""
            if stamp > self._newest.get(row["key"], (-1, b"")):
                self._newest[row["key"]] = stamp
        for source, numbers in _by_source(samples):
            # The furthest, not the last: a history brings older ones after newer ones.
            last = self._before.get(source, int(numbers[0]))
            ahead = (numbers - last) % MODULUS
            step = int(ahead[ahead <= MODULUS // 2].max(initial=0))
            self._before[source] = (last + step) % MODULUS
            self._numbers.setdefault(source, set()).update(numbers[-_RECENT:].tolist())

    def since(self, samples: pa.RecordBatch) -> None:
        """Rows of after the hole, or of the history."""
        for source, numbers in _by_source(samples):
            self._numbers.setdefault(source, set()).update(numbers.tolist())
        columns = (samples.column(name).to_pylist() for name in COLUMNS[:3])
        for key, time, whose in zip(*columns, strict=True):
            if time is not None:
                self._since.add((key, (_unsigned(time), whose or b"")))

    def fresh(self, samples: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a history that the spool does not have; they are known from then on.

        Each has a number or a time.
        """
        keep = []
        for row in samples.select(COLUMNS).to_pylist():
            new = self._is_new(row)
            keep.append(new)
            if new:
                self._learn(row)
        return samples.filter(pa.array(keep, pa.bool_()))

    def _is_new(self, row: dict[str, object]) -> bool:
        key, time, number = row["key"], row["timestamp"], row["source_sn"]
        assert isinstance(key, str)
        if isinstance(number, int):
            return number not in self._numbers.get(_source(row), ())
        assert isinstance(time, int)
        stamp = _stamp(row, time)
        return stamp > self._newest.get(key, (-1, b"")) and (key, stamp) not in self._since

    def _learn(self, row: dict[str, object]) -> None:
        key, time, number = row["key"], row["timestamp"], row["source_sn"]
        assert isinstance(key, str)
        if isinstance(number, int):
            self._numbers.setdefault(_source(row), set()).add(number)
        if isinstance(time, int):
            self._since.add((key, _stamp(row, time)))

    def missing(self) -> list[Missing]:
        """Numbers between the last before the hole and the newest, of each source."""
        found = []
        for source, last in self._before.items():
            ahead = sorted((n - last) % MODULUS for n in self._numbers[source])
            following = [step for step in ahead if 0 < step <= MODULUS // 2]
            at = 0
            for step in following:
                if step > at + 1:
                    first, end = (last + at + 1) % MODULUS, (last + step - 1) % MODULUS
                    found.append(Missing(source, first, end))
                at = step
        return found


_RECENT: Final = 65_536
"""Numbers of a source before the hole that are remembered."""


def _by_source(samples: pa.RecordBatch) -> Iterable[tuple[Source, np.ndarray]]:
    """The numbers of each source that has any, in order."""
    numbered = pa.Table.from_batches([samples]).filter(pc.is_valid(pc.field("source_sn")))
    if not numbered.num_rows:
        return
    groups = numbered.group_by(["source_zid", "source_eid"], use_threads=False)
    for row in groups.aggregate([("source_sn", "list")]).to_batches():
        zids, eids, lists = (row.column(i) for i in range(3))
        for at in range(row.num_rows):
            source = zids[at].as_py() or b"", eids[at].as_py() or 0
            yield source, lists[at].values.to_numpy(zero_copy_only=False)


def _source(row: dict[str, object]) -> Source:
    zid, eid = row["source_zid"], row["source_eid"]
    return zid if isinstance(zid, bytes) else b"", eid if isinstance(eid, int) else 0


def _stamp(row: dict[str, object], time: int) -> _Stamp:
    whose = row["timestamp_id"]
    return _unsigned(time), whose if isinstance(whose, bytes) else b""


def _unsigned(time: int) -> int:
    """Arrow has the 64 bits of an NTP64 with a sign."""
    return time % (1 << 64)
