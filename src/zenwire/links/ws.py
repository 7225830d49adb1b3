"""ws/host:port: each batch is one binary message of a WebSocket.

The protocol itself is that of the package ``websockets``, without its sockets. No pings are
sent: zenoh closes a link on which one comes.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final

from zenwire.links import tcp
from zenwire.links.base import BATCH_MAX, Attach, Link, Listener
from zenwire.links.endpoint import options_of, shown
from zenwire.links.errors import LinkError, link_error
from zenwire.links.stream import StreamLink, carry
from zenwire.wire.locator import EndPoint

if TYPE_CHECKING:
    from websockets.client import ClientProtocol
    from websockets.server import ServerProtocol

__all__ = ["HANDSHAKE_TIMEOUT", "WsLink", "connect", "listen"]

HANDSHAKE_TIMEOUT: Final = 10.0
"""Seconds for the upgrade from HTTP."""
_UNSUPPORTED_DATA: Final = 1003
"""The close code for a kind of message that is not taken (RFC 6455, 7.4.1)."""

_SILENT: Final = logging.Logger("zenwire.links.ws", logging.CRITICAL)  # noqa: LOG001 # not for the tree
"""What goes wrong is counted and told by the link; websockets would log it as well."""


class WsLink(StreamLink):
    """A WebSocket on top of a stream. Attached once the upgrade is done."""

    def __init__(
        self, endpoint: EndPoint, attach: Attach, protocol: ClientProtocol | ServerProtocol
    ) -> None:
        super().__init__(endpoint, attach, _describe)
        self._ws = protocol
        self._upgraded = False
        self._parts: list[bytes] = []

    # Link.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or not self._upgraded:
            return
        if len(data) > self.facts.mtu:
            reason = f"{len(data)} bytes are more than a message may have, {self.facts.mtu}"
            raise LinkError(shown(self.endpoint), reason, "negotiate a smaller batch size")
        self.bytes_out += len(data)
        self._ws.send_binary(data)
        self._flush()

    def close(self) -> None:
        self._say_close()
        super().close()

    def part(self) -> None:
        self._say_close()
        super().part()

    def _say_close(self) -> None:
        if not self._closing and self._upgraded and self._ws.state.name == "OPEN":
            self._ws.send_close()
            self._flush()

    # asyncio.Protocol.

    def ready(self) -> None:
        """The connection stands, the upgrade begins."""
        self._begin()
        self._flush()

    def data_received(self, data: bytes) -> None:
        self._ws.receive_data(data)
        for event in self._ws.events_received():
            if self._closing:
                break
            if self._upgraded:
                self._frame(event)
            else:
                self._upgrade(event)
        self._flush()
        failure = self._ws.parser_exc or self._ws.handshake_exc
        if failure is not None and not self._closing:
            self._fail(str(failure))

    def eof_received(self) -> None:
        self._ws.receive_eof()
        super().eof_received()

    @abstractmethod
    def _begin(self) -> None:
        """A client asks, a server waits."""

    @abstractmethod
    def _answer(self, event: Any) -> None:  # a Request or a Response, of websockets
        """A server answers, a client has its answer."""

    def _upgrade(self, event: Any) -> None:
        self._answer(event)
        self._flush()
        if self._ws.handshake_exc is None:
            self._upgraded = True
            super().ready()
        else:
            self._fail(f"the upgrade to a WebSocket failed ({self._ws.handshake_exc})")

    def _frame(self, frame: Any) -> None:  # a Frame, of websockets
        kind = frame.opcode.name
        if kind in {"BINARY", "CONT"}:
            # Empty parts are free for the sender, and must cost nothing here.
            if frame.data:
                self._parts.append(bytes(frame.data))
            if frame.fin:
                batch, self._parts = b"".join(self._parts), []
                self.bytes_in += len(batch)
                self.deliver(batch)
        elif kind == "TEXT":
            self._ws.fail(_UNSUPPORTED_DATA, "binary messages only")
            self._fail("the other side sent text; Zenoh has binary messages only")
        elif kind == "PING" and not self.writable:
            self._fail("the other side sends pings and does not read the answers")
        elif kind == "CLOSE":
            self._flush()
            super().close()

    def _fail(self, reason: str) -> None:
        self._error = self._error or LinkError(shown(self.endpoint), reason)
        self._flush()
        super().close()

    def _flush(self) -> None:
        # An empty piece stands for the end of the stream, which close() brings.
        for data in filter(None, self._ws.data_to_send()):
            self.transport.write(data)


class _Client(WsLink):
    _ws: ClientProtocol

    def _begin(self) -> None:
        self._ws.send_request(self._ws.connect())

    def _answer(self, event: Any) -> None:
        pass


class _Server(WsLink):
    _ws: ServerProtocol

    def _begin(self) -> None:
        pass

    def _answer(self, event: Any) -> None:
        self._ws.send_response(self._ws.accept(event))


async def connect(endpoint: EndPoint, attach: Attach) -> Link:
    """Connect and upgrade. Raises LinkError."""
    client, uri = _package(endpoint, "client"), _package(endpoint, "uri")
    protocol = client.ClientProtocol(
        uri.parse_uri(f"ws://{endpoint.address}/"), max_size=BATCH_MAX, logger=_SILENT
    )
    sock = await tcp.dial(endpoint, options_of(endpoint))
    link = _Client(endpoint, attach, protocol)
    try:
        async with asyncio.timeout(HANDSHAKE_TIMEOUT):
            await carry(link, sock)
    except OSError as e:
        raise link_error(shown(endpoint), "WebSocket handshake", e) from e
    return link


async def listen(endpoint: EndPoint, attach: Attach) -> Listener:
    """Listen for WebSockets, on any path. Raises LinkError."""
    server = _package(endpoint, "server")
    return await tcp.start_listener(
        endpoint,
        attach,
        lambda attach: _Server(
            endpoint, attach, server.ServerProtocol(max_size=BATCH_MAX, logger=_SILENT)
        ),
        handshake_timeout=HANDSHAKE_TIMEOUT,
    )


def _describe(link: StreamLink) -> None:
    tcp.describe(link, streamed=False, mtu=BATCH_MAX)


def _package(endpoint: EndPoint, module: str) -> Any:  # a module of websockets
    try:
        return importlib.import_module(f"websockets.{module}")
    except ImportError:
        reason = "ws needs the package websockets, which is not installed"
        raise LinkError(shown(endpoint), reason, "pip install 'zenwire[ws]'") from None
