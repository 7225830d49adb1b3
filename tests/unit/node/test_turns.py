from __future__ import annotations

import asyncio

import pytest

from tests.unit.node.nodes import Lan, run, until
from zenwire.node.turns import SLICE, TURN, Turns
from zenwire.wire.batch import frame_stream
from zenwire.wire.data import Put
from zenwire.wire.declare import DeclareSubscriber
from zenwire.wire.network import Declare, NetworkMessage, Push
from zenwire.wire.objects import encode
from zenwire.wire.transport import Frame
from zenwire.wire.values import WireExpr


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Link:
    """Has work of so many seconds, in steps of ``step``."""

    def __init__(self, scene: Scene, name: str, work: float, step: float) -> None:
        self.spent = 0.0
        self.queued = False
        self.left = work
        self._scene, self._name, self._step = scene, name, step

    def proceed(self) -> bool:
        if self._name == "broken":
            raise ValueError(self._name)
        self._scene.served.append(self._name)
        while self.left > 0 and not self._scene.turns.over:
            self._scene.clock.now += self._step
            self.left -= self._step
        return self.left > 0


class Scene:
    def __init__(self) -> None:
        self.clock = Clock()
        self.served: list[str] = []
        self.turns = Turns()
        self.turns.time = self.clock

    def add(self, name: str, work: float, step: float = SLICE) -> Link:
        link = Link(self, name, work, step)
        self.turns.add(link)
        return link


def test_a_turn_of_the_loop_is_shared_and_bounded() -> None:
    async def scenario() -> None:
        scene = Scene()
        for name in "abcd":
            scene.add(name, 3 * SLICE)
        began = scene.clock.now
        await asyncio.sleep(0)
        assert scene.clock.now - began <= TURN + SLICE
        assert scene.turns.exhausted
        for _ in range(20):
            await asyncio.sleep(0)
        assert sorted(scene.served[:4]) == [*"abcd"]
        assert all(scene.served.count(name) == 3 for name in "abcd")
        # After another turn without work there is time again.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not scene.turns.exhausted

    asyncio.run(scenario())


def test_who_has_used_little_is_next_and_who_overruns_waits() -> None:
    async def scenario() -> None:
        scene = Scene()
        flooders = [scene.add(f"flood{n}", 100 * SLICE) for n in range(50)]
        flooders.append(scene.add("coarse", 100 * SLICE, step=20 * SLICE))
        for _ in range(200):
            await asyncio.sleep(0)
        scene.served.clear()
        honest = scene.add("honest", SLICE)
        await asyncio.sleep(0)
        assert scene.served[0] == "honest"
        assert honest.left <= 0
        # Equal shares of time, not of turns.
        used = [100 * SLICE - link.left for link in flooders]
        assert max(used) - min(used) <= 21 * SLICE

    asyncio.run(scenario())


def test_one_that_fails_does_not_stop_the_others() -> None:
    async def scenario() -> None:
        errors: list[object] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: errors.append(context["exception"])
        )
        scene = Scene()
        scene.add("broken", 1.0)
        scene.add("other", SLICE)
        for _ in range(4):
            await asyncio.sleep(0)
        assert scene.served == ["other"]
        assert [type(error) for error in errors] == [ValueError]

    asyncio.run(scenario())


def _stream(messages: list[NetworkMessage], first: int) -> bytes:
    """Each in a batch of its own."""
    return b"".join(
        frame_stream(encode(Frame(reliable=True, sn=first + at)) + encode(message))
        for at, message in enumerate(messages)
    )


@pytest.mark.parametrize("closes", [False, True])
def test_what_is_postponed_keeps_its_order_and_outlives_its_link(closes: bool) -> None:
    async def scenario() -> None:
        lan = Lan()
        a = await lan.open(listen="memory/a")
        await lan.open("client", connect=["memory/a"])
        (neighbour,) = a.neighbours.values()
        (carrier,) = neighbour.carriers
        heard: list[str] = []
        receive = a.tables.receive

        def noted(face: object, message: NetworkMessage, *args: object, **more: object) -> None:
            if isinstance(message, Push):
                heard.append(message.key.suffix)
            elif isinstance(message, Declare) and isinstance(message.body, DeclareSubscriber):
                heard.append(message.body.key.suffix)
            receive(face, message, *args, **more)  # type: ignore[arg-type]

        a.tables.receive = noted  # type: ignore[method-assign]
        messages: list[NetworkMessage] = []
        for n in range(400):
            key = WireExpr(0, f"k{n}")
            messages.append(
                Declare(body=DeclareSubscriber(id=n, key=key))
                if n % 5
                else Push(key=key, body=Put(payload=b""))
            )
        session = carrier.machine.session
        assert session is not None
        first = session.lanes.newest[11].last + 1
        data = _stream(messages, first)
        half = len(data) // 2
        # There is no time in this turn: all of it has to wait.
        a.turns.exhausted = True
        carrier.received(data[:half])
        carrier.received(data[half:])
        assert not heard
        assert carrier._behind
        if closes:
            carrier.closed(None)
        await until(lambda: len(heard) == 400)
        assert heard == [f"k{n}" for n in range(400)]
        await until(lambda: not carrier._behind)
        if closes:
            await until(lambda: not a.neighbours)
        await lan.close()

    run(scenario())


def test_time_that_is_used_as_messages_come_is_counted() -> None:
    async def scenario() -> None:
        scene = Scene()
        link = scene.add("a", 0.0)
        for _ in range(3):
            await asyncio.sleep(0)
        began = scene.clock.now
        scene.clock.now += 0.6 * TURN
        scene.turns.charge(link, began)
        # Little time needs no turn of its own.
        assert not scene.turns._scheduled
        assert not scene.turns.exhausted
        scene.turns.charge(link, began)
        assert scene.turns.exhausted
        assert link.spent == pytest.approx(1.2 * TURN)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not scene.turns.exhausted

    asyncio.run(scenario())
