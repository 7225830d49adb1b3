from __future__ import annotations

import random

import pyarrow as pa

from zenwire.errors import DecodeError
from zenwire.spark.tables.expand import expanded
from zenwire.wire import compress_batch, expand_batch


def _one(block: bytes) -> tuple[bytes, str | None]:
    try:
        return expand_batch(block), None
    except DecodeError as e:
        return b"", str(e)


def test_good_and_bad_blocks_as_one_by_one() -> None:
    rng = random.Random(1)
    good = [
        compress_batch(b"".join(b'{"x": %d}' % rng.randrange(99) for _ in range(500))),
        compress_batch(b"a" * 60_000),
        compress_batch(rng.randbytes(50)),
        compress_batch(b"abc" * 5000 + rng.randbytes(300) + b"abc" * 5000),
    ]
    blocks = [*good, b"", b"\0", b"\1", b"\1\0", b"\1\xff", b"\2", b"\0" * 70_000]
    for _ in range(1000):
        block = bytearray(rng.choice(good))
        for _ in range(rng.randrange(3)):
            block[rng.randrange(min(len(block), 60))] = rng.randrange(256)
        blocks.append(bytes(block[: rng.choice([len(block), rng.randrange(len(block))])]))
    expected = [_one(block) for block in blocks]
    contents, bad = expanded(pa.array([b"before", *blocks]).slice(1))
    assert contents.to_pylist() == [content for content, _ in expected]
    assert [(i, str(error)) for i, error in bad] == [
        (i, error) for i, (_, error) in enumerate(expected) if error
    ]
    assert 100 < len(bad) < 1000


def test_no_blocks() -> None:
    contents, bad = expanded(pa.array([], pa.binary()))
    assert (len(contents), bad) == (0, [])
