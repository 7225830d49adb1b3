"""What a session and everything it declares work on: the loop, and the way into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zenwire import process
from zenwire.errors import ForkedSession, SessionClosed
from zenwire.sync.lanes import Lane

if TYPE_CHECKING:
    from zenwire.api.session import Session
    from zenwire.api.values import Priority
    from zenwire.sync.handler import Reading
    from zenwire.sync.thread import Loop

__all__ = ["Access"]


class Access:
    """The session of the asyncio API, for other threads. It does not keep the program's alive."""

    def __init__(self, loop: Loop, inner: Session) -> None:
        self.loop = loop
        self.inner = inner
        self.strands: set[Any] = set()
        """The callbacks that are not at their end."""
        self._lanes: dict[Priority | None, Lane] = {None: Lane(loop)}

    @property
    def usable(self) -> bool:
        """Whether `check` would not raise."""
        return not self.inner.is_closed() and process.pid == self.loop.pid

    def check(self, what: str) -> None:
        """Raise, if ``what`` cannot be done any more."""
        if process.pid != self.loop.pid:
            raise ForkedSession(what, self.loop.pid)
        if self.inner.is_closed():
            raise SessionClosed(what)

    def lane(self, priority: Priority | None) -> Lane:
        """For calls that nobody waits for; replies have the one of None."""
        lane = self._lanes.get(priority)
        if lane is None:
            lane = self._lanes.setdefault(priority, Lane(self.loop))
        return lane

    def attach(self, reading: Reading[Any], opened: Any, owner: object = None) -> tuple[Any, Any]:
        """What the program reads from, and the calls of its callback, if it has a thread.

        ``owner`` is kept until the last of them.
        """
        handler, strand = reading.attach(self.loop, opened)
        if strand is not None:
            self.strands.add(strand)
            strand.start(owner, self.strands.discard)
        return handler, strand
