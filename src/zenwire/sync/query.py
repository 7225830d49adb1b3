"""Queryables, and the queries that they get."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self

from zenwire.api import query as aio
from zenwire.api.handlers import H
from zenwire.api.values import (
    CongestionControl,
    Encoding,
    IntoKeyExpr,
    IntoZBytes,
    Parameters,
    Priority,
    ReplyKeyExpr,
    Selector,
    SourceInfo,
    Timestamp,
    TimestampStack,
    ZBytes,
    key_expr_of,
)
from zenwire.errors import ZError
from zenwire.sync.checks import check, encoding_of, payload_of
from zenwire.sync.declared import Entity, Receiving

if TYPE_CHECKING:
    from zenwire.keyexpr import KeyExpr
    from zenwire.sync.access import Access

__all__ = ["Query", "Queryable"]


class Query:
    """Answered with any number of replies, then ended: by ``with``, or by `drop`.

    One that nobody holds any more ends by itself, so that who asked does not wait in vain; and
    one whose callback, or ``with`` block, raises ends with an error that says so.
    """

    __slots__ = ("__weakref__", "_access", "_inner", "_open")

    def __init__(self, access: Access, inner: aio.Query) -> None:
        self._access = access
        self._inner = inner
        self._open = True

    @property
    def selector(self) -> Selector:
        """Key expression and parameters, as given to ``get``."""
        return self._inner.selector

    @property
    def key_expr(self) -> KeyExpr:
        """Key expression that is asked for, without the parameters."""
        return self._inner.key_expr

    @property
    def parameters(self) -> Parameters:
        """Parameters of the selector; empty if it has none."""
        return self._inner.parameters

    @property
    def payload(self) -> ZBytes | None:
        """Payload of the query, or None."""
        return self._inner.payload

    @property
    def encoding(self) -> Encoding | None:
        """Encoding of the query's payload, or None if it has no payload."""
        return self._inner.encoding

    @property
    def attachment(self) -> ZBytes | None:
        """Attachment of the query, or None."""
        return self._inner.attachment

    @property
    def source_info(self) -> SourceInfo | None:
        """Entity and sequence number that the querier added, or None."""
        return self._inner.source_info

    @property
    def timestamp_stack(self) -> TimestampStack | None:
        """Times taken along the route of an instrumented query, or None."""
        return self._inner.timestamp_stack

    @property
    def finished(self) -> bool:
        """Whether it is ended here."""
        return not self._open

    def accepts_replies(self) -> ReplyKeyExpr:
        """Whether replies may have keys that do not match the query's."""
        return self._inner.accepts_replies()

    def reply(
        self,
        key_expr: IntoKeyExpr,
        payload: IntoZBytes,
        *,
        encoding: Encoding | str | None = None,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
    ) -> None:
        """Answer with a value. Returns when it is on its way; waits if too many are.

        Replies travel with the QoS of their query, so that of the arguments has no effect; it
        has none in the reference either.
        """
        key, raw = self._key("reply", key_expr), payload_of(payload)
        check(
            congestion_control=congestion_control,
            priority=priority,
            express=express,
            timestamp=timestamp,
        )
        call = partial(
            self._inner.reply,
            key,
            raw,
            encoding=encoding_of(encoding),
            attachment=None if attachment is None else payload_of(attachment, "attachment"),
            timestamp=timestamp,
        )
        self._send(call, len(raw))

    def reply_del(
        self,
        key_expr: IntoKeyExpr,
        *,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
    ) -> None:
        """Answer that a key has no value. As `reply` otherwise."""
        key = self._key("reply_del", key_expr)
        check(
            congestion_control=congestion_control,
            priority=priority,
            express=express,
            timestamp=timestamp,
        )
        raw = None if attachment is None else payload_of(attachment, "attachment")
        self._send(partial(self._inner.reply_del, key, attachment=raw, timestamp=timestamp))

    def reply_err(self, payload: IntoZBytes, *, encoding: Encoding | str | None = None) -> None:
        """Answer that there is no answer, and why. As `reply` otherwise."""
        self._check("reply_err")
        raw = payload_of(payload)
        call = partial(self._inner.reply_err, raw, encoding=encoding_of(encoding))
        self._send(call, len(raw))

    def _check(self, call: str) -> None:
        self._access.check(f"query.{call}")
        if not self._open:
            raise ZError(
                f"query.{call}: the query on {str(self.key_expr)!r} is ended already; "
                "reply before drop(), inside of the with block"
            )

    def _key(self, call: str, key_expr: IntoKeyExpr) -> KeyExpr:
        self._check(call)
        key, asked = key_expr_of(key_expr), self.key_expr
        if not key.intersects(asked) and self.accepts_replies() is not ReplyKeyExpr.ANY:
            raise ZError(
                f"query.{call}: {str(key)!r} does not match the query on {str(asked)!r}, which "
                "accepts no other replies"
            )
        return key

    def _send(self, call: Callable[[], Coroutine[Any, Any, Any]], size: int = 0) -> None:
        self._access.lane(None).send(call, size)

    def drop(self) -> None:
        """All is said. Once more is no matter."""
        if self._open:
            self._open = False
            if self._access.usable:
                # After the replies, and it must not wait where they do not.
                self._send(partial(_drop, self._inner))

    def fail(self, error: BaseException | str) -> None:
        """End it with an error that says what failed."""
        if self._open and self._access.usable:
            self._open = False
            self._send(partial(_fail, self._inner, error))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self.fail(f"{type(error).__name__}: {error}")
        self.drop()

    def __str__(self) -> str:
        return str(self._inner)

    __repr__ = __str__


async def _drop(query: aio.Query) -> None:
    query.drop()


async def _fail(query: aio.Query, error: BaseException | str) -> None:
    query.fail(error)


class Queryable(Entity, Receiving[Query], Generic[H]):
    """Gets queries. What nobody took when it is undeclared ends with an error.

    In a loop, write ``with query:`` around its replies. Otherwise it ends when nobody holds it any
    more, and the variable of the loop holds it until the next one comes.
    """

    @property
    def handler(self) -> H:
        """A Handler; of a pair, what it had to read from; for a callback None."""
        handler: H = self._handler
        return handler
