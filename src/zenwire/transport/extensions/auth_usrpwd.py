"""Authentication by user and password: the connector proves that it knows the password.

The acceptor sends a nonce; the proof is the HMAC-SHA3-256 of the password, the nonce its key. The
acceptor proves nothing.
"""

from __future__ import annotations

import hmac

from zenwire.transport.extensions.base import Extension, Fields, Negotiation
from zenwire.transport.refused import RefusedError
from zenwire.wire.auth import UserPassword
from zenwire.wire.transport import InitAck, InitSyn, OpenAck, OpenSyn
from zenwire.wire.values import CloseReason

__all__ = ["AuthUsrpwd"]

_NONCE = 8


class AuthUsrpwd(Extension):
    """Whoever has users demands it of connectors; whoever has credentials, of acceptors."""

    name = "auth_usrpwd"

    def offer(self, n: Negotiation) -> Fields:
        return {} if n.settings.credentials is None else {"auth": {"user_password": True}}

    def accept(self, n: Negotiation, syn: InitSyn) -> Fields:
        if n.settings.users is None:
            return {}
        if syn.auth is None or not syn.auth.user_password:
            raise RefusedError(CloseReason.GENERIC, "user and password are needed here")
        n.notes[self.name] = nonce = n.random(_NONCE)
        return {"auth": {"user_password": int.from_bytes(nonce, "little")}}

    def confirm(self, n: Negotiation, ack: InitAck) -> Fields:
        if n.settings.credentials is None:
            return {}
        if ack.auth is None or ack.auth.user_password is None:
            raise RefusedError(
                CloseReason.GENERIC, "the acceptor does not ask for user and password"
            )
        nonce = ack.auth.user_password.to_bytes(_NONCE, "little")
        user, password = n.settings.credentials.user, n.settings.credentials.password
        return {"auth": {"user_password": UserPassword(user=user, tag=_tag(nonce, password))}}

    def admit(self, n: Negotiation, syn: OpenSyn) -> Fields:
        if n.settings.users is None:
            return {}
        proof = None if syn.auth is None else syn.auth.user_password
        nonce = n.notes.get(self.name)
        if proof is None or not nonce:
            raise RefusedError(CloseReason.GENERIC, "user and password are needed here")
        password = n.settings.users.get(proof.user)
        # An unknown user takes as long as a wrong password, and is told the same.
        expected = _tag(nonce, b"" if password is None else password)
        if not hmac.compare_digest(expected, proof.tag) or password is None:
            raise RefusedError(CloseReason.GENERIC, "user or password is wrong")
        n.agreed.user = proof.user
        return {"auth": {"user_password": True}}

    def conclude(self, n: Negotiation, ack: OpenAck) -> None:
        if n.settings.credentials is not None and not (ack.auth and ack.auth.user_password):
            raise RefusedError(
                CloseReason.GENERIC, "the acceptor did not confirm user and password"
            )


def _tag(nonce: bytes, password: bytes) -> bytes:
    return hmac.digest(nonce, password, "sha3_256")
