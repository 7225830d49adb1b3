from __future__ import annotations

import asyncio

from tests.unit.node.nodes import run
from zenwire.errors import EncodeError
from zenwire.node.neighbour import WAITING_MAX, Queue
from zenwire.transport import ACCEPTED, Cause, Dropped, Full, Packed, Result, Then
from zenwire.wire.data import Put
from zenwire.wire.network import NetworkMessage, Push
from zenwire.wire.values import CongestionControl, Priority, QoS, WireExpr

WAIT = 0.001
LONGER = 0.2


class Sender:
    """Takes messages while it has room; Drop is dropped after a while, as a link does it."""

    packing = 0

    def __init__(self, room: int) -> None:
        self.room = room
        self.sent: list[str] = []
        self.broken = False

    def send(
        self,
        message: NetworkMessage | Packed,
        now: float,
        *,
        reliable: bool = True,
        retry: Full | None = None,
    ) -> Result:
        assert isinstance(message, Push)
        if self.broken:
            return Dropped(Cause.NOT_OPEN)
        if message.key.suffix == "bad":
            raise EncodeError("it cannot be said")
        if self.room:
            self.room -= 1
            self.sent.append(message.key.suffix)
            return ACCEPTED
        drops = message.qos.congestion_control is CongestionControl.DROP
        if drops or not reliable:
            full = retry or Full(message.qos.priority, now + (WAIT if drops else LONGER), Then.DROP)
            return Dropped(Cause.CONGESTION) if now >= full.until else full
        return Full(message.qos.priority, now + 5, Then.CLOSE)


class Plain(Queue):
    flushed = 0

    def flush(self) -> None:
        self.flushed += 1

    def flush_soon(self) -> None:
        self.flushed += 1


def message(name: str, *, block: bool = True, priority: Priority = Priority.DATA) -> Push:
    control = CongestionControl.BLOCK if block else CongestionControl.DROP
    qos = QoS.of(priority=priority, congestion_control=control)
    return Push(key=WireExpr(0, name), body=Put(payload=b""), qos=qos)


def test_what_has_no_room_waits_in_order_by_priority() -> None:
    async def scenario() -> None:
        sender = Sender(room=1)
        queue = Plain(sender, WAIT, LONGER)
        assert queue.send(message("1"), True) is None
        waits = [queue.send(message(name), True) for name in ("2", "3")]
        high = queue.send(message("high", priority=Priority.REAL_TIME), True)
        assert all(waits)
        assert queue.waiting == 3
        sender.room = 2
        queue.retry()
        assert sender.sent == ["1", "high", "2"]
        assert high is not None
        assert high.done.done()
        assert [wait.done.done() for wait in waits if wait] == [True, False]
        # Later ones do not overtake.
        last = queue.send(message("4"), True)
        assert last is not None
        sender.room = 9
        queue.retry()
        await last.done
        assert sender.sent == ["1", "high", "2", "3", "4"]
        assert queue.waiting == 0
        assert not queue.dropped

    run(scenario())


def test_drop_waits_a_moment_wherever_it_stands() -> None:
    async def scenario() -> None:
        sender = Sender(room=0)
        queue = Plain(sender, WAIT, LONGER)
        first = queue.send(message("block"), True)
        behind = [queue.send(message(f"drop{n}", block=False), True) for n in range(10)]
        unreliable = queue.send(message("unreliable", block=False), False)
        assert queue.waiting == 12
        await asyncio.sleep(2 * WAIT)
        assert all(wait and wait.done.done() for wait in [*behind, unreliable])
        assert first is not None
        assert not first.done.done()
        assert queue.waiting == 1
        assert queue.dropped == {Cause.CONGESTION: 11}
        sender.room = 5
        queue.retry()
        assert sender.sent == ["block"]

    run(scenario())


def test_best_effort_with_block_waits_as_long_as_block() -> None:
    async def scenario() -> None:
        sender = Sender(room=0)
        queue = Plain(sender, WAIT, LONGER)
        first = queue.send(message("first"), False)
        behind = [queue.send(message(f"behind{n}"), False) for n in range(3)]
        # Its time is over sooner than that of those before it.
        drop = queue.send(message("drop", block=False), True)
        assert drop is not None
        await drop.done
        assert queue.waiting == 4
        assert queue.dropped == {Cause.CONGESTION: 1}
        sender.room = 1
        queue.retry()
        assert sender.sent == ["first"]
        assert first is not None
        assert first.done.done()
        # All at once: none waits for the time of another.
        await asyncio.gather(*(wait.done for wait in behind if wait))
        assert queue.waiting == 0
        assert queue.dropped == {Cause.CONGESTION: 4}

    run(scenario())


def test_what_waits_is_bounded() -> None:
    async def scenario() -> None:
        queue = Plain(Sender(room=0), WAIT, LONGER)
        for _ in range(WAITING_MAX + 7):
            queue.send(message("x"), True)
        assert queue.overflown
        assert queue.waiting == WAITING_MAX
        assert queue.dropped == {Cause.CONGESTION: 7}
        assert len(queue.waits()) == WAITING_MAX
        assert queue.give_up() == WAITING_MAX
        assert queue.dropped == {Cause.CONGESTION: 7, Cause.LINK_LOST: WAITING_MAX}
        assert not queue.waits()

    run(scenario())


def test_what_cannot_be_sent_is_counted() -> None:
    async def scenario() -> None:
        sender = Sender(room=5)
        queue = Plain(sender, WAIT, LONGER)
        assert queue.send(message("bad"), True) is None
        sender.broken = True
        assert queue.send(message("late"), True) is None
        assert queue.dropped == {Cause.TOO_LARGE: 1, Cause.NOT_OPEN: 1}

    run(scenario())
