"""What the kernels do with bytes, against Python's own decoder and the object codec's Reader."""

from __future__ import annotations

import codecs
import itertools

import numpy as np
import pytest

from fuzz.fields import put_z
from tests.hostile.attacks import BAD_TEXT, GOOD_TEXT
from tests.hostile.compiled import Bools, Bytes, is_ascii, is_utf8, vle
from zenwire.errors import DecodeError
from zenwire.wire.buffer import Reader

# UTF-8.


def _strict(sequences: Bytes) -> Bools:
    """What Python's decoder says of each row, all rows in one call.

    A zero after each keeps them apart. Every byte that the decoder refuses becomes a lone
    surrogate, whose place tells the row.
    """
    count, size = sequences.shape
    apart = np.zeros((count, size + 1), np.uint8)
    apart[:, :size] = sequences
    text = apart.tobytes().decode("utf-8", "surrogateescape")
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    bad = (points >= 0xDC80) & (points <= 0xDCFF)
    widths = 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
    widths[bad] = 1
    at = np.cumsum(widths) - widths
    good = np.ones(count, np.bool_)
    good[at[bad] // (size + 1)] = False
    return good


def _is_strict(sequence: bytes) -> bool:
    try:
        sequence.decode()
    except UnicodeDecodeError:
        return False
    return True


def _kernel(sequences: Bytes) -> Bools:
    count, size = sequences.shape
    return is_utf8(sequences.reshape(-1), np.arange(count) * size, np.full(count, size))


def _all_of(size: int) -> Bytes:
    return np.stack([np.indices((256,) * size, np.uint8)[i].reshape(-1) for i in range(size)], 1)


@pytest.mark.parametrize("size", [1, 2])
def test_all_short_sequences(size: int) -> None:
    sequences = np.ascontiguousarray(_all_of(size))
    due = [_is_strict(row.tobytes()) for row in sequences]
    assert _strict(sequences).tolist() == due
    assert _kernel(sequences).tolist() == due


def test_all_sequences_of_three_bytes() -> None:
    """All 16,777,216: what Python makes of two bytes, and of what they leave open and a third."""
    left: dict[bytes, int] = {}
    after = np.empty(65_536, np.int64)
    for i, two in enumerate(_all_of(2)):
        after[i] = left.setdefault(_left(two.tobytes()), len(left))
    third = [[_is_strict(rest + bytes([c])) for c in range(256)] for rest in left]
    due = np.array(third)[after]
    due[after == left[REFUSED]] = False
    sequences = np.empty((65_536, 3), np.uint8)
    sequences[:, 1:] = _all_of(2)
    for first in range(256):
        sequences[:, 0] = first
        found = _kernel(sequences).reshape(256, 256)
        assert np.array_equal(found, due[first << 8 : first + 1 << 8]), hex(first)
    # Three of ASCII, one of two bytes before or after one of ASCII, and one of three bytes.
    good = 128**3 + 2 * 128 * (0x800 - 0x80) + (0x10000 - 0x800 - 0x800)
    assert int(due.sum()) == good


REFUSED = b"\xff"


def _left(data: bytes) -> bytes:
    """What a decoder that waits for more has not yet taken."""
    try:
        _, taken = codecs.utf_8_decode(data, "strict", False)
    except UnicodeDecodeError:
        return REFUSED
    return data[taken:]


def test_sequences_of_four_bytes() -> None:
    """Many at random, and all second bytes with what is special of the others."""
    rng = np.random.default_rng(4)
    wild = rng.integers(0, 256, (200_000, 4), np.uint8)
    near = rng.integers(0, 256, (300_000, 4), np.uint8)
    near[:, 0] = rng.integers(0xC0, 0xF8, len(near))
    near[:, 1:] = near[:, 1:] & 0x3F | 0x80
    edges = (0x00, 0x7F, 0x80, 0xBF, 0xC0, 0xFF)
    exact = itertools.product(range(0xE0, 0xF8), range(256), edges, edges)
    some = np.concatenate([wild, near, np.array(list(exact), np.uint8)])
    due = _strict(some)
    assert due.sum() > 10_000
    assert np.array_equal(_kernel(some), due)
    for row, strict in zip(some[::97], due[::97], strict=True):
        assert _is_strict(row.tobytes()) == strict


def _is_utf8(text: bytes) -> bool:
    return bool(is_utf8(np.frombuffer(b"k" + text + b"k", np.uint8), [1], [len(text)])[0])


@pytest.mark.parametrize("before", range(18))
def test_text_around_the_eight_bytes_at_once(before: int) -> None:
    for after in range(18):
        for bad in BAD_TEXT:
            assert not _is_utf8(b"k" * before + bad + b"k" * after), bad
        for good in GOOD_TEXT:
            assert _is_utf8(b"k" * before + good.encode() + b"k" * after), good


def test_what_is_around_text_does_not_matter() -> None:
    """A sequence that goes on behind the text is cut; one before it is not its business."""
    whole = "é€🔑".encode()
    buffer = np.frombuffer(whole * 3, np.uint8)
    ranges = [(p, n) for p in range(len(buffer)) for n in range(len(buffer) - p + 1)]
    found = is_utf8(buffer, [p for p, _ in ranges], [n for _, n in ranges])
    due = [_is_strict(buffer[p : p + n].tobytes()) for p, n in ranges]
    assert found.tolist() == due


def test_ascii() -> None:
    """One byte that is not, at each place in and around texts of each length."""
    size = 64
    for high in range(-1, size):
        buffer = np.full(size, 0x7F, np.uint8)
        if high >= 0:
            buffer[high] = 0x80
        ranges = [(p, n) for p in (0, 1, 7, 8, 30) for n in range(34)]
        for end in (size, None):
            ends = [end or p + n for p, n in ranges]
            found = is_ascii(buffer, [p for p, _ in ranges], [n for _, n in ranges], ends)
            for (p, n), to, ascii_ in zip(ranges, ends, found.tolist(), strict=True):
                due = not p <= high < p + n
                # Too near to the end to look is no answer, which is False.
                looks = n >= 8 or p + 8 <= to
                assert ascii_ is due if looks else due or not ascii_, (p, n, to, high)


# Integers.

EDGES = sorted(
    {0, 1, 2**64 - 1} | {2**n + d for n in (7 * i for i in range(1, 9)) for d in (-1, 0)}
)
VALUES = [*EDGES, 0x55, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 0x0123_4567_89AB_CDEF]
SPELLED = sorted({put_z(value, size) for value in VALUES for size in range(10)})


def _reader(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    r = Reader(buffer, start, end)
    try:
        return r.z(), r.pos
    except DecodeError:
        return 0, 0


@pytest.mark.parametrize(
    "tail", [b"", b"\0", b"\x7f" * 9, b"\x80" * 9, b"\xff" * 20], ids=bytes.hex
)
@pytest.mark.parametrize("head", [0, 1, 7])
def test_integers_as_the_object_codec_reads_them(head: int, tail: bytes) -> None:
    """In their shortest form and in longer ones, cut after each byte, up to any end."""
    for number in SPELLED:
        data = b"\xff" * head + number + tail
        ends = list(range(head, len(data) + 1))
        values, after = vle(np.frombuffer(data, np.uint8), [head] * len(ends), ends)
        due = [_reader(data, head, end) for end in ends]
        found = list(zip(values.tolist(), after.tolist(), strict=True))
        assert [(v if a else 0, a) for v, a in found] == due, number.hex()


def test_integers_of_random_bytes() -> None:
    rng = np.random.default_rng(8)
    buffer = rng.integers(0, 256, 20_000, np.uint8)
    buffer[rng.random(len(buffer)) < 0.6] |= 0x80
    data = buffer.tobytes()
    starts = np.arange(len(buffer))
    for near in (0, 1, 5, 8, 9, 10):
        ends = np.minimum(starts + near, len(buffer))
        values, after = vle(buffer, starts, ends)
        found = zip(values.tolist(), after.tolist(), strict=True)
        due = [_reader(data, p, end) for p, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        assert [(v if a else 0, a) for v, a in found] == due
