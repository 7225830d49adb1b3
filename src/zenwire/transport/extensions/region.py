"""RegionName and RemoteBound: what routers with gateways tell each other. Here they are reported."""

from __future__ import annotations

from zenwire.transport.extensions.base import Extension, Fields, Negotiation
from zenwire.transport.refused import RefusedError
from zenwire.wire.transport import InitAck, InitSyn, OpenAck, OpenSyn
from zenwire.wire.values import CloseReason, WhatAmI

__all__ = ["Region"]

_NORTH, _SOUTH = 0, 1


class Region(Extension):
    """A name is offered if there is one, and answered if one was offered. A bound is never sent."""

    name = "region"

    def offer(self, n: Negotiation) -> Fields:
        return {"region_name": n.settings.region_name}

    def accept(self, n: Negotiation, syn: InitSyn) -> Fields:
        if syn.region_name is None:
            return {}
        n.notes[self.name] = syn.region_name.encode()
        return {"region_name": n.settings.region_name}

    def confirm(self, n: Negotiation, ack: InitAck) -> Fields:
        n.agreed.region_name = ack.region_name
        return {}

    def admit(self, n: Negotiation, syn: OpenSyn) -> Fields:
        if note := n.notes.get(self.name):
            n.agreed.region_name = note.decode()
        n.agreed.remote_bound = _bound(syn.remote_bound)
        return {}

    def conclude(self, n: Negotiation, ack: OpenAck) -> None:
        n.agreed.remote_bound = bound = _bound(ack.remote_bound)
        if bound == _NORTH and n.settings.whatami is WhatAmI.CLIENT:
            raise RefusedError(CloseReason.GENERIC, "a client is never bound to the north")


def _bound(value: int | None) -> int | None:
    if value not in (None, _NORTH, _SOUTH):
        raise RefusedError(CloseReason.GENERIC, f"remote bound {value} is none")
    return value
