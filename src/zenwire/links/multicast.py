"""Multicast over UDP: a group that is joined on one or several interfaces.

Scouting uses it, and the multicast transport of ``udp/224.x.x.x:port``. One socket listens to
the group; for each interface another one sends, and takes the answers that come to it alone.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from zenwire.links.base import Facts
from zenwire.links.endpoint import Options, host_and_port, options_of, shown
from zenwire.links.errors import EndpointError, LinkError, link_error
from zenwire.links.interfaces import Address, Interface, interfaces
from zenwire.links.sockets import SockAddr, ip_of, locator_of, make_socket
from zenwire.links.udp import UDP_MTU, Datagrams
from zenwire.wire.locator import EndPoint, Locator

__all__ = ["MULTICAST_TTL", "Multicast", "OnDatagram", "is_multicast", "open_multicast"]

MULTICAST_TTL: Final = 1
"""Hops of a datagram to a group: it stays in its network."""

_IP_MULTICAST_ALL: Final = 49
"""Of <linux/in.h>; the socket module does not name it."""

OnDatagram = Callable[[bytes, Locator], None]
"""A datagram, and the ``udp/...`` it came from."""


@dataclass(slots=True)
class Multicast:
    """A group that this node hears and speaks to. Its own datagrams do not come back."""

    endpoint: EndPoint
    group: Locator
    facts: Facts
    on_datagram: OnDatagram = field(repr=False)
    place: SockAddr = field(repr=False)
    writable: bool = True
    errors: int = 0
    last_error: LinkError | None = None
    _hears: Datagrams | None = field(default=None, repr=False)
    _speaks: dict[SockAddr, Datagrams] = field(default_factory=dict, repr=False)

    @property
    def sources(self) -> list[Locator]:
        """The addresses that others see as the sender, one for each interface."""
        return [locator_of("udp", place) for place in self._speaks]

    def send(self, data: bytes) -> None:
        """One datagram to the group, on every interface. Raises LinkError above the mtu."""
        self._check(data)
        for datagrams in self._speaks.values():
            datagrams.send(data, self.place)

    def send_to(self, data: bytes, to: Locator) -> None:
        """One datagram to one node, as an answer. Raises LinkError."""
        self._check(data)
        host, port = host_and_port(to.address)
        address = ip_address(host)
        for own, datagrams in self._speaks.items():
            if ip_of(own).is_loopback == address.is_loopback:
                datagrams.send(data, (host, port))
                return
        # No interface fits; the system finds a route from any socket.
        for datagrams in self._speaks.values():
            datagrams.send(data, (host, port))
            return

    async def close(self) -> None:
        """Leave the group. Datagrams on their way are sent."""
        opened = [*self._speaks.values(), *([self._hears] if self._hears else [])]
        for datagrams in opened:
            datagrams.close()
        for datagrams in opened:
            await datagrams.closed

    def _check(self, data: bytes) -> None:
        if len(data) > self.facts.mtu:
            reason = f"{len(data)} bytes do not fit into a datagram of {self.facts.mtu}"
            raise LinkError(shown(self.endpoint), reason)

    def _received(self, data: bytes, source: SockAddr) -> None:
        if not self._is_own(source):
            self.on_datagram(data, locator_of("udp", source))

    def _is_own(self, source: SockAddr) -> bool:
        return any(source[:2] == own[:2] for own in self._speaks)

    def _failed(self, exc: Exception) -> None:
        self.errors += 1
        self.last_error = link_error(shown(self.endpoint), "sending or receiving", exc)

    def _set_writable(self, writable: bool) -> None:
        self.writable = writable

    async def open(self, options: Options, ifaces: Sequence[Interface], ttl: int) -> None:
        """Join, and receive from now on. Raises OSError."""
        group = ip_of(self.place)
        heard = _listening(self.place, options, ifaces)
        self._hears = Datagrams(self._received, self._failed)
        await self._hears.open(heard)
        if not self.place[1]:
            self.place = (self.place[0], heard.getsockname()[1], *self.place[2:])
            self.group = locator_of("udp", self.place)
        failure: OSError | None = None
        for iface in ifaces:
            for address in iface.addresses:
                if address.version != group.version:
                    continue
                try:
                    await self._speak(options, iface, address, ttl)
                except OSError as e:
                    self._failed(e)
                    failure = e
                break
        if not self._speaks:
            if failure is not None:
                raise failure
            raise OSError(f"no interface has an address of IPv{group.version}")

    async def _speak(self, options: Options, iface: Interface, address: Address, ttl: int) -> None:
        place = socket.getaddrinfo(str(address), 0, type=socket.SOCK_DGRAM)[0][4]
        bind = options.text("bind")
        if bind is not None:
            place = (str(address), host_and_port(bind)[1])
        sock = make_socket((str(address), 0), socket.SOCK_DGRAM, options.without("iface"))
        try:
            _send_through(sock, iface, address, ttl)
            sock.bind(place)
            own: SockAddr = sock.getsockname()
        except OSError:
            sock.close()
            raise
        datagrams = Datagrams(self._received, self._failed, self._set_writable)
        await datagrams.open(sock)
        self._speaks[own] = datagrams


def is_multicast(locator: Locator) -> bool:
    """Whether this is a ``udp/`` group, given as an address."""
    if locator.protocol != "udp":
        return False
    try:
        return ip_address(host_and_port(locator.address)[0]).is_multicast
    except ValueError:
        return False


async def open_multicast(
    endpoint: EndPoint,
    on_datagram: OnDatagram,
    *,
    ifaces: Sequence[str] | None = None,
    ttl: int | None = None,
) -> Multicast:
    """Join the group of ``udp/224.0.0.224:7446#iface=eth0;join=...;ttl=1``. Raises LinkError.

    ``ifaces`` are names or addresses, in place of ``iface``; without both, every interface
    that can do multicast is used, and loopback where there is no other.
    """
    name, options = shown(endpoint), options_of(endpoint)
    if not is_multicast(endpoint):
        raise EndpointError(name, "address", "it is no multicast group", "as in 224.0.0.224:7446")
    host, port = host_and_port(endpoint.address)
    group = ip_address(host)
    chosen = ifaces
    given, bind = options.text("iface"), options.text("bind")
    if chosen is None and (given or bind):
        chosen = [given or host_and_port(str(bind))[0]]
    found = _choose(name, chosen, group)
    asked = options.whole("ttl") if ttl is None else ttl
    multicast = Multicast(
        endpoint,
        endpoint.locator,
        Facts(
            streamed=False,
            reliable=False,
            mtu=UDP_MTU,
            interfaces=tuple(iface.name for iface in found if iface.name),
        ),
        on_datagram,
        (host, port) if group.version == 4 else (host, port, 0, 0),
    )
    try:
        await multicast.open(options, found, MULTICAST_TTL if asked is None else asked)
    except OSError as e:
        await multicast.close()
        raise link_error(name, "joining the group", e) from e
    except asyncio.CancelledError:
        await multicast.close()
        raise
    return multicast


def _choose(name: str, chosen: Sequence[str] | None, group: Address) -> list[Interface]:
    """The interfaces by name or address, or all that can do multicast. Raises LinkError."""
    known = interfaces()
    if chosen is None:
        usable = [
            iface
            for iface in known
            if iface.multicast
            and not iface.loopback
            and any(a.version == group.version for a in iface.addresses)
        ]
        return usable or [iface for iface in known if iface.loopback]
    found = []
    for text in chosen:
        named = [iface for iface in known if iface.name == text]
        if not named:
            named = [_with_only(iface, text) for iface in known if _has(iface, text)]
        if not named:
            names = ", ".join(iface.name for iface in known if iface.name)
            raise LinkError(name, f"there is no interface {text!r}", f"there are {names}")
        found += named
    return found


def _has(iface: Interface, text: str) -> bool:
    return any(str(address) == text for address in iface.addresses)


def _with_only(iface: Interface, text: str) -> Interface:
    return Interface(iface.name, iface.index, (ip_address(text),), iface.loopback, iface.multicast)


def _listening(place: SockAddr, options: Options, ifaces: Sequence[Interface]) -> socket.socket:
    """A socket that hears the group and those of ``join``, on the interfaces."""
    group = ip_of(place)
    anywhere = "0.0.0.0" if group.version == 4 else "::"  # noqa: S104 # a group is not an interface
    sock = make_socket(place, socket.SOCK_DGRAM, options.without("iface"))
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "SO_REUSEPORT"):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if group.version == 4 and sys.platform == "linux":
            # Otherwise it would hear every group that any process here has joined.
            sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
        sock.bind((anywhere, place[1]))
        for other in (group, *map(ip_address, options.texts("join"))):
            _join(sock, other, ifaces)
    except BaseException:
        sock.close()
        raise
    return sock


def _join(sock: socket.socket, group: Address, ifaces: Sequence[Interface]) -> None:
    """Join on all interfaces that can. Raises OSError if none can."""
    failure = OSError(f"no interface has an address of IPv{group.version}")
    joined = False
    for iface in ifaces:
        try:
            if isinstance(group, IPv6Address):
                request = group.packed + struct.pack("@I", iface.index)
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, request)
                joined = True
            else:
                own = next((a for a in iface.addresses if isinstance(a, IPv4Address)), None)
                if own is not None:
                    request = group.packed + own.packed
                    sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
                    joined = True
        except OSError as e:
            failure = e
    if not joined:
        raise failure


def _send_through(sock: socket.socket, iface: Interface, address: Address, ttl: int) -> None:
    """Send to groups through this interface; others on this machine hear it too."""
    if isinstance(address, IPv6Address):
        level = socket.IPPROTO_IPV6
        sock.setsockopt(level, socket.IPV6_MULTICAST_IF, iface.index)
        sock.setsockopt(level, socket.IPV6_MULTICAST_HOPS, ttl)
        sock.setsockopt(level, socket.IPV6_MULTICAST_LOOP, 1)
    else:
        level = socket.IPPROTO_IP
        sock.setsockopt(level, socket.IP_MULTICAST_IF, address.packed)
        sock.setsockopt(level, socket.IP_MULTICAST_TTL, ttl)
        sock.setsockopt(level, socket.IP_MULTICAST_LOOP, 1)
