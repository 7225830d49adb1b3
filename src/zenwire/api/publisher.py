"""Publications: what a put or delete says, and publishers that say it often."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from zenwire.api.checks import check
from zenwire.api.core import get_ident, locality_of
from zenwire.api.matching import Matcher
from zenwire.api.put_batch import put_batch
from zenwire.api.puts import Puts
from zenwire.api.values import (
    CongestionControl,
    Encoding,
    IntoZBytes,
    Locality,
    Priority,
    Reliability,
    SourceInfo,
    Timestamp,
    TimestampInstrumentation,
    ZBytes,
)
from zenwire.node.stream import Stream
from zenwire.wire import values as wire
from zenwire.wire.data import Del, Put
from zenwire.wire.repeat import with_payload

if TYPE_CHECKING:
    from zenwire import routing
    from zenwire.api.core import Core
    from zenwire.api.put_batch import IntoTable, Written
    from zenwire.keyexpr import KeyExpr
    from zenwire.node.neighbour import Waiting
    from zenwire.wire import structs

__all__ = ["Publisher", "Quality", "bytes_of", "del_of", "put_of", "qos_of", "quality_of"]


def qos_of(
    priority: Priority | None,
    congestion_control: CongestionControl | None,
    express: bool | None,
    default: CongestionControl = CongestionControl.DEFAULT,
) -> wire.QoS:
    """As it travels. Raises TypeError."""
    try:
        return _qos_of(priority, congestion_control, express, default)
    except TypeError:
        # A value that cannot be hashed is of no kind that is meant.
        check(priority=priority, congestion_control=congestion_control, express=express)
        raise


@cache
def _qos_of(
    priority: Priority | None,
    congestion_control: CongestionControl | None,
    express: bool | None,
    default: CongestionControl,
) -> wire.QoS:
    check(priority=priority, congestion_control=congestion_control, express=express)
    return wire.QoS.of(
        wire.Priority(int(priority or Priority.DEFAULT)),
        wire.CongestionControl(int(congestion_control or default)),
        bool(express),
    )


class Quality(NamedTuple):
    """How a publication travels, and where to."""

    qos: wire.QoS
    reliable: bool
    destination: routing.Locality


def quality_of(
    core: Core,
    key: str,
    qos: wire.QoS,
    reliability: Reliability | None,
    allowed_destination: Locality | None,
) -> Quality:
    """Return how publications on a key of the program travel: as asked, or as configured."""
    asked = qos, reliability is not Reliability.BEST_EFFORT, locality_of(allowed_destination)
    overwrites = core.overwrites
    return Quality(*(asked if overwrites is None else overwrites.apply(key, *asked)))


def bytes_of(value: IntoZBytes, name: str = "payload") -> bytes:
    """Convert a value to payload bytes; bytes are not copied. Raises TypeError with the ``name``."""
    if type(value) is bytes:
        return value
    if value is None:
        raise TypeError(f"{name} is bytes or str, not None; b'' is an empty one")
    try:
        return value.to_bytes() if type(value) is ZBytes else ZBytes(value).to_bytes()
    except TypeError as e:
        kind = type(value).__name__
        raise TypeError(
            f"{name} is bytes or str, not {kind}; encode it first, as with json.dumps"
        ) from e


def put_of(
    core: Core,
    payload: IntoZBytes,
    encoding: Encoding,
    *,
    attachment: IntoZBytes | None,
    timestamp: Timestamp | None,
    source_info: SourceInfo | None,
) -> Put:
    """A put of this session: with a time, if the node is to give one."""
    if timestamp is not None or source_info is not None:
        check(timestamp=timestamp, source_info=source_info)
    stamp: structs.Timestamp | None
    if timestamp is not None:
        stamp = timestamp.wire
    else:
        stamp = core.node.clock.new_timestamp() if core.node.config.timestamping else None
    return Put(
        timestamp=stamp,
        encoding=encoding.wire,
        source_info=None if source_info is None else source_info.wire,
        attachment=None if attachment is None else bytes_of(attachment, "attachment"),
        payload=bytes_of(payload),
    )


def del_of(
    attachment: IntoZBytes | None,
    timestamp: Timestamp | None,
    source_info: SourceInfo | None,
) -> Del:
    """A delete. Nodes give no times to these."""
    if timestamp is not None or source_info is not None:
        check(timestamp=timestamp, source_info=source_info)
    return Del(
        timestamp=None if timestamp is None else timestamp.wire,
        source_info=None if source_info is None else source_info.wire,
        attachment=None if attachment is None else bytes_of(attachment, "attachment"),
    )


class Publisher(Matcher, Puts):
    """Publishes on one key, and knows whether anybody subscribes to it."""

    WHAT: ClassVar[str] = "publisher"

    def __init__(
        self,
        core: Core,
        eid: int,
        key_expr: KeyExpr,
        *,
        encoding: Encoding,
        quality: Quality,
    ) -> None:
        super().__init__(core, eid, key_expr)
        self._encoding = encoding
        self._key = core.namespace.outward(str(key_expr))
        self._qos, self._reliable, self._destination = quality
        self._runner = core.runner
        self._like = (
            None if core.node.config.timestamping else Put(encoding=encoding.wire, payload=b"")
        )
        """What puts are that say nothing but a value; there are none if they get a time."""
        self._stream = None if self._like is None else self._streamed(self._like)

    def _streamed(self, like: Put) -> Stream:
        core = self._core
        return Stream(
            core.node,
            core.face,
            self._key,
            like,
            qos=self._qos,
            reliable=self._reliable,
            allowed_destination=self._destination,
        )

    @property
    def encoding(self) -> Encoding:
        """What puts have that name none of their own."""
        return self._encoding

    @property
    def congestion_control(self) -> CongestionControl:
        """CongestionControl of every put and delete of this publisher."""
        return CongestionControl(int(self._qos.congestion_control))

    @property
    def priority(self) -> Priority:
        """Priority of every put and delete of this publisher."""
        return Priority(int(self._qos.priority))

    @property
    def express(self) -> bool:
        """True if each value is sent at once, instead of waiting for others to fill a batch."""
        return self._qos.express

    @property
    def reliability(self) -> Reliability:
        """Reliability of every put and delete of this publisher."""
        return Reliability.RELIABLE if self._reliable else Reliability.BEST_EFFORT

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
        """Publish a value. Waits for room as its congestion control says."""
        if (
            encoding is None
            and attachment is None
            and timestamp is None
            and source_info is None
            and (stream := self._stream) is not None
            and self._runner._thread_id == get_ident()  # noqa: SLF001 # see Core.runner
        ):
            if type(payload) is not bytes:
                payload = bytes_of(payload)
            if timestamp_instrumentation is None and stream.put(payload):
                if stream.turn:
                    stream.turn = False
                    await asyncio.sleep(0)
                return
            self.check("put")
            body = with_payload(stream.like, payload)
        else:
            self.check("put")
            body = put_of(
                self._core,
                payload,
                self._encoding if encoding is None else Encoding.of(encoding),
                attachment=attachment,
                timestamp=timestamp,
                source_info=source_info,
            )
        waiting = self._push(body, timestamp_instrumentation)
        if waiting is not None:
            await self._core.room(waiting)

    def _short(self) -> Stream | None:
        return self._stream

    def put_long(self, payload: bytes) -> list[Waiting] | None:
        """Publish a value through routing, without the cached route. Raises as ``put`` does.

        Returns messages that still wait for room in a link, or None.
        """
        self.check("put")
        if self._like is not None:
            body = with_payload(self._like, payload)
        else:
            body = put_of(
                self._core,
                payload,
                self._encoding,
                attachment=None,
                timestamp=None,
                source_info=None,
            )
        return self._push(body, None)

    async def delete(
        self,
        *,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        source_info: SourceInfo | None = None,
    ) -> None:
        """Publish that the key has no value any more."""
        self.check("delete")
        body = del_of(attachment, timestamp, source_info)
        waiting = self._push(body, timestamp_instrumentation)
        if waiting is not None:
            await self._core.room(waiting)

    async def put_batch(
        self, table: IntoTable, *, encoding: Encoding | str | None = None
    ) -> Written:
        """Publish all rows of a table, or all values of an array: the same as a loop of ``put``.

        The columns are those of `zenwire.columns.samples`; ``payload`` is needed. Rows have the
        key, QoS and reliability of this publisher. Waits for room, as its congestion control
        says. Nothing is sent if any row cannot be. Needs the extra ``fast``.
        """
        self.check("put_batch")
        return await put_batch(
            self._core,
            table,
            key=str(self._key_expr),
            qos=self._qos,
            reliable=self._reliable,
            encoding=self._encoding if encoding is None else Encoding.of(encoding),
            destination=self._destination,
        )

    def _end(self) -> None:
        super()._end()
        self._stream = None

    def _push(
        self, body: Put | Del, times: TimestampInstrumentation | None
    ) -> list[Waiting] | None:
        core = self._core
        if times is not None:
            check(timestamp_instrumentation=times)
        core.face.push(
            self._key,
            body,
            qos=self._qos,
            reliable=self._reliable,
            allowed_destination=self._destination,
            timestamp_stack=None if times is None else core.stamps.sent(times),
        )
        return core.settle()
