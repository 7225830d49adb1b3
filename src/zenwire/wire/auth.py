"""What the Auth and MultiLink extensions of INIT and OPEN hold.

Auth holds a chain of extensions of its own: 1 is public key, 2 is user and password; each of
the four handshake messages has its step of both. MultiLink takes the same steps as public key.
"""

from __future__ import annotations

from zenwire.wire import kinds as k
from zenwire.wire.define import ext, field, struct
from zenwire.wire.objects import Struct

__all__ = [
    "AuthInitAck",
    "AuthInitSyn",
    "AuthOpenAck",
    "AuthOpenSyn",
    "EncryptedNonce",
    "PublicKey",
    "PublicKeyAndNonce",
    "UserPassword",
]


@struct
class PublicKey:
    """An RSA key: modulus and exponent, little endian."""

    modulus: bytes = field(k.payload)
    exponent: bytes = field(k.payload)


public_key = Struct(PublicKey)


@struct
class PublicKeyAndNonce:
    """The acceptor's key, and a nonce encrypted to the connector."""

    modulus: bytes = field(k.payload)
    exponent: bytes = field(k.payload)
    nonce: bytes = field(k.payload)


public_key_and_nonce = Struct(PublicKeyAndNonce)


@struct
class EncryptedNonce:
    """The same nonce, encrypted to the acceptor."""

    nonce: bytes = field(k.payload)


encrypted_nonce = Struct(EncryptedNonce)


@struct
class UserPassword:
    """A user, and the HMAC-SHA3-256 of the password under the acceptor's nonce."""

    user: bytes = field(k.payload)
    tag: bytes = field(k.payload)


@struct
class AuthInitSyn:
    """What the connector can do."""

    public_key: PublicKey | None = ext(0x1, public_key, default=None)
    user_password: bool = ext(0x2, k.unit, default=False)


@struct
class AuthInitAck:
    """The acceptor's challenge."""

    public_key: PublicKeyAndNonce | None = ext(0x1, public_key_and_nonce, default=None)
    user_password: int | None = ext(0x2, k.z64, default=None)


@struct
class AuthOpenSyn:
    """The connector's proof."""

    public_key: EncryptedNonce | None = ext(0x1, encrypted_nonce, default=None)
    user_password: UserPassword | None = ext(0x2, Struct(UserPassword), default=None)


@struct
class AuthOpenAck:
    """The acceptor is satisfied."""

    public_key: bool = ext(0x1, k.unit, default=False)
    user_password: bool = ext(0x2, k.unit, default=False)


auth_init_syn = Struct(AuthInitSyn)
auth_init_ack = Struct(AuthInitAck)
auth_open_syn = Struct(AuthOpenSyn)
auth_open_ack = Struct(AuthOpenAck)
