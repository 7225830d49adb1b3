"""RSA keys out of PEM text: PKCS#1 and PKCS#8 private keys, PKCS#1 and X.509 public keys.

A reader of DER for these four alone: definite lengths, no tag above 30, nothing left over.
"""

from __future__ import annotations

import binascii
import re
from typing import Final

from zenwire.errors import DecodeError, EncodeError, Fault
from zenwire.transport.limits import PEM_MAX
from zenwire.transport.rsa import PrivateKey, PublicKey

__all__ = ["read_private_key", "read_public_keys"]

_INTEGER: Final = 0x02
_BIT_STRING: Final = 0x03
_OCTET_STRING: Final = 0x04
_OBJECT_ID: Final = 0x06
_SEQUENCE: Final = 0x30
_RSA_ENCRYPTION: Final = bytes.fromhex("2a864886f70d010101")
"""1.2.840.113549.1.1.1"""

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z ]+)-----([A-Za-z0-9+/=\s]*)-----END \1-----")


def read_private_key(text: str) -> PrivateKey:
    """The one RSA private key of a PEM text. Raises DecodeError."""
    found = [_PRIVATE[label](_Der(body)) for label, body in _blocks(text) if label in _PRIVATE]
    if len(found) != 1:
        raise _wrong(
            0, f"{len(found)} RSA private keys instead of one (encrypted ones are not read)"
        )
    return found[0]


def read_public_keys(text: str) -> frozenset[PublicKey]:
    """All RSA public keys of a PEM text. Raises DecodeError."""
    return frozenset(
        _PUBLIC[label](_Der(body)) for label, body in _blocks(text) if label in _PUBLIC
    )


def _wrong(offset: int, detail: str) -> DecodeError:
    return DecodeError(Fault.INVALID, offset, "PEM", detail)


def _blocks(text: str) -> list[tuple[str, bytes]]:
    if len(text) > PEM_MAX:
        raise DecodeError(Fault.LIMIT, 0, "PEM", f"above {PEM_MAX} characters")
    blocks = []
    for match in _BLOCK.finditer(text):
        try:
            body = binascii.a2b_base64("".join(match[2].split()), strict_mode=True)
        except binascii.Error as e:
            raise _wrong(match.start(2), str(e)) from None
        blocks.append((match[1], body))
    return blocks


class _Der:
    """A position in DER bytes. Every step checks what is there."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.pos = 0

    def take(self, tag: int) -> bytes:
        """The content of the next element, which must have this tag."""
        data, pos = self.data, self.pos
        if len(data) < pos + 2 or data[pos] != tag:
            raise _wrong(pos, f"no DER element {tag:#04x}")
        length, pos = data[pos + 1], pos + 2
        if length & 0x80:
            count = length & 0x7F
            if not 0 < count <= 3 or len(data) < pos + count:
                raise _wrong(pos, "no DER length")
            length, pos = int.from_bytes(data[pos : pos + count], "big"), pos + count
        if length > len(data) - pos:
            raise DecodeError(Fault.TRUNCATED, pos, "PEM", f"{length} bytes declared")
        self.pos = pos + length
        return data[pos : self.pos]

    def inner(self, tag: int = _SEQUENCE) -> _Der:
        return _Der(self.take(tag))

    def integer(self) -> int:
        content = self.take(_INTEGER)
        if not content or content[0] & 0x80:
            raise _wrong(self.pos, "an integer of a key is not negative")
        return int.from_bytes(content, "big")

    def end(self) -> None:
        if self.pos != len(self.data):
            raise DecodeError(Fault.TRAILING, self.pos, "PEM")


def _public(n: int, e: int) -> PublicKey:
    try:
        return PublicKey(n, e)
    except EncodeError as error:
        raise _wrong(0, str(error)) from None


def _pkcs1_private(der: _Der) -> PrivateKey:
    key = der.inner()
    der.end()
    if key.integer() != 0:
        raise _wrong(0, "an RSA key of more than two primes")
    n, e, d, p, q, *_ = (key.integer() for _ in range(8))
    key.end()
    public = _public(n, e)
    if (
        min(p, q) < 3
        or p * q != n
        or not 0 < d < n
        or (e * d - 1) % (p - 1)
        or (e * d - 1) % (q - 1)
    ):
        raise _wrong(0, "the parts of an RSA key that do not belong together")
    return PrivateKey(public, d)


def _algorithm(der: _Der) -> None:
    if der.inner().take(_OBJECT_ID) != _RSA_ENCRYPTION:
        raise _wrong(0, "a key that is not RSA")


def _pkcs8_private(der: _Der) -> PrivateKey:
    info = der.inner()
    der.end()
    if info.integer() not in (0, 1):
        raise _wrong(0, "an unknown version of PKCS#8")
    _algorithm(info)
    # Attributes may follow, and mean nothing here.
    return _pkcs1_private(info.inner(_OCTET_STRING))


def _pkcs1_public(der: _Der) -> PublicKey:
    key = der.inner()
    der.end()
    public = _public(key.integer(), key.integer())
    key.end()
    return public


def _x509_public(der: _Der) -> PublicKey:
    info = der.inner()
    der.end()
    _algorithm(info)
    content = info.take(_BIT_STRING)
    info.end()
    if content[:1] != b"\0":
        raise _wrong(0, "a bit string that does not end with a byte")
    return _pkcs1_public(_Der(content[1:]))


_PRIVATE: Final = {"RSA PRIVATE KEY": _pkcs1_private, "PRIVATE KEY": _pkcs8_private}
_PUBLIC: Final = {"RSA PUBLIC KEY": _pkcs1_public, "PUBLIC KEY": _x509_public}
