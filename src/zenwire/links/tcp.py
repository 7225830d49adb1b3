"""tcp/host:port. Also the socket below tls and ws."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import ssl
import sys
from dataclasses import dataclass
from typing import Final

from zenwire.links.base import Attach, Facts, Link, Listener
from zenwire.links.dialled import Dialled
from zenwire.links.endpoint import Options, options_of, shown
from zenwire.links.errors import LinkError, link_error
from zenwire.links.interfaces import names_of
from zenwire.links.sockets import (
    SockAddr,
    both_versions,
    expand,
    first_of,
    ip_of,
    literal,
    locator_of,
    make_socket,
    printed,
    resolve,
    stream_mtu,
)
from zenwire.links.stream import BACKLOG, StreamLink, StreamListener, Wrap
from zenwire.wire.locator import EndPoint, Locator

__all__ = ["TcpListener", "connect", "describe", "dial", "listen", "start_listener"]

_TOLD_BY_NEXT: Final = sys.platform == "linux"
"""A connect(2) that must not wait never tells that it is done; here the next one does."""


async def connect(
    endpoint: EndPoint,
    attach: Attach,
    timeout: float,  # noqa: ASYNC109 # it has an error of its own
) -> Link:
    """Connect to the first address that answers. Raises LinkError, and TimeoutError."""
    options = options_of(endpoint)
    sock = _dial_at_once(endpoint, options)
    at_once = sock is not None
    if sock is None:
        async with asyncio.timeout(timeout):
            sock = await dial(endpoint, options)
    link = Dialled(endpoint, attach)
    try:
        link.begin(sock)
        if at_once:
            link.read()
        else:
            await link.handed_over()
    except OSError as e:
        raise link_error(shown(endpoint), "connecting", e) from e
    return link


async def listen(endpoint: EndPoint, attach: Attach) -> Listener:
    """Listen on the first address that can be bound. Raises LinkError."""
    return await start_listener(
        endpoint, attach, lambda attach: StreamLink(endpoint, attach, describe)
    )


async def dial(endpoint: EndPoint, options: Options) -> socket.socket:
    """A connected socket. Raises LinkError."""
    name = shown(endpoint)
    found = await resolve(name, endpoint.address, socket.SOCK_STREAM)
    places = [place for place in found if not ip_of(place).is_multicast]
    source = options.text("bind")
    binds = [] if source is None else await resolve(name, source, socket.SOCK_STREAM)
    loop = asyncio.get_running_loop()

    async def attempt(place: SockAddr) -> socket.socket:
        bind = next((b for b in binds if (":" in b[0]) == (":" in place[0])), None)
        if binds and bind is None:
            raise LinkError(name, f"bind={source} and {printed(place)} differ in their IP version")
        sock = make_socket(place, socket.SOCK_STREAM, options, bind)
        try:
            await loop.sock_connect(sock, place)
            prepare(sock)
        except BaseException:
            sock.close()
            raise
        return sock

    return await first_of(name, places, attempt)


def _dial_at_once(endpoint: EndPoint, options: Options) -> socket.socket | None:
    """A socket that is connected without waiting, as on loopback it can be; or None.

    Raises LinkError.
    """
    place = literal(endpoint.address)
    if place is None or not place[0].startswith("127.") or options or not _TOLD_BY_NEXT:
        return None
    doing = f"connecting to {printed(place)}"
    try:
        sock = make_socket(place, socket.SOCK_STREAM, options)
    except OSError as e:
        raise link_error(shown(endpoint), doing, e) from None
    code = sock.connect_ex(place)
    if code == errno.EINPROGRESS:
        code = sock.connect_ex(place)
    if code == 0:
        prepare(sock)
        return sock
    sock.close()
    if code == errno.EALREADY:
        return None
    raise link_error(shown(endpoint), doing, OSError(code, os.strerror(code)))


@dataclass(slots=True)
class TcpListener(StreamListener):
    """A listener on an address of IP."""

    iface: str | None = None

    def prepare(self, sock: socket.socket) -> None:
        prepare(sock)

    def locators(self, *, loopback: bool = True) -> list[Locator]:
        return expand(self.endpoint, iface=self.iface, loopback=loopback)


async def start_listener(
    endpoint: EndPoint,
    attach: Attach,
    wrap: Wrap,
    tls: ssl.SSLContext | None = None,
    handshake_timeout: float | None = None,
) -> TcpListener:
    """Bind, and accept what comes. Raises LinkError."""
    name, options = shown(endpoint), options_of(endpoint)
    failure: LinkError | None = None
    for place in await resolve(name, endpoint.address, socket.SOCK_STREAM):
        try:
            sock = make_socket(place, socket.SOCK_STREAM, options)
        except OSError as e:
            failure = failure or link_error(name, f"listening on {printed(place)}", e)
            continue
        try:
            both_versions(sock)
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(place)
            sock.listen(BACKLOG)
        except OSError as e:
            sock.close()
            failure = failure or link_error(name, f"listening on {printed(place)}", e)
            continue
        bound = EndPoint(
            endpoint.protocol, printed(sock.getsockname()), endpoint.metadata, endpoint.config
        )
        listener = TcpListener(
            bound,
            sock=sock,
            attach=attach,
            wrap=wrap,
            tls=tls,
            handshake_timeout=handshake_timeout,
            iface=options.text("iface"),
        )
        listener.start()
        return listener
    assert failure is not None
    raise failure


def prepare(sock: socket.socket) -> None:
    """A batch is sent when it is ready; waiting for more is the transport's business."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def describe(link: StreamLink, *, streamed: bool = True, mtu: int | None = None) -> None:
    """Fill in what the sockets know. Raises OSError when the other side is gone."""
    known = link.transport.get_extra_info
    src: SockAddr | None = known("sockname")
    dst: SockAddr | None = known("peername")
    if src is None or dst is None:
        raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
    link.src = locator_of(link.endpoint.protocol, src)
    link.dst = locator_of(link.endpoint.protocol, dst)
    most = stream_mtu(known("socket"), src) if mtu is None else mtu
    link.facts = Facts(streamed, True, most, names_of(ip_of(src)))
