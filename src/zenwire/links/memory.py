"""memory/name: links inside a process, for tests and simulations. No sockets, no clock.

A Network decides when and whether something arrives. Without arguments it is the event loop's
next round; a simulation gives its own ``schedule``, latencies and losses, all of them functions
of its seed and its virtual time, and needs no event loop at all.
"""

from __future__ import annotations

import asyncio
import itertools
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from zenwire.links.base import (
    BATCH_MAX,
    HIGH_WATER,
    LOW_WATER,
    Attach,
    Facts,
    Link,
    Listener,
    Receiver,
)
from zenwire.links.endpoint import options_of, reliability_of, shown
from zenwire.links.errors import LinkError
from zenwire.links.udp import HELD_MAX, UDP_MTU
from zenwire.wire.locator import EndPoint, Locator

__all__ = ["Group", "MemoryLink", "MemoryListener", "Network", "connect", "listen"]

Schedule = Callable[[float, Callable[[], None]], None]
"""Run a function after so many seconds; those of the same moment in the order given."""
Latency = Callable[[Locator, Locator], float]
"""Seconds from one locator to another."""
Lose = Callable[[Locator, Locator, bytes], bool]
"""Whether a datagram is lost. Streams lose nothing."""


def _on_loop(delay: float, run: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    if delay > 0:
        loop.call_later(delay, run)
    else:
        loop.call_soon(run)


@dataclass(slots=True)
class Network:
    """Names, and what happens between them."""

    schedule: Schedule = _on_loop
    latency: Latency = lambda _src, _dst: 0.0
    lose: Lose = lambda _src, _dst, _data: False
    lost: int = 0
    _listeners: dict[str, MemoryListener] = field(default_factory=dict, repr=False)
    _groups: dict[str, list[Group]] = field(default_factory=dict, repr=False)
    _numbers: itertools.count[int] = field(default_factory=itertools.count, repr=False)

    def listen(self, endpoint: EndPoint, attach: Attach) -> MemoryListener:
        """Take a name. Raises LinkError if it is taken."""
        options_of(endpoint)
        if endpoint.address in self._listeners:
            hint = "close the other listener, or choose another name"
            raise LinkError(shown(endpoint), "the name is taken", hint)
        listener = MemoryListener(endpoint, network=self, attach=attach)
        self._listeners[endpoint.address] = listener
        return listener

    def connect(self, endpoint: EndPoint, attach: Attach) -> MemoryLink:
        """A link to a name; the other end attaches one latency later. Raises LinkError.

        ``?rel=0`` makes it one of datagrams that can be lost; otherwise it is a stream.
        """
        options_of(endpoint)
        listener = self._listeners.get(endpoint.address)
        if listener is None:
            hint = "listen there first, on the same network"
            raise LinkError(shown(endpoint), "nobody listens there", hint)
        src = Locator("memory", f"{endpoint.address}#{next(self._numbers)}".replace("#", "-"))
        dst = Locator("memory", endpoint.address)
        streamed = reliability_of(endpoint) is not False
        facts = Facts(streamed, streamed, BATCH_MAX if streamed else UDP_MTU)
        near = MemoryLink(self, endpoint, src, dst, facts)
        far = MemoryLink(self, listener.endpoint, dst, src, facts)
        near.peer, far.peer = far, near
        near.attach(attach)
        self.schedule(self.latency(src, dst), lambda: listener.accept(far))
        return near

    def join(self, name: str, on_datagram: Callable[[bytes, Locator], None]) -> Group:
        """Be a member of a group: what a multicast address is between sockets."""
        source = Locator("memory", f"{name}-{next(self._numbers)}")
        group = Group(self, name, source, on_datagram)
        self._groups.setdefault(name, []).append(group)
        return group

    def knows(self, listener: MemoryListener) -> bool:
        """Whether a listener still has its name."""
        return self._listeners.get(listener.endpoint.address) is listener

    def forget(self, listener: MemoryListener) -> None:
        """The name is free again."""
        if self.knows(listener):
            del self._listeners[listener.endpoint.address]

    def members(self, name: str) -> list[Group]:
        """Who is in a group now."""
        return self._groups.setdefault(name, [])


class MemoryLink(Link):
    """One end of a pair."""

    has_file = False

    __slots__ = (
        "_busy",
        "_closed",
        "_flight",
        "_inbox",
        "_network",
        "_paused",
        "_receiver",
        "_unread",
        "peer",
    )

    peer: MemoryLink

    def __init__(
        self, network: Network, endpoint: EndPoint, src: Locator, dst: Locator, facts: Facts
    ) -> None:
        super().__init__(endpoint, src, dst, facts)
        self._network = network
        self._receiver: Receiver | None = None
        self._inbox: deque[bytes | None] = deque()
        self._flight: deque[bytes | None] = deque()
        self._unread = 0
        self._busy = False
        self._paused = False
        self._closed = False

    def attach(self, attach: Attach) -> None:
        """Ask for the receiver, and give it what has arrived before."""
        self._receiver = attach(self)
        self._deliver()

    # Link.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closed:
            return
        datagram = bytes(data)
        if not self.facts.streamed and len(datagram) > self.facts.mtu:
            reason = f"{len(datagram)} bytes do not fit into a datagram of {self.facts.mtu}"
            raise LinkError(shown(self.endpoint), reason)
        self.bytes_out += len(datagram)
        if not self.facts.streamed and self._network.lose(self.src, self.dst, datagram):
            self._network.lost += 1
            return
        if self.facts.streamed:
            self._unread += len(datagram)
            self.writable = self._unread < HIGH_WATER
        self._send(datagram)

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        if self._paused:
            self._paused = False
            self._network.schedule(0.0, self._deliver)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._send(None)
            self._network.schedule(0.0, lambda: self._finish(None))

    def abort(self, error: LinkError | None = None) -> None:
        if not self._closed:
            self._closed = True
            self._flight.clear()
            self._send(None)
            self._network.schedule(0.0, lambda: self._finish(error))

    # Between the ends.

    def _send(self, item: bytes | None) -> None:
        """To the other end, in one latency. None is the end."""
        delay = self._network.latency(self.src, self.dst)
        if self.facts.streamed or item is None:
            # Streams keep their order even where the latency varies.
            self._flight.append(item)
            self._network.schedule(delay, self._land)
        else:
            self._network.schedule(delay, lambda: self.peer.arrive(item))

    def _land(self) -> None:
        if self._flight:
            self.peer.arrive(self._flight.popleft())

    def arrive(self, item: bytes | None) -> None:
        """Something has come from the other end."""
        if not self.facts.streamed and item is not None and len(self._inbox) >= HELD_MAX:
            self.dropped += 1
            return
        self._inbox.append(item)
        self._deliver()

    def _deliver(self) -> None:
        # What arrives while the receiver is at work queues behind it.
        if self._busy:
            return
        self._busy = True
        try:
            while self._inbox and self._receiver is not None and not self._paused:
                item = self._inbox.popleft()
                if item is None:
                    self._closed = True
                    self._finish(None)
                elif not self._closed:
                    self.bytes_in += len(item)
                    if self.facts.streamed:
                        self.peer.taken(len(item))
                    self._receiver.received(item)
        finally:
            self._busy = False

    def taken(self, size: int) -> None:
        """The other end has read so many bytes."""
        self._unread -= size
        if not self.writable and self._unread <= LOW_WATER:
            self.writable = True
            self._network.schedule(0.0, self._drained)

    def _drained(self) -> None:
        if self._receiver is not None and not self._closed and self.writable:
            self._receiver.drained()

    def _finish(self, error: LinkError | None) -> None:
        self._inbox.clear()
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.closed(error)


@dataclass(slots=True)
class MemoryListener(Listener):
    """A name that can be connected to."""

    network: Network = field(kw_only=True, repr=False)
    attach: Attach = field(kw_only=True, repr=False)

    def accept(self, link: MemoryLink) -> None:
        """The other end of a connect has come."""
        if not self.network.knows(self):
            link.abort(LinkError(shown(self.endpoint), "the listener was closed"))
            return
        self.counters.accepted += 1
        link.attach(self.attach)

    def locators(self, *, loopback: bool = True) -> list[Locator]:
        return [self.endpoint.locator]

    async def close(self) -> None:
        self.network.forget(self)


@dataclass(slots=True)
class Group:
    """A member of a group; what it sends reaches all others, one by one."""

    network: Network = field(repr=False)
    name: str
    source: Locator
    on_datagram: Callable[[bytes, Locator], None] = field(repr=False)

    def send(self, data: bytes) -> None:
        """One datagram to everyone else who is in the group now."""
        for other in [*self.network.members(self.name)]:
            if other is not self:
                self._to(other, data)

    def send_to(self, data: bytes, to: Locator) -> None:
        """One datagram to one member, as an answer."""
        for other in [*self.network.members(self.name)]:
            if other.source == to:
                self._to(other, data)

    def _to(self, other: Group, data: bytes) -> None:
        if self.network.lose(self.source, other.source, data):
            self.network.lost += 1
            return
        delay = self.network.latency(self.source, other.source)
        self.network.schedule(delay, lambda: other.arrive(data, self.source))

    def arrive(self, data: bytes, source: Locator) -> None:
        """A datagram, unless this member has left meanwhile."""
        if self in self.network.members(self.name):
            self.on_datagram(data, source)

    async def close(self) -> None:
        """Leave the group."""
        members = self.network.members(self.name)
        if self in members:
            members.remove(self)


_networks: Final[weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Network]] = (
    weakref.WeakKeyDictionary()
)


def _network() -> Network:
    """The network of the running event loop: loops do not see each other's names."""
    return _networks.setdefault(asyncio.get_running_loop(), Network())


async def connect(endpoint: EndPoint, attach: Attach) -> Link:
    """Connect to a name of this event loop. Raises LinkError."""
    return _network().connect(endpoint, attach)


async def listen(endpoint: EndPoint, attach: Attach) -> Listener:
    """Listen on a name of this event loop. Raises LinkError."""
    return _network().listen(endpoint, attach)
