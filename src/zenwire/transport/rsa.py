"""RSA with PKCS#1 v1.5 padding, as public key authentication and MultiLink use it.

Python's integers do not take constant time: a private key is as safe as the clock of those who
may connect is coarse. What is encrypted here is a nonce that lives for one handshake.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import gcd
from typing import Final

from zenwire.errors import DecodeError, EncodeError, Fault
from zenwire.transport.limits import RSA_BITS_MAX, RSA_BITS_MIN, RSA_EXPONENT_MAX

__all__ = ["PrivateKey", "PublicKey", "Random", "generate"]

Random = Callable[[int], bytes]
"""That many random bytes."""

_PADDING: Final = 11
"""00 02, at least eight random bytes that are not zero, 00."""
_EXPONENT: Final = 65_537


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A modulus and an exponent within the limits. Raises EncodeError for others."""

    n: int
    e: int

    def __post_init__(self) -> None:
        bits = self.n.bit_length()
        if not RSA_BITS_MIN <= bits <= RSA_BITS_MAX or not self.n & 1:
            raise EncodeError(
                f"an RSA modulus is odd and has {RSA_BITS_MIN} to {RSA_BITS_MAX} bits"
            )
        if not 2 < self.e <= RSA_EXPONENT_MAX or not self.e & 1:
            raise EncodeError(f"an RSA exponent is odd, and 3 to {RSA_EXPONENT_MAX}")

    @classmethod
    def parse(cls, modulus: bytes, exponent: bytes) -> PublicKey:
        """From the wire: both little endian. Raises DecodeError."""
        if max(len(modulus), len(exponent)) > RSA_BITS_MAX // 8:
            raise DecodeError(Fault.LIMIT, 0, "RSA key", f"above {RSA_BITS_MAX} bits")
        try:
            return cls(int.from_bytes(modulus, "little"), int.from_bytes(exponent, "little"))
        except EncodeError as e:
            raise DecodeError(Fault.INVALID, 0, "RSA key", str(e)) from None

    @property
    def size(self) -> int:
        return (self.n.bit_length() + 7) // 8

    @property
    def modulus(self) -> bytes:
        return self.n.to_bytes(self.size, "little")

    @property
    def exponent(self) -> bytes:
        return self.e.to_bytes((self.e.bit_length() + 7) // 8, "little")

    def encrypt(self, message: bytes, random: Random) -> bytes:
        """Raises EncodeError if the message does not fit."""
        size = self.size
        if len(message) > size - _PADDING:
            raise EncodeError(f"{len(message)} bytes do not fit an RSA key of {size} bytes")
        padding = bytearray()
        while (missing := size - len(message) - 3 - len(padding)) > 0:
            padding += random(missing).replace(b"\0", b"")
        block = b"\0\2" + bytes(padding) + b"\0" + message
        return pow(int.from_bytes(block, "big"), self.e, self.n).to_bytes(size, "big")


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A public key, and its secret exponent."""

    public: PublicKey
    d: int = field(repr=False)

    def decrypt(self, block: bytes) -> bytes | None:
        """The message, or None: callers must not tell why it is none."""
        size, n = self.public.size, self.public.n
        value = int.from_bytes(block, "big")
        if len(block) != size or value >= n:
            return None
        plain = pow(value, self.d, n).to_bytes(size, "big")
        end = plain.find(b"\0", 2)
        if plain[:2] != b"\0\2" or end < _PADDING - 1:
            return None
        return plain[end + 1 :]


def generate(bits: int, random: Random) -> PrivateKey:
    """A new key of ``bits`` bits."""
    while True:
        p, q = _prime(bits // 2, random), _prime(bits - bits // 2, random)
        phi = (p - 1) * (q - 1)
        if p != q and gcd(_EXPONENT, phi) == 1 and (p * q).bit_length() == bits:
            return PrivateKey(PublicKey(p * q, _EXPONENT), pow(_EXPONENT, -1, phi))


_SMALL: Final = tuple(p for p in range(3, 1000, 2) if all(p % i for i in range(3, p, 2)))
_ROUNDS: Final = 20
"""Of Miller-Rabin: a composite passes one with at most a quarter's chance."""


def _prime(bits: int, random: Random) -> int:
    """The two highest bits are set, so that a product of two has all its bits."""
    top = 3 << bits - 2
    while True:
        drawn = int.from_bytes(random((bits + 7) // 8), "big") & (1 << bits) - 1
        candidate = drawn | top | 1
        if all(candidate % p for p in _SMALL) and _is_prime(candidate, random):
            return candidate


def _is_prime(n: int, random: Random) -> bool:
    odd, twos = n - 1, 0
    while not odd & 1:
        odd, twos = odd >> 1, twos + 1
    for _ in range(_ROUNDS):
        base = 2 + int.from_bytes(random((n.bit_length() + 7) // 8), "big") % (n - 3)
        x = pow(base, odd, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True
