"""connect and listen, for every protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from zenwire.links import memory, tcp, tls, udp, unixsock, ws
from zenwire.links.base import Attach, Link, Listener
from zenwire.links.endpoint import options_of, parse_endpoint, shown
from zenwire.links.errors import LinkError
from zenwire.wire.locator import EndPoint, Locator

__all__ = ["CONNECT_TIMEOUT", "connect", "listen"]

CONNECT_TIMEOUT: Final = 10.0
"""Seconds for everything: name, connection, handshake of TLS or WebSocket."""

_CONNECT: Final[dict[str, Callable[[EndPoint, Attach], Awaitable[Link]]]] = {
    "tls": tls.connect,
    "udp": udp.connect,
    "ws": ws.connect,
    "unixsock-stream": unixsock.connect,
    "memory": memory.connect,
}
_LISTEN: Final[dict[str, Callable[[EndPoint, Attach], Awaitable[Listener]]]] = {
    "tcp": tcp.listen,
    "tls": tls.listen,
    "udp": udp.listen,
    "ws": ws.listen,
    "unixsock-stream": unixsock.listen,
    "memory": memory.listen,
}


async def connect(
    endpoint: EndPoint | Locator | str,
    attach: Attach,
    *,
    timeout: float = CONNECT_TIMEOUT,  # noqa: ASYNC109 # it has an error of its own
) -> Link:
    """A link to where another node listens. Raises LinkError.

    ``attach`` is called with the link before anything is received, and returns who takes it.
    """
    wanted = _endpoint(endpoint)
    try:
        if wanted.protocol == "tcp":
            return await tcp.connect(wanted, attach, timeout)
        async with asyncio.timeout(timeout):
            return await _CONNECT[wanted.protocol](wanted, attach)
    except TimeoutError:
        reason = f"connecting took longer than {timeout:g} s"
        hint = "check the address and firewalls, or wait longer"
        raise LinkError(shown(wanted), reason, hint) from None


async def listen(endpoint: EndPoint | Locator | str, attach: Attach) -> Listener:
    """Let other nodes connect; ``attach`` is called with each link. Raises LinkError."""
    wanted = _endpoint(endpoint)
    return await _LISTEN[wanted.protocol](wanted, attach)


def _endpoint(given: EndPoint | Locator | str) -> EndPoint:
    """Text is checked to the letter; what comes from another node in what concerns us, later."""
    if isinstance(given, str):
        return parse_endpoint(given)
    if given.protocol not in _LISTEN:
        options_of(given)
    if isinstance(given, EndPoint):
        return given
    return EndPoint(given.protocol, given.address, given.metadata)
