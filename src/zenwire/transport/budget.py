"""The memory of unfinished messages: one budget for many sessions, a share for each of them.

A message is unfinished while its fragments, or the bytes of a low-latency message, are still coming.
A session that needs more than is left makes the session with the greatest weight give way, which may
be itself: one session alone may use the whole budget, and with several the one that holds most, or
holds for longest without progress, loses a message first. An evicted message is counted in the
statistics of its link, the rest of its bytes is discarded, and the link stays open: closing it would
punish the other messages of that session, and its peer would come back with the same.
"""

from __future__ import annotations

from typing import Protocol

from zenwire.transport.stats import Cause

__all__ = ["ReassemblyBudget", "Share", "Unfinished"]


class Unfinished(Protocol):
    """A message of which not all bytes are there. ``held`` is how many are charged to its share."""

    @property
    def held(self) -> int: ...

    def evict(self, cause: Cause) -> None:
        """Drop the bytes, call ``Share.end``, count the cause, and discard the rest to come."""


class ReassemblyBudget:
    """Bytes that the unfinished messages of all sessions may hold together.

    Its owner calls ``sweep`` every now and then while there are ``unfinished`` messages, and may
    override ``started`` to know when that begins.
    """

    __slots__ = ("_shares", "left", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit
        """Bytes that may still be reserved; negative after ``resize`` to less than is held."""
        self._shares: dict[Share, None] = {}

    def share(self, message_max: int, timeout: float = float("inf")) -> Share:
        """Create the share of a session. See `Share`."""
        return Share(self, message_max, timeout)

    def resize(self, limit: int) -> None:
        """Change the limit. Nothing is evicted until somebody needs room."""
        self.left += limit - self.limit
        self.limit = limit

    @property
    def held(self) -> int:
        """Bytes of all unfinished messages."""
        return self.limit - self.left

    @property
    def unfinished(self) -> int:
        """Number of unfinished messages."""
        return sum(len(share.unfinished) for share in self._shares)

    def started(self) -> None:
        """There is an unfinished message, and before there was none."""

    def add(self, share: Share) -> None:
        """A share has its first unfinished message."""
        if not self._shares:
            self.started()
        self._shares[share] = None

    def remove(self, share: Share) -> None:
        """A share has no unfinished message any more."""
        self._shares.pop(share, None)

    def make_room(self, share: Share, message: Unfinished, size: int) -> bool:
        """Evict until ``size`` bytes more are left. False if the message itself had to give way."""
        while size > self.left:
            victim = max(self._shares, key=_weight)
            if share.weight + size >= victim.weight:
                victim = share
            victim.give_way()
            if message not in share.unfinished:
                return False
        return True

    def sweep(self, now: float) -> None:
        """Expire the messages that made no progress for the timeout of their share."""
        for share in list(self._shares):
            share.sweep(now)


class Share:
    """The part of a budget that one session holds, and the limits of that session.

    A message has at most ``message_max`` bytes; one that does not grow for ``timeout`` seconds expires.
    """

    __slots__ = ("_stalled", "budget", "held", "message_max", "timeout", "unfinished")

    def __init__(self, budget: ReassemblyBudget, message_max: int, timeout: float) -> None:
        self.budget = budget
        self.message_max = message_max
        self.timeout = timeout
        self.held = 0
        """Bytes of all its unfinished messages."""
        self.unfinished: dict[Unfinished, tuple[int, float] | None] = {}
        """By message: the bytes it held when a sweep last saw it grow, and when that was."""
        self._stalled = 0.0

    @property
    def weight(self) -> float:
        """Bytes held, each counted once more for every second that its message has stood still."""
        return self.held + self._stalled

    def begin(self, message: Unfinished) -> None:
        """Charge the bytes of a message to this share from now on."""
        if not self.unfinished:
            self.budget.add(self)
        self.unfinished[message] = None

    def reserve(self, message: Unfinished, size: int) -> bool:
        """Charge ``size`` bytes more. False if the message was evicted instead."""
        budget = self.budget
        if size > budget.left and not budget.make_room(self, message, size):
            return False
        budget.left -= size
        self.held += size
        return True

    def end(self, message: Unfinished) -> None:
        """Release what a message holds: it is whole, or dropped."""
        held = message.held
        self.held -= held
        self.budget.left += held
        del self.unfinished[message]
        if not self.unfinished:
            self._stalled = 0.0
            self.budget.remove(self)

    def give_way(self) -> None:
        """Evict one message: the one that stands still for longest, of several the largest."""
        seen = self.unfinished
        since = {one: entry[1] for one in seen if (entry := seen[one]) and entry[0] == one.held}
        chosen = min(seen, key=lambda one: (since.get(one, float("inf")), -one.held))
        chosen.evict(Cause.FRAGMENT_EVICTED)

    def sweep(self, now: float) -> None:
        """See `ReassemblyBudget.sweep`."""
        self._stalled = 0.0
        for message, seen in list(self.unfinished.items()):
            if seen is None or seen[0] != message.held:
                self.unfinished[message] = message.held, now
                continue
            still = now - seen[1]
            if still >= self.timeout:
                message.evict(Cause.FRAGMENT_EXPIRED)
            else:
                self._stalled += message.held * still


def _weight(share: Share) -> float:
    return share.weight
