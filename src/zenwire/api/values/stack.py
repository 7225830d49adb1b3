"""Times along the way of a message."""

from __future__ import annotations

from typing import Final

from zenwire.api.values.enums import Choice, WhatAmI
from zenwire.api.values.ids import ZenohId
from zenwire.api.values.time import Timestamp
from zenwire.errors import EncodeError
from zenwire.wire import structs

__all__ = [
    "InterceptionPoint",
    "TimestampContext",
    "TimestampInstrumentation",
    "TimestampInstrumentationBuilder",
    "TimestampStack",
    "TimestampStackRecord",
]

_CUSTOM: Final = 0x80


class InterceptionPoint(Choice):
    """Where a time is taken. On the wire it is the bit with this number."""

    SEND = 0
    ROUTE = 1
    RECEIVE = 2


class TimestampContext:
    """The node that a time is taken on."""

    __slots__ = ("whatami", "zid")

    def __init__(self, zid: ZenohId, whatami: WhatAmI) -> None:
        self.zid = zid
        self.whatami = whatami

    def __repr__(self) -> str:
        return f"TimestampContext {{ zid: {self.zid}, whatami: {self.whatami!r} }}"


class TimestampInstrumentation:
    """Where times are to be taken: the flags that a message carries."""

    __slots__ = ("flags",)

    def __init__(self, flags: int) -> None:
        self.flags = flags

    def is_instrumented(self, point: InterceptionPoint) -> bool:
        """Return True if times are taken at this point of the route."""
        return bool(self.flags >> int(point) & 1)

    def __repr__(self) -> str:
        return f"TimestampInstrumentation {{ conf_flags: {self.flags} }}"


class TimestampInstrumentationBuilder:
    """Says where times are to be taken, point by point."""

    __slots__ = ("_flags",)

    def __init__(self) -> None:
        self._flags = 0

    def _set(self, point: InterceptionPoint, enabled: bool) -> TimestampInstrumentationBuilder:
        made = TimestampInstrumentationBuilder()
        bit = 1 << int(point)
        made._flags = self._flags | bit if enabled else self._flags & ~bit
        return made

    def set_send(self, enabled: bool) -> TimestampInstrumentationBuilder:
        """Return a builder that takes times, or not, where the message is sent."""
        return self._set(InterceptionPoint.SEND, enabled)

    def set_route(self, enabled: bool) -> TimestampInstrumentationBuilder:
        """Return a builder that takes times, or not, where the message is routed."""
        return self._set(InterceptionPoint.ROUTE, enabled)

    def set_receive(self, enabled: bool) -> TimestampInstrumentationBuilder:
        """Return a builder that takes times, or not, where the message is received."""
        return self._set(InterceptionPoint.RECEIVE, enabled)

    def build(self) -> TimestampInstrumentation:
        """Raises EncodeError if there is no point at all."""
        if not self._flags:
            raise EncodeError("no point is set; call set_send, set_route or set_receive")
        return TimestampInstrumentation(self._flags)


class TimestampStackRecord:
    """One time."""

    __slots__ = ("_entry",)

    def __init__(self, entry: structs.StackEntry) -> None:
        self._entry = entry

    @property
    def point(self) -> InterceptionPoint:
        """Where it was taken. Raises EncodeError for a point that is not known."""
        bit = self._entry.point & ~_CUSTOM
        for point in InterceptionPoint:
            if bit == 1 << int(point):
                return point
        raise EncodeError(f"no point of interception has the number {bit}")

    @property
    def is_custom(self) -> bool:
        """Whether the application of that node made it."""
        return bool(self._entry.point & _CUSTOM)

    def timestamp(self) -> Timestamp | bytes:
        """A Timestamp; or the bytes of one that is custom, or that cannot be read."""
        found = self._entry.timestamp
        return self._entry.stamp if found is None else Timestamp.from_wire(found)

    def __repr__(self) -> str:
        return f"TimestampStackRecord {{ point: {self.point}, timestamp: {self.timestamp()!r} }}"


class TimestampStack:
    """All times, in the order in which they were taken."""

    __slots__ = ("_wire",)

    def __init__(self, stack: structs.TimestampStack) -> None:
        self._wire = stack

    @property
    def instrumentation(self) -> TimestampInstrumentation:
        """Points of the route at which times are taken."""
        return TimestampInstrumentation(self._wire.record)

    @property
    def records(self) -> list[TimestampStackRecord]:
        """Times that were taken, in the order of the route."""
        return [TimestampStackRecord(entry) for entry in self._wire.entries]

    def __repr__(self) -> str:
        return f"TimestampStack {{ records: {self.records!r} }}"
