"""A listener of a process that has no file to spare for the connection that waits."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from typing import Final

__all__ = ["EXHAUSTED", "GRACE", "awaited", "spare_file"]

EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE})
"""Errors of accept(2) that go away when a link ends."""
GRACE: Final = 0.1
"""Seconds that a handshake has before it may be ended for its file: an honest one needs a few round
trips."""


async def awaited(sock: socket.socket) -> bool:
    """Wait until a connection waits to be accepted. False if this loop cannot tell."""
    # accept(2) fails for want of a file also while there is no connection.
    loop = asyncio.get_running_loop()
    waits: asyncio.Future[None] = loop.create_future()

    def readable() -> None:
        if not waits.done():
            waits.set_result(None)

    try:
        loop.add_reader(sock, readable)
    except NotImplementedError:
        return False
    try:
        await waits
    finally:
        loop.remove_reader(sock)
    return True


def spare_file(sock: socket.socket) -> bool:
    """Whether the process can open a file, as it can if one was closed meanwhile."""
    try:
        os.close(os.dup(sock.fileno()))
    except OSError:
        return False
    return True
