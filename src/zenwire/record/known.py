"""What a spool already has, to tell what is new in a history, and which numbers are missing.

A sample is known by the number that its source gave it or, without one, by its key and timestamp.
Of the time before a hole, the newest timestamp of each key says how far it is known. Rows stay as
Arrow has them: there may be a million. Of those after the hole there may be many more, if somebody
is slow to answer: they are kept where a history has their time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenwire.spool.sources import MODULUS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from zenwire.spool import LogReader, Spool, SpoolError

__all__ = ["COLUMNS", "TAIL", "Known", "Missing", "times_of"]

COLUMNS: Final = ("key", "timestamp", "timestamp_id", "source_zid", "source_eid", "source_sn")
"""What a sample is known by."""

STAMPS: Final = COLUMNS[:3]
NUMBERS: Final = COLUMNS[3:]
TAIL: Final = 1_000_000
"""Rows before a hole that are looked at."""

Source = tuple[bytes, int]
Lost: TypeAlias = "Callable[[SpoolError], object]"
_Stamp = tuple[int, bytes]
_NONE: Final = np.empty(0, np.int64)


class Missing(NamedTuple):
    """Numbers of a source that nobody had."""

    source: Source
    first: int
    last: int

    @property
    def samples(self) -> int:
        return (self.last - self.first) % MODULUS + 1


class _Numbers:
    """Numbers of a source, each once."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []

    def add(self, numbers: np.ndarray) -> None:
        self._parts.append(numbers)

    def all(self) -> np.ndarray:
        if len(self._parts) != 1:
            self._parts = [np.unique(np.concatenate(self._parts)) if self._parts else _NONE]
        return self._parts[0]


class Known:
    """The samples around a hole. ``times`` are all that will be asked for, if they are known."""

    def __init__(self, times: pa.Array | None = None) -> None:
        self._times = times
        self._old: list[pa.RecordBatch] = []
        self._new: list[pa.RecordBatch] = []
        self._read = 0
        self._stamped: dict[str, _Stamp] | None = None
        self._last: dict[Source, int] = {}
        self._first: dict[Source, int] = {}
        self._numbers: dict[Source, _Numbers] = {}
        self._late: dict[Source, _Numbers] = {}
        self._told: dict[Source, list[tuple[int, int]]] = {}

    @classmethod
    def read(
        cls, spool: Spool, mark: int, lost: Lost | None = None, times: pa.Array | None = None
    ) -> Known:
        """From the rows of a spool: those before ``mark``, and those of after the hole so far.

        Rows that cannot be read are told to ``lost``. Raises SpoolError without it.
        """
        known, log = cls(times), spool.samples
        known._read, begin = log.latest(), max(log.earliest(), mark - TAIL)
        for first, part in log.read(begin, known._read, lost=lost, columns=known._columns):
            cut = max(mark - first, 0)
            for some, take in ((part[:cut], known.before), (part[cut:], known.since)):
                if some.num_rows:
                    take(some)
        return known

    @property
    def _columns(self) -> tuple[str, ...]:
        """What there is to look at."""
        return COLUMNS if self._times is None or len(self._times) else NUMBERS

    def read_on(self, spool: Spool, mark: int, end: int, lost: Lost | None = None) -> None:
        """What came meanwhile, and the losses that were told of the hole.

        ``end`` is the first row in front of which whoever writes looks for gaps itself.
        """
        log = spool.samples
        for first, part in log.read(self._read, log.latest(), lost=lost, columns=self._columns):
            cut = max(end - first, 0)
            for some, take in ((part[:cut], self.since), (part[cut:], self.later)):
                if some.num_rows:
                    take(some)
        self._read_losses(spool.losses, mark, lost)

    def _read_losses(self, log: LogReader, mark: int, lost: Lost | None) -> None:
        """What was said to be missing, by whoever wrote before."""
        for _, batch in log.read(max(log.earliest(), log.latest() - TAIL), log.latest(), lost=lost):
            recent = batch.filter(
                pc.and_(
                    pc.greater_equal(batch.column("offset"), mark),
                    pc.is_valid(batch.column("from_sn")),
                )
            )
            for row in recent.to_pylist():
                self.told((row["source_zid"], row["source_eid"]), row["from_sn"], row["to_sn"])

    def before(self, samples: pa.RecordBatch) -> None:
        """Rows of before the hole, in order."""
        if samples.schema.names != list(NUMBERS):
            self._old.append(samples.select(STAMPS))
        for source, numbers in _by_source(samples):
            # The furthest, not the last: a history brings older ones after newer ones.
            self._last[source] = _furthest(self._last.get(source, int(numbers[0])), numbers)
            self._numbers.setdefault(source, _Numbers()).add(numbers)

    def since(self, samples: pa.RecordBatch) -> None:
        """Rows of after the hole."""
        self._keep(samples)
        for source, numbers in _by_source(samples):
            self._first.setdefault(source, int(numbers[0]))
            self._numbers.setdefault(source, _Numbers()).add(numbers)

    def later(self, samples: pa.RecordBatch) -> None:
        """Rows whose gaps others look for; but some may come late, and fill the hole."""
        self._keep(samples)
        for source, numbers in _by_source(samples):
            self._late.setdefault(source, _Numbers()).add(numbers)

    def _keep(self, samples: pa.RecordBatch) -> None:
        """Those that a history may have too."""
        if samples.schema.names == list(NUMBERS):
            return
        stamps = samples.select(STAMPS)
        times = stamps.column("timestamp")
        if self._times is not None:
            stamps = stamps.filter(pc.is_in(times, self._times))
        elif times.null_count:
            stamps = stamps.filter(pc.is_valid(times))
        if stamps.num_rows:
            self._new.append(stamps)

    def told(self, source: Source, first: int, last: int) -> None:
        """These stand in the losses."""
        self._told.setdefault(source, []).append((first, (last - first) % MODULUS))

    def fresh(self, samples: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a history that the spool does not have; they are known from then on.

        Each has a number or a time.
        """
        part = samples.select(COLUMNS)
        keep = np.zeros(samples.num_rows, np.bool_)
        by_number = np.asarray(pc.is_valid(part.column("source_sn")))
        for source, numbers, rows in _sources(part):
            there = [
                found[source].all() for found in (self._numbers, self._late) if source in found
            ]
            _, once = np.unique(numbers, return_index=True)
            first = np.zeros(len(numbers), np.bool_)
            first[once] = True
            new = first & ~np.isin(numbers, np.concatenate([_NONE, *there]))
            keep[rows[new]] = True
            self._numbers.setdefault(source, _Numbers()).add(numbers[new])
        by_time = np.flatnonzero(~by_number)
        if len(by_time):
            keep[by_time] = self._new_stamps(part.take(pa.array(by_time)))
        found = samples.filter(pa.array(keep))
        if found.num_rows:
            self._new.append(found.select(STAMPS))
        return found

    def _new_stamps(self, samples: pa.RecordBatch) -> list[bool]:
        if self._stamped is None:
            self._stamped = self._newest()
        newest, stamps = self._stamped, _stamps(samples)
        known = self._stamps_of(samples)
        found = []
        for stamp in stamps:
            key, at = stamp
            new = at > newest.get(key, (-1, b"")) and stamp not in known
            found.append(new)
            known.add(stamp)
        return found

    def _newest(self) -> dict[str, _Stamp]:
        """Of each key, before the hole."""
        found: dict[str, _Stamp] = {}
        if self._old:
            table = pa.Table.from_batches(self._old)
            table = table.filter(pc.is_valid(table.column("timestamp")))
            times = np.asarray(table.column("timestamp"), np.int64).view(np.uint64)
            table = table.set_column(1, "timestamp", pa.array(times))
            groups = table.group_by(["key", "timestamp_id"]).aggregate([("timestamp", "max")])
            names = ("key", "timestamp_max", "timestamp_id")
            columns = (groups.column(name).to_pylist() for name in names)
            for key, at, whose in zip(*columns, strict=True):
                stamp = at, whose or b""
                if stamp > found.get(key, (-1, b"")):
                    found[key] = stamp
        return found

    def _stamps_of(self, samples: pa.RecordBatch) -> set[tuple[str, _Stamp]]:
        """After the hole, those at the times of these."""
        times = pc.unique(samples.column("timestamp"))
        found: set[tuple[str, _Stamp]] = set()
        for new in self._new:
            found.update(_stamps(new.filter(pc.is_in(new.column("timestamp"), times))))
        return found

    def furthest(self) -> dict[Source, int]:
        """How far each source has come: what it says next may be long in coming."""
        found = {}
        for source, its in self._numbers.items():
            numbers = its.all()
            if len(numbers):
                found[source] = _furthest(self._last.get(source, int(numbers[0])), numbers)
        return found

    def missing(self) -> list[Missing]:
        """Numbers from the last before the hole to the newest, of each source; but what was told.

        Of a source that was not heard before, from the first that came: several recorders may have
        ended before one of them could look.
        """
        found: list[Missing] = []
        for source, last in (self._first | self._last).items():
            ahead = (self._numbers[source].all() - last) % MODULUS
            ahead = np.unique(ahead[ahead <= MODULUS // 2])
            # The last one itself is a step of 0.
            for i in np.flatnonzero(np.diff(ahead) > 1).tolist():
                gap = int(ahead[i]) + 1, int(ahead[i + 1]) - 1
                for low, high in _without(gap, self._others(source, last, gap)):
                    found.append(Missing(source, (last + low) % MODULUS, (last + high) % MODULUS))
        return found

    def _others(self, source: Source, last: int, gap: tuple[int, int]) -> list[tuple[int, int]]:
        """What came late, or was told, of a gap: ranges, as steps from ``last`` on."""
        found: list[tuple[int, int]] = []
        if source in self._late:
            steps = (self._late[source].all() - last) % MODULUS
            found += [(n, n) for n in steps[(steps >= gap[0]) & (steps <= gap[1])].tolist()]
        for first, more in self._told.get(source, ()):
            low = (first - last) % MODULUS
            low -= MODULUS if low > MODULUS // 2 else 0
            found.append((low, low + more))
        return sorted(found)


def times_of(histories: Iterable[pa.RecordBatch]) -> pa.Array:
    """When samples of histories were made that have no number, each time once."""
    found = [batch.filter(pc.is_null(batch.column("source_sn"))) for batch in histories]
    return pc.unique(pa.chunked_array([b.column("timestamp") for b in found], pa.int64()))


def _furthest(last: int, numbers: np.ndarray) -> int:
    ahead = (numbers - last) % MODULUS
    return (last + int(ahead[ahead <= MODULUS // 2].max(initial=0))) % MODULUS


def _without(gap: tuple[int, int], others: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """What is left of a range; the others are in order."""
    low, high = gap
    for first, last in others:
        if first > high:
            break
        if first > low:
            yield low, first - 1
        low = max(low, last + 1)
    if low <= high:
        yield low, high


def _by_source(samples: pa.RecordBatch) -> Iterator[tuple[Source, np.ndarray]]:
    """The numbers of each source that has any, in order."""
    for source, numbers, _ in _sources(samples):
        yield source, numbers


def _sources(samples: pa.RecordBatch) -> Iterator[tuple[Source, np.ndarray, np.ndarray]]:
    """The numbers of each source that has any, in order, and in which rows they are."""
    rows = np.flatnonzero(np.asarray(pc.is_valid(samples.column("source_sn"))))
    if not len(rows):
        return
    some = samples.take(pa.array(rows))
    numbers = np.asarray(some.column("source_sn"), np.int64)
    zid = pc.fill_null(some.column("source_zid"), b"").dictionary_encode()
    eid = pc.fill_null(some.column("source_eid"), 0).dictionary_encode()
    wide = np.asarray(zid.indices, np.int64) * len(eid.dictionary) + np.asarray(eid.indices)
    order = np.argsort(wide, kind="stable")
    begins = np.flatnonzero(np.append(True, np.diff(wide[order]) != 0))
    for group in np.split(order, begins[1:]):
        of_zid, of_eid = divmod(int(wide[group[0]]), len(eid.dictionary))
        source = zid.dictionary[of_zid].as_py(), eid.dictionary[of_eid].as_py()
        yield source, numbers[group], rows[group]


def _stamps(samples: pa.RecordBatch) -> list[tuple[str, _Stamp]]:
    """Keys and times, of rows that have one."""
    columns = (samples.column(name).to_pylist() for name in STAMPS)
    return [
        (key, (_unsigned(time), whose or b"")) for key, time, whose in zip(*columns, strict=True)
    ]


def _unsigned(time: int) -> int:
    """Arrow has the 64 bits of an NTP64 with a sign."""
    return time % (1 << 64)
