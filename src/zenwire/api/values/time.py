"""When: times of hybrid logical clocks."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import total_ordering
from typing import Final

from zenwire.api.values.ids import TimestampId
from zenwire.errors import EncodeError
from zenwire.wire import structs
from zenwire.wire.values import ZenohId

__all__ = ["NTP64", "Timestamp"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NANOSECONDS: Final = 1_000_000_000
_FRACTION: Final = 0xFFFF_FFFF
_RFC3339: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d*))?Z", re.ASCII)


@total_ordering
class NTP64:
    """Seconds since 1970 in the high 32 bits, the fraction of a second in the low ones."""

    __slots__ = ("_time",)

    def __init__(self, seconds: int, nanos: int) -> None:
        if seconds < 0 or nanos < 0:
            raise OverflowError("a time does not lie before 1970")
        seconds, nanos = seconds + nanos // _NANOSECONDS, nanos % _NANOSECONDS
        if seconds >> 32:
            raise EncodeError(f"the seconds of a time have 32 bits: {seconds}")
        self._time = seconds << 32 | (nanos << 32) // _NANOSECONDS

    @classmethod
    def from_int(cls, time: int) -> NTP64:
        """From the number that messages carry."""
        if not 0 <= time < 1 << 64:
            raise EncodeError(f"a time has 64 bits: {time}")
        made = cls.__new__(cls)
        made._time = time  # noqa: SLF001 # of this class
        return made

    def __int__(self) -> int:
        return self._time

    def as_secs_f64(self) -> float:
        """Return seconds since 1970 as a float; precise to about a quarter of a microsecond."""
        return (self._time >> 32) + (self._time & _FRACTION) / 2**32

    def as_secs(self) -> int:
        """Whole seconds."""
        return self._time >> 32

    def as_nanos(self) -> int:
        """Nanoseconds since 1970."""
        return self.as_secs() * _NANOSECONDS + self.subsec_nanos()

    def subsec_nanos(self) -> int:
        """The fraction of a second in nanoseconds, rounded up: what came from them comes back."""
        return -(-(self._time & _FRACTION) * _NANOSECONDS >> 32)

    def to_datetime(self) -> datetime:
        """To the microsecond, rounded down."""
        return _EPOCH + timedelta(seconds=self.as_secs(), microseconds=self.subsec_nanos() // 1_000)

    def to_string_rfc3339_lossy(self) -> str:
        """To the nanosecond, as in ``2024-07-01T13:51:12.129693000Z``."""
        second = _EPOCH + timedelta(seconds=self.as_nanos() // _NANOSECONDS)
        nanos = self.as_nanos() % _NANOSECONDS
        return f"{second:%Y-%m-%dT%H:%M:%S}.{nanos:09}Z"

    @classmethod
    def parse_rfc3339(cls, s: str) -> NTP64:
        """From ``2024-07-01T13:51:12.129693000Z``: UTC only; a leap second is the one before."""
        match = _RFC3339.fullmatch(s)
        wrong = EncodeError(f"{s!r} is not a time; write it as 2024-07-01T13:51:12.129693000Z")
        if match is None:
            raise wrong
        try:
            year, month, day, hour, minute, second = map(int, match.groups()[:6])
            leap = second == 60
            at = datetime(year, month, day, hour, minute, 59 if leap else second, tzinfo=UTC)
        except ValueError:
            raise wrong from None
        if at < _EPOCH:
            raise EncodeError(f"a time does not lie before 1970: {s!r}")
        nanos = (match[7] or "")[:9].ljust(9, "0")
        return cls((at - _EPOCH) // timedelta(seconds=1), int(nanos))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NTP64):
            return NotImplemented
        return self._time == other._time

    def __lt__(self, other: NTP64) -> bool:
        if not isinstance(other, NTP64):
            return NotImplemented
        return self._time < other._time

    def __hash__(self) -> int:
        return hash(self._time)

    def __str__(self) -> str:
        return str(self._time)

    __repr__ = __str__

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return NTP64.from_int, (self._time,)


@total_ordering
class Timestamp:
    """A time and the id of the clock that gave it. In the order of time, then of id."""

    __slots__ = ("wire",)

    wire: structs.Timestamp
    """The same timestamp as it is in messages."""

    def __init__(self, time: datetime | NTP64, id: TimestampId | bytes | bytearray) -> None:
        if isinstance(time, datetime):
            micros = (time - _EPOCH) // timedelta(microseconds=1)
            if micros < 0:
                raise EncodeError(f"a time does not lie before 1970: {time}")
            time = NTP64(micros // 1_000_000, micros % 1_000_000 * 1_000)
        elif not isinstance(time, NTP64):
            raise TypeError("expected a `datetime` or a `NTP64`")
        clock = id if isinstance(id, TimestampId) else TimestampId(id)
        self.wire = structs.Timestamp(time=int(time), id=clock.wire)

    @classmethod
    def from_wire(cls, timestamp: structs.Timestamp) -> Timestamp:
        """The same timestamp as it is in messages."""
        made = cls.__new__(cls)
        made.wire = timestamp
        return made

    def get_time(self) -> datetime:
        """To the microsecond, rounded down."""
        return self.get_time_as_ntp64().to_datetime()

    def get_time_as_ntp64(self) -> NTP64:
        """Return the time as an NTP64: seconds and fractions of 2**-32 s."""
        return NTP64.from_int(self.wire.time)

    def get_id(self) -> TimestampId:
        """Return the id of the node that made it."""
        return TimestampId.from_wire(self.wire.id)

    def get_diff_duration(self, other: Timestamp) -> timedelta:
        """The time between both, from the other to this one. Negative where the reference wraps around."""
        nanos = self.get_time_as_ntp64().as_nanos() - other.get_time_as_ntp64().as_nanos()
        return timedelta(microseconds=nanos // 1_000)

    def to_string_rfc3339_lossy(self) -> str:
        """As in ``2024-07-01T13:51:12.129693000Z/33``."""
        return f"{self.get_time_as_ntp64().to_string_rfc3339_lossy()}/{self.wire.id}"

    @classmethod
    def parse_rfc3339(cls, s: str) -> Timestamp:
        """From ``2024-07-01T13:51:12.129693000Z/33``."""
        time, slash, id = s.partition("/")
        if not slash:
            raise EncodeError(f"{s!r} has no '/' and id after the time")
        zid = ZenohId.parse(id.lower())
        return cls(NTP64.parse_rfc3339(time), TimestampId.from_wire(zid))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Timestamp):
            return NotImplemented
        return self.wire == other.wire

    def __lt__(self, other: Timestamp) -> bool:
        if not isinstance(other, Timestamp):
            return NotImplemented
        mine, others = self.wire, other.wire
        return (mine.time, mine.id.raw) < (others.time, others.id.raw)

    def __hash__(self) -> int:
        return hash((self.wire.time, self.wire.id.raw))

    def __str__(self) -> str:
        return str(self.wire)

    __repr__ = __str__

    def __reduce__(self) -> tuple[object, tuple[NTP64, bytes]]:
        return Timestamp, (self.get_time_as_ntp64(), self.wire.id.raw)
