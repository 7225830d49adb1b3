"""A neighbour between whom and this node not everything passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zenwire.node.config.interceptors import Flow
from zenwire.node.filters.gate import Gate
from zenwire.node.filters.party import Party
from zenwire.node.neighbour import Neighbour
from zenwire.transport import Packed
from zenwire.wire.batch import decode_batch
from zenwire.wire.objects import encode
from zenwire.wire.transport import Frame

if TYPE_CHECKING:
    from zenwire.links import Link
    from zenwire.node.neighbour import Waiting
    from zenwire.node.node import Node
    from zenwire.routing import Face
    from zenwire.transport import Session
    from zenwire.wire.network import NetworkMessage

__all__ = ["Guarded", "meet"]

_FRAME: Final = encode(Frame(sn=0))


class Guarded(Neighbour):
    """One for whom messages pass a gate first, also those that are encoded already."""

    __slots__ = ("_gate",)

    direct = False

    def guard(self, gate: Gate) -> None:
        """Let what goes out pass it from now on."""
        self._gate = gate

    def send(self, message: NetworkMessage | Packed, reliable: bool) -> Waiting | None:
        if type(message) is Packed:
            return self._send_packed(message, reliable)
        passed = self._gate(message, reliable, self._time())  # type: ignore[arg-type] # is none
        return None if passed is None else super().send(passed, reliable)

    def _send_packed(self, packed: Packed, reliable: bool) -> Waiting | None:
        """One by one. What has no room waits in order, so the last one is the one to wait for."""
        last: Waiting | None = None
        lost: list[int] = []
        # Network messages are read after a FRAME.
        _, *messages = decode_batch(_FRAME + bytes(packed.data))
        for at, message in enumerate(messages):
            passed = self._gate(message, reliable, self._time())  # type: ignore[arg-type] # made here
            if passed is None:
                lost.append(at)
            else:
                last = super().send(passed, reliable) or last
        packed.refused = tuple(lost)
        return last


def meet(node: Node, session: Session, face: Face, link: Link) -> Neighbour:
    """A neighbour that has come by a link, with the filters that are for it."""
    waits = node.settings.wait_before_drop, node.settings.wait_before_close
    if node.filters is None:
        return Neighbour(session, face, *waits)
    party = _party(session, link)
    ingress = node.filters.steps(party, Flow.INGRESS)
    egress = node.filters.steps(party, Flow.EGRESS)
    neighbour = (Guarded if egress else Neighbour)(session, face, *waits)
    filtered, length = neighbour.filtered, node.tables.state.limits.key_length
    tables = node.tables
    if ingress:

        def to_them(message: NetworkMessage) -> None:
            tables.state.send(face, message)

        node.ingress[face] = Gate(
            Flow.INGRESS, ingress, face, answer=to_them, filtered=filtered, key_length=length
        )
    if isinstance(neighbour, Guarded):

        def for_them(message: NetworkMessage) -> None:
            tables.receive(face, message, node.now)

        neighbour.guard(
            Gate(Flow.EGRESS, egress, face, answer=for_them, filtered=filtered, key_length=length)
        )
    return neighbour


def _party(session: Session, link: Link) -> Party:
    peer, facts = session.peer, link.facts
    username: str | None = None
    if peer.user is not None:
        try:
            username = peer.user.decode()
        except UnicodeDecodeError:
            # No configuration can name it.
            username = None
    return Party(
        zid=peer.zid,
        username=username,
        common_names=() if facts.common_name is None else (facts.common_name,),
        interfaces=link.interfaces,
        protocols=(link.endpoint.protocol,),
    )
