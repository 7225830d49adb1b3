"""Values on one key, again and again: the short way from a put to the batch that it goes out in.

A put is what it was the time before, but for its payload. So as long as routing has not changed,
and one neighbour alone wants it, the bytes before the payload are known, and so is the lane they
go to: what is left is to add both there. Whoever is told that there is no short way takes the long
one, which has all the rules (`Node.settle`).
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from zenwire import process
from zenwire.routing import Locality
from zenwire.transport import Packed
from zenwire.transport.gathered import Gathered
from zenwire.wire.batch import stream_length
from zenwire.wire.network import Push
from zenwire.wire.objects import encode
from zenwire.wire.repeat import Known, sized

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from zenwire.node.carrier import Carrier
    from zenwire.node.neighbour import Neighbour, Waiting
    from zenwire.node.node import Node
    from zenwire.routing import Session
    from zenwire.transport.runs import Lane, Run
    from zenwire.wire.buffer import Buffer
    from zenwire.wire.data import Put
    from zenwire.wire.values import QoS

__all__ = ["Stream"]

_TURN: Final = 512
"""After so many values others have their turn: a loop of puts is no excuse."""
_SIZES: Final = 256
"""Of so many sizes of payloads it is remembered what stands before them."""

_nowhere: list[bytes] = []


def _add(parts: list[Buffer], before: bytes, payload: bytes) -> None:
    parts += (before, payload)


class Stream:
    """Publishes values on a key that is canonical; all else that they have is that of ``like``.

    ``turn`` is set when it is the turn of others: whoever can, lets them.
    """

    __slots__ = (
        "_add",
        "_before",
        "_calls",
        "_carrier",
        "_destination",
        "_ends",
        "_fit",
        "_generation",
        "_head",
        "_key",
        "_lane",
        "_need",
        "_neighbour",
        "_nobody",
        "_node",
        "_pid",
        "_qos",
        "_reliable",
        "_run",
        "_session",
        "_size",
        "_sizes",
        "_state",
        "like",
        "turn",
    )

    def __init__(
        self,
        node: Node,
        session: Session,
        key: str,
        like: Put,
        *,
        qos: QoS,
        reliable: bool = True,
        allowed_destination: Locality = Locality.ANY,
    ) -> None:
        self._node = node
        self._state = node.tables.state
        self._session = session
        self._key = key
        self.like = like
        self._qos = qos
        self._reliable = reliable
        self._destination = allowed_destination
        self._pid = process.pid
        _nodes.add(node)
        self._generation = -1
        self._lane: Lane | None = None
        self._carrier: Carrier | None = None
        self._neighbour: Neighbour | None = None
        self._nobody = False
        self._ends = False
        self._head = b""
        self._sizes: dict[int, bytes] = {}
        self._size = -1
        self._before = b""
        self._need = 0
        self._run: Run | None = None
        self._fit = 0
        """Values that may be added to the run of the lane: they are counted there."""
        self._add: Callable[[bytes], None] = _nowhere.append
        self._calls = 0
        self.turn = False

    def put(self, payload: bytes) -> bool:
        """Publish. False if that has to go the long way, and nothing was done."""
        fit = self._fit
        if fit and len(payload) == self._size and self._generation == self._state.generation:
            self._fit = fit - 1
            add = self._add
            add(payload)
            return True
        return self._put(payload)

    def _put(self, payload: bytes) -> bool:
        """What ``put`` does if nothing is granted."""
        if self._generation != self._state.generation:
            self._find()
        lane = self._lane
        if lane is None:
            return self._nobody and self._count(1)
        run = lane.run
        if run.owner is not None:
            run.settle()
        if len(payload) != self._size:
            self._resize(payload)
        left = run.left - self._need
        if left < 0 and run.count:
            by = run.by
            self._count(run.count)
            run = self._next(lane)
            run.by = by
            left = run.left - self._need
        if left < 0 or self._neighbour.size:  # type: ignore[union-attr] # it has the lane
            return False
        if not run.count:
            lane.begin()
        run.add_value(self._before, payload)
        if self._ends or not self._carrier.flushing:  # type: ignore[union-attr] # as above
            self._flush(lane)
        elif run.by is self:
            self._grant(run)
        run.by = self
        return True

    def _next(self, lane: Lane) -> Run:
        """The run after one that is full; perhaps it has no room either."""
        if not self._neighbour.size:  # type: ignore[union-attr] # it has the lane
            # Room may be a write away.
            self._carrier.gather()  # type: ignore[union-attr] # as above
        run = lane.run
        return lane.renew() if run.count and run.left < self._need else run

    def _grant(self, run: Run) -> None:
        """The next values need not look: they are counted now, and a flush is to come."""
        if self._run is run:
            # The last ones are used up, and nobody had a turn since.
            self.turn = True
        self._run = run
        self._fit = fit = min(run.left // self._need, _TURN)
        if fit:
            self._add = run.parts.append if run.before else partial(_add, run.parts, self._before)
            run.left -= fit * self._need
            run.count += fit
            run.owner = self

    def give_back(self, run: Run) -> None:
        """See `Owner`: the run goes out, or others add to it."""
        fit, self._fit = self._fit, 0
        run.left += fit * self._need
        run.count -= fit

    def put_all(self, payloads: Sequence[bytes], start: int, waiting: list[Waiting]) -> int:
        """Publish values from ``start`` on. Gives where one has to go the long way, or the end.

        What has no room yet is added to ``waiting``, a batch at a time.
        """
        end = len(payloads)
        if self._generation != self._state.generation:
            self._find()
        lane = self._lane
        if lane is None or self._ends or len(set(map(len, payloads))) > 1:
            while start < end and self.put(payloads[start]):
                start += 1
            return start
        lane.run.settle()
        if start < end and len(payloads[start]) != self._size:
            self._resize(payloads[start])
        neighbour, need = self._neighbour, self._need
        assert neighbour is not None
        while (after := self._straight(payloads, start)) > start:
            start = after
        while start < end:
            run = lane.run
            run.by = None
            if run.left < need and run.count:
                run = self._next(lane)
            fit = 0 if neighbour.size else run.left // need
            if fit <= 0:
                fit = neighbour.session.packing // need
                if not fit:
                    break
                values = payloads[start : start + fit]
                data = self._before.join((b"", *values))
                packed = Packed(data, len(values), self._qos)
                found = neighbour.send(packed, self._reliable)
                if found is not None:
                    waiting.append(found)
                start += len(values)
                continue
            if not run.count:
                lane.begin()
            values = payloads[start : start + fit]
            run.add_values(self._before, values)
            start += len(values)
            if not self._carrier.flushing:  # type: ignore[union-attr] # it has the lane
                self._flush(lane)
        return start

    def _straight(self, payloads: Sequence[bytes], start: int) -> int:
        """Write whole batches past the queues, if nothing is in them. Gives where that ended."""
        neighbour, before = self._neighbour, self._before
        assert neighbour is not None
        fit = neighbour.session.packing // self._need
        batches = (len(payloads) - start) // fit if fit else 0
        carrier = neighbour.free
        if not batches or carrier is None or self._node.tap is not None:
            return start
        straight = carrier.machine.straight(self._qos.priority, self._reliable)
        if straight is None:
            return start
        size, sn, gathered = fit * self._need, straight.sn, Gathered()
        batches = min(batches, -(-carrier.most // size))
        for _ in range(batches):
            head = straight.heads.head(sn)
            head = stream_length(len(head) + size, straight.prefix) + head
            gathered.add((before, [head, *payloads[start : start + fit]], len(head) + size))
            start += fit
            sn = sn + 1 & straight.mask
        carrier.write(straight, gathered.take(), batches, batches * fit)
        return start

    def _flush(self, lane: Lane) -> None:
        carrier = self._carrier
        assert carrier is not None
        self._count(1)
        if self._ends:
            lane.end()
        if not carrier.flushing:
            carrier.flush_soon(express=self._qos.express)

    def _count(self, values: int) -> bool:
        """So many more without a turn of others."""
        self._calls += values
        if self._calls >= _TURN:
            self._calls = 0
            self.turn = True
        return True

    def _resize(self, payload: bytes) -> None:
        """What stands before a payload of this size."""
        size = len(payload)
        before = self._sizes.get(size)
        if before is None:
            whole = sized(payload)
            before = self._head + whole[: len(whole) - size]
            if len(self._sizes) < _SIZES:
                self._sizes[size] = before
        self._size, self._before, self._need = size, before, size + len(before)

    def _find(self) -> None:
        """Where values go, as things are now."""
        if self._lane is not None:
            self._lane.run.settle()
        state, node = self._state, self._node
        self._generation = state.generation
        self._lane, self._nobody = None, False
        local = self._destination is Locality.SESSION_LOCAL
        if node.closed or not self._session.face.alive or local or process.pid != self._pid:
            return
        route = self._session.route(self._key)
        if route.others or (route.own and self._destination is not Locality.REMOTE):
            return
        to = [(expr, face) for expr, faces in route.remote for face in faces]
        if len(to) != 1:
            self._nobody = not to
            return
        expr, face = to[0]
        neighbour = node.neighbours.get(face)
        if neighbour is None or len(neighbour.carriers) != 1 or not neighbour.direct:
            return
        carrier = neighbour.carriers[0]
        push = Push(key=expr, qos=self._qos, body=self.like)
        known = Known.of(encode(push), push)
        if known is None or neighbour.session.links != [carrier.machine]:
            return
        if known.head != self._head:
            self._head = known.head
            self._sizes.clear()
            self._size = -1
        self._neighbour, self._carrier = neighbour, carrier
        self._lane = carrier.machine.lane(self._qos.priority, self._reliable)
        self._ends = self._qos.express or (self._lane is not None and not self._lane.batching)


_nodes: WeakSet[Node] = WeakSet()


def _forked() -> None:
    """In a child, nothing is known of where values go: `_find` sees that it is one."""
    for node in list(_nodes):
        node.tables.state.stale()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
