"""Whole tables at once: ``put_batch`` of sessions and publishers.

The same as a loop of ``put`` over the rows. Rows that a neighbour wants are packed by a compiled
kernel and queued a batch at a time; those that a subscriber of this very node gets are made one by
one, as ever.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from zenwire.api.values import Encoding
from zenwire.routing import Locality
from zenwire.transport import Packed
from zenwire.transport.sequence import lane
from zenwire.wire.values import QoS, WireExpr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zenwire.api.core import Core
    from zenwire.api.overwrites import Overwrites
    from zenwire.columns import publish
    from zenwire.columns.alike import Alike
    from zenwire.columns.pack import Packer
    from zenwire.columns.write import Publications
    from zenwire.routing import Face
    from zenwire.routing.pubsub import Route

__all__ = ["IntoTable", "Written", "put_batch"]


_PACKING: Final = 1024
"""Bytes for somebody who is gone: what is packed for him is dropped, and counted."""


class _Stream(Protocol):
    """Anything of Arrow that has rows, or values."""

    def __arrow_c_stream__(self, requested_schema: object = ...) -> object: ...


class _Array(Protocol):
    """The same in one piece."""

    def __arrow_c_array__(self, requested_schema: object = ...) -> tuple[object, object]: ...


IntoTable = _Stream | _Array
"""A table, a record batch, an array: of PyArrow, or of whoever speaks Arrow's C interface."""


class Written(NamedTuple):
    """What became of the rows of a table; those that nobody wants are in neither number.

    ``sent``: they are on their way to all who want them. ``dropped``: somebody who wants them does
    not get them, for want of room, because he is gone, or by a filter; `SessionInfo.stats` says why.
    """

    rows: int
    sent: int
    dropped: int


async def put_batch(
    core: Core,
    data: Any,
    *,
    key: str | None,
    qos: QoS,
    reliable: bool,
    encoding: Encoding,
    destination: Locality,
) -> Written:
    """Put the rows. With ``key``, that is the key of all, and QoS and reliability are the call's.

    Raises EncodeError or KeyExprError, before anything is sent, for what cannot be.
    """
    columns: Any = import_module("zenwire.columns.publish")
    table = columns.table_of(data)
    columns.check(table, key)
    how = columns.Stamped(qos.raw, reliable, encoding.wire, own=key is not None)
    overwrites = core.overwrites if key is None else None
    if overwrites is not None:
        table = columns.overwritten(table, how, overwrites.raw_qos, overwrites.reliable)
    outward = None if key is None else core.namespace.outward(key)
    pack: Any = import_module("zenwire.columns.pack")
    writing = _Writing(core, pack.Packer(), outward, destination, overwrites)
    sent = dropped = 0
    for chunk in columns.chunks(table):
        some = await writing.write(columns.Rows(chunk, how))
        sent, dropped = sent + some.sent, dropped + some.dropped
        # Others have their turn.
        await asyncio.sleep(0)
    return Written(table.num_rows, sent, dropped)


class _Writing:
    """One call. Where rows go is found anew for each of its parts."""

    def __init__(
        self,
        core: Core,
        packer: Packer,
        key: str | None,
        destination: Locality,
        overwrites: Overwrites | None,
    ) -> None:
        self._core = core
        self._packer = packer
        self._key = key
        self._destination = destination
        self._overwrites = overwrites

    async def write(self, rows: publish.Rows) -> Written:
        core = self._core
        core.check("put_batch")
        outward = core.namespace.outward
        keys = [self._key] if self._key is not None else [outward(key) for key in rows.keys]
        where = self._where(rows)
        routes = [core.face.route(key) for key in keys]
        self._stamp(rows)
        if any(_local(route, place) for route, place in zip(routes, where, strict=True)):
            return await self._one_by_one(rows, keys, routes, where)
        wanted, lost = rows.none(), rows.none()
        for face, exprs in _faces(routes, where).items():
            await self._send(rows, face, exprs, wanted, lost)
        dropped = rows.count_of(lost)
        return Written(rows.count, rows.count_of(wanted) - dropped, dropped)

    def _where(self, rows: publish.Rows) -> list[Locality]:
        """The destination of each key."""
        overwrites = self._overwrites
        if overwrites is None:
            return [self._destination] * (1 if self._key is not None else len(rows.keys))
        found = (overwrites.find(key).destination for key in rows.keys)
        return [self._destination if place is None else place for place in found]

    def _stamp(self, rows: publish.Rows) -> None:
        """Where this node gives times, puts have one."""
        node = self._core.node
        if node.config.timestamping:
            count = int(rows.untimed.sum())
            if count:
                clock = node.clock
                rows.stamp([clock.new_timestamp().time for _ in range(count)], node.zid.raw)

    async def _send(
        self,
        rows: publish.Rows,
        face: Face,
        exprs: list[WireExpr | None],
        wanted: Any,
        lost: Any,
    ) -> None:
        """Rows to one neighbour; those that it wants, and loses, are noted."""
        core, node = self._core, self._core.node
        for qos, reliable, some in rows.lanes():
            mine = rows.those(some, exprs)
            if mine is None:
                continue
            wanted[mine] = True
            those = rows.publications(mine, exprs, qos)
            done = 0
            while (done := await self._straight(those, done, face, qos, reliable)) < those.count:
                core.check("put_batch")
                queue = node.queue(face)
                packing = 0 if queue is None else queue.packing
                piece = self._packer.pack(those, done, qos, packing or _PACKING)
                packed = Packed(piece.data, piece.end - piece.start, qos)
                if not await self._queue(face, packed, reliable):
                    lost[rows.numbers(mine)[piece.start : piece.end]] = True
                if packed.refused:
                    lost[rows.numbers(mine)[piece.start :][list(packed.refused)]] = True
                done = piece.end

    async def _straight(
        self, rows: Publications | Alike, done: int, face: Face, qos: QoS, reliable: bool
    ) -> int:
        """Write rows past the queues, as long as nothing is in them. Gives where that ended."""
        node, packer = self._core.node, self._packer
        node.catch_up()
        while done < rows.count:
            self._core.check("put_batch")
            neighbour = node.neighbours.get(face)
            carrier = None if neighbour is None or node.tap is not None else neighbour.free
            if neighbour is None or carrier is None:
                break
            straight = carrier.machine.straight(qos.priority, reliable)
            # A session without priorities has one lane for all; the kernel writes that of the row.
            if straight is None or straight.at != lane(qos.priority, reliable):
                break
            made = packer.batches(rows, done, straight, qos, reliable)
            if not made.messages:
                break
            carrier.write(straight, made.data, made.batches, made.messages)
            done += made.messages
            if not carrier.link.writable:
                # After that what comes next waits, or is dropped, in the queues, by their rules.
                await carrier.drain(neighbour.patience(qos))
            if carrier.link.unsent:
                packer.lent()
        return done

    async def _queue(self, face: Face, packed: Packed, reliable: bool) -> bool:
        """Whether there was room for them, perhaps after a while."""
        queue = self._core.node.queue(face)
        if queue is None:
            return False
        waiting = queue.send(packed, reliable)
        if waiting is not None:
            await waiting.done
        return not packed.lost

    async def _one_by_one(
        self,
        rows: publish.Rows,
        keys: Sequence[str],
        routes: Sequence[Route],
        where: Sequence[Locality],
    ) -> Written:
        """As ``put`` does it: somebody in this node gets them as objects."""
        core, sent = self._core, 0
        every = rows.fields(slice(None), [WireExpr(0, key) for key in keys])
        for row in range(rows.count):
            core.check("put_batch")
            push = every.message(row)
            at = int(rows.index[row])
            route, place = routes[at], where[at]
            core.face.push(
                keys[at],
                push.body,
                qos=QoS(int(rows.qos[row])),
                reliable=bool(rows.reliable[row]),
                allowed_destination=place,
            )
            local = _local(route, place)
            away = bool(route.remote) and place is not Locality.SESSION_LOCAL
            sent += local or away
            await core.room(core.settle())
        return Written(rows.count, sent, 0)


def _local(route: Route, destination: Locality) -> bool:
    """Whether subscribers of this node want it."""
    if destination is Locality.SESSION_LOCAL:
        return bool(route.own)
    return bool(route.others) or (bool(route.own) and destination is not Locality.REMOTE)


def _faces(routes: Sequence[Route], where: Sequence[Locality]) -> dict[Face, list[WireExpr | None]]:
    """Who wants any of the keys, and how each is written there; None for what it does not want."""
    found: dict[Face, list[WireExpr | None]] = {}
    for at, route in enumerate(routes):
        if where[at] is Locality.SESSION_LOCAL:
            continue
        for expr, faces in route.remote:
            for face in faces:
                found.setdefault(face, [None] * len(routes))[at] = expr
    return found
