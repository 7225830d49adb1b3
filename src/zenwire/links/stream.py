"""Links over byte streams: what tcp, tls, unixsock-stream and ws have in common."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import ssl
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Final, cast

from zenwire.links.base import (
    HIGH_WATER,
    LOW_WATER,
    Attach,
    Facts,
    Link,
    Listener,
    Receiver,
)
from zenwire.links.endpoint import shown
from zenwire.links.errors import LinkError, link_error
from zenwire.links.exhaustion import EXHAUSTED, GRACE, awaited, spare_file
from zenwire.links.forking import owned
from zenwire.links.sockets import unacknowledged
from zenwire.wire.locator import EndPoint, Locator

__all__ = [
    "BACKLOG",
    "CLOSE_TIMEOUT",
    "HANDSHAKES_MAX",
    "StreamLink",
    "StreamListener",
    "Wrap",
    "carry",
]

BACKLOG: Final = 1024
"""Connections that the system holds until they are accepted."""
HANDSHAKES_MAX: Final = 100
"""Handshakes of TLS or WebSocket under way on a listener; one more, and the oldest gives way."""
CLOSE_TIMEOUT: Final = 10.0
"""Seconds a closed link has for sending what was written, the time zenoh lingers."""
LINGER: Final = (0.001, 0.032)
"""Seconds, at first and at most, until a link that parts looks again whether all has arrived."""
LINGER_READ: Final = 16 * 1024 * 1024
"""Bytes that a link that parts still reads, so that who sends them does not wait for that."""
READ_SIZES: Final = (4 * 1024, 64 * 1024, 512 * 1024, 2 * 1024 * 1024)
"""Bytes that a link reads at once: more when what it has is full."""
ACCEPT_PAUSE: Final = 0.1
"""Seconds without accepting after an error, so that it does not become a busy loop."""
CLOSING_TURNS: Final = 3
"""Turns of the loop after which the file of a link that was aborted is closed."""


_NOTHING: Final = Facts(streamed=True, reliable=True, mtu=0)


@cache
def _nowhere(protocol: str) -> Locator:
    """Where a link leads that does not stand yet."""
    return Locator(protocol, "-")


class StreamLink(Link, asyncio.BufferedProtocol):
    """A link whose bytes an asyncio transport carries.

    asyncio calls the methods of its BufferedProtocol; ``attach`` is asked for the receiver once the
    connection stands, which for TLS is after its handshake.
    """

    # No slots: asyncio.Protocol and Link both have their own.

    def __init__(
        self, endpoint: EndPoint, attach: Attach, describe: Callable[[StreamLink], None]
    ) -> None:
        nowhere = _nowhere(endpoint.protocol)
        super().__init__(endpoint, nowhere, nowhere, _NOTHING)
        self._attach: Attach | None = attach
        self._describe = describe
        self._receiver: Receiver | None = None
        self._many: Many | None = None
        self._room = memoryview(b"")
        self._left = 0
        self._most = READ_SIZES[1], READ_SIZES[-1]
        """Largest read buffer: of a receiver that leaves nothing, and of one that does."""
        self._transport: asyncio.Transport | None = None
        self._closing = False
        self._error: LinkError | None = None
        self._ending: asyncio.TimerHandle | None = None
        self._ignored = 0
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the link is attached; has the error if it never came to that."""

    # Link.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        transport = self._transport
        # One that is broken says so in the next turn of the loop, and meanwhile complains.
        if self._closing or transport is None or transport.is_closing():
            self.write_early(data)
            return
        self.bytes_out += len(data)
        transport.write(data)

    @property
    def unsent(self) -> bool:
        return self._transport is not None and self._transport.get_write_buffer_size() > 0

    @property
    def on_its_way(self) -> int:
        transport = self._transport
        if transport is None:
            return 0
        unsent = transport.get_write_buffer_size()
        return unsent if transport.is_closing() else unsent + unacknowledged(transport)

    def write_early(self, data: bytes | bytearray | memoryview) -> None:
        """What is written to a link that does not stand yet, or is closed, is lost."""

    def set_read_size(self, size: int) -> None:
        # A batch must fit, as in the reference.
        most = max(size, READ_SIZES[1])
        self._most = most, most

    def pause(self) -> None:
        if self._transport is not None and not self._closing:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and not self._closing:
            self._transport.resume_reading()

    def close(self) -> None:
        if self._closing or self._transport is None:
            return
        self._closing = True
        self._transport.close()
        loop = asyncio.get_running_loop()
        self._ending = loop.call_later(CLOSE_TIMEOUT, self._give_up)

    def part(self) -> None:
        # The system throws away what is on its way if anything comes for a socket that is closed.
        # And there are nodes that leave unread what they have once they cannot write any more.
        if self._closing or self._transport is None:
            return
        self._closing = True
        if self._transport.can_write_eof():
            with contextlib.suppress(OSError):
                # If it is broken, reading tells.
                self._transport.write_eof()
            self._transport.resume_reading()
            loop = asyncio.get_running_loop()
            self._ending = loop.call_later(CLOSE_TIMEOUT, self._give_up)
        else:
            self._linger(LINGER[0], CLOSE_TIMEOUT)

    def _linger(self, pause: float, left: float) -> None:
        """TLS has no end of one direction: close when all that was written has arrived."""
        transport, loop = self.transport, asyncio.get_running_loop()
        if not self.on_its_way:
            transport.close()
            self._ending = loop.call_later(left, self._give_up)
        elif left > 0:
            if self._ignored < LINGER_READ:
                transport.resume_reading()
            longer = min(2 * pause, LINGER[1])
            self._ending = loop.call_later(pause, self._linger, longer, left - pause)
        else:
            self._give_up()

    def _give_up(self) -> None:
        unsent = self.on_its_way
        reason = f"{unsent} bytes could not be sent before the end"
        self.abort(LinkError(shown(self.endpoint), reason) if unsent else None)

    def abort(self, error: LinkError | None = None) -> None:
        self._closing = True
        self._error = self._error or error
        if self._transport is not None:
            self._transport.abort()

    # asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not an assertion: those of other event loops need not derive from asyncio's.
        stream = cast("asyncio.Transport", transport)
        self._transport = stream
        if self._closing:
            stream.abort()
            return
        if stream.get_extra_info("ssl_object") is None:
            # What the system does not take waits in queues, where it has a priority.
            stream.set_write_buffer_limits(0)
        else:
            stream.set_write_buffer_limits(HIGH_WATER, LOW_WATER)
        try:
            self._describe(self)
            self.ready()
        except OSError as e:
            # Gone before we could ask who it was.
            self.abort(link_error(shown(self.endpoint), "opening", e))
        except BaseException:
            self.abort()
            raise

    def ready(self) -> None:
        """The connection stands: find out who takes its bytes."""
        attach, self._attach = self._attach, None
        assert attach is not None
        self._receiver = receiver = attach(self)
        if self.facts.streamed:
            self._many = getattr(receiver, "received_many", None)
        if not self.opened.done():
            self.opened.set_result(None)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where asyncio reads to, behind what came before and is not done with."""
        if not self._room:
            self._room = memoryview(bytearray(READ_SIZES[0]))
        return self._room[self._left :] if self._left else self._room

    def buffer_updated(self, nbytes: int) -> None:
        if self._closing:
            self._ignore(nbytes)
            return
        room, many = self._room, self._many
        size = self._left + nbytes
        if many is None:
            self.data_received(bytes(room[:size]))
        else:
            self.bytes_in += nbytes
            done = many(room[:size], nbytes)
            self._left = size - done
            if self._left and done:
                room[: self._left] = room[done:size]
        if size == len(room) and (size < self._most[self._left > 0] or self._left == size):
            # There may be more. Most links never need so much; and who makes objects of all
            # that came, and leaves nothing, is better off with less at a time.
            most = max(self._most[1], 2 * self._left)
            larger = min(next((one for one in READ_SIZES if one > size), most), most)
            self._room = memoryview(bytearray(larger))
            self._room[: self._left] = room[: self._left]

    def _ignore(self, nbytes: int) -> None:
        """What comes after the end."""
        self.bytes_in += nbytes
        self._ignored += nbytes
        if self._ignored >= LINGER_READ and self._transport is not None:
            self._transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        """The same, for who wants bytes."""
        self.bytes_in += len(data)
        if self._receiver is not None and not self._closing:
            self._receiver.received(data)

    def deliver(self, data: bytes) -> None:
        """Hand bytes to the receiver, unless the link was closed meanwhile."""
        if self._receiver is not None and not self._closing:
            self._receiver.received(data)

    def eof_received(self) -> None:
        # asyncio would close too, but wait for ever on a peer that reads no more.
        self.close()

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        if self._receiver is not None and not self._closing:
            self._receiver.drained()

    def connection_lost(self, exc: Exception | None) -> None:
        try:
            if isinstance(exc, OSError) and not self._closing:
                self._hear_out()
        finally:
            self._lost(exc)

    def _hear_out(self) -> None:
        """What had come before a write failed: asyncio does not read it any more."""
        transport = self._transport
        if transport is None or transport.get_extra_info("ssl_object") is not None:
            return
        file = transport.get_extra_info("socket").fileno()
        with contextlib.suppress(OSError):
            while not self._closing and (size := os.readv(file, [self.get_buffer(-1)])):
                self.buffer_updated(size)

    def _lost(self, exc: Exception | None) -> None:
        if exc is not None and not self._closing and self._error is None:
            self._error = link_error(shown(self.endpoint), f"link to {self.dst}", exc)
        self._closing = True
        if self._ending is not None:
            self._ending.cancel()
        # asyncio's transport must not be touched any more.
        self._transport = None
        # Nor is anything kept that has this link: it is freed when nobody has it any more.
        receiver, self._receiver, self._many = self._receiver, None, None
        if receiver is not None:
            receiver.closed(self._error)
        elif not self.opened.done():
            gone = LinkError(shown(self.endpoint), "the other side closed before the link stood")
            self.opened.set_exception(self._error or gone)

    @property
    def transport(self) -> asyncio.Transport:
        """What asyncio knows of the connection."""
        assert self._transport is not None
        return self._transport


Many = Callable[[memoryview, int], int]
"""See `Receiver.received_many`."""

Wrap = Callable[[Attach], StreamLink]
"""Makes the link of one connection."""


@dataclass(slots=True)
class StreamListener(Listener):
    """Accepts connections for as long as it is open, whatever happens to one of them."""

    sock: socket.socket = field(kw_only=True)
    attach: Attach = field(kw_only=True)
    wrap: Wrap = field(kw_only=True)
    tls: ssl.SSLContext | None = None
    handshake_timeout: float | None = None
    _pending: dict[asyncio.Task[None], float] = field(default_factory=dict)
    _accepting: asyncio.Task[None] | None = None
    _over: bool = False

    @abstractmethod
    def prepare(self, sock: socket.socket) -> None:
        """Set options on a connection that was accepted. May raise OSError."""

    def start(self) -> None:
        """Accept from now on."""
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    async def close(self) -> None:
        self._over = True
        # A loop that would accept for a task that is cancelled meanwhile loses the connection.
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().remove_reader(self.sock)
        # What was accepted just now gets a task, and that must start, or nobody closes its socket.
        for _ in range(2):
            await asyncio.sleep(0)
        tasks = [*self._pending]
        if self._accepting is not None:
            tasks.append(self._accepting)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self.sock.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._over:
            try:
                sock, _ = await loop.sock_accept(self.sock)
            except OSError as e:
                # Out of files or memory, or a client that gave up: the listener must survive.
                self.counters.errors += 1
                self.last_error = link_error(shown(self.endpoint), "accepting", e)
                if e.errno in EXHAUSTED:
                    await self._make_room()
                elif e.errno != errno.ECONNABORTED:
                    await asyncio.sleep(ACCEPT_PAUSE)
                continue
            owned(sock).setblocking(False)
            if len(self._pending) >= HANDSHAKES_MAX:
                self._evict()
            task = loop.create_task(self._connect(sock))
            self._pending[task] = loop.time()
            task.add_done_callback(self._settled)
            # A flood must not keep everyone else from running.
            await asyncio.sleep(0)

    def _evict(self) -> None:
        """Cancel the oldest handshake of TLS or WebSocket."""
        self.counters.evicted += 1
        oldest = next(iter(self._pending))
        del self._pending[oldest]
        oldest.cancel()

    async def _make_room(self) -> None:
        """Free a file as soon as a connection waits, or pause if there is none to free."""
        if await awaited(self.sock):
            if spare_file(self.sock):
                return
            if self._relieved():
                for _ in range(CLOSING_TURNS):
                    await asyncio.sleep(0)
                return
        await asyncio.sleep(ACCEPT_PAUSE)

    def _relieved(self) -> bool:
        """End a handshake, here or above. Whether there was one that had its time."""
        now = asyncio.get_running_loop().time()
        if self._pending and now - next(iter(self._pending.values())) >= GRACE:
            self._evict()
            return True
        return self.relieve is not None and self.relieve()

    def _settled(self, task: asyncio.Task[None]) -> None:
        self._pending.pop(task, None)

    async def _connect(self, sock: socket.socket) -> None:
        """One connection, from accepted to attached."""
        try:
            try:
                self.prepare(sock)
            except OSError:
                sock.close()
                raise
            async with asyncio.timeout(self.handshake_timeout):
                await carry(self.wrap(self._attach), sock, self.tls)
        except (OSError, LinkError) as e:
            self.counters.failed += 1
            self.last_error = link_error(shown(self.endpoint), "accepting", e)

    def _attach(self, link: Link) -> Receiver:
        self.counters.accepted += 1
        return self.attach(link)


async def carry(
    link: StreamLink,
    sock: socket.socket,
    tls: ssl.SSLContext | None = None,
    server_name: str | None = None,
) -> None:
    """Run a link over a connected socket until it is attached. Raises OSError or LinkError.

    With a server name this side is the client of TLS. The socket is the link's from now on.
    """
    loop = asyncio.get_running_loop()
    try:
        if server_name is None:
            await loop.connect_accepted_socket(lambda: link, sock, ssl=tls)
        else:
            await loop.create_connection(
                lambda: link, sock=sock, ssl=tls, server_hostname=server_name
            )
        await link.opened
    except BaseException:
        link.opened.cancel()
        link.abort()
        raise
