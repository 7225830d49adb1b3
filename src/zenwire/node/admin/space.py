"""Answers for the admin space, a little at a time, and refuses what may not be done."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from typing import TYPE_CHECKING, Final

from zenwire.errors import ZError
from zenwire.keyexpr import intersects
from zenwire.node.admin import answers, counted, metrics
from zenwire.node.admin.reply import TEXT, Asked, Reply
from zenwire.routing import QueryReceived, SampleReceived
from zenwire.wire.data import Err, Put

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zenwire.node.node import Node
    from zenwire.routing import Face, Output, Session

__all__ = ["AdminSpace"]

_log = logging.getLogger("zenwire.node")

AT_ONCE: Final = 4
"""Queries that are answered at a time; others wait for their turn."""
WAITING_MAX: Final = 256
"""Queries from one neighbour that may wait; one more is refused."""
PATIENCE: Final = 2.0
"""Seconds in which whoever asks must take what there is so far, or gets no more."""
_SLICE: Final = 0.004
"""Seconds after which others have their turn."""
_STRIDE: Final = 32
"""Steps between two looks at the clock."""

_HANDLERS: Final[tuple[tuple[str, str, Callable[[Node, Asked], Iterator[Reply]]], ...]] = (
    ("", "", answers.root),
    ("/metrics", "", metrics.openmetrics),
    ("/linkstate", "/*", answers.linkstate),
    ("/subscriber", "/**", answers.subscribers),
    ("/publisher", "/**", answers.publishers),
    ("/queryable", "/**", answers.queryables),
    ("/querier", "/**", answers.queriers),
    ("/token", "/**", answers.tokens),
    ("/route/successor", "/**", answers.successors),
    # Not the reference's.
    ("/stats", "", counted.node_stats),
    ("/stats/session", "/*", counted.session_stats),
    ("/stats/key", "/**", counted.key_stats),
)
"""What begins with a key, what may follow, and who has it."""


class AdminSpace:
    """That of one node, from ``start`` on.

    ``refused`` counts queries and writes without permission, writes that cannot be done, and
    queries that were too many (``busy``) or whose asker did not take the answers (``unread``).
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._root = f"@/{node.zid}/{node.config.mode.name.lower()}"
        self._session: Session | None = None
        self._waiting: dict[Face | None, deque[tuple[QueryReceived, int]]] = {}
        """By where they come from: none has to wait for what many others ask."""
        self._working = 0
        self.refused: Counter[str] = Counter()

    def start(self) -> None:
        """Declare it."""
        node, session = self._node, self._node.session()
        self._session = session
        queryable = session.declare_queryable(f"{self._root}/**")
        node.receivers[queryable] = self._asked
        config = session.declare_subscriber(f"{self._root}/config/**")
        node.receivers[config] = self._written
        node.settle()

    # Writes.

    def _written(self, output: Output) -> None:
        assert isinstance(output, SampleReceived)
        if not self._node.config.settings.adminspace.permissions.write:
            self.refused["write"] += 1
            _log.warning("%s: adminspace/permissions/write is false", output.key)
            return
        # The reference changes what is below plugins, and nothing else; this node loads none.
        self.refused["config"] += 1
        _log.warning("%s: the configuration of a node that runs cannot be changed", output.key)

    # Reads.

    def _asked(self, output: Output) -> None:
        assert isinstance(output, QueryReceived)
        assert self._session is not None
        permitted = self._node.config.settings.adminspace.permissions.read
        waiting = self._waiting.setdefault(self._session.asker(output.query), deque())
        for queryable in output.queryables:
            if not permitted:
                self.refused["read"] += 1
                _log.warning("%s: adminspace/permissions/read is false", output.key)
                self._session.finish(output.query, queryable)
            elif len(waiting) >= WAITING_MAX:
                self.refused["busy"] += 1
                busy = Err(encoding=TEXT, payload=b"too many ask at once")
                self._session.reply(output.query, queryable, output.key, busy)
                self._session.finish(output.query, queryable)
            else:
                waiting.append((output, queryable))
                if self._working < AT_ONCE:
                    self._working += 1
                    self._node.spawn(self._work())

    async def _work(self) -> None:
        try:
            while self._waiting:
                asker, queries = next(iter(self._waiting.items()))
                del self._waiting[asker]
                if queries:
                    query = queries.popleft()
                    if queries:
                        self._waiting[asker] = queries
                    await self._answer(*query)
                    await self._pause()
        finally:
            self._working -= 1

    async def _answer(self, query: QueryReceived, queryable: int) -> None:
        node, session = self._node, self._session
        assert session is not None
        began, steps = node.now, 0
        try:
            for answer in self._answers(query):
                if answer is not None:
                    body = Put(encoding=answer.encoding, payload=answer.payload)
                    if not session.reply(query.query, queryable, answer.key, body):
                        return
                steps += 1
                if steps % _STRIDE == 0 and node.now - began > _SLICE:
                    if not await self._pause():
                        break
                    began = node.now
        except ZError as e:
            # A key that somebody declared, and that makes no key here: nobody else must suffer.
            _log.warning("%s: %s", query.key, e)
        finally:
            session.finish(query.query, queryable)

    async def _pause(self) -> bool:
        """Let others have their turn. False if the one who asks does not take the answers."""
        pressure = self._node.settle()
        if not pressure:
            await asyncio.sleep(0)
            return True
        _, late = await asyncio.wait([one.done for one in pressure], timeout=PATIENCE)
        if late:
            self.refused["unread"] += 1
        return not late

    def _answers(self, query: QueryReceived) -> Iterator[Reply]:
        parameters = _parameters(query.body.parameters)
        for begin, end, handler in _HANDLERS:
            prefix = self._root + begin
            if intersects(query.key, prefix + end):
                yield from handler(self._node, Asked(prefix, query.key, parameters))


def _parameters(text: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in text.split(";") if pair)
    return {name: value for name, _, value in pairs}
