"""Subscribers that know what they lost, and get it if anybody has it."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from zenwire.api.awaited import Awaited
from zenwire.api.core import locality_of
from zenwire.api.handlers import Callback, IntoHandler, Opened
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
from zenwire.ext.asks import Ask
from zenwire.ext.history import HistoryConfig
from zenwire.ext.keys import publishers_of, subscriber_key
from zenwire.ext.misses import SampleMissListener
from zenwire.ext.reception import Miss, Reception
from zenwire.ext.recovery import RecoveryConfig

if TYPE_CHECKING:
    from zenwire.api.core import Core
    from zenwire.api.declared import Declared
    from zenwire.api.replies import Replies
    from zenwire.api.session import Session
    from zenwire.keyexpr import KeyExpr

__all__ = ["QUERY_TIMEOUT", "AdvancedSubscriber", "declare_advanced_subscriber"]

QUERY_TIMEOUT: Final = 10.0
"""Seconds that publishers have to answer."""

_log = logging.getLogger("zenwire.ext")


class _Through:
    """Takes what the subscriber gets, before the program does."""

    __slots__ = ("owner",)

    def __init__(self, owner: AdvancedSubscriber) -> None:
        self.owner = owner

    def put(self, sample: Sample, /) -> bool:
        self.owner.receive(sample)
        return True

    def close(self) -> None:
        """The owner closes what is behind it."""


class AdvancedSubscriber(Subscriber):
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
        self._listeners: list[SampleMissListener] = []
        self._parts: list[Declared] = []
        """What is declared beside it: watching for tokens and heartbeats, a token of its own."""
        self._queries: dict[int, Replies] = {}
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

    def sample_miss_listener(
        self, handler: IntoHandler[Miss] = None
    ) -> Awaited[SampleMissListener]:
        """Be told of samples that were lost, of publishers that number them."""
        return Awaited(self._declare_listener(handler))

    async def _declare_listener(self, handler: IntoHandler[Miss]) -> SampleMissListener:
        self.check("sample_miss_listener")
        return SampleMissListener(self._core, self._listeners, handler)

    def detect_publishers(
        self, handler: IntoHandler[Sample] = None, *, history: bool | None = None
    ) -> Awaited[Subscriber]:
        """Be told of publishers that come (PUT) and go (DELETE), if they can be detected.

        ``history``: also of those that are there.
        """
        self.check("detect_publishers")
        where = publishers_of(self._key_expr)
        return self._session.liveliness().declare_subscriber(where, handler, history=history)

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

    def _replied(self, reply: Reply) -> None:
        sample = reply.ok
        if sample is not None:
            self._reception.reply(sample, self._loop.time())
            self._act()

    def _finished(self, id: int) -> None:
        self._queries.pop(id, None)
        self._reception.finished(id)
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
                    if type(output) is Sample:
                        self._put(output)
                    elif type(output) is Miss:
                        self._miss(output)
                    elif type(output) is Ask:
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
                Callback(self._replied, finished, indirect=False),
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


def declare_advanced_subscriber(
    session: Session,
    key_expr: IntoKeyExpr,
    handler: IntoHandler[Sample] = None,
    *,
    allowed_origin: Locality | None = None,
    history: HistoryConfig | None = None,
    recovery: RecoveryConfig | None = None,
    subscriber_detection: bool | None = None,
) -> Awaited[AdvancedSubscriber]:
    """A subscriber that gets the samples of advanced publishers in order.

    ``history`` asks for samples of the time before, ``recovery`` for those that were lost, from
    publishers with a cache. ``subscriber_detection`` lets it be found.
    """

    async def declare() -> AdvancedSubscriber:
        core = session._core  # noqa: SLF001 # what is declared works on it
        key = key_expr_of(key_expr)
        opened = open_samples(handler, key)
        core.check("declare_advanced_subscriber")
        eid = core.face.declare_subscriber(
            core.namespace.outward(str(key)), allowed_origin=locality_of(allowed_origin)
        )
        subscriber = AdvancedSubscriber(
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
