"""Queries of this session: the replies that come, and the end of waiting for them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from zenwire.api import replies as aio
from zenwire.api.handlers import DefaultHandler, IntoHandler
from zenwire.api.replies import AwaitedReplies, Replies, ReplyChannel
from zenwire.api.values import Reply
from zenwire.sync.handler import Handler, Reading, Roomy
from zenwire.sync.thread import current

if TYPE_CHECKING:
    from zenwire.sync.session import Session
    from zenwire.sync.workers import Strand

__all__ = ["CancellationToken", "asked"]

Ask = Callable[[IntoHandler[Reply]], AwaitedReplies]


class CancellationToken(aio.CancellationToken):
    """Ends queries from outside: all that it was given to. Any thread may cancel."""

    __slots__ = ("_strands",)

    def __init__(self) -> None:
        super().__init__()
        self._strands: weakref.WeakSet[Strand[Reply]] = weakref.WeakSet()

    def cancel(self) -> None:
        """End the queries that have it. No other can be asked with it.

        When it returns they are ended: it waits for callbacks that are under way, but not where
        one of them calls it.
        """
        super().cancel()
        loop = current()
        if loop.here:
            return
        # A task begins after what was asked of the loop before it was made.
        loop.run(_nothing, task=True)
        for strand in list(self._strands):
            strand.close(None)

    def watch(self, strand: Strand[Reply]) -> None:
        """The calls of a query that has it."""
        self._strands.add(strand)


async def _nothing() -> None:
    pass


def asked(
    session: Session,
    handler: IntoHandler[Reply],
    ask: Ask,
    token: aio.CancellationToken | None = None,
) -> Any:
    """What to read replies from: a Handler; of a pair, its own; for a callback None.

    A query ends when its Handler is let go.
    """
    reading: Reading[Reply] = Reading(handler)
    into = reading.into
    if isinstance(into, (Roomy, DefaultHandler)):
        # Replies that do not come again are worth more room than samples are.
        into = ReplyChannel()

    async def start() -> Replies:
        return await ask(into)

    replies = session.loop.run(start)
    found, strand = session.access.attach(reading, replies.handler, replies)
    if strand is not None and isinstance(token, CancellationToken):
        token.watch(strand)
    return found.of(replies) if isinstance(found, Handler) else found
