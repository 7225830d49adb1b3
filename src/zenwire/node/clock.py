"""The hybrid logical clock: time that never stands still nor goes back, across nodes.

A time is NTP64, as on the wire: seconds since 1970 in the high 32 bits, fractions in the low
ones. Its four lowest bits belong to a counter (PROTOCOL 9): a reading of the physical clock
has zeros there, and is used if it is later than the last time given; otherwise that time plus
one is. So times of one clock rise strictly, and stay next to physical time.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Final

from zenwire.errors import ZError
from zenwire.wire.structs import Timestamp
from zenwire.wire.values import ZenohId

__all__ = [
    "COUNTER_BITS",
    "MAX_DRIFT_MS",
    "Clock",
    "FutureTimestamp",
    "ntp64_from_ns",
    "time_of",
]

COUNTER_BITS: Final = 4
MAX_DRIFT_MS: Final = 500
"""How far the clocks of others may be ahead."""

_COUNTER_MASK: Final = (1 << COUNTER_BITS) - 1
_NANOSECONDS: Final = 1_000_000_000
_TIME_MAX: Final = 2**64 - 1


def time_of(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """The clock of a loop. It is looked at for every message, so the way to it is a short one."""
    own = getattr(loop.time, "__func__", None) is asyncio.BaseEventLoop.time
    return time.monotonic if own else loop.time


class FutureTimestamp(ZError):  # noqa: N818 # the word says what is the matter
    """A time that is further ahead of this clock than ``MAX_DRIFT_MS``. Both are NTP64."""

    def __init__(self, timestamp: Timestamp, now: int, max_drift: int) -> None:
        super().__init__(timestamp, now, max_drift)
        self.timestamp = timestamp
        self.now = now
        self.max_drift = max_drift

    def __str__(self) -> str:
        ahead, allowed = ((self.timestamp.time - self.now) / 2**32, self.max_drift / 2**32)
        return (
            f"{self.timestamp} is {ahead:.3f} s ahead of this clock, {allowed:.3f} s are allowed; "
            "synchronize the clocks of both nodes"
        )


def ntp64_from_ns(nanoseconds: int) -> int:
    """Nanoseconds since 1970 as NTP64, rounded down."""
    seconds, rest = divmod(nanoseconds, _NANOSECONDS)
    return (seconds << 32) + (rest << 32) // _NANOSECONDS


class Clock:
    """A clock with an id. ``now_ns`` gives nanoseconds since 1970; any thread may ask.

    ``max_drift_ms`` bounds how far another clock can pull this one forward.
    """

    __slots__ = ("_last", "_lock", "_max_drift", "_now_ns", "id")

    def __init__(
        self,
        id: ZenohId,
        now_ns: Callable[[], int] = time.time_ns,
        max_drift_ms: int = MAX_DRIFT_MS,
    ) -> None:
        self.id = id
        self._now_ns = now_ns
        self._max_drift = ntp64_from_ns(max_drift_ms * 1_000_000)
        self._last = 0
        self._lock = threading.Lock()

    def new_time(self) -> int:
        """A time later than all before, as NTP64."""
        now = self._physical()
        with self._lock:
            self._last = max(now, self._last + 1)
            return self._last

    def new_timestamp(self) -> Timestamp:
        """A time later than all before, with the id of this clock."""
        return Timestamp(time=self.new_time(), id=self.id)

    def many(self, give: Callable[[int, int, int], int]) -> None:
        """Times for many at once, as if this clock had not moved on meanwhile.

        ``give`` gets a reading, the last time given, and the latest that another clock may say; it
        gives the last time that there is afterwards.
        """
        now = self._physical()
        with self._lock:
            self._last = give(now, self._last, min(now + self._max_drift, _TIME_MAX))

    def update_with_timestamp(self, timestamp: Timestamp) -> None:
        """Learn a time of another clock, so that what follows here is later.

        Raises FutureTimestamp, and learns nothing, if that clock is too far ahead.
        """
        now = self._physical()
        if timestamp.time - now > self._max_drift:
            raise FutureTimestamp(timestamp, now, self._max_drift)
        with self._lock:
            top = max(now, self._last, timestamp.time)
            # A time that was given, here or there, is not given again; a reading was not.
            self._last = now if top == now else top + 1

    def _physical(self) -> int:
        reading = ntp64_from_ns(self._now_ns())
        return min(max(reading, 0), _TIME_MAX) & ~_COUNTER_MASK
