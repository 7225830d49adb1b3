"""Publishers that number their samples, keep the last ones, and can be found."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, ClassVar, Final

from zenwire.api.awaited import Awaited
from zenwire.api.checks import check, check_kinds
from zenwire.api.ext.cache import Cache, CacheConfig
from zenwire.api.ext.keys import publisher_key
from zenwire.api.ext.recovery import MissDetectionConfig
from zenwire.api.ext.sequence import SN_MAX, next_sn
from zenwire.api.publisher import Publisher, Quality, del_of, put_of, qos_of, quality_of
from zenwire.api.session import Session, core_of
from zenwire.api.values import (
    CongestionControl,
    Encoding,
    IntoKeyExpr,
    IntoZBytes,
    Locality,
    Priority,
    Reliability,
    Sample,
    SourceInfo,
    Timestamp,
    TimestampInstrumentation,
    key_expr_of,
)
from zenwire.errors import ZError
from zenwire.wire.serialized import write_number

if TYPE_CHECKING:
    from zenwire.api.core import Core
    from zenwire.api.declared import Declared
    from zenwire.api.put_batch import IntoTable, Written
    from zenwire.api.query import Query
    from zenwire.keyexpr import KeyExpr
    from zenwire.wire.data import Del, Put

__all__ = ["AdvancedPublisher", "declare_advanced_publisher"]

_KINDS: Final[dict[str, type]] = {
    "cache": CacheConfig,
    "sample_miss_detection": MissDetectionConfig,
    "publisher_detection": bool,
}


class AdvancedPublisher(Publisher):
    """A publisher whose samples can be asked for again. See `declare_advanced_publisher`."""

    WHAT: ClassVar[str] = "advanced publisher"

    def __init__(
        self,
        core: Core,
        eid: int,
        key_expr: KeyExpr,
        *,
        encoding: Encoding,
        quality: Quality,
        cache: CacheConfig | None,
        numbered: bool,
    ) -> None:
        super().__init__(core, eid, key_expr, encoding=encoding, quality=quality)
        self._cache = None if cache is None else Cache(cache)
        self._numbered = numbered
        self._last_sn: int | None = None
        self._parts: list[Declared] = []
        """What is declared beside it: the queryable of the cache, a token, a heartbeat."""
        self._heart: asyncio.Task[None] | None = None

    async def put(
        self,
        payload: IntoZBytes,
        *,
        encoding: Encoding | str | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        source_info: SourceInfo | None = None,
    ) -> None:
        """Publish a value. Waits for room as its congestion control says.

        What its samples are told apart by, ``source_info``, is its own business.
        """
        self._check("put", source_info)
        body = put_of(
            self._core,
            payload,
            self._encoding if encoding is None else Encoding.of(encoding),
            attachment=attachment,
            timestamp=timestamp,
            source_info=self._source_info(),
        )
        await self._publish(body, timestamp_instrumentation)

    async def delete(
        self,
        *,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        source_info: SourceInfo | None = None,
    ) -> None:
        """Publish that the key has no value any more."""
        self._check("delete", source_info)
        node = self._core.node
        if timestamp is None and node.config.timestamping:
            # Other deletes have none; these are put in order by it.
            timestamp = Timestamp.from_wire(node.clock.new_timestamp())
        body = del_of(attachment, timestamp, self._source_info())
        await self._publish(body, timestamp_instrumentation)

    async def put_batch(
        self, table: IntoTable, *, encoding: Encoding | str | None = None
    ) -> Written:
        """Not here: each sample gets a number and a place in the cache of its own."""
        raise ZError("put_batch: an advanced publisher numbers and keeps its samples: put each")

    def _check(self, call: str, source_info: SourceInfo | None) -> None:
        self.check(call)
        if source_info is not None and self._numbered:
            raise ValueError(f"{call}: an advanced publisher numbers its samples itself")

    def _source_info(self) -> SourceInfo | None:
        if not self._numbered:
            return None
        return SourceInfo(self.id, next_sn(SN_MAX if self._last_sn is None else self._last_sn))

    async def _publish(self, body: Put | Del, times: TimestampInstrumentation | None) -> None:
        info = body.source_info
        if info is not None:
            self._last_sn = info.sn
        if self._cache is not None:
            # First, so that who sees a later one can ask for it.
            self._cache.add(Sample(self._key_expr, body))
        waiting = self._push(body, times)
        if waiting is not None:
            await self._core.room(waiting)

    async def open(
        self, session: Session, detection: MissDetectionConfig | None, *, token: bool
    ) -> None:
        """Declare what belongs to it."""
        key = publisher_key(self._key_expr, self.id, numbered=self._numbered)
        if self._cache is not None:
            self._parts.append(await session.declare_queryable(key, self._answer))
        if token:
            self._parts.append(await session.liveliness().declare_token(key))
        period = None if detection is None else detection.period
        if detection is not None and period is not None:
            sporadic = detection.sporadic_heartbeat is not None
            kind = CongestionControl.BLOCK if sporadic else CongestionControl.DEFAULT
            publisher = await session.declare_publisher(key, congestion_control=kind)
            self._parts.append(publisher)
            self._heart = asyncio.create_task(self._beat(publisher, period, sporadic=sporadic))

    async def _answer(self, query: Query) -> None:
        cache = self._cache
        assert cache is not None
        parameters = query.parameters
        with query:
            known = cache.added
            for sample in cache.select(parameters, time.time()):
                # With all that it was published with, also its number.
                await query.reply_sample(sample)
            if "_max" not in parameters:
                # Who asked gives up, at the end of the answers, what is missing of all it heard
                # by then: also of what was published while these waited, or others had their turn.
                query.reply_at_once(cache.select(parameters, time.time(), known))

    async def _beat(self, publisher: Publisher, period: float, *, sporadic: bool) -> None:
        """Tell the last number, again and again or when there is another one."""
        told: int | None = None
        while True:
            await asyncio.sleep(period)
            last = self._last_sn
            if last is None or (sporadic and last == told):
                continue
            told = last
            payload = bytearray()
            write_number(payload, "u32", last)
            try:
                await publisher.put(payload)
            except ZError:
                # The session is at its end.
                return

    async def undeclare(self) -> None:
        """Take the declaration back, and what belongs to it."""
        for part in reversed(self._parts):
            await part.undeclare()
        await super().undeclare()

    def _end(self) -> None:
        if self._heart is not None:
            self._heart.cancel()
        super()._end()


def declare_advanced_publisher(
    session: Session,
    key_expr: IntoKeyExpr,
    *,
    encoding: Encoding | str | None = None,
    congestion_control: CongestionControl | None = None,
    priority: Priority | None = None,
    express: bool | None = None,
    reliability: Reliability | None = None,
    allowed_destination: Locality | None = None,
    cache: CacheConfig | None = None,
    sample_miss_detection: MissDetectionConfig | None = None,
    publisher_detection: bool | None = None,
) -> Awaited[AdvancedPublisher]:
    """A publisher for advanced subscribers.

    With a ``cache`` it answers those who come late; with ``sample_miss_detection`` its samples
    have numbers, so that those who lost some notice; ``publisher_detection`` lets it be found.
    A cache without numbers needs ``timestamping/enabled``.
    """

    async def declare() -> AdvancedPublisher:
        core = core_of(session)
        key = key_expr_of(key_expr)
        core.check("declare_advanced_publisher")
        check(reliability=reliability)
        check_kinds(
            _KINDS,
            {
                "cache": cache,
                "sample_miss_detection": sample_miss_detection,
                "publisher_detection": publisher_detection,
            },
        )
        numbered = sample_miss_detection is not None
        if cache is not None and not numbered and not core.node.config.timestamping:
            raise ZError(
                f"declare_advanced_publisher: the samples of {str(key)!r} have neither numbers nor "
                "times; give sample_miss_detection, or configure timestamping/enabled"
            )
        kind = Encoding.of(encoding)
        how = quality_of(
            core,
            str(key),
            qos_of(priority, congestion_control, express),
            reliability,
            allowed_destination,
        )
        eid = core.face.declare_publisher(
            core.namespace.outward(str(key)),
            core.now,
            allowed_destination=how.destination,
        )
        publisher = AdvancedPublisher(
            core,
            eid,
            key,
            encoding=kind,
            quality=how,
            cache=cache,
            numbered=numbered,
        )
        await publisher.ready()
        try:
            await publisher.open(session, sample_miss_detection, token=bool(publisher_detection))
        except BaseException:
            await publisher.undeclare()
            raise
        return publisher

    return Awaited(declare())
