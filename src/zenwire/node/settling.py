"""Routing's outputs, carried out: messages go out, programs are told, deadlines are kept.

Everything that has a rule is elsewhere and knows no loop.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from zenwire.node.clock import time_of
from zenwire.node.plane import RowsReceived
from zenwire.node.plane import tell as tell_rows
from zenwire.routing import (
    CloseFace,
    LivelinessChanged,
    NodeKnown,
    Output,
    QueryFinished,
    QueryReceived,
    ReplyReceived,
    SampleReceived,
)
from zenwire.routing.state import AT_ONCE, State
from zenwire.wire.values import CloseReason

if TYPE_CHECKING:
    from zenwire.node.adjacency import Adjacency
    from zenwire.node.backlog import Backlog
    from zenwire.node.group import Group
    from zenwire.node.neighbour import Neighbour, Queue, Waiting
    from zenwire.routing import Face, Tables
    from zenwire.transport import Packed
    from zenwire.wire.network import NetworkMessage

__all__ = ["Settling"]

Deliver = Callable[[Output], None]
"""Takes what routing has for one entity. Never raises, never waits."""


class Settling(ABC):
    """The part of a node that does what routing wants.

    ``receivers`` holds, by the id of an entity or a query, who takes what comes for it.
    """

    adjacency: Adjacency
    _neighbours: dict[Face, Neighbour]

    def __init__(self) -> None:
        self.receivers: dict[int, Deliver] = {}
        self.row_receivers: dict[int, Callable[[RowsReceived, int], None]] = {}
        """Those of the receivers of samples that take many at once, as rows."""
        self.groups: dict[Face, Group] = {}
        self.on_known: Callable[[NodeKnown], None] = _ignore
        self.telling = False
        """Programs are being told what routing has for them."""
        self.afterwards: deque[Callable[[], None]] = deque()
        """What is to be called when they have been told."""
        self.holds = False
        """The events being delivered came by a link that can be paused."""
        self.full: list[Backlog] = []
        """Backlogs without room for the events being delivered; the link driver takes them."""
        self._settling = False
        self._pressure: list[Waiting] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")
        self._loop = asyncio.get_running_loop()
        self.time = time_of(self._loop)

    @cached_property
    def tables(self) -> Tables:
        """Its routing. Nobody needs it before somebody is there."""
        return self._new_tables()

    @abstractmethod
    def _new_tables(self) -> Tables: ...

    @property
    def now(self) -> float:
        return self.time()

    @cached_property
    def _state(self) -> State:
        """Where it has its outputs, which are looked for at every turn."""
        return self.tables.state

    @cached_property
    def _untold(self) -> deque[Any]:
        """The events of routing, and RowsReceived among them."""
        return self.tables.state.events

    def settle(self, *, go_on: bool = True, holds: bool = False) -> list[Waiting]:
        """Carry out what routing wants. Gives the messages that found no room at once.

        With ``holds`` the caller pauses its link for these and for ``full``. Otherwise receivers
        without room drop.

        Messages go out before programs are told of anything, so that what programs do then has
        an outcome of its own. Without ``go_on`` it is for the caller to let those go on who have
        waited for it.
        """
        if self._settling:
            return []
        state, untold = self._state, self._untold
        pressure: list[Waiting] = []
        if state.outputs:
            self._carry_out()
        if self._pressure:
            pressure, self._pressure = self._pressure, pressure
        if untold and not self.telling:
            self.telling, self.holds = True, holds
            try:
                while untold:
                    self._tell(untold.popleft())
                    if state.outputs:
                        self._carry_out()
                        if self._pressure:
                            pressure += self._pressure
                            self._pressure = []
            finally:
                self.telling = self.holds = False
                if untold:
                    self._keep_untold()
        if go_on and self.afterwards and not self.telling:
            self.go_on()
        if state.sooner < self._timer_at:
            self._arm(state.sooner)
        return pressure

    def wait_for(self, backlog: Backlog) -> None:
        """Pause the link whose events are being delivered; only while ``holds`` is set."""
        if backlog not in self.full:
            self.full.append(backlog)

    def go_on(self) -> None:
        """Call those who wait until all has been told."""
        afterwards = self.afterwards
        try:
            while afterwards:
                afterwards.popleft()()
        except BaseException:
            # Those who are left have not deserved to wait for ever.
            self._loop.call_soon(self.go_on)
            raise

    def _carry_out(self) -> None:
        state, neighbours = self._state, self._neighbours
        self._settling = True
        try:
            while outputs := state.outputs:
                state.outputs = []
                for output in outputs:
                    if isinstance(output, CloseFace):
                        self.adjacency.expel(output.face, output.reason, output.why)
                        continue
                    to = neighbours.get(output.face)
                    if to is None or to.size:
                        self._send(*output)
                    elif (waiting := to.send(output.message, output.reliable)) is not None:
                        self._pressure.append(waiting)
        finally:
            self._settling = False

    def tell_later(self, output: RowsReceived) -> None:
        """What came is to be told, after what came before it."""
        self.catch_up()
        self._untold.append(output)

    def _keep_untold(self) -> None:
        """Telling was broken off: what is left must outlive the bytes that it came in."""
        untold = list(self._untold)
        self._untold.clear()
        for output in untold:
            self._untold += output.samples() if type(output) is RowsReceived else [output]

    def _tell(self, event: Any) -> None:  # Any: of the types that are looked up
        receivers, kind = self.receivers, type(event)
        if kind is SampleReceived or kind is LivelinessChanged:
            told = event.subscribers
        elif kind is ReplyReceived:
            told = (event.query,)
        elif kind is QueryReceived:
            told = event.queryables
        elif kind is QueryFinished:
            # What nobody takes was on its way when its taker went.
            if (deliver := receivers.pop(event.query, None)) is not None:
                deliver(event)
            return
        elif kind is RowsReceived:
            tell_rows(event, receivers, self.row_receivers, self._untold)
            return
        elif kind is NodeKnown:
            self.on_known(event)
            return
        else:
            told = (event.id,)  # MatchingChanged
        for id_ in told:
            if (deliver := receivers.get(id_)) is not None:
                deliver(event)

    def queue(self, face: Face) -> Queue | None:
        """What takes messages for a face; None if it is gone."""
        return self.adjacency.neighbours.get(face) or self.groups.get(face)

    def pass_on(self, face: Face, packed: Packed, reliable: bool) -> None:
        """Messages for a neighbour, encoded already, after all that routing has for it."""
        self.catch_up()
        self._send(face, packed, reliable)

    def catch_up(self) -> None:
        """Carry out what routing has so far: what is written past it must not overtake that."""
        if self._state.outputs:
            self._carry_out()

    def press(self, waiting: Waiting) -> None:
        """Whoever sent what is carried out is to wait for this."""
        self._pressure.append(waiting)

    def _send(self, face: Face, message: NetworkMessage | Packed, reliable: bool) -> None:
        to: Queue | None = self._neighbours.get(face)
        if to is None and (to := self.groups.get(face)) is None:
            return
        if to.size and to.overflown and not face.relation.multicast:
            self.adjacency.expel(face, CloseReason.UNRESPONSIVE, "too much waits for it")
            return
        waiting = to.send(message, reliable)
        if waiting is not None:
            self._pressure.append(waiting)

    def _arm(self, sooner: float = AT_ONCE) -> None:
        """A timer that finds nothing to be done is cheaper than to look for what it is for."""
        deadline = self.tables.deadline if sooner == AT_ONCE else sooner
        if deadline is None or (self._timer is not None and self._timer_at <= deadline):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self._loop.call_at(deadline, self._due)

    def _due(self) -> None:
        self._timer, self._timer_at = None, float("inf")
        self.tables.tick(self.now)
        self.settle()
        self._arm()


def _ignore(_known: NodeKnown) -> None:
    """Gossip is off."""
