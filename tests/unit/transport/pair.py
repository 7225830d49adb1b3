"""Two machines that talk in memory, and a clock that a test moves."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from zenwire.transport import (
    Accepted,
    Closed,
    Event,
    Full,
    LinkFacts,
    Opened,
    Received,
    Result,
    Sessions,
    Settings,
    Unicast,
    Writable,
)
from zenwire.wire.data import Put
from zenwire.wire.network import NetworkMessage, Push
from zenwire.wire.values import CongestionControl, Priority, QoS, WhatAmI, WireExpr, ZenohId

T = TypeVar("T")

KEY = bytes(range(32))
DATAGRAM = LinkFacts(stream=False, reliable=False, mtu=65_487)


def sessions(
    zid: str, whatami: WhatAmI = WhatAmI.ROUTER, *, seed: int = 0, **settings: Any
) -> Sessions:
    made = Settings(zid=ZenohId.parse(zid), whatami=whatami, **settings)
    return Sessions(made, KEY, Random(f"{zid} {seed}").randbytes)


def put(
    payload: bytes,
    priority: Priority = Priority.DATA,
    congestion: CongestionControl = CongestionControl.BLOCK,
    *,
    express: bool = False,
    key: str = "a",
) -> Push:
    qos = QoS.of(priority, congestion, express)
    return Push(key=WireExpr(0, key), qos=qos, body=Put(payload=payload))


def payload(message: NetworkMessage) -> bytes:
    assert isinstance(message, Push)
    assert isinstance(message.body, Put)
    return message.body.payload


def only(kind: type[T], events: list[Event]) -> T:
    """The one event there is."""
    (event,) = events
    assert isinstance(event, kind)
    return event


class Side:
    """One machine, and what it has told."""

    def __init__(self, machine: Unicast) -> None:
        self.machine = machine
        self.events: list[Event] = []

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def messages(self) -> list[NetworkMessage]:
        return [message for event in self.of(Received) for message in event.messages]

    @property
    def payloads(self) -> list[bytes]:
        return [payload(message) for message in self.messages]

    @property
    def closed(self) -> Closed | None:
        found = self.of(Closed)
        assert len(found) <= 1
        return found[0] if found else None

    @property
    def opened(self) -> bool:
        return len(self.of(Opened)) == 1


class Pair:
    """A connector and an acceptor. ``loss`` says which datagrams or batches do not arrive."""

    def __init__(
        self,
        connector: Sessions,
        acceptor: Sessions,
        link: LinkFacts | None = None,
        other: LinkFacts | None = None,
        now: float = 1000.0,
    ) -> None:
        self.now = now
        link = link or LinkFacts()
        self.a = Side(connector.connect(link, now))
        accepted = acceptor.accept(other or link, now)
        assert accepted is not None
        self.b = Side(accepted)
        self.loss: Callable[[bytes], bool] = lambda _: False
        self.chunk: int | None = None

    def move(self, source: Side, target: Side) -> bool:
        """Everything that one has to say. Whether there was anything."""
        moved = False
        while data := source.machine.pull(self.now):
            moved = True
            if self.loss(data):
                continue
            size = self.chunk or len(data)
            for at in range(0, len(data), size):
                target.events += target.machine.receive(data[at : at + size], self.now)
        return moved

    def run(self) -> None:
        """Until both are silent."""
        while True:
            for side in (self.a, self.b):
                side.events += side.machine.tick(self.now)
            moved = self.move(self.a, self.b)
            if not self.move(self.b, self.a) and not moved:
                return

    def open(self) -> Pair:
        self.run()
        assert self.a.opened, self.a.events
        assert self.b.opened, self.b.events
        return self

    def wait(self, seconds: float) -> None:
        """Time passes; both act when they said they would."""
        end = self.now + seconds
        while True:
            machines = (self.a.machine, self.b.machine)
            due = [m.deadline for m in machines if m.deadline is not None]
            if not due or min(due) > end:
                break
            self.now = max(self.now, min(due))
            self.run()
        self.now = end
        self.run()

    def send(self, message: NetworkMessage | bytes, *, reliable: bool = True) -> None:
        """From the connector, whatever it takes."""
        retry: Full | None = None
        while True:
            result: Result = self.a.machine.send(message, self.now, reliable=reliable, retry=retry)
            if isinstance(result, Accepted):
                return
            assert isinstance(result, Full), result
            self.run()
            assert self.a.of(Writable)
            retry = result


def pair(connector: dict[str, Any] | None = None, acceptor: dict[str, Any] | None = None) -> Pair:
    """Two that have opened."""
    client = sessions("cc07", WhatAmI.CLIENT, **(connector or {}))
    return Pair(client, sessions("aa07", **(acceptor or {}))).open()
