from __future__ import annotations

from random import Random

import pytest

from zenwire.errors import DecodeError, EncodeError
from zenwire.transport.rsa import PrivateKey, PublicKey, generate

RANDOM = Random(5).randbytes


@pytest.mark.parametrize("bits", [512, 768, 1024])
def test_round_trip(bits: int) -> None:
    key = generate(bits, RANDOM)
    assert key.public.n.bit_length() == bits
    assert PublicKey.parse(key.public.modulus, key.public.exponent) == key.public
    for size in (0, 1, 8, bits // 8 - 11):
        message = RANDOM(size)
        block = key.public.encrypt(message, RANDOM)
        assert len(block) == bits // 8
        assert key.decrypt(block) == message
    with pytest.raises(EncodeError):
        key.public.encrypt(bytes(bits // 8 - 10), RANDOM)


def test_the_same_seed_makes_the_same_key() -> None:
    assert generate(512, Random(1).randbytes) == generate(512, Random(1).randbytes)


def test_damaged_blocks_are_none() -> None:
    key, other = generate(512, RANDOM), generate(512, RANDOM)
    block = key.public.encrypt(b"12345678", RANDOM)
    damaged = [block[:-1], block + b"\0", b"", bytes(64), b"\xff" * 64, RANDOM(64)]
    damaged.append(other.public.encrypt(b"12345678", RANDOM))
    assert [key.decrypt(d) == b"12345678" for d in damaged] == [False] * len(damaged)
    short = b"\0\2" + b"x" * 7 + b"\0" + bytes(54)
    assert (
        key.decrypt(
            pow(int.from_bytes(short, "big"), key.public.e, key.public.n).to_bytes(64, "big")
        )
        is None
    )


@pytest.mark.parametrize(
    ("n", "e"),
    [
        (0, 3),
        (2**511 + 2, 3),
        (2**510 + 1, 3),
        (2**4096 + 1, 3),
        (2**511 + 1, 1),
        (2**511 + 1, 4),
        (2**511 + 1, 2**34 + 1),
    ],
)
def test_keys_outside_of_the_limits(n: int, e: int) -> None:
    with pytest.raises(EncodeError):
        PublicKey(n, e)
    with pytest.raises(DecodeError):
        PublicKey.parse(n.to_bytes(520, "little"), e.to_bytes(5, "little"))


def test_a_huge_modulus_is_refused_before_it_is_read() -> None:
    with pytest.raises(DecodeError):
        PublicKey.parse(bytes(100_000), b"\3")


def test_a_private_key_does_not_show_itself() -> None:
    key = generate(512, RANDOM)
    assert str(key.d) not in repr(key)
    assert isinstance(key, PrivateKey)
