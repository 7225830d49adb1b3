"""What the asker does with replies: which count, which replace which, how many are wanted.

No other node does any of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zenwire.keyexpr import intersects
from zenwire.routing.limits import Counters, Limits
from zenwire.wire.data import Err
from zenwire.wire.values import ConsolidationMode

if TYPE_CHECKING:
    from zenwire.routing.outputs import ReplyReceived

__all__ = ["Consolidation", "parameter_names", "resolve"]

_Age = tuple[int, bytes]


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

    __slots__ = ("_accept", "_budget", "_counters", "_held", "_keys_max", "_newest", "mode")

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
        self._held: dict[str, ReplyReceived] = {}
        self._newest: dict[str, _Age | None] = {}

    def receive(self, reply: ReplyReceived) -> list[ReplyReceived]:
        """What may be delivered now that this reply came."""
        if isinstance(reply.body, Err):
            # Not on any key, so no other reply replaces it.
            return [reply]
        key = reply.key
        accept = self._accept
        if accept is not None and key != accept and not intersects(accept, key):
            self._counters.foreign_reply += 1
            return []
        if self.mode is not ConsolidationMode.NONE and not self._is_news(reply):
            return []
        if self.mode is ConsolidationMode.LATEST:
            self._held[key] = reply
            return []
        return self._within_budget([reply])

    def end(self) -> list[ReplyReceived]:
        """What was held back until all had answered, or the time was over."""
        held = list(self._held.values())
        self._held.clear()
        return self._within_budget(held)

    def _is_news(self, reply: ReplyReceived) -> bool:
        """Whether no newer one is known for its key. No timestamp is older than any."""
        stamp = None if isinstance(reply.body, Err) else reply.body.timestamp
        age = None if stamp is None else (stamp.time, stamp.id.raw)
        if reply.key in self._newest:
            known = self._newest[reply.key]
            if known is not None and (age is None or age < known):
                return False
        elif len(self._newest) >= self._keys_max:
            self._counters.limit_replies += 1
            return False
        self._newest[reply.key] = age
        return True

    def _within_budget(self, replies: list[ReplyReceived]) -> list[ReplyReceived]:
        if self._budget is None:
            return replies
        wanted = replies[: self._budget]
        self._budget -= len(wanted)
        self._counters.over_budget += len(replies) - len(wanted)
        return wanted
