"""Queryables."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic

from zenwire.api.declared import Entity, Receiving
from zenwire.api.handlers import H, IntoHandler, Opened, open_handler
from zenwire.api.query import Query
from zenwire.routing import QueryReceived

if TYPE_CHECKING:
    from collections.abc import Callable

    from zenwire.api.core import Core
    from zenwire.keyexpr import KeyExpr
    from zenwire.routing import Output

__all__ = ["Queryable", "open_queries"]


def open_queries(handler: IntoHandler[Query]) -> Opened[Query]:
    """A handler for queries: those it raises for, or has no room for, end with an error."""
    return open_handler(handler, failed=Query.fail, left=Query.let_go, on_drop=_overflow)


def _overflow(query: Query) -> None:
    query.fail("the queryable is busy: too many queries wait for it")


class Queryable(Entity, Receiving[Query], Generic[H]):
    """Gets queries. What nobody took when it is undeclared ends with an error.

    In a loop, write ``with query:`` around its replies. Otherwise it ends when nobody holds it any
    more, and the variable of the loop holds it until the next one comes.
    """

    WHAT: ClassVar[str] = "queryable"

    def __init__(self, core: Core, eid: int, key_expr: KeyExpr, opened: Opened[Query]) -> None:
        self._opened = opened
        super().__init__(core, eid, key_expr)
        core.node.receivers[eid] = _deliver(core, eid, core.pump(opened))

    @property
    def handler(self) -> H:
        """A Channel; of a pair, what it had to read from; for a callback None."""
        handler: H = self._opened.receiver
        return handler

    def _end(self) -> None:
        channel = self._opened.channel
        if channel is not None and self._opened.callback is None:
            for query in channel.drain():
                query.fail("the queryable is undeclared")
        self._opened.sink.close()


def _deliver(core: Core, eid: int, put: Callable[[Query], bool]) -> Callable[[Output], None]:
    def deliver(output: Output) -> None:
        if type(output) is QueryReceived:
            key = core.namespace.inward(output.key)
            if key is None:
                core.foreign += 1
                core.face.finish(output.query, eid)
            else:
                put(Query(core, output, eid, key))

    return deliver
