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

from collections import deque
from typing import Final, TypeAlias

from zenwire.api.ext.asks import Ask, Asks
from zenwire.api.ext.history import HistoryConfig
from zenwire.api.ext.keys import all_of, parse_instance, source_of
from zenwire.api.ext.order import Miss, Order
from zenwire.api.ext.recovery import RecoveryConfig
from zenwire.api.ext.sequence import SN_MAX, between, is_after, next_sn, sn_text
from zenwire.api.ext.sources import Key, Numbered, Sources, Timed
from zenwire.api.values import Sample
from zenwire.errors import DecodeError
from zenwire.keyexpr import KeyExpr
from zenwire.wire import structs
from zenwire.wire import values as wire
from zenwire.wire.serialized import number_reader, read_whole

__all__ = ["Output", "Reception"]

_HEARTBEAT: Final = number_reader("u32")

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
        self.restarts = 0
        """Publishers that started anew under the same id."""
        self.foreign = 0
        """Replies, heartbeats and tokens that make no sense here."""
        self._recovers = recovery is not None
        self._period = None if recovery is None else recovery.period
        self._history = history
        self._depth = None if history is None else history.max_samples
        self._order = Order()
        self._sources = Sources(self._order.release_all)
        self._pending = 0
        """Queries under way that are for all sources."""
        self._asks: Asks[Key | None] = Asks()
        self._periodic: deque[tuple[float, Key]] = deque()

    def take(self) -> list[Output]:
        """What is to be done, in order."""
        order = self._order
        outputs, order.outputs = order.outputs, []
        return [*outputs, *self._asks.due()]

    @property
    def duplicates(self) -> int:
        """Samples that were not delivered: they had been, or were given up, or came too late."""
        return self._order.duplicates

    @property
    def missed(self) -> int:
        """Samples that were reported as missed."""
        return self._order.missed

    @property
    def forgotten(self) -> int:
        """Sources that had to be forgotten, for there were too many."""
        return self._sources.forgotten

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
        return self._order.held_bytes

    @property
    def deadline(self) -> float | None:
        """When `tick` is to be called; None if nothing depends on the time."""
        times = [self._periodic[0][0]] if self._periodic else []
        forgets = self._sources.deadline
        return min(times if forgets is None else [*times, forgets], default=None)

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

    def finished(self, ask: int, *, answered: bool = True) -> None:
        """A query is over, in whatever way.

        One that was not ``answered`` until its timeout may be lost, or its answer: it is asked
        again, once.
        """
        if ask not in self._asks:
            return
        owner = self._asks.finish(ask)
        if owner is None:
            self._pending -= 1
            if not self._pending:
                for source in self._sources:
                    self._settle(source)
            return
        found = self._sources.get(owner)
        if found is not None and found.asked:
            found.asked -= 1
            if isinstance(found, Numbered):
                found.again = not answered and not found.again
                if found.again:
                    found.covered = None
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
            source = self._sources.timed(where, now)
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
        self._sources.tick(now)

    # Samples.

    def _receive(self, sample: Sample, now: float, *, live: bool) -> None:
        body = sample.body
        info, stamp = body.source_info, body.timestamp
        if info is not None:
            self._receive_numbered(sample, info, stamp, now, live=live)
        elif stamp is not None:
            self._receive_timed(sample, stamp, now)
        else:
            self._order.outputs.append(sample)

    def _receive_numbered(
        self,
        sample: Sample,
        info: structs.SourceInfo,
        stamp: structs.Timestamp | None,
        now: float,
        *,
        live: bool,
    ) -> None:
        source, sn, order = self._numbered(info.zid, info.eid, now), info.sn, self._order
        if source.is_old(sn):
            if not source.has_restarted(stamp, live=live):
                order.duplicates += 1
                return
            self._restart(source)
        source.saw(stamp)
        starts = source.last is None and (self._depth == 1 or not self._waits(source))
        if starts or source.follows(sn):
            order.deliver(source, sn, sample)
        elif source.last is not None and not self._recovers and not self._waits(source):
            order.miss(source, between(source.last, sn))
            order.deliver(source, sn, sample)
        elif sn in source.held:
            order.duplicates += 1
        else:
            order.hold(source, sn, sample)
            recoverable = self._recovers and source.last is not None
            if recoverable and source.held and not source.asked and not self._ask_missing(source):
                order.release_all(source)

    def _receive_timed(self, sample: Sample, stamp: structs.Timestamp, now: float) -> None:
        time, order = (stamp.time, stamp.id.raw), self._order
        source = self._sources.timed((stamp.id.raw, None), now)
        if (source.last is not None and time <= source.last) or time in source.held:
            order.duplicates += 1
        elif self._depth == 1 or not self._waits(source):
            order.deliver_timed(source, time, sample)
        else:
            order.hold_timed(source, time, sample)

    def _waits(self, source: Numbered | Timed) -> bool:
        """Whether something is under way that may bring earlier samples."""
        return bool(self._pending or source.asked)

    def _restart(self, source: Numbered) -> None:
        """It counts from 0 again: nothing that is missing of before will come."""
        self.restarts += 1
        self._order.release_all(source)
        source.last = SN_MAX
        source.covered = source.promised = source.owed = source.newest = None
        source.was_gone = False

    # Queries.

    def _ask_history(self, owner: Key | None, key_expr: KeyExpr, history: HistoryConfig) -> None:
        if self._asks.add(owner, key_expr, history.parameters):
            if owner is None:
                self._pending += 1
            elif (source := self._sources.get(owner)) is not None:
                source.asked += 1

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
            self._order.release_all(source)
            return
        for sn in source.waiting():
            if sn not in source.held:
                continue
            hole = source.last is not None and not source.follows(sn) and not source.is_old(sn)
            # Of what became known after a query, its answer need not know.
            unknown = source.covered is None or is_after(sn, source.covered)
            if hole and self._recovers and unknown and self._ask_missing(source):
                return
            self._order.release(source, [sn])
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
            self._order.miss(source, between(last, next_sn(source.owed)))
            source.last = source.owed
        source.owed = promised

    # Sources.

    def _numbered(self, zid: wire.ZenohId, eid: int, now: float) -> Numbered:
        source, new = self._sources.numbered(zid, eid, now)
        if new:
            self._schedule(source, (zid.raw, eid), now)
        return source

    def _schedule(self, source: Numbered, key: Key, now: float) -> None:
        if self._period is not None:
            source.query_at = now + self._period
            self._periodic.append((source.query_at, key))
