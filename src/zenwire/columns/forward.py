"""Rows of a run to messages for others: what a node passes on without an object for each.

A message goes on as it came but for what stands before its body, which is written anew for whoever
gets it, and a time, which it may get. Everything else is copied as it is; rows in which anything
more would have to change are told apart first (`Passage.alike`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

import numpy as np

from zenwire.columns import forward_kernels
from zenwire.columns.layout import BODY_SHIFT, NETWORK
from zenwire.columns.scan import Bytes, Int32, UInt64
from zenwire.wire.data import Del, Put
from zenwire.wire.define import Plain, Word, spec_of
from zenwire.wire.network import Push
from zenwire.wire.objects import encode
from zenwire.wire.structs import Timestamp
from zenwire.wire.values import QoS, WireExpr, ZenohId

if TYPE_CHECKING:
    from zenwire.columns.routes import Part

__all__ = ["Alike", "Passage", "Way", "Ways", "Written"]

To = TypeVar("To", bound=Hashable)

_ALL: Final = np.empty(0, np.int32)
_NEVER: Final[UInt64] = np.empty(0, np.uint64)
_SLACK: Final = 64
_ENTRIES_MAX: Final = 2**21
"""Heads, and places for them, that are kept at a time."""
_LARGEST: Final = 2**17
"""No message that came in one batch has more, with all that is added."""
_OUT: Final = 2**18, 3 * 2**20
"""Bytes that are written at once, first, and once that was too little: then mostly all that became
of what was read at once, since each write wakes who reads it, which costs more than to copy."""
_BATCHES: Final = 256
_CUTS: Final = np.zeros((3, 0), np.int32)
_DEL: Final = len(encode(Del()))


def _bit(name: str) -> int:
    return 1 << NETWORK.columns[name].bit


_USUAL: Final = (
    *("key_scope", "key_suffix", "key_mapping", "qos", "timestamp", "timestamp_id", "encoding"),
    *("encoding_schema", "source_zid", "source_eid", "source_sn", "attachment", "payload"),
)
"""What is written anew, or may be passed on as it is. Other extensions of PUSH are dropped or
replaced, and those of a body that we do not know may have to be written in another place."""
_SURVEY: Final = np.array(
    [
        (1 << BODY_SHIFT) - 1 & ~sum(map(_bit, _USUAL)),
        NETWORK.columns["qos"].slot,
        _bit("qos"),
        QoS().raw,
    ],
    np.uint64,
)
_STAMP: Final = np.array(
    [
        NETWORK.columns["timestamp"].slot,
        _bit("timestamp"),
        BODY_SHIFT,
        spec_of(Put).id,
    ],
    np.uint64,
)


def _time_flag() -> int:
    """The bit of a PUT's header that says that there is a time, which is the first thing after it."""
    first = next(e for e in spec_of(Put).elements if not isinstance(e, Word))
    if not isinstance(first, Plain) or first.name != "timestamp" or first.when is None:
        raise TypeError("a time is not the first field of PUT")
    return first.when.mask


class Alike(NamedTuple):
    """Rows of a part that are dealt with in the same way: up to ``stop``."""

    stop: int
    odd: bool
    """They are to be looked at one by one."""
    qos: int
    """That of all of them, or -1."""


class _Heads:
    """What stands before the body, for each route, with one QoS."""

    __slots__ = ("sizes", "starts", "text", "used")

    def __init__(self) -> None:
        self.starts: Int32 = np.full(64, -1, np.int32)
        self.sizes: Int32 = np.zeros(64, np.int32)
        self.text = np.zeros(1024, np.uint8)
        self.used = 0

    def add(self, number: int, head: bytes | None) -> None:
        """Of the next route; None if it is not for them."""
        if number >= len(self.starts):
            more = 2 * number - len(self.starts)
            self.starts = np.concatenate([self.starts, np.full(more, -1, np.int32)])
            self.sizes = np.concatenate([self.sizes, np.zeros(more, np.int32)])
        if head is None:
            return
        end = self.used + len(head)
        if end + _SLACK > len(self.text):
            self.text = np.concatenate([self.text, np.zeros(2 * end + _SLACK, np.uint8)])
        self.text[self.used : end] = np.frombuffer(head, np.uint8)
        self.starts[number], self.sizes[number] = self.used, len(head)
        self.used = end


class Way(Generic[To]):
    """Those who get the same bytes, whatever the route: ``to``."""

    __slots__ = ("_heads", "_written", "size", "to")

    def __init__(self, to: tuple[To, ...], written: list[tuple[WireExpr, int] | None]) -> None:
        self.to = to
        self.size = len(written)
        """Heads, and places for them, that it has."""
        self._written = written
        self._heads: dict[int, tuple[_Heads, int]] = {}

    def split(self, to: tuple[To, ...], written: tuple[WireExpr, int] | None) -> Way[To]:
        """Some of them, for whom the next route is written like this; None if it is not for them."""
        if len(to) == len(self.to):
            self._written.append(written)
            self.size += 1
            return self
        return Way(to, [*self._written, written])

    def heads(self, qos: QoS) -> _Heads:
        """For all routes that are known."""
        heads, done = self._heads.get(qos.raw) or (_Heads(), 0)
        if done == len(self._written):
            return heads
        self.size -= heads.used
        for number, written in enumerate(self._written[done:], done):
            head = None
            if written is not None:
                expr, node_id = written
                # All of the message but its body, which is as short as one can be.
                head = encode(Push(key=expr, qos=qos, node_id=node_id, body=Del()))[:-_DEL]
            heads.add(number, head)
        self._heads[qos.raw] = heads, len(self._written)
        self.size += heads.used
        return heads


class Ways(Generic[To]):
    """Who gets what of one neighbour: by route, in the order in which routes become known."""

    __slots__ = ("_all", "known")

    def __init__(self) -> None:
        self._all: list[Way[To]] = []
        self.known = 0
        """Routes."""

    def __iter__(self) -> Iterator[Way[To]]:
        return iter(self._all)

    def __bool__(self) -> bool:
        return bool(self._all)

    @property
    def full(self) -> bool:
        """It takes as much as it may: begin again."""
        return len(self._all) > 0 and sum(way.size for way in self._all) > _ENTRIES_MAX

    def learn(self, remote: Sequence[tuple[WireExpr, int, tuple[To, ...]]]) -> None:
        """The next route: how its key is written, with the number of a router, and for whom."""
        wanted = {one: (expr, node_id) for expr, node_id, to in remote for one in to}
        ways: list[Way[To]] = []
        for way in self._all:
            parts: dict[tuple[WireExpr, int] | None, list[To]] = {}
            for one in way.to:
                parts.setdefault(wanted.pop(one, None), []).append(one)
            ways += [way.split(tuple(to), written) for written, to in parts.items()]
        fresh: dict[tuple[WireExpr, int], list[To]] = {}
        for one, written in wanted.items():
            fresh.setdefault(written, []).append(one)
        ways += [Way(tuple(to), [None] * self.known + [how]) for how, to in fresh.items()]
        self._all = ways
        self.known += 1


class Passage:
    """Writes what is passed on. ``zid`` is the id of the clock that gives times."""

    def __init__(self, zid: ZenohId) -> None:
        stamp = encode(Timestamp(time=0, id=zid))[1:]
        self.id = _padded(stamp)
        fixed = NETWORK.fixed.index
        self.known = np.array([fixed("body_at"), fixed("end"), _time_flag(), len(stamp)], np.uint64)
        self._state = np.zeros(4, np.int64)
        self._stamped = np.zeros(3, np.uint64)
        self._times = _NEVER
        self.out = np.empty(_OUT[0], np.uint8)
        self.cuts: Int32 = np.zeros((3, _BATCHES), np.int32)

    def renew(self, free: Bytes | None) -> Bytes:
        """Somebody needs what was written last: what follows goes elsewhere. Gives where it is.

        ``free`` is one that was given before, and is not needed any more.
        """
        kept = self.out
        self.out = np.empty(len(kept), np.uint8) if free is None else free
        return kept

    def grow(self) -> None:
        """What was written last did not hold all there was, and is not needed any more."""
        if len(self.out) < _OUT[1]:
            self.out = np.empty(_OUT[1], np.uint8)

    def alike(self, part: Part, first: int) -> Alike:
        """Rows of a part from ``first`` on, as far as they are all usual, or none of them."""
        rows, state = part.run.scan.network, self._state
        forward_kernels.survey(
            rows.int32, rows.present, _SURVEY, part.route, part.groups, first, part.stop, state
        )
        stop, odd, qos, mixed = state.tolist()
        return Alike(stop, bool(odd), -1 if mixed else qos)

    def stamp(self, part: Part, first: int, stop: int) -> Callable[[int, int, int], int]:
        """What gives times to the rows that need them: see `Clock.many`. Then ask `stamped`."""
        rows = part.run.scan.network
        if len(self._times) < len(rows.present):
            self._times = np.empty(len(rows.present), np.uint64)

        def give(now: int, last: int, top: int) -> int:
            state = self._stamped
            forward_kernels.stamp(
                rows.uint64, rows.present, _STAMP, first, stop, now, last, top, self._times, state
            )
            return int(state[1])

        return give

    @property
    def stamped(self) -> tuple[int, int]:
        """Where the last `stamp` came to an end, and how many times it gave."""
        return int(self._stamped[0]), int(self._stamped[2])

    def lanes(self, part: Part, first: int, stop: int, qos: int) -> Iterator[tuple[QoS, Int32]]:
        """Rows that go together, in order: no rows stand for all. One priority after the other."""
        if qos >= 0:
            yield _qos(qos), _ALL
            return
        column = NETWORK.columns["qos"]
        rows = part.run.scan.network
        there = (rows.present[first:stop] >> np.uint64(column.bit) & np.uint64(1)).astype(np.bool_)
        values = np.where(there, rows.int32[column.slot, first:stop], QoS().raw)
        every = np.arange(first, stop, dtype=np.int32)
        priorities = values & 7
        for priority in np.unique(priorities):
            chosen = priorities == priority
            mine, its = every[chosen], values[chosen]
            cuts = np.flatnonzero(np.diff(its)) + 1
            for some, one in zip(np.split(mine, cuts), its[np.r_[0, cuts]].tolist(), strict=True):
                yield _qos(one), np.ascontiguousarray(some)

    def write(
        self,
        part: Part,
        bounds: tuple[int, int],
        lane: tuple[QoS, Int32],
        way: Way[To],
        packing: int,
        *,
        timed: bool,
    ) -> Written:
        """The messages of rows for a way, as batches with ``packing`` bytes of messages at most.

        ``timed``: with the times that `stamp` gave.
        """
        qos, rows = lane
        times = self._times if timed else _NEVER
        heads, packing = way.heads(qos), min(packing, _LARGEST)
        return Written(self, part, bounds, rows=rows, times=times, heads=heads, packing=packing)


class Written:
    """Batches that are written one buffer after the other: `go_on` while there is `more`.

    ``end`` is how much of the buffer is filled, with ``batches`` that have ``messages``.
    """

    __slots__ = (
        "_count",
        "_cuts",
        "_first",
        "_heads",
        "_next",
        "_packing",
        "_part",
        "_passage",
        "_rows",
        "_state",
        "_times",
        "alone",
        "batches",
        "end",
        "messages",
    )

    def __init__(
        self,
        passage: Passage,
        part: Part,
        bounds: tuple[int, int],
        *,
        rows: Int32,
        times: UInt64,
        heads: _Heads,
        packing: int,
    ) -> None:
        self._passage = passage
        self._part = part
        self._first, stop = bounds
        self._count = len(rows) or stop - self._first
        self._rows = rows
        self._times = times
        self._heads = heads
        self._packing = packing
        self._state = np.zeros(4, np.int64)
        self._next = 0
        self._cuts: Int32 = _CUTS
        self.end = self.batches = self.messages = 0
        self.alone = False
        """It is one message, which is too large for a batch."""

    @property
    def more(self) -> bool:
        """There are rows left."""
        return self._next < self._count

    def go_on(self, around: tuple[bytes, bytes], sn: int, mask: int, prefix: int) -> bool:
        """The next ones, in FRAMEs from this number on; False if there are none."""
        self.alone = False
        if self._next:
            self._passage.grow()
        larger = self._fill(around, (sn, mask, prefix), self._packing, self._count)
        if larger and not self.batches:
            self.alone = True
            self._fill(around, (sn, mask, prefix), larger, self._next + 1)
        return self.batches > 0

    def _fill(
        self,
        around: tuple[bytes, bytes],
        numbers: tuple[int, int, int],
        limit: int,
        count: int,
    ) -> int:
        """Gives the size of a message that does not fit, if that is why it ended."""
        state, passage, heads, scan = self._state, self._passage, self._heads, self._part.run.scan
        before, after = around
        self._cuts = passage.cuts
        if limit > _LARGEST:
            raise AssertionError("a message of one batch is larger than that")
        self.end = int(
            forward_kernels.forward(
                scan.buffer,
                scan.network.int32,
                passage.known,
                self._part.route,
                self._times,
                self._rows,
                self._first,
                count,
                heads.starts,
                heads.sizes,
                heads.text,
                passage.id,
                _padded(before + after),
                np.array([len(before), len(after), *numbers], np.uint64),
                limit,
                passage.out,
                passage.cuts,
                state,
            )
        )
        self._next, self.batches, self.messages, larger = state.tolist()
        return int(larger)

    @property
    def data(self) -> memoryview:
        """All of them, as a stream has them. Void with the next ones, unless `Passage.renew`."""
        return memoryview(self._passage.out)[: self.end]  # type: ignore[arg-type] # is a buffer

    def pieces(self) -> Iterator[tuple[memoryview, int]]:
        """The messages of each batch, and how many they are. Void as `data`."""
        data = memoryview(self._passage.out)  # type: ignore[arg-type] # is a buffer
        for start, end, count in self._cuts[:, : self.batches].T.tolist():
            yield data[start:end], count


_qos: Final = cache(QoS)


@cache
def _padded(data: bytes) -> Bytes:
    return np.frombuffer(data + bytes(_SLACK), np.uint8)
