"""Fragments to messages: one unfinished message per lane, within a budget for all."""

from __future__ import annotations

from zenwire.transport.stats import Cause, Stats

__all__ = ["Budget", "Reassembly"]


class Budget:
    """What the unfinished messages of a session may hold: each, and all together."""

    __slots__ = ("left", "message_max")

    def __init__(self, message_max: int, total: int) -> None:
        self.message_max = message_max
        self.left = total


class Reassembly:
    """The unfinished message of one lane.

    With ``marked`` (Patch 1 was agreed) a message starts at a fragment that says so. Without it,
    any fragment starts one, unless it may be the rest of a message that was given up.
    """

    __slots__ = ("_budget", "_marked", "_next", "_parts", "_skipping")

    def __init__(self, budget: Budget, marked: bool) -> None:
        self._budget = budget
        self._marked = marked
        # A bytearray, not a list of parts: a million fragments of one byte are a megabyte.
        self._parts: bytearray | None = None
        self._next = 0
        self._skipping = False

    @property
    def unfinished(self) -> bool:
        return self._parts is not None

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
        return self._append(payload, sn, mask, stats, more)

    def _append(
        self, payload: bytes, sn: int, mask: int, stats: Stats, more: bool
    ) -> bytearray | None:
        parts, budget = self._parts, self._budget
        assert parts is not None
        size = len(payload)
        if len(parts) + size > budget.message_max or size > budget.left:
            self.abort(stats, Cause.FRAGMENT_TOO_LARGE, skip=more)
            return None
        parts += payload
        if more:
            budget.left -= size
            self._next = sn + 1 & mask
            return None
        budget.left += len(parts) - size
        self._parts = None
        return parts

    def abort(self, stats: Stats, cause: Cause, *, skip: bool = False) -> None:
        """Forget what is there; ``skip``: and what follows, up to the end of the message."""
        if self._parts is not None:
            self._budget.left += len(self._parts)
            self._parts = None
            stats.dropped[cause] += 1
        self._skipping = skip
