"""Which links and sessions give way when a node has no seat, or its process no file, to spare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zenwire.links.exhaustion import GRACE
from zenwire.transport import Role

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zenwire.node.carrier import Carrier
    from zenwire.node.neighbour import Neighbour
    from zenwire.transport import Unicast

__all__ = ["GRACE", "most_silent", "oldest_handshake", "shaking"]

SILENT: Final = 0.5
"""Parts of the own lease after which a silent session may lose its place; half of that is usual."""


def shaking(machine: Unicast) -> bool:
    """Whether the handshake of an accepted link is under way."""
    return machine.role is Role.ACCEPTOR and machine.session is None and not machine.closed


def oldest_handshake(carriers: Iterable[Carrier]) -> Carrier | None:
    """The first accepted link with a file of its own whose handshake is under way."""
    return next((one for one in carriers if one.link.has_file and shaking(one.machine)), None)


def most_silent(neighbours: Iterable[Neighbour], lease: float, now: float) -> Neighbour | None:
    """Return the longest-silent session; None if every session sent something lately.

    Sessions that never sent a message go first. Those that this node dialled stay, and so do those
    whose link it does not read at the moment.
    """
    silent = [
        neighbour
        for neighbour in neighbours
        if now - neighbour.session.heard > lease * SILENT
        and all(link.role is Role.ACCEPTOR for link in neighbour.session.links)
        and not any(carrier.behind for carrier in neighbour.carriers)
    ]
    return min(silent, key=lambda one: (one.session.talked, one.session.heard), default=None)
