"""What all concerns of routing share: the faces, the limits, and where outputs go."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from zenwire.keyexpr import is_canonical
from zenwire.routing.outputs import CloseFace, Event, Output, Send, send_of
from zenwire.wire.values import CloseReason, CongestionControl, Priority, QoS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zenwire.routing.faces import Face
    from zenwire.routing.limits import Counters, Limits
    from zenwire.wire.network import NetworkMessage
    from zenwire.wire.values import WireExpr, ZenohId

__all__ = ["AT_ONCE", "CONTROL", "NEVER", "State"]

AT_ONCE: Final = float("-inf")
NEVER: Final = float("inf")

CONTROL: Final = QoS.of(Priority.CONTROL, CongestionControl.BLOCK)
"""The QoS of declarations, interests and OAM, as the reference sends them."""


class State:
    """One node's faces, remote and local, and its outputs until they are taken."""

    __slots__ = (
        "_entity_id",
        "_face_id",
        "_resolved",
        "counters",
        "events",
        "faces",
        "generation",
        "limits",
        "outputs",
        "sooner",
        "zid",
    )

    def __init__(self, zid: ZenohId, limits: Limits, counters: Counters) -> None:
        self.zid = zid
        self.limits = limits
        self.counters = counters
        self.faces: dict[int, Face] = {}
        self.generation = 0
        """Changes whenever a cached route may be wrong."""
        self.sooner = NEVER
        """Since the deadline was asked for, it may have become this."""
        self.outputs: list[Send | CloseFace] = []
        """For neighbours."""
        self.events: deque[Event] = deque()
        """For sessions, and for the node: to be told when the others are on their way."""
        self._entity_id = 0
        self._face_id = 0
        self._resolved: tuple[Face | None, WireExpr | None, int, str] = (None, None, 0, "")

    def take(self) -> list[Output]:
        """The outputs since the last call."""
        taken: list[Output] = [*self.outputs, *self.events]
        self.outputs = []
        self.events.clear()
        return taken

    def send(self, face: Face, message: NetworkMessage, *, reliable: bool = True) -> None:
        self.outputs.append(send_of(face, message, reliable))

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def stale(self) -> None:
        """Routes that were found before must be found again."""
        self.generation += 1

    def violation(self, face: Face, why: str) -> None:
        """Ask for the end of a face that broke the protocol."""
        violations = self.counters.violations
        violations[why] = violations.get(why, 0) + 1
        self.outputs.append(CloseFace(face, CloseReason.INVALID, why))

    def remotes(self) -> Iterator[Face]:
        """All faces but the sessions of this node, oldest first."""
        return (face for face in self.faces.values() if not face.local)

    def next_face_id(self) -> int:
        """For faces: those who came first have the smaller ones."""
        self._face_id += 1
        return self._face_id

    def next_entity_id(self) -> int:
        """For what sessions declare and ask. Unique in this node."""
        self._entity_id += 1
        return self._entity_id

    def key_of(self, face: Face, expr: WireExpr) -> str | None:
        """The key that a face sent; None, and counted, if it is none."""
        # Mostly it is the one of the message before.
        who, what, generation, known = self._resolved
        if what is expr and who is face and generation == self.generation:
            return known
        key = face.aliases.resolve(expr)
        if key is None:
            self.counters.unknown_scope += 1
            return None
        if len(key) > self.limits.key_length or not is_canonical(key):
            self.counters.bad_key += 1
            return None
        self._resolved = face, expr, self.generation, key
        return key
