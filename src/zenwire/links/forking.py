"""The sockets of this process, which a forked child lets go of.

It would read what is for its parent, and keep connections open when that has closed them.
"""

from __future__ import annotations

import contextlib
import os
import socket
from weakref import WeakSet

__all__ = ["owned"]

_owned: WeakSet[socket.socket] = WeakSet()


def owned(sock: socket.socket) -> socket.socket:
    """The same socket: it belongs to this process alone."""
    _owned.add(sock)
    return sock


def _forked() -> None:
    """In the child, each is nowhere; its number stays taken, for those who still have it."""
    left = [sock for sock in _owned if sock.fileno() >= 0]
    _owned.clear()
    if left:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for sock in left:
            with contextlib.suppress(OSError):
                os.dup2(nowhere, sock.fileno(), inheritable=False)
        os.close(nowhere)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
