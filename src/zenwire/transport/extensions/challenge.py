"""The proof that both sides hold a private key, which AuthPubkey and MultiLink have in common.

The acceptor sends a nonce encrypted to the connector, who sends it back encrypted to the acceptor.
"""

from __future__ import annotations

import hmac

from zenwire.errors import DecodeError, EncodeError
from zenwire.transport.extensions.base import Negotiation
from zenwire.transport.refused import RefusedError
from zenwire.transport.rsa import PrivateKey, PublicKey
from zenwire.wire import auth
from zenwire.wire.values import CloseReason

__all__ = ["answer", "ask", "check", "read_key", "write_key"]

_NONCE = 8


def write_key(key: PublicKey) -> auth.PublicKey:
    """A key as the wire has it."""
    return auth.PublicKey(modulus=key.modulus, exponent=key.exponent)


def read_key(sent: auth.PublicKey | auth.PublicKeyAndNonce) -> PublicKey:
    """Their key, if it is within our limits."""
    try:
        return PublicKey.parse(sent.modulus, sent.exponent)
    except DecodeError as e:
        raise RefusedError(CloseReason.GENERIC, str(e)) from None


def ask(n: Negotiation, own: PrivateKey, other: PublicKey) -> tuple[auth.PublicKeyAndNonce, bytes]:
    """Acceptor: the challenge, and what to remember of it."""
    nonce = n.random(_NONCE)
    key = own.public
    sent = auth.PublicKeyAndNonce(
        modulus=key.modulus, exponent=key.exponent, nonce=other.encrypt(nonce, n.random)
    )
    return sent, n.seal(nonce)


def answer(
    n: Negotiation, own: PrivateKey, asked: auth.PublicKeyAndNonce
) -> tuple[auth.EncryptedNonce, PublicKey]:
    """Connector: the proof, and the acceptor's key."""
    other = read_key(asked)
    nonce = own.decrypt(asked.nonce)
    if nonce is None:
        raise RefusedError(CloseReason.GENERIC, "the challenge cannot be read with our key")
    try:
        return auth.EncryptedNonce(nonce=other.encrypt(nonce, n.random)), other
    except EncodeError as e:
        raise RefusedError(CloseReason.GENERIC, str(e)) from None


def check(
    n: Negotiation, own: PrivateKey, proof: auth.EncryptedNonce | None, remembered: bytes
) -> None:
    """Acceptor: all that is wrong is told in the same way."""
    nonce = None if proof is None else own.decrypt(proof.nonce)
    if nonce is None or not hmac.compare_digest(n.seal(nonce), remembered):
        raise RefusedError(CloseReason.GENERIC, "the proof of the private key is wrong")
