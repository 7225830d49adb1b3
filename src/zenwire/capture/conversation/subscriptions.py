"""Life spans of the subscriptions on a connection, and whether a gap falls into them.

A node sends a sample over a link only while the other side has a matching subscription. The
numbers that a publisher gave its samples therefore skip wherever nobody had subscribed, and that
is no loss.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Final

from zenwire.keyexpr import intersects, is_canonical

__all__ = ["GAP", "NOT_SENT", "Life", "Subscriptions", "counts", "may_match"]

GAP: Final = ("source", "gap")
"""Kind and reason of a gap in the numbers of a publisher that is a loss."""
NOT_SENT: Final = ("not_sent", "not sent here")
"""Kind and reason of a gap that is none: the samples were not for this link."""
ENDED: Final = 4096
"""Subscriptions of one side that ended and are remembered; the oldest are forgotten first."""


@dataclass(slots=True)
class Life:
    """A subscription from its declaration to its undeclaration, in nanoseconds.

    ``key`` None is not known; ``declared`` None is before the capture, ``undeclared`` None is
    after it.
    """

    key: str | None
    declared: int | None
    undeclared: int | None = None

    def overlaps(self, since: int, until: int) -> bool:
        """Return True if the subscription lived at some time between the two."""
        begins = self.declared is None or self.declared <= until
        return begins and (self.undeclared is None or self.undeclared >= since)


def may_match(subscription: str | None, key: str | None) -> bool:
    """Return False where it is certain that a subscription is not about a key."""
    if subscription is None or key is None:
        return True
    if not (is_canonical(subscription) and is_canonical(key)):
        return True
    return intersects(subscription, key)


def counts(lives: Iterable[Life], since: int, until: int, *, opened: bool) -> bool:
    """Return True if a gap between two samples of a publisher is a loss.

    ``lives`` are the subscriptions of the receiver that may match, ``since`` and ``until`` the
    times of the samples on both sides of the gap. The gap is a loss if subscriptions that the
    capture shows cover that time without interruption. The capture may lack the declarations of a
    link that it does not show from its start (``opened``). There, a gap is a loss too if no
    subscription began or ended in that time: both samples were sent, so the link was subscribed
    throughout.
    """
    reach = since
    changed = False
    for life in sorted((x for x in lives if x.overlaps(since, until)), key=_begin):
        if life.declared is not None and life.declared <= reach:
            reach = until if life.undeclared is None else max(reach, life.undeclared)
        changed |= life.declared is not None and life.declared > since
        changed |= life.undeclared is not None and life.undeclared < until
        if reach >= until:
            return True
    return not opened and not changed


def _begin(life: Life) -> int:
    return -1 if life.declared is None else life.declared


@dataclass(slots=True)
class Subscriptions:
    """Subscriptions that one side of a connection declared."""

    _alive: dict[Hashable, Life] = field(default_factory=dict)
    _ended: deque[Life] = field(default_factory=deque)
    _forgotten: int = -1
    """When the last of those that are forgotten ended."""

    def declare(self, which: Hashable, key: str | None, time: int) -> None:
        """Begin a life; a subscription that is declared again lives on."""
        self._alive.setdefault(which, Life(key, time))

    def undeclare(self, which: Hashable, key: str | None, time: int) -> None:
        """End a life; one that was not declared in the capture began before it."""
        life = self._alive.pop(which, None) or Life(key, None)
        life.undeclared = time
        self._ended.append(life)
        if len(self._ended) > ENDED:
            self._forgotten = self._ended.popleft().undeclared or time

    def count(self, key: str | None, since: int, until: int, *, opened: bool) -> bool:
        """Return True if a gap in the numbers of a publisher of ``key`` is a loss (``counts``)."""
        # A subscription that is forgotten may have been about this key.
        opened = opened or self._forgotten >= since
        every = (*self._ended, *self._alive.values())
        # Times are compared first, as keys take longer.
        lives = [x for x in every if x.overlaps(since, until) and may_match(x.key, key)]
        return counts(lives, since, until, opened=opened)
