"""Subscribers that know what they lost, and get it if anybody has it."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, overload

from zenwire.api.awaited import Awaited
from zenwire.api.checks import check_kinds
from zenwire.api.columnar import Columnar
from zenwire.api.core import locality_of
from zenwire.api.ext.asks import Ask
from zenwire.api.ext.history import HistoryConfig
from zenwire.api.ext.keys import publishers_of, subscriber_key
from zenwire.api.ext.misses import SampleMissListener
from zenwire.api.ext.order import Miss
from zenwire.api.ext.reception import Reception
from zenwire.api.ext.recovery import RecoveryConfig
from zenwire.api.handlers import (
    Callback,
    Called,
    Channel,
    Channelled,
    H,
    IntoHandler,
    Opened,
    Paired,
)
from zenwire.api.session import Session, core_of
from zenwire.api.subscriber import Subscriber, open_samples
from zenwire.api.values import (
    ConsolidationMode,
    IntoKeyExpr,
    Locality,
    QueryTarget,
    Reply,
    ReplyKeyExpr,
    Sample,
    SampleKind,
    Selector,
    key_expr_of,
)
from zenwire.errors import ZError

if TYPE_CHECKING:
    from zenwire.api.core import Core
    from zenwire.api.declared import Declared
    from zenwire.api.replies import Replies
    from zenwire.keyexpr import KeyExpr

__all__ = ["QUERY_TIMEOUT", "AdvancedSubscriber", "declare_advanced_subscriber"]

QUERY_TIMEOUT: Final = 10.0
"""Seconds that publishers have to answer."""

_TIMED_OUT: Final = "Timeout"
"""What the error says that a query ends with then."""

_KINDS: Final[dict[str, type]] = {
    "history": HistoryConfig,
    "recovery": RecoveryConfig,
    "subscriber_detection": bool,
}

R = TypeVar("R")

_log = logging.getLogger("zenwire.ext")


class _Through:
    """Takes what the subscriber gets, before the program does."""

    __slots__ = ("owner",)

    def __init__(self, owner: AdvancedSubscriber[Any]) -> None:
        self.owner = owner

    def put(self, sample: Sample, /) -> bool:
        self.owner.receive(sample)
        return True

    def close(self) -> None:
        """The owner closes what is behind it."""


class AdvancedSubscriber(Subscriber[H], Generic[H]):
    """A subscriber that asks for samples it has not got. See `declare_advanced_subscriber`."""

    WHAT: ClassVar[str] = "advanced subscriber"

    def __init__(
        self,
        session: Session,
        core: Core,
        eid: int,
        key_expr: KeyExpr,
        opened: Opened[Sample],
        *,
        history: HistoryConfig | None,
        recovery: RecoveryConfig | None,
    ) -> None:
        self._session = session
        self._reception = Reception(key_expr, history, recovery)
        self._reception.start()
        self._listeners: list[SampleMissListener[Any]] = []
        self._parts: list[Declared] = []
        """What is declared beside it: watching for tokens and heartbeats, a token of its own."""
        self._queries: dict[int, Replies] = {}
        self._unanswered: set[int] = set()
        self._acting = False
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._late = history is not None and bool(history.detect_late_publishers)
        self._heartbeats = recovery is not None and bool(recovery.heartbeat)
        self._put = core.pump(opened)
        super().__init__(
            core, eid, key_expr, Opened(_Through(self), opened.receiver, opened.channel)
        )
        self._opened = opened

    @property
    def missed(self) -> int:
        """How many samples were missed so far, whether somebody listened or not."""
        return self._reception.missed

    @property
    def duplicates(self) -> int:
        """How many samples were not delivered because they were, or came too late."""
        return self._reception.duplicates

    @overload
    def sample_miss_listener(
        self, handler: Channelled[Miss] = None
    ) -> Awaited[SampleMissListener[Channel[Miss]]]: ...
    @overload
    def sample_miss_listener(self, handler: Paired[Miss, R]) -> Awaited[SampleMissListener[R]]: ...
    @overload
    def sample_miss_listener(self, handler: Called[Miss]) -> Awaited[SampleMissListener[None]]: ...
    def sample_miss_listener(
        self, handler: IntoHandler[Miss] = None
    ) -> Awaited[SampleMissListener[Any]]:
        """Be told of samples that were lost, of publishers that number them."""
        return Awaited(self._declare_listener(handler))

    async def _declare_listener(self, handler: IntoHandler[Miss]) -> SampleMissListener[Any]:
        self.check("sample_miss_listener")
        return SampleMissListener(self._core, self._listeners, handler)

    @overload
    def detect_publishers(
        self, handler: Channelled[Sample] = None, *, history: bool | None = None
    ) -> Awaited[Subscriber[Channel[Sample]]]: ...
    @overload
    def detect_publishers(
        self, handler: Paired[Sample, R], *, history: bool | None = None
    ) -> Awaited[Subscriber[R]]: ...
    @overload
    def detect_publishers(
        self, handler: Called[Sample], *, history: bool | None = None
    ) -> Awaited[Subscriber[None]]: ...
    def detect_publishers(
        self, handler: IntoHandler[Sample] = None, *, history: bool | None = None
    ) -> Awaited[Subscriber[Any]]:
        """Be told of publishers that come (PUT) and go (DELETE), if they can be detected.

        ``history``: also of those that are there.
        """
        self.check_alive("detect_publishers")
        where = publishers_of(self._key_expr)
        # Any: what a program gave, whichever of the kinds it is.
        given: Any = handler
        found: Awaited[Subscriber[Any]] = self._session.liveliness().declare_subscriber(
            where, given, history=history
        )
        return found

    async def open(self, allowed_origin: Locality | None, *, token: bool) -> None:
        """Declare what belongs to it, and ask for what there was before."""
        session, publishers = self._session, publishers_of(self._key_expr)
        self._act()
        if self._late:
            self._parts.append(
                await session.liveliness().declare_subscriber(
                    publishers, Callback(self._token, indirect=False), history=True
                )
            )
        if self._heartbeats:
            self._parts.append(
                await session.declare_subscriber(
                    publishers,
                    Callback(self._heartbeat, indirect=False),
                    allowed_origin=allowed_origin,
                )
            )
        if token:
            key = subscriber_key(self._key_expr, self.id)
            self._parts.append(await session.liveliness().declare_token(key))

    # What comes in.

    def receive(self, sample: Sample) -> None:
        """A sample of a publication."""
        self._reception.receive(sample, self._loop.time())
        self._act()

    def _token(self, sample: Sample) -> None:
        alive = sample.kind is SampleKind.PUT
        self._reception.token(str(sample.key_expr), self._loop.time(), alive=alive)
        self._act()

    def _heartbeat(self, sample: Sample) -> None:
        if sample.kind is SampleKind.PUT:
            payload = sample.payload.to_bytes()
            self._reception.heartbeat(str(sample.key_expr), payload, self._loop.time())
            self._act()

    def _replied(self, id: int, reply: Reply) -> None:
        sample, error = reply.ok, reply.err
        if sample is not None:
            self._reception.reply(sample, self._loop.time())
            self._act()
        elif error is not None and error.payload == _TIMED_OUT:
            self._unanswered.add(id)

    def _finished(self, id: int) -> None:
        self._queries.pop(id, None)
        answered = id not in self._unanswered
        self._unanswered.discard(id)
        self._reception.finished(id, answered=answered)
        self._act()

    def _tick(self) -> None:
        self._timer = None
        self._reception.tick(self._loop.time())
        self._act()

    # What comes of it.

    def _act(self) -> None:
        """Do what is to be done. What that leads to at once is done after it, in order."""
        if self._acting:
            return
        self._acting = True
        try:
            while self._declared and (outputs := self._reception.take()):
                for output in outputs:
                    if isinstance(output, Sample):
                        self._put(output)
                    elif isinstance(output, Miss):
                        self._miss(output)
                    else:
                        self._ask(output)
        finally:
            self._acting = False
        self._arm()

    def _miss(self, miss: Miss) -> None:
        _log.info("%d samples of %s were missed on %r", miss.nb, miss.source, self._where)
        for listener in list(self._listeners):
            listener.tell(miss)

    def _ask(self, ask: Ask) -> None:
        finished = partial(self._finished, ask.id)
        try:
            replies = self._session.get(
                Selector(ask.key_expr, ask.parameters),
                Callback(partial(self._replied, ask.id), finished, indirect=False),
                target=QueryTarget.ALL,
                consolidation=ConsolidationMode.NONE,
                accept_replies=ReplyKeyExpr.ANY,
                timeout=QUERY_TIMEOUT,
            )
        except ZError:
            # The session is at its end.
            self._reception.finished(ask.id)
            return
        if not replies.finished:
            self._queries[ask.id] = replies

    def _arm(self) -> None:
        at = self._reception.deadline
        if at is None or not self._declared:
            return
        if self._timer is not None:
            if self._timer.when() <= at:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(at, self._tick)

    async def undeclare(self) -> None:
        """Take the declaration back, and what belongs to it."""
        for part in reversed(self._parts):
            await part.undeclare()
        await super().undeclare()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for replies in list(self._queries.values()):
            replies.cancel()
        for listener in list(self._listeners):
            self._core.release(listener)
            listener.over()
        super()._end()


@overload
def declare_advanced_subscriber(
    session: Session,
    key_expr: IntoKeyExpr,
    handler: Channelled[Sample] = None,
    *,
    allowed_origin: Locality | None = None,
    history: HistoryConfig | None = None,
    recovery: RecoveryConfig | None = None,
    subscriber_detection: bool | None = None,
) -> Awaited[AdvancedSubscriber[Channel[Sample]]]: ...
@overload
def declare_advanced_subscriber(
    session: Session,
    key_expr: IntoKeyExpr,
    handler: Paired[Sample, H],
    *,
    allowed_origin: Locality | None = None,
    history: HistoryConfig | None = None,
    recovery: RecoveryConfig | None = None,
    subscriber_detection: bool | None = None,
) -> Awaited[AdvancedSubscriber[H]]: ...
@overload
def declare_advanced_subscriber(
    session: Session,
    key_expr: IntoKeyExpr,
    handler: Called[Sample],
    *,
    allowed_origin: Locality | None = None,
    history: HistoryConfig | None = None,
    recovery: RecoveryConfig | None = None,
    subscriber_detection: bool | None = None,
) -> Awaited[AdvancedSubscriber[None]]: ...
def declare_advanced_subscriber(
    session: Session,
    key_expr: IntoKeyExpr,
    handler: IntoHandler[Sample] = None,
    *,
    allowed_origin: Locality | None = None,
    history: HistoryConfig | None = None,
    recovery: RecoveryConfig | None = None,
    subscriber_detection: bool | None = None,
) -> Awaited[AdvancedSubscriber[Any]]:
    """A subscriber that gets the samples of advanced publishers in order.

    ``history`` asks for samples of the time before, ``recovery`` for those that were lost, from
    publishers with a cache. ``subscriber_detection`` lets it be found.
    """

    async def declare() -> AdvancedSubscriber[Any]:
        core = core_of(session)
        check_kinds(
            _KINDS,
            {
                "history": history,
                "recovery": recovery,
                "subscriber_detection": subscriber_detection,
            },
        )
        key = key_expr_of(key_expr)
        if isinstance(handler, Columnar):
            raise TypeError("an advanced subscriber puts samples in order, so it gives no batches")
        opened = open_samples(handler, key)
        core.check("declare_advanced_subscriber")
        eid = core.face.declare_subscriber(
            core.namespace.outward(str(key)),
            allowed_origin=locality_of(allowed_origin, "allowed_origin"),
        )
        subscriber: AdvancedSubscriber[Any] = AdvancedSubscriber(
            session, core, eid, key, opened, history=history, recovery=recovery
        )
        await subscriber.ready()
        try:
            await subscriber.open(allowed_origin, token=bool(subscriber_detection))
        except BaseException:
            await subscriber.undeclare()
            raise
        return subscriber

    return Awaited(declare())
