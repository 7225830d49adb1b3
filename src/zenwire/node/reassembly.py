"""The budget for unfinished messages of a process: all nodes of an event loop share one."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final
from weakref import WeakKeyDictionary

from zenwire.transport import ReassemblyBudget

__all__ = ["SWEEP", "LoopBudget", "join_budget"]

SWEEP: Final = 1.0
"""Seconds between two looks at unfinished messages, while there are any."""


class LoopBudget(ReassemblyBudget):
    """The budget of one event loop. Owned by its thread.

    Its limit is the largest of the nodes that are open. Most processes have one loop; sessions
    that run on loops of their own, in threads of their own, do not share.
    """

    __slots__ = ("_limits", "_timer")

    def __init__(self) -> None:
        super().__init__(0)
        self._limits: Counter[int] = Counter()
        self._timer: asyncio.TimerHandle | None = None

    def join(self, limit: int) -> None:
        """A node with this limit uses the budget from now on."""
        self._limits[limit] += 1
        self.resize(max(self._limits))

    def leave(self, limit: int) -> None:
        """Undo ``join``."""
        self._limits[limit] -= 1
        self._limits += Counter()  # without those that nobody has
        self.resize(max(self._limits, default=0))
        if not self._limits and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def started(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SWEEP, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        self.sweep(asyncio.get_running_loop().time())
        if self.unfinished:
            self.started()


_OF_LOOP: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopBudget] = WeakKeyDictionary()


def join_budget(limit: int) -> LoopBudget:
    """Join the budget of the running loop with the limit of a node."""
    loop = asyncio.get_running_loop()
    budget = _OF_LOOP.get(loop)
    if budget is None:
        budget = _OF_LOOP[loop] = LoopBudget()
    budget.join(limit)
    return budget
