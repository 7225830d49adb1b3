"""udp/host:port: one batch in each datagram. A listener tells its peers apart by address."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from zenwire.links.base import (
    HIGH_WATER,
    LOW_WATER,
    Attach,
    Facts,
    Link,
    Listener,
    Receiver,
)
from zenwire.links.endpoint import options_of, shown
from zenwire.links.errors import LinkError, link_error
from zenwire.links.interfaces import names_of, route_source
from zenwire.links.sockets import (
    SockAddr,
    both_versions,
    expand,
    ip_of,
    is_wildcard,
    locator_of,
    make_socket,
    printed,
    resolve,
)
from zenwire.wire.locator import EndPoint, Locator

__all__ = ["HELD_MAX", "PEERS_MAX", "PENDING_MAX", "UDP_MTU", "UdpLink", "UdpListener"]

UDP_MTU: Final = 9_216 if sys.platform == "darwin" else 65_535 - 8 - 40
"""Bytes of the largest datagram, which the headers of UDP and IPv6 precede."""
PENDING_MAX: Final = 100
"""Peers of a listener that have not opened a session; one more, and the oldest gives way."""
PEERS_MAX: Final = 1_000
"""Peers of a listener in all, as many as zenoh has sessions."""
HELD_MAX: Final = 64
"""Datagrams that wait for a link that is paused; further ones are dropped and counted."""


class UdpLink(Link):
    """A link to one peer, over a socket of its own or that of a listener."""

    has_file = False  # that is the listener's, or it was dialled

    __slots__ = ("_closed", "_held", "_leave", "_paused", "_receiver", "_settle", "_socket", "_to")

    def __init__(
        self,
        endpoint: EndPoint,
        shared: Datagrams,
        src: SockAddr,
        dst: SockAddr,
        *,
        leave: Callable[[], None],
        settle: Callable[[], None] | None = None,
    ) -> None:
        facts = Facts(streamed=False, reliable=False, mtu=UDP_MTU, interfaces=names_of(ip_of(src)))
        super().__init__(endpoint, locator_of("udp", src), locator_of("udp", dst), facts)
        self._socket = shared
        self._to = dst if settle is not None else None
        self._leave = leave
        self._settle = settle
        self._receiver: Receiver | None = None
        self._held: deque[bytes] = deque()
        self._paused = False
        self._closed = False

    def attach(self, attach: Attach) -> None:
        self._receiver = attach(self)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closed:
            return
        if len(data) > self.facts.mtu:
            reason = f"{len(data)} bytes do not fit into a datagram of {self.facts.mtu}"
            raise LinkError(shown(self.endpoint), reason, "negotiate a smaller batch size")
        self.bytes_out += len(data)
        self._socket.send(bytes(data), self._to)

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        if self._paused:
            self._paused = False
            asyncio.get_running_loop().call_soon(self._release)

    def _release(self) -> None:
        while self._held and not self._paused and not self._closed:
            self._deliver(self._held.popleft())

    def received(self, data: bytes) -> None:
        """A datagram of this peer, from the socket."""
        if self._paused or self._held:
            if len(self._held) >= HELD_MAX:
                self.dropped += 1
            else:
                self._held.append(data)
            return
        self._deliver(data)

    def _deliver(self, data: bytes) -> None:
        if self._closed:
            return
        if self._receiver is None:
            # Nothing was asked yet, so it is no answer.
            self.dropped += 1
        else:
            self.bytes_in += len(data)
            self._receiver.received(data)

    def set_writable(self, writable: bool) -> None:
        """The socket is full, or no longer."""
        self.writable = writable
        if writable and self._receiver is not None and not self._closed:
            self._receiver.drained()

    def close(self) -> None:
        self.abort()

    def abort(self, error: LinkError | None = None) -> None:
        if self._closed:
            return
        self._closed = True
        self._held.clear()
        self._leave()
        asyncio.get_running_loop().call_soon(self._finish, error)

    def _finish(self, error: LinkError | None) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.closed(error)

    def established(self) -> None:
        if self._settle is not None and not self._closed:
            self._settle()


class Datagrams(asyncio.DatagramProtocol):
    """A socket as asyncio drives it; what comes goes to callbacks."""

    def __init__(
        self,
        on_datagram: Callable[[bytes, SockAddr], None],
        on_error: Callable[[Exception], None],
        on_writable: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._on_datagram = on_datagram
        self._on_error = on_error
        self._on_writable = on_writable
        self._transport: asyncio.DatagramTransport | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def open(self, sock: socket.socket) -> None:
        """Take a bound socket over. Raises OSError."""
        loop = asyncio.get_running_loop()
        try:
            await loop.create_datagram_endpoint(lambda: self, sock=sock)
        except BaseException:
            sock.close()
            raise

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override] # asyncio's stubs say BaseTransport
        self._transport = transport
        # asyncio's own transports have it; its interface does not promise it.
        limit = getattr(transport, "set_write_buffer_limits", None)
        if limit is not None:
            limit(HIGH_WATER, LOW_WATER)

    def datagram_received(self, data: bytes, addr: SockAddr) -> None:
        self._on_datagram(data, addr)

    def error_received(self, exc: Exception) -> None:
        self._on_error(exc)

    def pause_writing(self) -> None:
        self._on_writable(False)

    def resume_writing(self) -> None:
        self._on_writable(True)

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self._on_error(exc)
        if not self.closed.done():
            self.closed.set_result(None)

    def send(self, data: bytes, to: SockAddr | None) -> None:
        """To an address, or to the one the socket is connected to."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(data, to)

    def close(self) -> None:
        """Send what waits, and end."""
        if self._transport is not None:
            self._transport.close()


async def connect(endpoint: EndPoint, attach: Attach) -> Link:
    """A socket that talks to one peer only. Whether it exists shows later. Raises LinkError."""
    name, options = shown(endpoint), options_of(endpoint)
    found = await resolve(name, endpoint.address, socket.SOCK_DGRAM)
    places = [place for place in found if not ip_of(place).is_multicast]
    source = options.text("bind")
    binds = [] if source is None else await resolve(name, source, socket.SOCK_DGRAM)
    failure = LinkError(name, "there is no unicast address to connect to")
    for place in places:
        bind = next((b for b in binds if (":" in b[0]) == (":" in place[0])), None)
        if binds and bind is None:
            failure = LinkError(name, f"bind={source} and {printed(place)} differ in IP version")
            continue
        try:
            sock = make_socket(place, socket.SOCK_DGRAM, options, bind)
        except OSError as e:
            failure = link_error(name, f"connecting to {printed(place)}", e)
            continue
        try:
            sock.connect(place)
        except OSError as e:
            sock.close()
            failure = link_error(name, f"connecting to {printed(place)}", e)
            continue
        return await _connected(endpoint, attach, sock)
    raise failure


async def _connected(endpoint: EndPoint, attach: Attach, sock: socket.socket) -> UdpLink:
    src, dst = sock.getsockname(), sock.getpeername()
    datagrams = Datagrams(
        lambda data, _: link.received(data),
        lambda exc: link.abort(link_error(shown(endpoint), f"link to {link.dst}", exc)),
        lambda writable: link.set_writable(writable),  # noqa: PLW0108 # the link is made below
    )
    link = UdpLink(endpoint, datagrams, src, dst, leave=datagrams.close)
    try:
        await datagrams.open(sock)
    except OSError as e:
        raise link_error(shown(endpoint), "connecting", e) from e
    try:
        link.attach(attach)
    except BaseException:
        link.abort()
        raise
    return link


@dataclass(slots=True)
class UdpListener(Listener):
    """One socket for many peers: a datagram of a new address is a new link."""

    attach: Attach = field(kw_only=True)
    place: SockAddr = field(kw_only=True)
    iface: str | None = None
    _datagrams: Datagrams = field(init=False)
    _peers: dict[SockAddr, UdpLink] = field(default_factory=dict)
    _pending: dict[SockAddr, None] = field(default_factory=dict)

    async def open(self, sock: socket.socket) -> None:
        """Receive from now on. Raises OSError."""
        self._datagrams = Datagrams(self._received, self._failed, self._set_writable)
        await self._datagrams.open(sock)

    def locators(self, *, loopback: bool = True) -> list[Locator]:
        return expand(self.endpoint, iface=self.iface, loopback=loopback)

    async def close(self) -> None:
        for link in [*self._peers.values()]:
            link.abort()
        self._datagrams.close()
        await self._datagrams.closed

    def _received(self, data: bytes, source: SockAddr) -> None:
        link = self._peers.get(source)
        if link is None:
            if len(self._pending) >= PENDING_MAX:
                self.counters.evicted += 1
                self._peers[next(iter(self._pending))].abort(
                    LinkError(shown(self.endpoint), "too many peers try to connect")
                )
            if len(self._peers) >= PEERS_MAX:
                self.counters.dropped += 1
                return
            link = self._welcome(source)
        link.received(data)

    def _welcome(self, source: SockAddr) -> UdpLink:
        def leave() -> None:
            self._peers.pop(source, None)
            self._pending.pop(source, None)

        src = self.place
        if is_wildcard(src[0]):
            own = route_source(source)
            src = (own, src[1]) if own is not None else src
        link = UdpLink(
            self.endpoint,
            self._datagrams,
            src,
            source,
            leave=leave,
            settle=lambda: self._pending.pop(source, None),
        )
        self._peers[source] = link
        self._pending[source] = None
        self.counters.accepted += 1
        try:
            link.attach(self.attach)
        except BaseException:
            leave()
            raise
        return link

    def _failed(self, exc: Exception) -> None:
        # An answer to some datagram we sent; which peer it concerns is not told.
        self.counters.errors += 1
        self.last_error = link_error(shown(self.endpoint), "sending or receiving", exc)

    def _set_writable(self, writable: bool) -> None:
        for link in [*self._peers.values()]:
            link.set_writable(writable)


async def listen(endpoint: EndPoint, attach: Attach) -> Listener:
    """Listen on the first address that can be bound. Raises LinkError."""
    name, options = shown(endpoint), options_of(endpoint)
    failure: LinkError | None = None
    for place in await resolve(name, endpoint.address, socket.SOCK_DGRAM):
        if ip_of(place).is_multicast:
            failure = LinkError(
                name, "a multicast group has no listener", "join it: open_multicast"
            )
            continue
        try:
            sock = make_socket(place, socket.SOCK_DGRAM, options)
        except OSError as e:
            failure = failure or link_error(name, f"listening on {printed(place)}", e)
            continue
        with contextlib.suppress(OSError):
            both_versions(sock)
        try:
            sock.bind(place)
        except OSError as e:
            sock.close()
            failure = failure or link_error(name, f"listening on {printed(place)}", e)
            continue
        own: SockAddr = sock.getsockname()
        bound = EndPoint("udp", printed(own), endpoint.metadata, endpoint.config)
        listener = UdpListener(bound, attach=attach, place=own, iface=options.text("iface"))
        await listener.open(sock)
        return listener
    assert failure is not None
    raise failure
