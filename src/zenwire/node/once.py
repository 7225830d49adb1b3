"""A task that runs once and is shared by all callers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

__all__ = ["Once"]


class Once:
    """Runs a coroutine in a task of its own, which every caller of `run` awaits.

    A cancelled caller stops waiting and the work goes on. All callers get the exception that the
    work raises. Belongs to one event loop.
    """

    __slots__ = ("_task",)

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    @property
    def begun(self) -> bool:
        """True from the first `run` on."""
        return self._task is not None

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start ``work``, unless it was started before, and wait until it is done."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(work())
        await asyncio.shield(self._task)
