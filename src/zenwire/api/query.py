"""A query, as a queryable gets it."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from zenwire.api.checks import check
from zenwire.api.publisher import bytes_of, del_of
from zenwire.api.values import (
    CongestionControl,
    Encoding,
    IntoKeyExpr,
    IntoZBytes,
    Parameters,
    Priority,
    ReplyKeyExpr,
    Sample,
    Selector,
    SourceInfo,
    Timestamp,
    TimestampStack,
    ZBytes,
    key_expr_of,
)
from zenwire.errors import ZError
from zenwire.keyexpr import KeyExpr
from zenwire.wire.data import Del, Err, Put
from zenwire.wire.repeat import with_payload

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zenwire.api.core import Core
    from zenwire.routing import QueryReceived

__all__ = ["Query"]

_log = logging.getLogger("zenwire.query")

_PLAIN: Final = Put(payload=b"")
_SMALL: Final = 1024
"""Bytes of an answer that goes out when the callback returns, or waits for something."""


class Query:
    """Answered with any number of replies, then ended: by ``with``, or by `drop`.

    One that nobody holds any more ends by itself, so that who asked does not wait in vain; and
    one whose callback, or ``with`` block, raises ends with an error that says so.
    """

    __slots__ = ("__weakref__", "_answers", "_core", "_eid", "_event", "_key", "_open", "_stack")

    def __init__(self, core: Core, event: QueryReceived, eid: int, key: str) -> None:
        self._core = core
        self._event = event
        self._eid = eid
        self._key = key
        self._answers = 0
        self._open = True
        stack = event.timestamp_stack
        self._stack = None if stack is None else core.stamps.received(stack)

    @property
    def selector(self) -> Selector:
        """Key expression and parameters, as given to ``get``."""
        return Selector(self.key_expr, self.parameters)

    @property
    def key_expr(self) -> KeyExpr:
        """Key expression that is asked for, without the parameters."""
        return KeyExpr(self._key)

    @property
    def parameters(self) -> Parameters:
        """Parameters of the selector; empty if it has none."""
        return Parameters(self._event.body.parameters)

    @property
    def payload(self) -> ZBytes | None:
        """Payload of the query, or None."""
        body = self._event.body.body
        return None if body is None else ZBytes(body.payload)

    @property
    def encoding(self) -> Encoding | None:
        """Encoding of the query's payload, or None if it has no payload."""
        body = self._event.body.body
        return None if body is None else Encoding.from_wire(body.encoding)

    @property
    def attachment(self) -> ZBytes | None:
        """Attachment of the query, or None."""
        attachment = self._event.body.attachment
        return None if attachment is None else ZBytes(attachment)

    @property
    def source_info(self) -> SourceInfo | None:
        """Entity and sequence number that the querier added, or None."""
        info = self._event.body.source_info
        return None if info is None else SourceInfo.from_wire(info)

    @property
    def timestamp_stack(self) -> TimestampStack | None:
        """Times taken along the route of an instrumented query, or None."""
        return None if self._stack is None else TimestampStack(self._stack)

    @property
    def finished(self) -> bool:
        """Whether it is ended here."""
        return not self._open

    def accepts_replies(self) -> ReplyKeyExpr:
        """Whether replies may have keys that do not match the query's."""
        return ReplyKeyExpr.ANY if "_anyke" in self.parameters else ReplyKeyExpr.MATCHING_QUERY

    async def reply(
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
    ) -> bool:
        """Answer with a value. False if nobody waits for it any more.

        Replies travel with the QoS of their query, so that of the arguments has no effect; it
        has none in the reference either.
        """
        if congestion_control is not None or priority is not None or express is not None:
            check(congestion_control=congestion_control, priority=priority, express=express)
        if encoding is None and timestamp is None and attachment is None:
            body = with_payload(_PLAIN, bytes_of(payload))
        else:
            check(timestamp=timestamp)
            body = Put(
                timestamp=None if timestamp is None else timestamp.wire,
                encoding=Encoding.of(encoding).wire,
                attachment=None if attachment is None else bytes_of(attachment, "attachment"),
                payload=bytes_of(payload),
            )
        # As ``_answer``, without a coroutine of its own: there is one for each query.
        heard = self._say("reply", key_expr, body)
        if not self._goes_with_the_end(body):
            await self._sent()
        return heard

    async def reply_del(
        self,
        key_expr: IntoKeyExpr,
        *,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
    ) -> bool:
        """Answer that a key has no value. As `reply` otherwise."""
        check(congestion_control=congestion_control, priority=priority, express=express)
        return await self._answer("reply_del", key_expr, del_of(attachment, timestamp, None))

    async def reply_err(
        self, payload: IntoZBytes, *, encoding: Encoding | str | None = None
    ) -> bool:
        """Answer that there is no answer, and why. As `reply` otherwise."""
        body = Err(encoding=Encoding.of(encoding).wire, payload=bytes_of(payload))
        return await self._answer("reply_err", None, body)

    async def reply_sample(self, sample: Sample) -> bool:
        """Answer with a sample as it is: with the time and the number that it was published with."""
        return await self._answer("reply_sample", sample.key_expr, sample.body)

    def reply_at_once(self, samples: Iterable[Sample]) -> None:
        """The same for a few before anything else is done: this does not wait for room."""
        for sample in samples:
            self._say("reply_at_once", sample.key_expr, sample.body)
            self._core.settle()

    async def _answer(self, call: str, key: IntoKeyExpr | None, body: Put | Del | Err) -> bool:
        heard = self._say(call, key, body)
        if not self._goes_with_the_end(body):
            await self._sent()
        return heard

    def _goes_with_the_end(self, body: Put | Del | Err) -> bool:
        """Mostly it is the only answer, and goes out with the end of the query: see `_finish`."""
        return self._answers == 1 and self._core.node.telling and _is_small(body)

    async def _sent(self) -> None:
        waiting = self._core.settle()
        if waiting is not None:
            await self._core.room(waiting)

    def _say(self, call: str, key: IntoKeyExpr | None, body: Put | Del | Err) -> bool:
        core = self._core
        if not core.usable():
            core.check(f"query.{call}")
        if not self._open:
            raise ZError(
                f"query.{call}: the query on {self._key!r} is ended already; "
                "reply before drop(), inside of the with block"
            )
        event, stack = self._event, self._stack
        if key is None:
            text = ""
        elif key == self._key:
            # Mostly one answers with what was asked for, which needs no other look.
            text = core.namespace.outward(self._key)
        else:
            text = core.namespace.outward(str(key_expr_of(key)))
        times = None if stack is None else core.stamps.answered(stack)
        heard = core.face.reply(event.query, self._eid, text, body, timestamp_stack=times)
        self._answers += 1
        return heard

    def drop(self) -> None:
        """End the query: no reply follows. A second call does nothing.

        Raises WrongLoop in another loop than the session's.
        """
        if self._open:
            ended = self._core.over or self._core.forked
            if not ended:
                self._core.check_loop("query.drop")
            self._open = False
            if not ended:
                _finish(self._core, self._event.query, self._eid)

    def let_go(self) -> None:
        """Nobody will answer any more: end it, and tell if nobody has."""
        if self._open:
            self._warn()
            self.drop()

    def _warn(self) -> None:
        if not self._answers:
            _log.warning(
                "the query on %r was let go without an answer; use `with query:` and reply in it",
                self._key,
            )

    def fail(self, error: BaseException | str) -> None:
        """End it with an error that says what failed."""
        if not self._open or self._core.over or self._core.forked:
            return
        text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        body = Err(encoding=Encoding.ZENOH_STRING.wire, payload=text.encode(errors="replace"))
        self._core.face.reply(self._event.query, self._eid, "", body)
        self.drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self.fail(error)
        self.drop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)

    def __del__(self) -> None:
        if not getattr(self, "_open", False) or self._core.over or self._core.forked:
            return
        self._open = False
        self._warn()
        # The collector may run anywhere, also in the middle of routing.
        self._core.later(_finish, self._core, self._event.query, self._eid)

    def __str__(self) -> str:
        return f"Query({str(self.selector)!r})"

    __repr__ = __str__


def _is_small(body: Put | Del | Err) -> bool:
    """Whether it takes no more room than the end of its query, which does not wait for any."""
    return type(body) is Put and body.attachment is None and len(body.payload) <= _SMALL


def _finish(core: Core, query: int, eid: int) -> None:
    if not core.over:
        core.face.finish(query, eid)
        # While programs are told of things, what they do is carried out after each.
        if not core.node.telling:
            core.node.settle()
