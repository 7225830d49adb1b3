"""What is known of those that samples come from: what was delivered, and what waits."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from zenwire.api.values import EntityGlobalId, Sample
from zenwire.ext.sequence import in_order, is_after, next_sn
from zenwire.wire import structs
from zenwire.wire.data import Put

__all__ = ["Numbered", "Source", "Timed", "size_of"]

K = TypeVar("K")

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

    __slots__ = ("covered", "id", "newest", "owed", "promised", "query_at", "was_gone")

    def __init__(self, id: EntityGlobalId, now: float) -> None:
        super().__init__(now)
        self.id = id
        self.covered: int | None = None
        self.promised: int | None = None
        self.owed: int | None = None
        self.query_at: float | None = None
        self.newest: int | None = None
        """The latest time that the publisher's own clock gave."""
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
