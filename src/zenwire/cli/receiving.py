"""What subscribers of a command have received, with the time, until the command takes it."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from zenwire import aio
from zenwire.keyexpr import intersects

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

__all__ = ["ITEMS_MAX", "Arrival", "Inbox", "losses_of", "subscribed"]

ITEMS_MAX: Final = 65_536
_BYTES_MAX: Final = 256 * 2**20


class Arrival(NamedTuple):
    """A sample, and when it came: seconds of the clock that does not jump, nanoseconds of day."""

    at: float
    time_ns: int
    sample: aio.Sample


class Inbox:
    """Bounded. What has no room is counted in ``dropped``, and nobody else waits for it."""

    def __init__(self, items: int = ITEMS_MAX) -> None:
        self.dropped = 0
        self._items_max = items
        self._items: list[Arrival] = []
        self._bytes = 0
        self._came = asyncio.Event()

    def put(self, sample: aio.Sample) -> None:
        """Called by the network."""
        size = len(sample.payload)
        if len(self._items) >= self._items_max or (self._items and self._bytes + size > _BYTES_MAX):
            self.dropped += 1
            return
        self._bytes += size
        self._items.append(Arrival(time.monotonic(), time.time_ns(), sample))
        self._came.set()

    async def take(self) -> list[Arrival]:
        """All there are, once there is one."""
        await self._came.wait()
        return self.taken()

    def taken(self) -> list[Arrival]:
        """All there are now."""
        self._came.clear()
        items, self._items, self._bytes = self._items, [], 0
        return items


@asynccontextmanager
async def subscribed(
    session: aio.Session,
    keys: Sequence[str],
    *,
    declare: Callable[[str, aio.Callback[aio.Sample]], aio.Awaited[aio.Subscriber]] | None = None,
) -> AsyncIterator[Inbox]:
    """Subscribers on these keys, and what they get. A sample that several match comes once."""
    inbox = Inbox()
    canonical = [str(aio.KeyExpr.autocanonize(key)) for key in keys]
    make = session.declare_subscriber if declare is None else declare

    def taker(at: int) -> Callable[[aio.Sample], None]:
        before = canonical[:at]
        if not before:
            return inbox.put

        def put(sample: aio.Sample) -> None:
            key = str(sample.key_expr)
            if not any(intersects(key, other) for other in before):
                inbox.put(sample)

        return put

    async with AsyncExitStack() as stack:
        for at, key in enumerate(canonical):
            callback = aio.Callback(taker(at), indirect=False)
            await stack.enter_async_context(make(key, callback))
        yield inbox


def losses_of(session: aio.Session, inbox: Inbox | None = None) -> list[str]:
    """What is known to be lost on the way here, in words; empty if nothing is."""
    stats = session.info.stats()
    missing = stats.ended.rx_missing + sum(one.transport.rx_missing for one in stats.groups)
    missing += sum(one.transport.rx_missing for one in stats.neighbours)
    told = []
    if inbox is not None and inbox.dropped:
        told.append(f"{inbox.dropped:,} samples were not taken in time")
    if missing:
        told.append(f"{missing:,} frames did not arrive")
    told += [f"{n:,} dropped ({cause.value})" for cause, n in stats.dropped.items() if n]
    if stats.routing.shared_memory:
        told.append(f"{stats.routing.shared_memory:,} were in shared memory, which zenwire has not")
    return told
