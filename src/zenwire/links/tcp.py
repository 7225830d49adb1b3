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

from zenwire.links.base import BATCH_MAX, Attach, Facts, Link, Listener
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
)
from zenwire.links.stream import (
    BACKLOG,
    READ_SIZE,
    StreamLink,
    StreamListener,
    Wrap,
    carry,
)
from zenwire.wire.locator import EndPoint, Locator

__all__ = ["TcpListener", "connect", "describe", "dial", "listen", "start_listener"]

_HEADERS_IPV4: Final = 40
_HEADERS_IPV6: Final = 60
"""Bytes of the headers of IP and TCP."""
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
    if sock is None:
        async with asyncio.timeout(timeout):
            sock = await dial(endpoint, options)
    link = _Dialled(endpoint, attach)
    try:
        link.begin(sock)
        await carry(link, sock)
    except OSError as e:
        raise link_error(shown(endpoint), "connecting", e) from e
    return link


class _Dialled(StreamLink):
    """A link that is attached before asyncio has its socket: its first words are out sooner."""

    def __init__(self, endpoint: EndPoint, attach: Attach) -> None:
        super().__init__(endpoint, attach, _described)
        self._sock: socket.socket | None = None
        self._unsent = b""

    def begin(self, sock: socket.socket) -> None:
        """Over a socket that is connected. Raises OSError when the other side is gone.

        The addresses are filled in behind the first words: those wait for nothing.
        """
        try:
            src: SockAddr = sock.getsockname()
            dst: SockAddr = sock.getpeername()
            self.facts = Facts(streamed=True, reliable=True, mtu=_mtu(sock, src))
            self._sock = sock
            super().ready()
        except BaseException:
            sock.close()
            raise
        _fill_in(self, src, dst, self.facts)

    def write_early(self, data: bytes | bytearray | memoryview) -> None:
        if self._sock is None or self._closing:
            return
        self.bytes_out += len(data)
        sent = 0
        if not self._unsent:
            # What is wrong with it, asyncio will tell.
            with contextlib.suppress(OSError):
                sent = self._sock.send(data)
        self._unsent += data[sent:]

    def ready(self) -> None:
        """From now on asyncio sends, and in a moment it reads; an answer may be there already."""
        sock, self._sock = self._sock, None
        unsent, self._unsent = self._unsent, b""
        if unsent:
            self.transport.write(unsent)
        elif sock is not None:
            try:
                answer = sock.recv(READ_SIZE)
            except BlockingIOError:
                return
            # The end of it, asyncio will be told again.
            if answer:
                self.data_received(answer)


def _described(_link: StreamLink) -> None:
    """It is already."""


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
    facts = Facts(streamed, True, _mtu(known("socket"), src) if mtu is None else mtu)
    _fill_in(link, src, dst, facts)


def _fill_in(link: StreamLink, src: SockAddr, dst: SockAddr, facts: Facts) -> None:
    link.src = locator_of(link.endpoint.protocol, src)
    link.dst = locator_of(link.endpoint.protocol, dst)
    names = names_of(ip_of(src))
    link.facts = Facts(facts.streamed, facts.reliable, facts.mtu, names)


def _mtu(sock: socket.socket, src: SockAddr) -> int:
    """As many halves of a segment as fit a batch, so that full batches fill segments."""
    limit = BATCH_MAX - (_HEADERS_IPV6 if ":" in src[0] else _HEADERS_IPV4)
    try:
        half = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) // 2
    except (OSError, AttributeError):
        return limit
    return min(limit, (limit - 1) // half * half or half) if half > 0 else limit
