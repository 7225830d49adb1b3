"""Structures that several messages carry."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from zenwire.errors import DecodeError
from zenwire.wire import kinds as k
from zenwire.wire.buffer import Reader
from zenwire.wire.define import field, struct
from zenwire.wire.encoding import Encoding
from zenwire.wire.limits import TIMESTAMP_STACK_MAX
from zenwire.wire.objects import Struct
from zenwire.wire.values import ZenohId

__all__ = ["QueryBody", "ResponderId", "SourceInfo", "StackEntry", "Timestamp", "TimestampStack"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@struct
class Timestamp:
    """A time of a hybrid logical clock.

    ``time`` is NTP64: seconds since 1970 in the high 32 bits, the fraction of a second in the
    low ones. ``id`` is the node whose clock it is.
    """

    time: int = field(k.z64, column="")
    id: ZenohId = field(k.plain_zid)

    @property
    def datetime(self) -> datetime:
        """To the microsecond, rounded down."""
        seconds, fraction = self.time >> 32, self.time & 0xFFFF_FFFF
        return _EPOCH + timedelta(seconds=seconds, microseconds=fraction * 1_000_000 >> 32)

    def __str__(self) -> str:
        return f"{self.time}/{self.id}"


timestamp = Struct(Timestamp)


@struct
class SourceInfo:
    """The publisher or querier that a message comes from, and its own numbering."""

    zid: ZenohId = field(k.packed_zid)
    eid: int = field(k.z32)
    sn: int = field(k.z32)


source_info = Struct(SourceInfo)


@struct
class ResponderId:
    """The entity that answered."""

    zid: ZenohId = field(k.packed_zid)
    eid: int = field(k.z32)


responder_id = Struct(ResponderId)


@struct
class QueryBody:
    """A value that travels with a query: the payload is what remains of the extension."""

    encoding: Encoding = field(k.encoding)
    payload: bytes = field(k.rest)


query_body = Struct(QueryBody)


@struct
class StackEntry:
    """A time along the way.

    ``point`` is where it was taken: 1 send, 2 route, 4 receive. With 0x80 in it the ``stamp`` is
    whatever the application of that node made of the time; without it, a Timestamp. The reference
    drops a stamp that it cannot read, and keeps the message.
    """

    point: int = field(k.u8)
    stamp: bytes = field(k.payload)

    @property
    def timestamp(self) -> Timestamp | None:
        """The stamp, if it is a Timestamp."""
        if self.point & 0x80:
            return None
        try:
            return timestamp.read(Reader(self.stamp))
        except DecodeError:
            return None


@struct
class TimestampStack:
    """Times along the way. ``record`` says at which points nodes are to add theirs."""

    record: int = field(k.u8_not_zero)
    entries: tuple[StackEntry, ...] = field(k.Sequence(Struct(StackEntry), TIMESTAMP_STACK_MAX))


timestamp_stack = Struct(TimestampStack)
