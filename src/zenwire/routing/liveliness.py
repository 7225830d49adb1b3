"""Liveliness: which keys have a token, and who is told when that changes.

Tokens have a key space of their own. A key is alive as long as anybody has a token for it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zenwire.routing.declarations import Change, Declarations, Kind
from zenwire.routing.local import Entities, LivelinessSubscriber
from zenwire.routing.outputs import LivelinessChanged, QueryFinished, ReplyReceived
from zenwire.routing.queries import timeout_error
from zenwire.routing.state import AT_ONCE
from zenwire.wire.data import Put
from zenwire.wire.values import InterestMode, QoS

if TYPE_CHECKING:
    from zenwire.routing.faces import Face
    from zenwire.routing.state import State
    from zenwire.routing.upstream import Upstream, Want

__all__ = ["Liveliness"]


@dataclass(slots=True, eq=False)
class _Get:
    session: Face
    want: Want
    seen: set[str] = field(default_factory=set)


class Liveliness:
    """Liveliness subscribers and queries of the sessions."""

    __slots__ = (
        "_alive",
        "_deadlines",
        "_declarations",
        "_gets",
        "_state",
        "_upstream",
        "subscribers",
    )

    def __init__(self, state: State, declarations: Declarations, upstream: Upstream) -> None:
        self._state = state
        self._declarations = declarations
        self._upstream = upstream
        self.subscribers: Entities[LivelinessSubscriber] = Entities()
        self._alive: set[str] = set()
        self._gets: dict[int, _Get] = {}
        self._deadlines: list[tuple[float, int]] = []

    @property
    def deadline(self) -> float | None:
        while self._deadlines and self._deadlines[0][1] not in self._gets:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def changed(self, change: Change) -> None:
        """Somebody declared or undeclared a token on this key."""
        key = change.key
        alive = bool(self._declarations.sources(change))
        if alive == (key in self._alive):
            return
        if alive:
            self._alive.add(key)
        else:
            self._alive.discard(key)
        self._tell(key, alive=alive)

    def gone(self, key: str) -> None:
        """A token went that nobody had told us of: it was there before we asked."""
        if key not in self._alive:
            self._tell(key, alive=False)

    def history(self, subscriber: LivelinessSubscriber) -> None:
        """Tell a new subscriber what is alive as far as it is known here."""
        for key, _ in self._declarations.intersecting(Kind.TOKEN, subscriber.key):
            self._state.emit(LivelinessChanged((subscriber.id,), key, alive=True))

    def get(self, session: Face, key: str, timeout: float, now: float) -> int:
        """Which keys are alive now: replies, then the end."""
        id = self._state.next_entity_id()
        want = self._upstream.hold({Kind.TOKEN}, key, InterestMode.CURRENT, now)
        self._gets[id] = _Get(session, want)
        for found, _ in self._declarations.intersecting(Kind.TOKEN, key):
            self.found(id, found)
        if want.answered:
            self.finish(id)
        else:
            want.waiters.append(id)
            heapq.heappush(self._deadlines, (now + timeout, id))
            self._state.sooner = AT_ONCE
        return id

    def found(self, id: int, key: str) -> None:
        """A reply; each key is told once."""
        get = self._gets.get(id)
        if get is not None and key not in get.seen:
            get.seen.add(key)
            self._state.emit(ReplyReceived(id, key, Put(payload=b""), None, QoS()))

    def finish(self, id: int) -> None:
        """All have answered."""
        get = self._gets.pop(id, None)
        if get is not None:
            self._upstream.release(get.want)
            self._state.emit(QueryFinished(id))

    def cancel(self, session: Face, id: int) -> bool:
        """A session does not want the answer any more: no event comes for it."""
        get = self._gets.get(id)
        if get is None or get.session is not session:
            return False
        del self._gets[id]
        self._upstream.cancel(get.want, id)
        return True

    def drop(self, session: Face) -> None:
        for id in [id for id, get in self._gets.items() if get.session is session]:
            self.cancel(session, id)

    def tick(self, now: float) -> None:
        """End what is out of time."""
        while (deadline := self.deadline) is not None and deadline <= now:
            _, id = heapq.heappop(self._deadlines)
            self._upstream.cancel(self._gets[id].want, id)
            self._state.emit(timeout_error(id, QoS()))
            self.finish(id)

    def _tell(self, key: str, *, alive: bool) -> None:
        subscribers = sorted(found.id for found in self.subscribers.intersecting(key))
        if subscribers:
            self._state.emit(LivelinessChanged(tuple(subscribers), key, alive))
