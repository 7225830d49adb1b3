"""The network interfaces of this machine: names, addresses, and what they can do."""

from __future__ import annotations

import ctypes
import socket
import sys
import time
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

__all__ = ["Interface", "interfaces", "names_of", "route_source"]

Address = IPv4Address | IPv6Address

# Flags of <net/if.h>. The one for multicast differs: Linux 0x1000, the BSDs and macOS 0x8000.
_UP: Final = 0x1
_LOOPBACK: Final = 0x8
_RUNNING: Final = 0x40
_MULTICAST: Final = 0x1000 if sys.platform == "linux" else 0x8000

# Linux has the family in the first two bytes of a sockaddr; the BSDs have a length before it.
_HAS_LENGTH: Final = sys.platform == "darwin" or "bsd" in sys.platform


@dataclass(frozen=True, slots=True)
class Interface:
    """One interface that is up, with its addresses in the system's order."""

    name: str
    index: int
    addresses: tuple[Address, ...]
    loopback: bool
    multicast: bool


class _IfAddrs(ctypes.Structure):
    pass


_IfAddrs._fields_ = [
    ("next", ctypes.POINTER(_IfAddrs)),
    ("name", ctypes.c_char_p),
    ("flags", ctypes.c_uint),
    ("addr", ctypes.c_void_p),
]


def interfaces() -> list[Interface]:
    """All interfaces that are up and running.

    Where the system's list cannot be had, the addresses behind the host's name and the default
    routes stand for it, as interfaces without a name.
    """
    try:
        libc = ctypes.CDLL(None)
        getifaddrs, freeifaddrs = libc.getifaddrs, libc.freeifaddrs
    except (OSError, AttributeError, TypeError):
        return _guessed()
    head = ctypes.POINTER(_IfAddrs)()
    if getifaddrs(ctypes.byref(head)) != 0:
        return _guessed()
    found: dict[str, tuple[int, list[Address]]] = {}
    try:
        node = head
        while node:  # type: ignore[truthy-bool] # a null pointer is false
            entry = node.contents
            name = entry.name.decode(errors="replace")
            _, addresses = found.setdefault(name, (entry.flags, []))
            address = _address_at(entry.addr) if entry.addr else None
            if address is not None:
                addresses.append(address)
            node = entry.next
    finally:
        freeifaddrs(head)
    return [
        Interface(
            name, _index(name), tuple(addresses), bool(flags & _LOOPBACK), bool(flags & _MULTICAST)
        )
        for name, (flags, addresses) in found.items()
        if flags & _UP and flags & _RUNNING
    ]


def names_of(address: Address) -> tuple[str, ...]:
    """The interfaces that have this address; all of them for a wildcard."""
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or IPv6Address(int(address))
    owners = _recent()
    if address.is_unspecified:
        return owners.everyone
    return owners.of.get(address, ())


_RECENT: Final = 2.0
"""Seconds for which a list of interfaces is good enough to name the one of a new link."""


class _Owners:
    """The names of interfaces, by their addresses without scopes."""

    __slots__ = ("everyone", "of")

    def __init__(self, found: list[Interface]) -> None:
        named = [interface for interface in found if interface.name]
        self.everyone = tuple(interface.name for interface in named)
        self.of: dict[Address, tuple[str, ...]] = {}
        for interface in named:
            for address in _plain(interface.addresses):
                self.of[address] = (*self.of.get(address, ()), interface.name)


_last: tuple[float, _Owners] = (float("-inf"), _Owners([]))


def _recent() -> _Owners:
    """Asked for at most once in a while: strangers can make UDP links by the thousand."""
    global _last  # noqa: PLW0603 # a cache
    now = time.monotonic()
    if now - _last[0] > _RECENT:
        _last = (now, _Owners(interfaces()))
    return _last[1]


def route_source(peer: tuple[str, int] | tuple[str, int, int, int]) -> str | None:
    """The own address from which the system would send to a peer. Sends nothing."""
    family = socket.AF_INET6 if ":" in peer[0] else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(peer)
            return str(probe.getsockname()[0])
    except OSError:
        return None


def _plain(addresses: tuple[Address, ...]) -> set[Address]:
    return {
        IPv6Address(int(address)) if isinstance(address, IPv6Address) else address
        for address in addresses
    }


def _index(name: str) -> int:
    try:
        return socket.if_nametoindex(name)
    except OSError:
        return 0


def _address_at(pointer: int) -> Address | None:
    family = ctypes.c_uint8.from_address(pointer + 1).value
    if not _HAS_LENGTH:
        family = ctypes.c_uint16.from_address(pointer).value
    if family == socket.AF_INET:
        return IPv4Address(ctypes.string_at(pointer + 4, 4))
    if family == socket.AF_INET6:
        address = IPv6Address(ctypes.string_at(pointer + 8, 16))
        scope = ctypes.c_uint32.from_address(pointer + 24).value
        return IPv6Address(f"{address}%{scope}") if address.is_link_local and scope else address
    return None


def _guessed() -> list[Interface]:
    found: dict[Address, None] = {}
    try:
        for *_, place in socket.getaddrinfo(socket.gethostname(), None):
            found[ip_address(place[0])] = None
    except (OSError, UnicodeError, ValueError):
        pass
    # Addresses of documentation: nothing is sent, only the route is looked up.
    for peer in (("192.0.2.1", 9), ("2001:db8::1", 9, 0, 0)):
        source = route_source(peer)
        if source is not None:
            found[ip_address(source)] = None
    return [
        Interface("", 0, (address,), address.is_loopback, multicast=not address.is_loopback)
        for address in found
    ]
