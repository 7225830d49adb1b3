"""Ports that a test may listen on in a moment."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress

__all__ = ["free_port"]

_FIRST, _PORTS = 15_000, 15_000
"""Below those that systems give to whoever connects: one of these may be taken again at once."""


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """Nobody has it, and nobody gets it but who asks for this very one."""
    while True:
        # Not by `random`: tests that run at the same time may have set it to the same start.
        port = _FIRST + secrets.randbelow(_PORTS)
        with socket.socket(type=kind) as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
