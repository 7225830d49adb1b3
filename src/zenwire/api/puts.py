"""Values that are put one after the other, without a coroutine for each."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zenwire.api.core import Core
    from zenwire.node.neighbour import Waiting
    from zenwire.node.stream import Stream

__all__ = ["Puts"]


class Puts:
    """Who publishes values that have all else in common. Its calls belong to the loop."""

    __slots__ = ()

    _core: Core

    @abstractmethod
    def _short(self) -> Stream | None:
        """What knows a short way."""

    @abstractmethod
    def put_long(self, payload: bytes) -> list[Waiting] | None:
        """Publish by the long way. What it gives, if anything, has no room yet."""

    def put_all(self, payloads: Sequence[bytes]) -> list[Waiting]:
        """Publish, in order. Gives what has no room yet. Raises as ``put`` does."""
        self._core.check_loop("put")
        waiting: list[Waiting] = []
        at, end = 0, len(payloads)
        while at < end:
            stream = self._short()
            if stream is not None:
                at = stream.put_all(payloads, at, waiting)
            if at < end:
                waiting += self.put_long(payloads[at]) or ()
                at += 1
        return waiting
