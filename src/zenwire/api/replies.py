"""Queries of this session: asking, and the replies that come."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from zenwire.api.channel import Channel, Overflow
from zenwire.api.declared import Receiving
from zenwire.api.handlers import FifoChannel, IntoHandler, Opened, open_handler
from zenwire.api.values import Reliability, Reply, ReplyError, Sample
from zenwire.errors import ChannelClosed, ZError
from zenwire.routing import QueryFinished, ReplyReceived
from zenwire.wire.data import Del, Err

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zenwire.api.core import Core
    from zenwire.node.neighbour import Waiting
    from zenwire.routing import Output

__all__ = [
    "REPLY_BYTES",
    "AwaitedReplies",
    "CancellationToken",
    "Replies",
    "ReplyChannel",
    "await_replies",
]

_log = logging.getLogger("zenwire.replies")

_RELIABLE: Final = Reliability.RELIABLE

REPLY_BYTES: Final = 256 * 1024 * 1024
"""What may wait for the reader of one query: replies are counted by their bytes, not by number."""

_REPLY_SIZE: Final = 512
"""Bytes that a reply takes beside its payload and attachment; about what its objects do."""


def _size(reply: Reply) -> int:
    result = reply.result
    if isinstance(result, ReplyError):
        return _REPLY_SIZE + len(result.payload)
    body = result.body
    size = _REPLY_SIZE if isinstance(body, Del) else _REPLY_SIZE + len(body.payload)
    return size + len(body.attachment) if body.attachment else size


class ReplyChannel(FifoChannel[Reply]):
    """Keeps all replies, as long as those that wait have at most ``max_bytes``."""

    __slots__ = ("max_bytes",)

    def __init__(self, max_bytes: int = REPLY_BYTES, overflow: Overflow = "drop_newest") -> None:
        super().__init__(sys.maxsize, overflow)
        self.max_bytes = max_bytes

    def open(self, on_drop: Callable[[Reply], None] | None = None) -> Channel[Reply]:
        """Create a channel that holds at most ``max_bytes`` of replies; one for each query."""
        return Channel(
            self.capacity, self.overflow, on_drop=on_drop, size=_size, max_bytes=self.max_bytes
        )


_CHANNEL: Final = ReplyChannel()


class CancellationToken:
    """Ends queries from outside: all that it was given to. Any thread may cancel."""

    __slots__ = ("_calls", "_cancelled", "_lock")

    def __init__(self) -> None:
        self._cancelled = False
        self._calls: set[Callable[[], None]] = set()
        self._lock = threading.Lock()

    @property
    def is_cancelled(self) -> bool:
        """True once `cancel` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """End the queries that have it. No other can be asked with it."""
        with self._lock:
            self._cancelled = True
            calls, self._calls = self._calls, set()
        for call in calls:
            call()

    def check(self) -> None:
        """Raise ZError, if it is cancelled."""
        if self._cancelled:
            raise ZError("get: its cancellation token is cancelled; make another one")

    def attach(self, call: Callable[[], None]) -> None:
        """Call when it is cancelled. Raises ZError if it is."""
        with self._lock:
            self.check()
            self._calls.add(call)

    def detach(self, call: Callable[[], None]) -> None:
        """Remove a call that was added with `attach`. Unknown calls are ignored."""
        with self._lock:
            self._calls.discard(call)


class _Asked:
    """A query that is not finished. It knows where replies go, but not who reads them."""

    __slots__ = ("_core", "_opened", "_token", "id", "open")

    def __init__(
        self, core: Core, id_: int, opened: Opened[Reply], token: CancellationToken | None
    ) -> None:
        self._core = core
        self._opened = opened
        self._token = token
        self.id = id_
        self.open = True
        if token is not None:
            token.attach(self.cancel_soon)
        core.held[id(self)] = self

    def deliver(self, output: Output) -> None:
        if type(output) is ReplyReceived:
            reply = self._reply(output)
            if reply is None:
                self._core.foreign += 1
            else:
                self._opened.sink.put(reply)
        elif type(output) is QueryFinished:
            self._core.held.pop(id(self), None)
            self.over()

    def _reply(self, output: ReplyReceived) -> Reply | None:
        core, body = self._core, output.body
        stack, replier = output.timestamp_stack, output.responder
        if stack is not None:
            stack = core.stamps.received(stack)
        if isinstance(body, Err):
            return Reply(ReplyError(body, stack), replier)
        key = core.namespace.inward(output.key)
        if key is None:
            return None
        return Reply(Sample(key, body, output.qos, _RELIABLE, stack), replier)

    def over(self) -> None:
        if self.open:
            self.open = False
            if self._token is not None:
                self._token.detach(self.cancel_soon)
            self._opened.sink.close()

    def cancel(self) -> None:
        core = self._core
        if self.open and not core.over:
            core.release(self)
            core.node.receivers.pop(self.id, None)
            core.face.cancel(self.id)
            self.over()
            core.node.settle()

    def cancel_soon(self) -> None:
        self._core.call(self.cancel)


class Replies(Receiving[Reply]):
    """The replies to a query: ``async for reply in session.get(key)``.

    It ends with `cancel`, with ``async with``, when a loop over it is cancelled, and when it is
    let go unread. A reply that had no room is counted in ``dropped``.
    """

    WHAT: ClassVar[str] = "query"

    def __init__(
        self, core: Core, id_: int, handler: IntoHandler[Reply], token: CancellationToken | None
    ) -> None:
        opened = open_handler(_CHANNEL if handler is None else handler, on_drop=_dropped)
        self._opened: Opened[Reply] = opened
        self._core = core
        self._asked = _Asked(core, id_, opened, token)
        self._waiting: Iterable[Waiting] | None = None

    def begin(self) -> None:
        """Take what comes."""
        core, asked = self._core, self._asked
        core.node.receivers[asked.id] = asked.deliver
        opened = self._opened
        if opened.callback is None and opened.channel is not None:
            opened.channel.soon = core.soon
        else:
            core.pump(opened)
        self._waiting = core.settle()

    @property
    def finished(self) -> bool:
        """Whether all replies have come; they may still wait to be read."""
        return not self._asked.open

    def cancel(self) -> None:
        """End the query: no more replies are delivered. A second call does nothing.

        Raises WrongLoop in another loop than the session's; a `CancellationToken` is for that.
        """
        if self._asked.open:
            self._core.check_loop("query.cancel")
        self._asked.cancel()

    async def _start(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            try:
                await self._core.room(waiting)
            except asyncio.CancelledError:
                self.cancel()
                raise

    async def recv(self) -> Reply:
        """The next reply. Raises ChannelClosed after the last one."""
        if self._waiting is not None:
            await self._start()
        return await super().recv()

    async def __anext__(self) -> Reply:
        channel = self._channel("__anext__")
        if channel.over:
            raise StopAsyncIteration
        try:
            if self._waiting is not None:
                await self._start()
            return await channel.recv()
        except ChannelClosed:
            raise StopAsyncIteration from None
        except asyncio.CancelledError:
            self.cancel()
            raise

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cancel()

    def __del__(self) -> None:
        # With a callback, or a pair, others get the replies.
        asked = getattr(self, "_asked", None)
        if asked is not None and asked.open and isinstance(self._opened.receiver, Channel):
            self._core.later(asked.cancel)


class AwaitedReplies(Replies):
    """The replies to a query that is under way already.

    ``await`` waits until there was room for it, which matters with a callback only.
    """

    def __await__(self) -> Generator[Any, Any, Replies]:
        yield from self._start().__await__()
        return self


def await_replies(
    core: Core, id_: int, handler: IntoHandler[Reply], token: CancellationToken | None
) -> AwaitedReplies:
    """What takes the replies to a query that routing was asked just now."""
    # It goes out before what its answers need is made, so that whoever answers has it sooner.
    core.node.catch_up()
    try:
        replies = AwaitedReplies(core, id_, handler, token)
    except BaseException:
        core.face.cancel(id_)
        raise
    replies.begin()
    return replies


def _dropped(reply: Reply) -> None:
    _log.warning("a reply was dropped, too much waits to be read: %r", reply)
