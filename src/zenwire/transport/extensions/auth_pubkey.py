"""Authentication by public key (RSA): each side proves that it holds the key it shows."""

from __future__ import annotations

from zenwire.transport.extensions.base import Extension, Fields, Negotiation
from zenwire.transport.extensions.challenge import answer, ask, check, read_key, write_key
from zenwire.transport.refused import RefusedError
from zenwire.transport.rsa import PublicKey
from zenwire.wire.transport import InitAck, InitSyn, OpenAck, OpenSyn
from zenwire.wire.values import CloseReason

__all__ = ["AuthPubkey"]


class AuthPubkey(Extension):
    """Whoever has a private key demands it of the other side."""

    name = "auth_pubkey"

    def offer(self, n: Negotiation) -> Fields:
        own = n.settings.private_key
        return {} if own is None else {"auth": {"public_key": write_key(own.public)}}

    def accept(self, n: Negotiation, syn: InitSyn) -> Fields:
        own = n.settings.private_key
        if own is None:
            return {}
        if syn.auth is None or syn.auth.public_key is None:
            raise RefusedError(CloseReason.GENERIC, "a public key is needed here")
        other = read_key(syn.auth.public_key)
        _check_known(n, other)
        challenge, n.notes[self.name] = ask(n, own, other)
        return {"auth": {"public_key": challenge}}

    def confirm(self, n: Negotiation, ack: InitAck) -> Fields:
        own = n.settings.private_key
        if own is None:
            return {}
        if ack.auth is None or ack.auth.public_key is None:
            raise RefusedError(CloseReason.GENERIC, "the acceptor shows no public key")
        proof, other = answer(n, own, ack.auth.public_key)
        _check_known(n, other)
        return {"auth": {"public_key": proof}}

    def admit(self, n: Negotiation, syn: OpenSyn) -> Fields:
        own = n.settings.private_key
        if own is None:
            return {}
        proof = None if syn.auth is None else syn.auth.public_key
        check(n, own, proof, n.notes.get(self.name, b""))
        return {"auth": {"public_key": True}}

    def conclude(self, n: Negotiation, ack: OpenAck) -> None:
        if n.settings.private_key is not None and not (ack.auth and ack.auth.public_key):
            raise RefusedError(CloseReason.GENERIC, "the acceptor did not confirm our key")


def _check_known(n: Negotiation, key: PublicKey) -> None:
    if n.settings.known_keys is not None and key not in n.settings.known_keys:
        raise RefusedError(CloseReason.GENERIC, "an unknown public key")
