"""QoSLink: QoS, and which priorities or which reliability this link is meant for.

It takes the place of QoS where the endpoint of one side says so. An acceptor may narrow what it
was offered, and the connector takes that over; what contradicts each other is refused.
"""

from __future__ import annotations

from zenwire.transport.extensions.base import Extension, Fields, Negotiation
from zenwire.transport.refused import RefusedError
from zenwire.transport.settings import LinkFacts
from zenwire.wire.transport import InitAck, InitSyn, OpenSyn
from zenwire.wire.values import CloseReason, QoSLink

__all__ = ["QosLink"]


class QosLink(Extension):
    """Metadata of both sides, put together."""

    name = "qoslink"

    def offer(self, n: Negotiation) -> Fields:
        return {"qos_link": _own(n)} if n.settings.qos and _meant(n.link) else {}

    def accept(self, n: Negotiation, syn: InitSyn) -> Fields:
        offered = syn.qos_link or (QoSLink() if syn.qos else None)
        own = _own(n)
        if not n.settings.qos or offered is None or not _on(offered):
            return {}
        both = _both(own, offered)
        if syn.qos_link is None and not _meant(n.link):
            return {}  # plain QoS on both sides has its own file
        n.notes[self.name] = int(both).to_bytes(8, "little")
        return {"qos_link": both} if _says(both) else {"qos": True}

    def confirm(self, n: Negotiation, ack: InitAck) -> Fields:
        answer = ack.qos_link or (QoSLink() if ack.qos and _meant(n.link) else None)
        if n.settings.qos and answer is not None and _on(answer):
            _agree(n, _both(_own(n), answer))
        return {}

    def admit(self, n: Negotiation, syn: OpenSyn) -> Fields:
        if note := n.notes.get(self.name):
            _agree(n, QoSLink.parse(int.from_bytes(note, "little")))
        return {}


def _meant(link: LinkFacts) -> bool:
    """Whether it is for some messages only."""
    return link.priorities is not None or link.only is not None


def _own(n: Negotiation) -> QoSLink:
    return QoSLink(not _meant(n.link), n.link.priorities, n.link.only)


def _says(link: QoSLink) -> bool:
    return link.priorities is not None or link.reliable is not None


def _on(link: QoSLink) -> bool:
    """QoS itself: the bit that says it is set only if there is nothing else to say."""
    return link.qos or _says(link)


def _agree(n: Negotiation, link: QoSLink) -> None:
    n.agreed.qos = True
    n.agreed.priorities = link.priorities
    n.agreed.only = link.reliable


def _both(own: QoSLink, other: QoSLink) -> QoSLink:
    priorities = own.priorities if other.priorities is None else other.priorities
    if own.priorities is not None and priorities is not None:
        (low, high), (start, end) = own.priorities, priorities
        if not low <= start <= end <= high:
            raise RefusedError(CloseReason.GENERIC, "the link is meant for other priorities")
    reliable = own.reliable if other.reliable is None else other.reliable
    if own.reliable not in (None, reliable):
        raise RefusedError(CloseReason.GENERIC, "the link is meant for another reliability")
    return QoSLink(priorities is None and reliable is None, priorities, reliable)
