from __future__ import annotations

import pytest

from zenwire.transport.sequence import Counters, Newest, initial_sn
from zenwire.transport.stats import Cause
from zenwire.wire.values import Resolution, ZenohId

BITS = {8: 7, 16: 14, 32: 28, 64: 32}


@pytest.mark.parametrize(
    ("own", "other", "bits", "sn"),
    [("01cc", "01aa", 32, 23865627), ("01aa", "01cc", 32, 9754482), ("07cc", "07aa", 16, 8694)],
)
def test_initial_sn_is_that_of_the_reference(own: str, other: str, bits: int, sn: int) -> None:
    ours, theirs = (ZenohId(bytes.fromhex(text)) for text in (own, other))
    assert initial_sn(ours, theirs, Resolution.of(bits)) == sn


@pytest.mark.parametrize("bits", BITS)
def test_numbers_wrap(bits: int) -> None:
    modulus = 1 << BITS[bits]
    counters = Counters(Resolution.of(bits), modulus - 1)
    newest = Newest(Resolution.of(bits), modulus - 1)
    seen = []
    for _ in range(3):
        seen.append(counters.next[3])
        assert newest.accept(counters.next[3]) == 0
        counters.advance(3)
    assert seen == [modulus - 1, 0, 1]
    assert counters.next[2] == modulus - 1


@pytest.mark.parametrize("bits", BITS)
def test_the_window_is_half_of_the_range(bits: int) -> None:
    modulus = 1 << BITS[bits]
    half = modulus // 2
    for last in (0, 5, half, modulus - 1):
        for ahead, wanted in (
            (0, Cause.DUPLICATE),
            (1, 0),
            (2, 1),
            (half - 1, half - 2),
            (half, Cause.LATE),
            (modulus - 1, Cause.LATE),
        ):
            newest = Newest(Resolution.of(bits), last + 1)
            assert newest.accept((last + ahead) % modulus) == wanted
            moved = not isinstance(wanted, Cause)
            assert newest.last == ((last + ahead) % modulus if moved else last)
