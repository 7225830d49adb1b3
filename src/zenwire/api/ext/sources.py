"""What is known of those that samples come from: what was delivered, and what waits."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeAlias, TypeVar

from zenwire.api.ext.limits import RETENTION, SOURCES_MAX
from zenwire.api.ext.sequence import in_order, is_after, next_sn
from zenwire.api.values import EntityGlobalId, Sample, ZenohId
from zenwire.wire import structs
from zenwire.wire import values as wire
from zenwire.wire.data import Put

__all__ = ["Key", "Numbered", "Source", "Sources", "Timed", "size_of"]

K = TypeVar("K")

Key: TypeAlias = tuple[bytes, int | None]
"""Of a source: the id of a node and of its publisher; for a clock None."""

_SAMPLE_SIZE: Final = 512
"""Bytes that a sample takes beside its payload and attachment; about what its objects do."""


def size_of(sample: Sample) -> int:
    """The memory that a sample takes, in bytes."""
    body = sample.body
    payload = len(body.payload) if isinstance(body, Put) else 0
    return _SAMPLE_SIZE + payload + len(body.attachment or b"")


class Source(Generic[K]):
    """Samples in the order of a key: a number, or a time.

    ``last`` is the key of what was delivered last. ``held`` waits for what comes before it.
    ``asked`` is how many queries for this source are under way, ``alive`` whether it has a token,
    ``accessed`` when it was heard of.
    """

    __slots__ = ("accessed", "alive", "asked", "held", "last")

    def __init__(self, now: float) -> None:
        self.last: K | None = None
        self.held: dict[K, Sample] = {}
        self.asked = 0
        self.alive = False
        self.accessed = now

    def waiting(self) -> list[K]:
        """What is held, in order."""
        raise NotImplementedError


class Timed(Source[tuple[int, bytes]]):
    """A clock, whose samples have no numbers; the key is a time and the clock's id."""

    __slots__ = ()

    def waiting(self) -> list[tuple[int, bytes]]:
        return sorted(self.held)


class Numbered(Source[int]):
    """A publisher, whose samples have numbers.

    Holes up to ``covered`` were asked for. ``promised`` is a last number that was told and asked
    for, ``owed`` one that did not come when it was asked for. ``query_at`` is when it is asked
    for later samples.
    """

    __slots__ = ("again", "covered", "id", "newest", "owed", "promised", "query_at", "was_gone")

    def __init__(self, id: EntityGlobalId, now: float) -> None:
        super().__init__(now)
        self.id = id
        self.covered: int | None = None
        self.promised: int | None = None
        self.owed: int | None = None
        self.query_at: float | None = None
        self.newest: int | None = None
        """The latest time that the publisher's own clock gave."""
        self.again = False
        """Whether the last query was not answered, and is asked once more."""
        self.was_gone = False
        """Whether its token ended since it started."""

    def waiting(self) -> list[int]:
        return in_order(self.held)

    def is_old(self, sn: int) -> bool:
        """Whether that was delivered, or given up."""
        return self.last is not None and not is_after(sn, self.last)

    def follows(self, sn: int) -> bool:
        """Whether that is the next one."""
        return self.last is not None and sn == next_sn(self.last)

    def has_restarted(self, stamp: structs.Timestamp | None, *, live: bool) -> bool:
        """Whether an old number is the new one of a publisher that counts from 0 again.

        Its clock goes on where numbers do not. Without one, only its token tells; and what a
        cache has of the time before its end may come after it.
        """
        if self._own(stamp) and self.newest is not None:
            assert stamp is not None
            return stamp.time > self.newest
        return live and self.was_gone

    def saw(self, stamp: structs.Timestamp | None) -> None:
        """A time of a sample."""
        if self._own(stamp):
            assert stamp is not None
            self.newest = stamp.time if self.newest is None else max(self.newest, stamp.time)

    def _own(self, stamp: structs.Timestamp | None) -> bool:
        """Routers give times too, to what has none."""
        return stamp is not None and stamp.id == self.id.zid.wire


class Sources:
    """Those that are known, first the one that was silent for longest.

    ``forget`` is told of each that is not known any more.
    """

    def __init__(self, forget: Callable[[Numbered | Timed], None]) -> None:
        self.forgotten = 0
        """Those that had to be forgotten, for there were too many."""
        self._forget = forget
        self._known: OrderedDict[Key, Numbered | Timed] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Numbered | Timed]:
        return iter(list(self._known.values()))

    def __contains__(self, key: Key) -> bool:
        return key in self._known

    def get(self, key: Key) -> Numbered | Timed | None:
        """Without having heard of it."""
        return self._known.get(key)

    def numbered(self, zid: wire.ZenohId, eid: int, now: float) -> tuple[Numbered, bool]:
        """A publisher that was heard of, and whether it is new."""
        key = zid.raw, eid
        source = self._known.get(key)
        if source is not None:
            assert isinstance(source, Numbered)
            self._touch(key, source, now)
            return source, False
        made = Numbered(EntityGlobalId(ZenohId.from_wire(zid), eid), now)
        self._add(key, made)
        return made, True

    def timed(self, key: Key, now: float) -> Timed:
        """A clock that was heard of."""
        source = self._known.get(key)
        if source is not None:
            assert isinstance(source, Timed)
            self._touch(key, source, now)
            return source
        made = Timed(now)
        self._add(key, made)
        return made

    @property
    def deadline(self) -> float | None:
        """When the first may be forgotten."""
        for source in self._known.values():
            return source.accessed + RETENTION
        return None

    def tick(self, now: float) -> None:
        """Forget those that were silent for too long, unless they have a token."""
        while self._known:
            key, oldest = next(iter(self._known.items()))
            if oldest.accessed + RETENTION > now:
                break
            if oldest.alive:
                self._touch(key, oldest, now)
            else:
                self._forget(self._known.pop(key))

    def _touch(self, key: Key, source: Numbered | Timed, now: float) -> None:
        source.accessed = now
        self._known.move_to_end(key)

    def _add(self, key: Key, source: Numbered | Timed) -> None:
        if len(self._known) >= SOURCES_MAX:
            self.forgotten += 1
            self._forget(self._known.popitem(last=False)[1])
        self._known[key] = source
