"""Patch: small additions to the protocol. Patch 1 marks the first fragment, and giving up."""

from __future__ import annotations

from zenwire.transport.extensions.base import Extension, Fields, Negotiation
from zenwire.transport.refused import RefusedError
from zenwire.wire.transport import InitAck, InitSyn, OpenSyn
from zenwire.wire.values import CloseReason

__all__ = ["Patch"]


class Patch(Extension):
    """The lower of both; 0 says the same as absence."""

    name = "patch"

    def offer(self, n: Negotiation) -> Fields:
        return {"patch": n.settings.patch}

    def accept(self, n: Negotiation, syn: InitSyn) -> Fields:
        patch = min(n.settings.patch, syn.patch)
        n.notes[self.name] = bytes([patch]) if patch else b""
        return {"patch": patch}

    def confirm(self, n: Negotiation, ack: InitAck) -> Fields:
        if ack.patch > n.settings.patch:
            raise RefusedError(CloseReason.GENERIC, f"patch {ack.patch} is above what was offered")
        n.agreed.patch = ack.patch
        return {}

    def admit(self, n: Negotiation, syn: OpenSyn) -> Fields:
        n.agreed.patch = int.from_bytes(n.notes.get(self.name, b""), "little")
        return {}
