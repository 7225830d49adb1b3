"""A network of named nodes in memory: latencies, losses, partitions, machines that go dark."""

from __future__ import annotations

import asyncio
import itertools
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

from zenwire.links import Attach, Group, Link, LinkError, Listener, Network
from zenwire.wire.locator import EndPoint, Locator

__all__ = ["Hub", "Place"]

INSTANT = 0.0005
"""Latency of what is not between two places."""


@dataclass(eq=False)
class Place:
    """One run of a node: what it uses as its network. A node that restarts has a new one."""

    hub: Hub
    name: str
    number: int
    dark: bool = False
    links: list[Link] = field(default_factory=list)

    def connect(self, endpoint: EndPoint, attach: Attach) -> Link:
        other = self.hub.places.get(endpoint.address)
        if other is None or self.hub.apart(self, other):
            raise LinkError(str(endpoint), "there is no way")
        link = self.hub.network.connect(endpoint, attach)
        self.hub.ends[link.src.address] = self, other
        self.links.append(link)
        return link

    def listen(self, endpoint: EndPoint, attach: Attach) -> Listener:
        def accepted(link: Link) -> object:
            self.links.append(link)
            return attach(link)

        listener = self.hub.network.listen(endpoint, accepted)  # type: ignore[arg-type] # a Receiver
        self.hub.places[endpoint.address] = self
        return listener

    def join(self, name: str, on_datagram: Callable[[bytes, Locator], None]) -> Group:
        group = self.hub.network.join(name, on_datagram)
        self.hub.members[group.source.address] = self
        return group

    def crash(self) -> None:
        """The process dies: the system ends its links."""
        for link in self.links:
            link.abort()


class Hub:
    """All randomness is of ``seed``. ``digest`` changes with everything that is sent."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(f"hub {seed}")
        self.network = Network(self._schedule, self._latency, self._lose)
        self.places: dict[str, Place] = {}
        self.ends: dict[str, tuple[Place, Place]] = {}
        self.members: dict[str, Place] = {}
        self.loss = 0.0
        self.group_loss = 0.3
        self.digest = 0
        self.sent = 0
        self._sides: dict[str, int] = {}
        self._numbers = itertools.count()
        self._pair: tuple[Place, Place] | None = None
        self._stuck: list[tuple[tuple[Place, Place], Callable[[], None]]] = []

    def place(self, name: str) -> Place:
        return Place(self, name, next(self._numbers))

    # Who hears whom.

    def apart(self, one: Place, other: Place) -> bool:
        if one.dark or other.dark:
            return True
        return self._sides.get(one.name, 0) != self._sides.get(other.name, 0)

    def split(self, sides: dict[str, int], *, cut: bool) -> None:
        """Part the network. ``cut``: both ends learn it at once; else nothing arrives any more."""
        self._sides = sides
        if cut:
            for one, other in dict.fromkeys(self.ends.values()):
                if self.apart(one, other):
                    self._cut(one, other)

    def _cut(self, one: Place, other: Place) -> None:
        for link in one.links:
            if self.ends.get(link.src.address) == (one, other):
                link.abort()

    def heal(self) -> None:
        """Everyone hears everyone; what was on its way goes on."""
        self._sides = {}
        stuck, self._stuck = self._stuck, []
        for pair, run in stuck:
            if not self.apart(*pair):
                self._schedule(self._delay(), run)

    # What a Network asks.

    def _pair_of(self, src: Locator, dst: Locator) -> tuple[Place, Place] | None:
        pair = self.ends.get(src.address) or self.ends.get(dst.address)
        if pair is None and src.address in self.members and dst.address in self.members:
            pair = self.members[src.address], self.members[dst.address]
        return pair

    def _delay(self) -> float:
        return self.random.uniform(0.001, 0.04)

    def _latency(self, src: Locator, dst: Locator) -> float:
        self.sent += 1
        now = asyncio.get_running_loop().time()
        self.digest = zlib.crc32(f"{now:.6f} {src} {dst}".encode(), self.digest)
        self._pair = self._pair_of(src, dst)
        if self._pair is None:
            return INSTANT
        return float("inf") if self.apart(*self._pair) else self._delay()

    def _schedule(self, delay: float, run: Callable[[], None]) -> None:
        if delay == float("inf"):
            assert self._pair is not None
            self._stuck.append((self._pair, run))
        elif delay > 0:
            asyncio.get_running_loop().call_later(delay, run)
        else:
            asyncio.get_running_loop().call_soon(run)

    def _lose(self, src: Locator, dst: Locator, data: bytes) -> bool:
        self.digest = zlib.crc32(data, self.digest)
        pair = self._pair_of(src, dst)
        if pair is not None and self.apart(*pair):
            return True
        loss = self.group_loss if src.address in self.members else self.loss
        return self.random.random() < loss
