"""Publications that go on to other nodes, many at once: the columnar way of `Node.take`.

What each neighbour gets is what it would get one by one: the same messages in the same order, with
times of the same clock, waiting and dropped by the same rules. Rows for which that would take more
than other bytes before their bodies, and a time, are made objects.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from zenwire.node.neighbour import Neighbour, Waiting
from zenwire.transport import Packed, Received
from zenwire.wire.batch import stream_length
from zenwire.wire.values import Priority

if TYPE_CHECKING:
    from collections.abc import Callable

    from zenwire.columns.forward import Passage, Way, Ways, Written
    from zenwire.columns.routes import Part
    from zenwire.links import Link
    from zenwire.node.carrier import Carrier
    from zenwire.node.node import Node
    from zenwire.routing import Face
    from zenwire.transport import Straight
    from zenwire.wire.buffer import Buffer
    from zenwire.wire.values import QoS

__all__ = ["Forwarding"]

_TOGETHER: Final = 32
"""Rows that are made objects from one that has to be: to tell others apart costs more."""
_PACKING: Final = 65_000
"""Bytes of messages for a neighbour that nobody can send to: they are counted as lost."""
_LENT: Final = 8
"""Buffers that are remembered, to be used again."""


class Forwarding:
    """That of one node, for parts whose routes are known."""

    def __init__(self, node: Node, passage: Passage) -> None:
        self._node = node
        self._passage = passage
        self._lent: list[tuple[Link, Any]] = []

    def take(
        self, face: Face, part: Part, ways: Ways[Face], tell: Callable[[int, int], None] | None
    ) -> None:
        """Pass a part on.

        ``tell`` is called for rows, from and to, some of which are for subscribers here; None if
        there is nobody.
        """
        node, passage = self._node, self._passage
        at = part.first
        while at < part.stop:
            alike = passage.alike(part, at)
            stop = alike.stop
            if alike.odd:
                stop = max(stop, min(at + _TOGETHER, part.stop))
                self._one_by_one(face, part, at, stop)
                at = stop
                continue
            given = 0
            if node.config.timestamping:
                node.clock.many(passage.stamp(part, at, stop))
                stop, given = passage.stamped
            if given and tell is not None:
                # Rows cannot have a time that they came without.
                stop = at
            if stop > at:
                for lane in passage.lanes(part, at, stop, alike.qos):
                    for way in ways:
                        self._pass_on(part, (at, stop), lane, way, timed=given > 0)
                if tell is not None:
                    tell(at, stop)
            if stop < alike.stop:
                # The first of them may be of the future.
                self._one_by_one(face, part, stop, alike.stop)
            at = alike.stop

    def _one_by_one(self, face: Face, part: Part, first: int, stop: int) -> None:
        messages = part.run.messages(first, stop)
        self._node.take(face, Received(messages, Priority.DATA, part.reliable))

    def _pass_on(
        self,
        part: Part,
        bounds: tuple[int, int],
        lane: tuple[QoS, Any],
        way: Way[Face],
        *,
        timed: bool,
    ) -> None:
        """Rows of one lane to those who get the same: past their queues, or into them."""
        node, qos = self._node, lane[0]
        node.catch_up()
        ready: list[tuple[Neighbour, Carrier]] = []
        others: list[Face] = []
        packing = _PACKING
        for face in way.to:
            queue = node.queue(face)
            if queue is None:
                continue
            neighbour = queue if isinstance(queue, Neighbour) and node.tap is None else None
            if neighbour is not None and (carrier := neighbour.free) is not None:
                ready.append((neighbour, carrier))
                fits = carrier.machine.packing
            else:
                others.append(face)
                fits = queue.packing
            if 0 < fits < packing:
                packing = fits
        if ready or others:
            written = self._passage.write(part, bounds, lane, way, packing, timed=timed)
            self._write(written, ready, others, qos, part.reliable)
        for neighbour, carrier in ready:
            if not carrier.link.writable:
                self._wait(neighbour, carrier, qos, part.reliable)

    def _write(
        self,
        written: Written,
        ready: list[tuple[Neighbour, Carrier]],
        others: list[Face],
        qos: QoS,
        reliable: bool,
    ) -> None:
        node, priority = self._node, qos.priority
        while written.more:
            ways = [
                (neighbour.face, carrier, carrier.machine.straight(priority, reliable))
                for neighbour, carrier in ready
            ]
            # The first of those who need no queue gets all as it is written.
            first = next((straight for _, _, straight in ways if straight is not None), None)
            if first is None:
                there = written.go_on((b"", b""), 0, 0, 0)
            else:
                there = written.go_on(first.heads.around, first.sn, first.mask, first.prefix)
            if not there:
                return
            queued, reader = list(others), None
            for face, carrier, straight in ways:
                if straight is None or written.alone:
                    queued.append(face)
                    continue
                data = written.data if straight is first else _numbered(written, straight)
                carrier.write(straight, data, written.batches, written.messages)
                if straight is first and carrier.link.unsent:
                    reader = carrier.link
            if queued:
                for messages, count in written.pieces():
                    piece = bytes(messages)
                    for face in queued:
                        node.pass_on(face, Packed(piece, count, qos), reliable)
            if reader is not None:
                self._lend(reader)

    def _lend(self, link: Link) -> None:
        """A link needs what it was given, for some time; there are few at a time."""
        done = next((at for at, (one, _) in enumerate(self._lent) if not one.unsent), None)
        free = None if done is None else self._lent.pop(done)[1]
        self._lent.append((link, self._passage.renew(free)))
        del self._lent[:-_LENT]

    def _wait(self, neighbour: Neighbour, carrier: Carrier, qos: QoS, reliable: bool) -> None:
        """A link has more than enough: who filled it is not heard before it is writable again.

        Not for long: then what comes next waits, or is dropped, in the queues, by their rules.
        """
        wait = neighbour.patience(qos)
        waiting = Waiting(neighbour, Packed(b"", 0, qos), reliable, None)
        carrier.on_drained.append(waiting.settle)
        asyncio.get_running_loop().call_later(wait, waiting.settle)
        self._node.press(waiting)


def _numbered(written: Written, straight: Straight) -> bytes:
    """Batches with other numbers than they were written with."""
    sn = straight.sn
    parts: list[Buffer] = []
    for messages, _ in written.pieces():
        head = straight.heads.head(sn)
        parts += (stream_length(len(head) + len(messages), straight.prefix), head, messages)
        sn = sn + 1 & straight.mask
    return b"".join(parts)
