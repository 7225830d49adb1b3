"""MultiLink: several links in one session.

The same proof as by public key, with a key that each process makes for itself: a second link
belongs to the session if it shows the key of the first.
"""

from __future__ import annotations

from zenwire.transport.extensions.base import Extension, Fields, Negotiation
from zenwire.transport.extensions.challenge import answer, ask, check, read_key, write_key
from zenwire.transport.rsa import PublicKey
from zenwire.wire.transport import InitAck, InitSyn, OpenAck, OpenSyn

__all__ = ["MultiLink"]


class MultiLink(Extension):
    """Both have more than one link to give, or the session has one."""

    name = "multilink"

    def offer(self, n: Negotiation) -> Fields:
        own = n.multilink_key
        return {} if own is None else {"multilink": write_key(own.public)}

    def accept(self, n: Negotiation, syn: InitSyn) -> Fields:
        own = n.multilink_key
        if own is None or syn.multilink is None:
            return {}
        other = read_key(syn.multilink)
        challenge, sealed = ask(n, own, other)
        n.notes[self.name] = sealed
        n.notes[f"{self.name}_n"] = other.modulus
        n.notes[f"{self.name}_e"] = other.exponent
        return {"multilink": challenge}

    def confirm(self, n: Negotiation, ack: InitAck) -> Fields:
        own = n.multilink_key
        if own is None or ack.multilink is None:
            return {}
        proof, n.agreed.multilink = answer(n, own, ack.multilink)
        return {"multilink": proof}

    def admit(self, n: Negotiation, syn: OpenSyn) -> Fields:
        own = n.multilink_key
        sealed = n.notes.get(self.name)
        if own is None or not sealed:
            return {}
        check(n, own, syn.multilink, sealed)
        n.agreed.multilink = PublicKey.parse(n.notes[f"{self.name}_n"], n.notes[f"{self.name}_e"])
        return {"multilink": True}

    def conclude(self, n: Negotiation, ack: OpenAck) -> None:
        if not ack.multilink:
            n.agreed.multilink = None
