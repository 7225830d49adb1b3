"""Our LZ4 against the reference one, in both directions."""

from __future__ import annotations

import random

import lz4.block
import pytest

from zenwire.wire.lz4 import compress, decompress

SEED = random.Random(4)


def texts() -> dict[str, bytes]:
    words = [b"temperature", b"demo/a/", b"\x25\x9b\xd2", b'{"i": ', b"0.73"]
    return {
        "empty": b"",
        "one byte": b"a",
        "twelve bytes": b"a" * 12,
        "thirteen bytes": b"a" * 13,
        "no repetition": bytes(range(256)),
        "one letter": b"a" * 10_000,
        "two letters": b"ab" * 5_000,
        "period of 7": b"abcdefg" * 3_000,
        "zeros": bytes(65_535),
        "words": b" ".join(SEED.choice(words) for _ in range(3_000)),
        "far away": b"0123456789" + SEED.randbytes(65_600) + b"0123456789" + b"x" * 20,
        "random": SEED.randbytes(65_535),
        "random, few letters": bytes(SEED.choices(b"abcd", k=20_000)),
        "match to the end": SEED.randbytes(40) * 2,
        "15 literals": bytes(range(15)) + b"a" * 40,
        "270 literals": SEED.randbytes(270) + b"a" * 300,
    }


@pytest.mark.parametrize("data", texts().values(), ids=texts())
def test_both_read_what_the_other_wrote(data: bytes) -> None:
    ours = compress(data)
    assert lz4.block.decompress(ours, uncompressed_size=len(data)) == data
    assert decompress(ours, len(data)) == data
    for mode in ("default", "high_compression", "fast"):
        theirs = lz4.block.compress(data, mode=mode, store_size=False)
        assert decompress(theirs, len(data)) == data


def test_random_blocks() -> None:
    for _ in range(300):
        alphabet = SEED.randbytes(SEED.choice([1, 2, 4, 16]))
        data = bytes(SEED.choices(alphabet, k=SEED.randrange(400)))
        assert lz4.block.decompress(compress(data), uncompressed_size=len(data)) == data
        theirs = lz4.block.compress(data, store_size=False)
        assert decompress(theirs, len(data)) == data


def test_every_length_near_the_end_conditions() -> None:
    for n in range(64):
        data = b"a" * n
        assert lz4.block.decompress(compress(data), uncompressed_size=n) == data
        assert decompress(lz4.block.compress(data, store_size=False), n) == data


def test_compression_gains() -> None:
    data = texts()["words"]
    assert len(compress(data)) < len(data) // 2
    assert len(compress(b"a" * 10_000)) < 60


def test_damaged_blocks_give_bytes_or_value_error() -> None:
    block = bytearray(compress(texts()["words"][:2_000]))
    limit = 4_000
    outcomes = set()
    for _ in range(3_000):
        bad = bytearray(block)
        match SEED.randrange(3):
            case 0:
                bad[SEED.randrange(len(bad))] ^= SEED.randrange(1, 256)
            case 1:
                del bad[SEED.randrange(len(bad)) :]
            case _:
                at = SEED.randrange(len(bad))
                bad[at:at] = SEED.randbytes(3)
        try:
            out = decompress(bytes(bad), limit)
        except ValueError:
            outcomes.add("error")
            continue
        outcomes.add("bytes")
        assert len(out) <= limit
        # Where both find meaning it is the same one.
        try:
            theirs = lz4.block.decompress(bytes(bad), uncompressed_size=limit)
        except lz4.block.LZ4BlockError:
            continue
        assert theirs == out
    assert outcomes == {"bytes", "error"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "does not end with literals"),
        ("f0", "a length has no end"),
        ("f0ffff", "a length has no end"),
        ("2061", "literals reach beyond"),
        ("106105", "no offset"),
        ("1f610100ff", "a length has no end"),
        ("1061000010", "before the block"),
        ("1061020010", "before the block"),
        ("11610100", "does not end with literals"),
    ],
)
def test_damage(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        decompress(bytes.fromhex(text), 1_000)


def test_a_match_may_run_into_itself() -> None:
    block = bytes.fromhex("1561010050") + b"bcdef"
    assert decompress(block, 100) == b"a" * 10 + b"bcdef"
    assert lz4.block.decompress(block, uncompressed_size=15) == b"a" * 10 + b"bcdef"


@pytest.mark.parametrize("data", [b"a" * 1_000, bytes(range(200))])
def test_nothing_expands_above_its_limit(data: bytes) -> None:
    block = compress(data)
    assert decompress(block, len(data)) == data
    with pytest.raises(ValueError, match="expands to more"):
        decompress(block, len(data) - 1)
