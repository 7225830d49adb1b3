"""Sockets with the options of an endpoint, and the addresses behind its name."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from array import array
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from zenwire.links.base import BATCH_MAX
from zenwire.links.endpoint import Options, host_and_port
from zenwire.links.errors import LinkError, link_error
from zenwire.links.forking import owned
from zenwire.links.interfaces import Address, interfaces
from zenwire.wire.locator import EndPoint, Locator

if sys.platform == "linux":
    import fcntl
    import termios

__all__ = [
    "SockAddr",
    "both_versions",
    "expand",
    "first_of",
    "ip_of",
    "is_wildcard",
    "literal",
    "locator_of",
    "make_socket",
    "printed",
    "resolve",
    "stream_mtu",
    "unacknowledged",
]

SockAddr = tuple[str, int] | tuple[str, int, int, int]
"""What the socket module calls an address: with flow and scope for IPv6."""

ATTEMPT_DELAY: Final = 0.25
"""Seconds before the next address of a name is tried beside the one that does not answer."""

_PRIVATE: Final = tuple(map(ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))

_HEADERS_IPV4: Final = 40
_HEADERS_IPV6: Final = 60
"""Bytes of the headers of IP and TCP."""
_BIND_TO_DEVICE: Final = getattr(socket, "SO_BINDTODEVICE", None)


def literal(where: str) -> SockAddr | None:
    """The address of ``host:port``, if that is one of IPv4 and nothing is to be looked up."""
    host, port = host_and_port(where)
    try:
        return (host, port) if _parsed(host).version == 4 else None
    except ValueError:
        return None


async def resolve(name: str, where: str, kind: socket.SocketKind) -> list[SockAddr]:
    """All addresses behind ``host:port``, in the system's order. Raises LinkError."""
    written = literal(where)
    if written is not None:
        return [written]
    host, port = host_and_port(where)
    try:
        if _is_ipv6(host.partition("%")[0]):
            # It needs no thread, and must not wait behind names that do not resolve.
            found = socket.getaddrinfo(host, port, type=kind, flags=socket.AI_NUMERICHOST)
        else:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=kind)
    except (OSError, UnicodeError) as e:
        raise link_error(name, f"looking up {host!r}", e) from e
    places: dict[SockAddr, None] = {}
    for family, _, _, _, place in found:
        if family in {socket.AF_INET, socket.AF_INET6}:
            places[place] = None  # type: ignore[index] # the stubs know of a third form
    if not places:
        raise LinkError(name, f"looking up {host!r}: it has no address")
    return list(places)


async def first_of(
    name: str, places: Sequence[SockAddr], attempt: Callable[[SockAddr], Awaitable[socket.socket]]
) -> socket.socket:
    """The first attempt that succeeds; each starts when the one before fails or takes long.

    Raises LinkError with the reason of each address. The others are cancelled; an attempt must
    clean up after itself when it is.
    """
    if len(places) == 1:
        # Nothing to choose from, and so no task for it.
        try:
            return await attempt(places[0])
        except (LinkError, OSError) as e:
            failure = link_error(name, f"connecting to {printed(places[0])}", e)
            raise LinkError(name, failure.reason, failure.hint) from None
    waiting = list(places)
    running: dict[asyncio.Future[socket.socket], SockAddr] = {}
    reasons: list[str] = []
    hint = ""
    try:
        while waiting or running:
            if waiting:
                place = waiting.pop(0)
                running[asyncio.ensure_future(attempt(place))] = place
            done, _ = await asyncio.wait(
                running,
                timeout=ATTEMPT_DELAY if waiting else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for task in done:
                place = running.pop(task)
                error = task.exception()
                if error is None:
                    return task.result()
                if not isinstance(error, (LinkError, OSError)):
                    raise error
                failure = link_error(name, f"connecting to {printed(place)}", error)
                reasons.append(failure.reason)
                hint = failure.hint
        raise LinkError(name, "; ".join(reasons) or "it has no address to connect to", hint)
    finally:
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        for task in running:
            # Two may have succeeded at once, or one while we were cancelled.
            if not task.cancelled() and task.exception() is None:
                task.result().close()


def make_socket(
    place: SockAddr, kind: socket.SocketKind, options: Options, bind: SockAddr | None = None
) -> socket.socket:
    """A socket that does not block, for this address, with the options of the endpoint.

    Raises OSError.
    """
    family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
    sock = owned(socket.socket(family, kind))
    try:
        sock.setblocking(False)
        if options:
            _set_options(sock, options)
        if bind is not None:
            sock.bind(bind)
    except BaseException:
        sock.close()
        raise
    return sock


def _set_options(sock: socket.socket, options: Options) -> None:
    iface = options.text("iface")
    if iface is not None:
        if _BIND_TO_DEVICE is None:
            raise OSError(f"binding to the interface {iface} is not possible on {sys.platform}")
        sock.setsockopt(socket.SOL_SOCKET, _BIND_TO_DEVICE, iface.encode() + b"\0")
    for key, option in (("so_sndbuf", socket.SO_SNDBUF), ("so_rcvbuf", socket.SO_RCVBUF)):
        size = options.whole(key)
        if size is not None:
            sock.setsockopt(socket.SOL_SOCKET, option, size)
    dscp = options.whole("dscp")
    if dscp is not None:
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, getattr(socket, "IPV6_TCLASS", 67), dscp)
        else:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp)


def both_versions(sock: socket.socket) -> None:
    """Let a wildcard of IPv6 take IPv4 too, as zenoh's does; asyncio would forbid it."""
    if sock.family == socket.AF_INET6:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)


def printed(place: SockAddr) -> str:
    """``127.0.0.1:7447`` or ``[::1]:7447``."""
    host, port = place[0], place[1]
    scope = f"%{place[3]}" if len(place) == 4 and place[3] and "%" not in host else ""
    return f"[{host}{scope}]:{port}" if ":" in host else f"{host}:{port}"


def locator_of(protocol: str, place: SockAddr, metadata: str = "") -> Locator:
    """The locator of a socket address."""
    return Locator(protocol, printed(place), metadata)


def ip_of(place: SockAddr) -> Address:
    """The address without its port; one of IPv4 in IPv6 clothes comes as IPv4."""
    address = _parsed(place[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped
    return address


@lru_cache(256)
def _parsed(host: str) -> Address:
    """Reading an address takes long, and most links are with few. Raises ValueError."""
    return ip_address(host)


def _is_ipv6(host: str) -> bool:
    try:
        return _parsed(host).version == 6
    except ValueError:
        return False


def is_wildcard(host: str) -> bool:
    """Whether this is ``0.0.0.0`` or ``::``."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def expand(endpoint: EndPoint, *, iface: str | None, loopback: bool) -> list[Locator]:
    """A bound endpoint as others reach it: a wildcard becomes the addresses of the machine.

    ``[::]`` takes IPv4 too, and is announced as zenoh does: addresses of IPv6, then those of
    IPv4, private ones last. Link-local addresses are left out: they mean nothing without the
    scope of the one who reads them.
    """
    host, port = host_and_port(endpoint.address)
    if not is_wildcard(host):
        hidden = not loopback and (host == "localhost" or _is_loopback(host))
        return [] if hidden else [endpoint.locator]
    address = ip_address(host)
    found = [
        other
        for interface in interfaces()
        if iface is None or interface.name == iface
        for other in interface.addresses
        if not other.is_link_local
        and (loopback or not other.is_loopback)
        and (address.version == 6 or other.version == 4)
    ]
    found.sort(key=lambda other: (-other.version, any(other in net for net in _PRIVATE)))
    return [
        Locator(endpoint.protocol, printed((str(other), port)), endpoint.metadata)
        for other in found
    ]


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def stream_mtu(sock: socket.socket, src: SockAddr) -> int:
    """Bytes of a batch over TCP: as many halves of a segment as fit, so that full ones fill it."""
    limit = BATCH_MAX - (_HEADERS_IPV6 if ":" in src[0] else _HEADERS_IPV4)
    try:
        half = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) // 2
    except (OSError, AttributeError):
        return limit
    return min(limit, (limit - 1) // half * half or half) if half > 0 else limit


def unacknowledged(transport: asyncio.Transport) -> int:
    """Bytes that this system has taken and the other side's has not, of TCP, where it tells."""
    sock = transport.get_extra_info("socket")
    if sys.platform != "linux" or sock.family not in {socket.AF_INET, socket.AF_INET6}:
        return 0
    found = array("i", [0])
    fcntl.ioctl(sock, termios.TIOCOUTQ, found)
    return found[0]
