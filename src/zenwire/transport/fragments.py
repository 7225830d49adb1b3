"""Fragments to messages: one unfinished message per lane, within the share of its session."""

from __future__ import annotations

from zenwire.transport.budget import Share
from zenwire.transport.stats import Cause, Stats

__all__ = ["Reassembly"]


class Reassembly:
    """The unfinished message of one lane.

    With ``marked`` (Patch 1 was agreed) a message starts at a fragment that says so. Without it,
    any fragment starts one, unless it may be the rest of a message that was given up.
    """

    __slots__ = ("_marked", "_next", "_parts", "_share", "_skipping", "_stats")

    def __init__(self, share: Share, marked: bool) -> None:
        self._share = share
        self._stats: Stats | None = None
        self._marked = marked
        # A bytearray, not a list of parts: a million fragments of one byte are a megabyte.
        self._parts: bytearray | None = None
        self._next = 0
        self._skipping = False

    @property
    def unfinished(self) -> bool:
        return self._parts is not None

    @property
    def held(self) -> int:
        """Bytes that are charged to the share."""
        return 0 if self._parts is None else len(self._parts)

    def push(
        self,
        payload: bytes,
        sn: int,
        mask: int,
        stats: Stats,
        *,
        more: bool,
        first: bool = False,
        drop: bool = False,
    ) -> bytearray | None:
        """A fragment whose number is new. The message, if this was its last."""
        if first or drop:
            if self._parts is not None:
                cause = Cause.FRAGMENT_INTERRUPTED if first else Cause.FRAGMENT_GIVEN_UP
                self.abort(stats, cause)
            elif drop and not self._skipping:
                stats.dropped[Cause.FRAGMENT_GIVEN_UP] += 1
            self._skipping = False
            if drop:
                return None
        elif self._parts is not None and sn != self._next:
            self.abort(stats, Cause.FRAGMENT_GAP, skip=True)
        if self._parts is None:
            if self._skipping or (self._marked and not first):
                if not self._skipping:
                    stats.dropped[Cause.FRAGMENT_NO_FIRST] += 1
                self._skipping = more
                return None
            self._parts = bytearray()
            self._stats = stats
            self._share.begin(self)
        return self._append(payload, sn, mask, stats, more)

    def _append(
        self, payload: bytes, sn: int, mask: int, stats: Stats, more: bool
    ) -> bytearray | None:
        parts, share = self._parts, self._share
        assert parts is not None
        size = len(payload)
        if len(parts) + size > share.message_max:
            self.abort(stats, Cause.FRAGMENT_TOO_LARGE, skip=more)
            return None
        if not more:
            share.end(self)
            self._parts = None
            parts += payload
            return parts
        if share.reserve(self, size):
            parts += payload
            self._next = sn + 1 & mask
        return None

    def abort(self, stats: Stats, cause: Cause, *, skip: bool = False) -> None:
        """Forget what is there; ``skip``: and what follows, up to the end of the message."""
        if self._parts is not None:
            self._share.end(self)
            self._parts = None
            stats.dropped[cause] += 1
        self._skipping = skip

    def evict(self, cause: Cause) -> None:
        """See `Unfinished`. Counted by the link on which the message began."""
        assert self._stats is not None
        self.abort(self._stats, cause, skip=True)
