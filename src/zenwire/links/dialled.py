"""A link that was dialled, from its first words until asyncio has its socket.

A handshake is a few words. They are read and written here, so that a session stands before a
transport of asyncio is made for it: that takes about as long as the handshake. And who answers
at once is heard at once: to fall asleep and be woken takes longer than such an answer.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable
from typing import Final

from zenwire.links.base import Attach, Facts
from zenwire.links.endpoint import shown
from zenwire.links.errors import LinkError, link_error
from zenwire.links.interfaces import names_of
from zenwire.links.sockets import SockAddr, ip_of, locator_of, stream_mtu
from zenwire.links.stream import StreamLink, carry
from zenwire.wire.locator import EndPoint, Locator

__all__ = ["Dialled"]

_AT_ONCE: Final = 500e-6
"""Seconds for an answer, in which nothing else is done."""
_IN_ALL: Final = 2e-3
"""Seconds for all of them: nobody holds up the others by talking on and on."""
_WORDS: Final = 4096
"""Bytes that a message of a handshake hardly ever has."""


class Dialled(StreamLink):
    """Until `handed_over`, the socket is this link's own."""

    def __init__(self, endpoint: EndPoint, attach: Attach) -> None:
        super().__init__(endpoint, attach, _described)
        self._loop = asyncio.get_running_loop()
        self._places: tuple[SockAddr, SockAddr] | None = None
        self._sock: socket.socket | None = None
        """As long as no transport has it."""
        self._own = False
        """It reads without a transport, and gets one in its own time."""
        self._reads = False
        """The loop calls when there is something to read."""
        self._paused = False
        self._unsent = b""
        self._ends: Callable[[], None] | None = None
        """What is to be done when all is sent, if it is to end."""
        self._handing: asyncio.Handle | asyncio.Task[None] | None = None
        """What gives it to a transport, in a moment or already."""

    def begin(self, sock: socket.socket) -> None:
        """Over a socket that is connected. Raises OSError when the other side is gone."""
        try:
            self._places = src, _ = sock.getsockname(), sock.getpeername()
            self.facts = Facts(streamed=True, reliable=True, mtu=stream_mtu(sock, src))
            self._sock = sock
            del self.src, self.dst
            super().ready()
        except BaseException:
            self._sock = None
            sock.close()
            raise

    def read(self) -> None:
        """Hear what is said, without a transport. It is made when the session stands."""
        self._own = True
        if self._unsent:
            self._hand_over()
        self._hear_at_once()
        self._read_on()

    def _hear_at_once(self) -> None:
        now = time.monotonic()
        ends, last = now + _AT_ONCE, now + _IN_ALL
        while (now := time.monotonic()) < min(ends, last):
            if self._sock is None or self._paused or self._handing is not None:
                return
            if self._readable():
                ends = now + _AT_ONCE
            else:
                # Who is to answer may be waiting for this very processor.
                os.sched_yield()

    def _read_on(self) -> None:
        if self._sock is None or self._handing is not None:
            return
        if not self._reads and not self._paused:
            self._reads = True
            self._loop.add_reader(self._sock, self._readable)

    def __getattr__(self, name: str) -> Locator:
        """Addresses are put into words when they are asked for: of most links that is never."""
        # Not as an attribute: if that were missing, it would be looked for here without end.
        places = self.__dict__.get("_places")
        if places is None or name not in {"src", "dst"}:
            raise AttributeError(name)
        self.src, self.dst = (locator_of(self.endpoint.protocol, one) for one in places)
        return self.src if name == "src" else self.dst

    @property
    def interfaces(self) -> tuple[str, ...]:
        return () if self._places is None else names_of(ip_of(self._places[0]))

    # Before there is a transport.

    def _readable(self) -> bool:
        """Whether there was something to read."""
        assert self._sock is not None
        try:
            data = self._sock.recv(_WORDS)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as e:
            self.abort(link_error(shown(self.endpoint), f"link to {self.dst}", e))
            return True
        if data:
            self.data_received(data)
        else:
            self.close()
        return True

    def write_early(self, data: bytes | bytearray | memoryview) -> None:
        if self._sock is None or self._closing or self._ends is not None:
            return
        self.bytes_out += len(data)
        try:
            sent = 0 if self._unsent else self._sock.send(data)
        except OSError:
            sent = 0  # what is wrong with it, reading will tell
        if sent < len(data):
            self._unsent += data[sent:]
            self.writable = False
            self._hand_over()  # it can wait for room

    def pause(self) -> None:
        self._paused = True
        if self._transport is None:
            self._read_no_more()
        else:
            super().pause()

    def resume(self) -> None:
        self._paused = False
        if self._transport is not None:
            super().resume()
        else:
            self._read_on()

    def close(self) -> None:
        self._end(super().close)

    def part(self) -> None:
        self._end(super().part)

    def _end(self, how: Callable[[], None]) -> None:
        if self._sock is None:
            how()
        elif self._unsent or self._handing is not None:
            self._ends = how
        else:
            self.abort()

    def abort(self, error: LinkError | None = None) -> None:
        super().abort(error)
        if self._handing is None:
            self._let_go()

    def _read_no_more(self) -> None:
        if self._reads and self._sock is not None:
            self._reads = False
            self._loop.remove_reader(self._sock)

    def _let_go(self) -> None:
        """The end of one that has no transport."""
        self._read_no_more()
        sock, self._sock = self._sock, None
        if sock is not None and self._transport is None:
            sock.close()
            self._loop.call_soon(self.connection_lost, None)

    # The transport.

    def established(self) -> None:
        self._hand_over()

    def _hand_over(self) -> None:
        """In a moment: whoever has just got a session goes first."""
        if self._own and self._sock is not None and self._handing is None:
            self._handing = self._loop.call_soon(self._begin_handing)

    def _begin_handing(self) -> None:
        self._handing = None
        if self._closing:
            self._let_go()
        else:
            self._handing = self._loop.create_task(self._in_background())

    async def _in_background(self) -> None:
        try:
            await self.handed_over()
        except (OSError, LinkError) as e:
            self._error = self._error or link_error(shown(self.endpoint), "carrying on", e)
        finally:
            self._handing = None
            self._let_go()

    async def handed_over(self) -> None:
        """Make a transport that carries it from now on. Raises OSError and LinkError."""
        sock = self._sock
        if sock is not None:
            self._read_no_more()
            await carry(self, sock)

    def ready(self) -> None:
        """From now on asyncio sends and, in a moment, reads."""
        self._sock = None
        unsent, self._unsent = self._unsent, b""
        if self._paused:
            self.transport.pause_reading()
        if unsent:
            self.transport.write(unsent)
        if not self.writable and not self.unsent:
            self.resume_writing()
        if self._ends is not None:
            self._ends()


def _described(_link: StreamLink) -> None:
    """It is already."""
