"""What the asker does with replies: which count, which replace which, how many are wanted.

No other node does any of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zenwire.keyexpr import intersects
from zenwire.routing.limits import Counters, Limits
from zenwire.wire.data import Err
from zenwire.wire.values import ConsolidationMode

if TYPE_CHECKING:
    from zenwire.routing.outputs import ReplyReceived
    from zenwire.wire.data import Del, Put

__all__ = ["Consolidation", "parameter_names", "resolve"]

_Age = tuple[int, bytes]
_NONE: Final = ConsolidationMode.NONE
_LATEST: Final = ConsolidationMode.LATEST


def parameter_names(parameters: str) -> set[str]:
    """The names of ``k=v;k2=v2;flag``."""
    if not parameters:
        return set()
    return {pair.partition("=")[0] for pair in parameters.split(";") if pair}


def resolve(mode: ConsolidationMode, parameters: str) -> ConsolidationMode:
    """What AUTO means: the latest of each key, but all of them if a time range is asked for."""
    if mode is not ConsolidationMode.AUTO:
        return mode
    timed = "_time" in parameter_names(parameters)
    return ConsolidationMode.NONE if timed else ConsolidationMode.LATEST


class Consolidation:
    """The replies to one query on their way to the asker. ``mode`` is resolved."""

    __slots__ = ("_accept", "_budget", "_counters", "_keys_max", "_newest", "mode")

    def __init__(
        self,
        mode: ConsolidationMode,
        accept: str | None,
        budget: int | None,
        counters: Counters,
        keys_max: int = Limits().replies,
    ) -> None:
        self.mode = mode
        self._accept = accept
        self._budget = budget
        self._counters = counters
        self._keys_max = keys_max
        self._newest: dict[str, tuple[_Age | None, ReplyReceived | None]] = {}
        """By key: how old the newest is, and that itself if it is held back until the end."""

    def receive(self, reply: ReplyReceived) -> list[ReplyReceived]:
        """What may be delivered now that this reply came."""
        if isinstance(reply.body, Err):
            # Not on any key, so no other reply replaces it.
            return [reply]
        key, accept, mode = reply.key, self._accept, self.mode
        if accept is not None and key != accept and not intersects(accept, key):
            self._counters.foreign_reply += 1
            return []
        if mode is not _NONE:
            held = mode is _LATEST
            if not self._is_news(key, reply.body, reply if held else None) or held:
                return []
        return self._within_budget([reply])

    def end(self) -> list[ReplyReceived]:
        """What was held back until all had answered, or the time was over."""
        held = [reply for _, reply in self._newest.values() if reply is not None]
        self._newest.clear()
        return held if self._budget is None else self._within_budget(held)

    def _is_news(self, key: str, body: Put | Del, held: ReplyReceived | None) -> bool:
        """Whether no newer one is known for its key. No timestamp is older than any."""
        stamp = body.timestamp
        age = None if stamp is None else (stamp.time, stamp.id.raw)
        newest = self._newest
        known = newest.get(key)
        if known is not None:
            if known[0] is not None and (age is None or age < known[0]):
                return False
        elif len(newest) >= self._keys_max:
            self._counters.limit_replies += 1
            return False
        newest[key] = age, held
        return True

    def _within_budget(self, replies: list[ReplyReceived]) -> list[ReplyReceived]:
        if self._budget is None:
            return replies
        wanted = replies[: self._budget]
        self._budget -= len(wanted)
        self._counters.over_budget += len(replies) - len(wanted)
        return wanted
