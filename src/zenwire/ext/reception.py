"""What an advanced subscriber makes of samples: an order without holes, as far as can be.

Samples, replies, heartbeats, tokens and the time go in; samples to deliver, misses to report and
queries to make come out, in `take`. There is no I/O: the owner asks, and says what came of it.

- A sample that follows the last one of its source is delivered, with those that waited for it.
- One that leaves a hole waits, if something that is under way may fill it, or if the hole can be
  asked for. What is missing then is reported, once, and not delivered if it comes after all.
- One that is not after the last one is a duplicate, unless its source has started anew.

Samples without numbers are ordered by time, and have no holes; those with neither pass through.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Final, TypeAlias

from zenwire.api.values import EntityGlobalId, Sample, ZenohId
from zenwire.errors import DecodeError
from zenwire.ext.asks import Ask, Asks
from zenwire.ext.history import HistoryConfig
from zenwire.ext.keys import all_of, parse_instance, source_of
from zenwire.ext.limits import HELD_BYTES, HELD_MAX, RETENTION, SOURCES_MAX
from zenwire.ext.recovery import RecoveryConfig
from zenwire.ext.sequence import SN_MAX, between, is_after, next_sn, sn_text
from zenwire.ext.sources import Numbered, Timed, size_of
from zenwire.keyexpr import KeyExpr
from zenwire.wire import structs
from zenwire.wire import values as wire
from zenwire.wire.serialized import number_reader, read_whole

__all__ = ["Miss", "Output", "Reception"]

_HEARTBEAT: Final = number_reader("u32")

_Key: TypeAlias = tuple[bytes, int | None]
"""Of a source: the id of a node and of its publisher; for a clock None."""


@dataclass(frozen=True, slots=True)
class Miss:
    """``nb`` samples of a publisher in a row that did not come, and will not."""

    source: EntityGlobalId
    nb: int


Output: TypeAlias = Sample | Miss | Ask


class Reception:
    """The samples of one subscriber. Times are of any clock that does not go back."""

    def __init__(
        self,
        key_expr: KeyExpr,
        history: HistoryConfig | None = None,
        recovery: RecoveryConfig | None = None,
    ) -> None:
        self.key_expr = key_expr
        self.duplicates = 0
        """Samples that were not delivered: they had been, or were given up, or came too late."""
        self.missed = 0
        """Samples that were reported as missed."""
        self.restarts = 0
        """Publishers that started anew under the same id."""
        self.forgotten = 0
        """Sources that had to be forgotten, for there were too many."""
        self.foreign = 0
        """Replies, heartbeats and tokens that make no sense here."""
        self._recovers = recovery is not None
        self._period = None if recovery is None else recovery.period
        self._history = history
        self._depth = None if history is None else history.max_samples
        self._sources: OrderedDict[_Key, Numbered | Timed] = OrderedDict()
        self._pending = 0
        """Queries under way that are for all sources."""
        self._asks: Asks[_Key | None] = Asks()
        self._periodic: deque[tuple[float, _Key]] = deque()
        self._held_bytes = 0
        self._outputs: list[Output] = []

    def take(self) -> list[Output]:
        """What is to be done, in order."""
        outputs, self._outputs = self._outputs, []
        outputs += self._asks.due()
        return outputs

    @property
    def unasked(self) -> int:
        """Queries that were not made, for there were too many."""
        return self._asks.refused

    def __len__(self) -> int:
        """How many sources are known."""
        return len(self._sources)

    @property
    def held_bytes(self) -> int:
        """What waits for others, in bytes."""
        return self._held_bytes

    @property
    def deadline(self) -> float | None:
        """When `tick` is to be called; None if nothing depends on the time."""
        times = [self._periodic[0][0]] if self._periodic else []
        if self._sources:
            times.append(next(iter(self._sources.values())).accessed + RETENTION)
        return min(times, default=None)

    # What comes in.

    def start(self) -> None:
        """Ask for what there was before."""
        if self._history is not None:
            self._ask_history(None, all_of(self.key_expr), self._history)

    def receive(self, sample: Sample, now: float) -> None:
        """A sample of a publication."""
        self._receive(sample, now, live=True)

    def reply(self, sample: Sample, now: float) -> None:
        """A sample of a reply."""
        if self.key_expr.intersects(sample.key_expr):
            self._receive(sample, now, live=False)
        else:
            self.foreign += 1

    def finished(self, ask: int) -> None:
        """A query is over, in whatever way."""
        if ask not in self._asks:
            return
        owner = self._asks.finish(ask)
        if owner is None:
            self._pending -= 1
            if not self._pending:
                for source in list(self._sources.values()):
                    self._settle(source)
            return
        found = self._sources.get(owner)
        if found is not None and found.asked:
            found.asked -= 1
            self._settle(found)
            if isinstance(found, Numbered) and not self._waits(found):
                self._owe(found)

    def heartbeat(self, key: str, payload: bytes, now: float) -> None:
        """A publisher told its last number."""
        instance = parse_instance(key)
        if instance is None or instance.eid is None:
            self.foreign += 1
            return
        try:
            sn = read_whole(_HEARTBEAT, payload)
        except DecodeError:
            self.foreign += 1
            return
        source = self._numbered(instance.zid.wire, instance.eid, now)
        if source.is_old(sn) or source.asked or (source.last is None and self._pending):
            return
        start = None if source.last is None else next_sn(source.last)
        if self._ask_source(source, KeyExpr(key), sn_text(start, sn)):
            source.promised = source.covered = sn

    def token(self, key: str, now: float, *, alive: bool) -> None:
        """A publisher came, or went."""
        instance = parse_instance(key)
        if instance is None:
            if alive and self._history is not None:
                self._ask_history(None, KeyExpr(key), self._history)
            return
        where = instance.zid.wire.raw, instance.eid
        if not alive and where not in self._sources:
            return
        source: Numbered | Timed
        if instance.eid is None:
            source = self._timed(where, now)
        else:
            source = self._numbered(instance.zid.wire, instance.eid, now)
            source.was_gone |= not alive
        source.alive = alive
        if alive and self._history is not None and not source.asked:
            self._ask_history(where, KeyExpr(key), self._history)

    def tick(self, now: float) -> None:
        """The time has come."""
        while self._periodic and self._periodic[0][0] <= now:
            at, key = self._periodic.popleft()
            source = self._sources.get(key)
            if not isinstance(source, Numbered) or source.query_at != at:
                continue
            if not source.asked:
                self._ask_missing(source)
            self._schedule(source, key, now)
        while self._sources:
            key, oldest = next(iter(self._sources.items()))
            if oldest.accessed + RETENTION > now:
                break
            if oldest.alive:
                oldest.accessed = now
                self._sources.move_to_end(key)
            else:
                self._forget(key)

    # Samples.

    def _receive(self, sample: Sample, now: float, *, live: bool) -> None:
        body = sample.body
        info, stamp = body.source_info, body.timestamp
        if info is not None:
            self._receive_numbered(sample, info, stamp, now, live=live)
        elif stamp is not None:
            self._receive_timed(sample, stamp, now)
        else:
            self._outputs.append(sample)

    def _receive_numbered(
        self,
        sample: Sample,
        info: structs.SourceInfo,
        stamp: structs.Timestamp | None,
        now: float,
        *,
        live: bool,
    ) -> None:
        source, sn = self._numbered(info.zid, info.eid, now), info.sn
        if source.is_old(sn):
            if not source.has_restarted(stamp, live=live):
                self.duplicates += 1
                return
            self._restart(source)
        source.saw(stamp)
        starts = source.last is None and (self._depth == 1 or not self._waits(source))
        if starts or source.follows(sn):
            self._deliver(source, sn, sample)
        elif source.last is not None and not self._recovers and not self._waits(source):
            self._miss(source, between(source.last, sn))
            self._deliver(source, sn, sample)
        elif sn in source.held:
            self.duplicates += 1
        else:
            self._hold(source, sn, sample)
            recoverable = self._recovers and source.last is not None
            if recoverable and source.held and not source.asked and not self._ask_missing(source):
                self._release(source, source.waiting())

    def _receive_timed(self, sample: Sample, stamp: structs.Timestamp, now: float) -> None:
        time = stamp.time, stamp.id.raw
        source = self._timed((stamp.id.raw, None), now)
        if (source.last is not None and time <= source.last) or time in source.held:
            self.duplicates += 1
        elif self._depth == 1 or not self._waits(source):
            source.last = time
            self._outputs.append(sample)
        else:
            source.held[time] = sample
            self._held_bytes += size_of(sample)
            while source.held and self._is_too_much(source):
                self._release_timed(source, len(source.held) // 2 + 1)

    def _waits(self, source: Numbered | Timed) -> bool:
        """Whether something is under way that may bring earlier samples."""
        return bool(self._pending or source.asked)

    def _deliver(self, source: Numbered, sn: int, sample: Sample) -> None:
        """A sample, and those that waited for it."""
        held, following = source.held, next_sn(sn)
        self._outputs.append(sample)
        while held and following in held:
            self._outputs.append(self._unhold(source, following))
            sn, following = following, next_sn(following)
        source.last = sn

    def _hold(self, source: Numbered, sn: int, sample: Sample) -> None:
        source.held[sn] = sample
        self._held_bytes += size_of(sample)
        while source.held and self._is_too_much(source):
            # Half of them, so that the next ones need not be put in order each.
            self._release(source, source.waiting()[: len(source.held) // 2 + 1])

    def _is_too_much(self, source: Numbered | Timed) -> bool:
        return len(source.held) > HELD_MAX or self._held_bytes > HELD_BYTES

    def _unhold(self, source: Numbered, sn: int) -> Sample:
        sample = source.held.pop(sn)
        self._held_bytes -= size_of(sample)
        return sample

    def _release(self, source: Numbered, numbers: list[int]) -> None:
        """Deliver what is held, and give up what is missing before it."""
        for sn in numbers:
            if sn not in source.held:
                continue
            sample = self._unhold(source, sn)
            if source.is_old(sn):
                self.duplicates += 1
                continue
            if source.last is not None:
                self._miss(source, between(source.last, sn))
            self._deliver(source, sn, sample)

    def _release_timed(self, source: Timed, count: int) -> None:
        for time in source.waiting()[:count]:
            sample = source.held.pop(time)
            self._held_bytes -= size_of(sample)
            source.last = time
            self._outputs.append(sample)

    def _miss(self, source: Numbered, count: int) -> None:
        if count:
            self.missed += count
            self._outputs.append(Miss(source.id, count))

    def _restart(self, source: Numbered) -> None:
        """It counts from 0 again: nothing that is missing of before will come."""
        self.restarts += 1
        self._release(source, source.waiting())
        source.last = SN_MAX
        source.covered = source.promised = source.owed = source.newest = None
        source.was_gone = False

    # Queries.

    def _ask_history(self, owner: _Key | None, key_expr: KeyExpr, history: HistoryConfig) -> None:
        if self._asks.add(owner, key_expr, history.parameters):
            if owner is None:
                self._pending += 1
            else:
                self._sources[owner].asked += 1

    def _ask_source(self, source: Numbered, key_expr: KeyExpr, numbers: str) -> bool:
        owner = source.id.zid.wire.raw, source.id.eid
        asked = self._asks.add(owner, key_expr, f"_sn={numbers}")
        source.asked += asked
        return asked

    def _ask_missing(self, source: Numbered) -> bool:
        """For everything after the last one. False if there are too many queries."""
        if source.held:
            source.covered = source.waiting()[-1]
        start = None if source.last is None else next_sn(source.last)
        where = source_of(self.key_expr, source.id)
        return self._ask_source(source, where, sn_text(start, None))

    def _settle(self, source: Numbered | Timed) -> None:
        """Nothing is under way any more for what is held."""
        if self._waits(source):
            return
        if isinstance(source, Timed):
            self._release_timed(source, len(source.held))
            return
        for sn in source.waiting():
            if sn not in source.held:
                continue
            hole = source.last is not None and not source.follows(sn) and not source.is_old(sn)
            # Of what became known after a query, its answer need not know.
            unknown = source.covered is None or is_after(sn, source.covered)
            if hole and self._recovers and unknown and self._ask_missing(source):
                return
            self._release(source, [sn])
        source.covered = None

    def _owe(self, source: Numbered) -> None:
        """A heartbeat told of samples that did not come when they were asked for.

        They may be slower than it. When the next one was of no use either, they are given up.
        """
        promised, source.promised = source.promised, None
        last = source.last
        if promised is None or last is None or not is_after(promised, last):
            return
        if source.owed is not None and is_after(source.owed, last):
            self._miss(source, between(last, next_sn(source.owed)))
            source.last = source.owed
        source.owed = promised

    # Sources.

    def _numbered(self, zid: wire.ZenohId, eid: int, now: float) -> Numbered:
        key = zid.raw, eid
        source = self._sources.get(key)
        if source is None:
            source = Numbered(EntityGlobalId(ZenohId.from_wire(zid), eid), now)
            self._add(key, source)
            self._schedule(source, key, now)
        else:
            source.accessed = now
            self._sources.move_to_end(key)
        assert isinstance(source, Numbered)
        return source

    def _timed(self, key: _Key, now: float) -> Timed:
        source = self._sources.get(key)
        if source is None:
            source = Timed(now)
            self._add(key, source)
        else:
            source.accessed = now
            self._sources.move_to_end(key)
        assert isinstance(source, Timed)
        return source

    def _add(self, key: _Key, source: Numbered | Timed) -> None:
        if len(self._sources) >= SOURCES_MAX:
            self.forgotten += 1
            self._forget(next(iter(self._sources)))
        self._sources[key] = source

    def _forget(self, key: _Key) -> None:
        source = self._sources.pop(key)
        if isinstance(source, Timed):
            self._release_timed(source, len(source.held))
        else:
            self._release(source, source.waiting())

    def _schedule(self, source: Numbered, key: _Key, now: float) -> None:
        if self._period is not None:
            source.query_at = now + self._period
            self._periodic.append((source.query_at, key))
