"""Messages that are encoded already, back to back: what whole tables are sent as."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zenwire.wire.buffer import Buffer
    from zenwire.wire.values import QoS

__all__ = ["Packed", "count_of"]


class Packed:
    """Network messages with the same QoS that fit one batch. They are sent, or lost, together.

    ``lost`` is set by whoever drops them, and has counted each of them; ``refused`` are the places
    of those among them that a filter did not let pass.
    """

    __slots__ = ("count", "data", "lost", "qos", "refused")

    def __init__(self, data: Buffer, count: int, qos: QoS) -> None:
        self.data = data
        self.count = count
        self.qos = qos
        self.lost = False
        self.refused: tuple[int, ...] = ()


def count_of(message: object) -> int:
    """How many messages it is."""
    return message.count if type(message) is Packed else 1
