"""Getting connected, and staying so: endpoints one after the other, back-off, and again."""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from zenwire.links import LinkError, is_multicast, shown
from zenwire.node.seats import NotOpened
from zenwire.wire.values import CloseReason

if TYPE_CHECKING:
    from zenwire.node.config import RetryPolicy
    from zenwire.node.node import Node
    from zenwire.wire.locator import EndPoint

__all__ = ["Held", "NotConnected", "connect_any", "keep", "listen_on", "open_endpoint", "stay"]

_log = logging.getLogger("zenwire.node")


class Held(Protocol):
    """A connection, or a group."""

    async def ended(self) -> None:
        """Wait for its end."""


class NotConnected(LinkError):  # noqa: N818 # the word says what is the matter
    """No endpoint led to a node. ``failures`` has the reason of each."""

    def __init__(self, failures: dict[str, LinkError], hint: str = "") -> None:
        lines = "".join(f"\n  {failure}" for failure in failures.values())
        super().__init__(", ".join(failures), f"no node was reached:{lines}", hint)
        self.failures = failures

    def __str__(self) -> str:
        hint = f"\n{self.hint}" if self.hint else ""
        return self.reason + hint


async def open_endpoint(node: Node, endpoint: EndPoint) -> Held:
    """A session with who listens there, or a place in a group. Raises LinkError."""
    if is_multicast(endpoint):
        return await node.join(endpoint)
    return await node.connect(endpoint)


async def connect_any(
    node: Node, endpoints: Sequence[EndPoint], policy: RetryPolicy, seconds: float
) -> Held:
    """The first of several endpoints, in their order, that leads to a node.

    For 0 ``seconds`` each is tried once, otherwise again and again, each by its own back-off.
    Raises NotConnected.
    """
    failures: dict[str, LinkError] = {}
    # When, which attempt, which endpoint: the earliest first, then by place.
    due = [(node.now, at, 0) for at in range(len(endpoints))]
    ends = node.now + seconds
    while due:
        when, at, attempt = heapq.heappop(due)
        if when > node.now:
            await asyncio.sleep(when - node.now)
        endpoint = endpoints[at]
        try:
            if 0 < seconds < float("inf"):
                return await _within(node, endpoint, seconds, ends)
            # What is tried once, or for ever, has the time that links and handshakes have.
            return await open_endpoint(node, endpoint)
        except LinkError as e:
            failures[shown(endpoint)] = e
            if seconds > 0 and not _hopeless(e):
                when = node.now + policy.of_endpoint(endpoint).delay_ms(attempt) / 1000
                if when <= ends and when < float("inf"):
                    heapq.heappush(due, (when, at, attempt + 1))
    raise NotConnected(failures)


async def _within(node: Node, endpoint: EndPoint, seconds: float, ends: float) -> Held:
    try:
        async with asyncio.timeout(ends - node.now):
            return await open_endpoint(node, endpoint)
    except TimeoutError:
        reason = f"no session within the {seconds:g} s of connect/timeout_ms"
        raise LinkError(shown(endpoint), reason) from None


Again = Callable[[], Awaitable["Held | None"]]
"""Connects, however long that takes. None: it will never."""


async def keep(
    node: Node,
    endpoints: Sequence[EndPoint],
    policy: RetryPolicy,
    held: Held | None = None,
    on_first: Callable[[Held | None], None] | None = None,
) -> None:
    """Hold a connection to one of these endpoints: at once after a loss, then with back-off.

    ``on_first`` is told of the first connection, or (None) that there will be none.
    """

    async def again() -> Held | None:
        try:
            return await connect_any(node, endpoints, policy, float("inf"))
        except LinkError as e:
            _log.warning("%s", e)
            return None

    await _hold(node, again, policy, held, on_first)


async def stay(
    node: Node, connect: Callable[[], Awaitable[Held]], policy: RetryPolicy, held: Held
) -> None:
    """The same for a way to connect that tries once."""

    async def again() -> Held | None:
        attempt = 0
        while True:
            try:
                return await connect()
            except LinkError as e:
                _log.info("%s", e)
            delay = policy.delay_ms(attempt) / 1000
            if delay == float("inf"):
                return None
            await asyncio.sleep(delay)
            attempt += 1

    await _hold(node, again, policy, held)


async def _hold(
    node: Node,
    again: Again,
    policy: RetryPolicy,
    held: Held | None,
    on_first: Callable[[Held | None], None] | None = None,
) -> None:
    short = 0
    while True:
        if held is None:
            held = await again()
        if on_first is not None:
            on_first(held)
            on_first = None
        if held is None:
            return
        since = node.now
        await held.ended()
        held = None
        # One that takes us and throws us out at once is not to be asked without end.
        pause = policy.delay_ms(short) / 1000
        if node.now - since < pause < float("inf"):
            short += 1
            await asyncio.sleep(pause)
        else:
            short = 0


def _hopeless(error: LinkError) -> bool:
    return isinstance(error, NotOpened) and error.close_reason == CloseReason.CONNECTION_TO_SELF


async def listen_on(node: Node, endpoint: EndPoint, policy: RetryPolicy, seconds: float) -> None:
    """Listen, or join a group; for 0 ``seconds`` one try. Raises LinkError."""
    ends = node.now + seconds
    attempt = 0
    while True:
        try:
            if is_multicast(endpoint):
                await node.join(endpoint)
            else:
                await node.listen(endpoint)
        except LinkError as e:
            delay = policy.delay_ms(attempt) / 1000
            if node.now + delay > ends or not seconds:
                raise
            _log.info("%s", e)
            await asyncio.sleep(delay)
            attempt += 1
        else:
            return
