"""Where endpoints lead: to sockets, or to a network in memory for tests and simulations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from zenwire import links
from zenwire.links import Facts
from zenwire.wire.locator import EndPoint, Locator

if TYPE_CHECKING:
    from zenwire.links import Attach, Link, Listener

__all__ = ["Member", "Names", "Reach"]

OnDatagram = Callable[[bytes, Locator], None]

_MEMORY_MTU = 65_000


class Member(Protocol):
    """A place in a group: of a multicast address, or of a network in memory."""

    @property
    def writable(self) -> bool:
        """Whether the system takes datagrams now."""

    def send(self, data: bytes) -> None:
        """To all others."""

    def send_to(self, data: bytes, to: Locator) -> None:
        """To one of them."""

    async def close(self) -> None:
        """Leave."""


class Names(Protocol):
    """What a node needs of a network in memory; ``links.Network`` is one."""

    def connect(self, endpoint: EndPoint, attach: Attach) -> Link: ...

    def listen(self, endpoint: EndPoint, attach: Attach) -> Listener: ...

    def join(self, name: str, on_datagram: OnDatagram) -> MemoryGroup: ...


class MemoryGroup(Protocol):
    """What ``links.Group`` is."""

    def send(self, data: bytes) -> None: ...

    def send_to(self, data: bytes, to: Locator) -> None: ...

    async def close(self) -> None: ...


class _InMemory:
    """A member that can always send."""

    __slots__ = ("_group",)

    writable = True

    def __init__(self, group: MemoryGroup) -> None:
        self._group = group

    def send(self, data: bytes) -> None:
        self._group.send(data)

    def send_to(self, data: bytes, to: Locator) -> None:
        self._group.send_to(data, to)

    async def close(self) -> None:
        await self._group.close()


class Reach:
    """Opens links. With a ``network``, ``memory/`` endpoints and all groups are there."""

    __slots__ = ("network",)

    def __init__(self, network: Names | None = None) -> None:
        self.network = network

    async def connect(self, endpoint: EndPoint, attach: Attach, wait: float) -> None:
        """A link, handed to ``attach``. Raises LinkError."""
        if self.network is not None and endpoint.protocol == "memory":
            self.network.connect(endpoint, attach)
        else:
            await links.connect(endpoint, attach, timeout=wait)

    async def listen(self, endpoint: EndPoint, attach: Attach) -> Listener:
        """Let others connect. Raises LinkError."""
        if self.network is not None and endpoint.protocol == "memory":
            return self.network.listen(endpoint, attach)
        return await links.listen(endpoint, attach)

    async def join(
        self,
        endpoint: EndPoint,
        on_datagram: OnDatagram,
        ifaces: Sequence[str] | None = None,
        ttl: int | None = None,
    ) -> tuple[Member, Facts]:
        """Be in a group, and what its link is like. Raises LinkError."""
        if self.network is not None:
            facts = Facts(streamed=False, reliable=False, mtu=_MEMORY_MTU)
            return _InMemory(self.network.join(endpoint.address, on_datagram)), facts
        joined = await links.open_multicast(endpoint, on_datagram, ifaces=ifaces, ttl=ttl)
        return joined, joined.facts
