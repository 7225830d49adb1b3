"""The times that this node adds along the way of a message, where the message asks for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from zenwire.api.handlers import report
from zenwire.api.values import (
    InterceptionPoint,
    TimestampContext,
    TimestampInstrumentation,
    WhatAmI,
    ZenohId,
)
from zenwire.wire.limits import TIMESTAMP_STACK_MAX
from zenwire.wire.objects import encode
from zenwire.wire.structs import StackEntry, TimestampStack

if TYPE_CHECKING:
    from zenwire.node.node import Node

__all__ = ["Stamps", "TimestampCallback"]

TimestampCallback = Callable[[TimestampContext], bytes]
"""Makes a time in a form of its own. One that raises is told, as other callbacks are."""

_CUSTOM = 0x80
_SENT = InterceptionPoint.SEND, InterceptionPoint.ROUTE
_RECEIVED = InterceptionPoint.ROUTE, InterceptionPoint.RECEIVE


class Stamps:
    """Takes times from the clock of the node, or from the program's ``callback``.

    A message that leaves is sent and routed here, one that comes from others is routed and
    received. One that stays in the session is not routed: its own time of that is left out.
    """

    __slots__ = ("_callback", "_node", "_routed")

    def __init__(self, node: Node, callback: TimestampCallback | None) -> None:
        self._node = node
        self._callback = callback
        self._routed: StackEntry | None = None

    def sent(self, wanted: TimestampInstrumentation | None) -> TimestampStack | None:
        """For a message of the program."""
        return None if wanted is None else self._with(wanted.flags, (), _SENT)

    def answered(self, query: TimestampStack | None) -> TimestampStack | None:
        """For a reply: its times go on where those of the query ended."""
        return None if query is None else self._with(query.record, query.entries, _SENT)

    def received(self, stack: TimestampStack | None) -> TimestampStack | None:
        """For a message that is handed to the program."""
        if stack is None:
            return None
        entries = stack.entries
        if entries and entries[-1] is self._routed:
            return self._with(stack.record, entries[:-1], _RECEIVED[1:])
        return self._with(stack.record, entries, _RECEIVED)

    def _with(
        self, flags: int, before: tuple[StackEntry, ...], points: tuple[InterceptionPoint, ...]
    ) -> TimestampStack:
        new = [self._entry(point) for point in points if flags >> int(point) & 1]
        if points is _SENT and flags >> int(InterceptionPoint.ROUTE) & 1:
            self._routed = new[-1]
        entries = (*before, *new)
        # A stack that is full stays as it is.
        return TimestampStack(
            record=flags, entries=before if len(entries) > TIMESTAMP_STACK_MAX else entries
        )

    def _entry(self, point: InterceptionPoint) -> StackEntry:
        bit = 1 << int(point)
        if self._callback is None:
            return StackEntry(point=bit, stamp=encode(self._node.clock.new_timestamp()))
        zid, mode = ZenohId.from_wire(self._node.zid), WhatAmI(self._node.config.mode)
        try:
            stamp = bytes(self._callback(TimestampContext(zid, mode)))
        except Exception as e:  # noqa: BLE001 # whatever a program raises, it is told
            report(e, self._callback)
            stamp = b""
        return StackEntry(point=bit | _CUSTOM, stamp=stamp)
