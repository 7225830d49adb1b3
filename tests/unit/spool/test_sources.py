"""Gaps in the numbers of publishers, batch by batch as if they were one."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("pyarrow")

from tests.unit.spool.rows import samples
from zenwire.spool.sources import Gap, SourceNumbers

LAST = (1 << 32) - 1


def of(rows: list[tuple[bytes, int, int | None]]) -> object:
    zids, eids, sns = zip(*rows, strict=True)
    return samples(range(len(rows)), source_zid=zids, source_eid=eids, source_sn=sns)


def test_the_numbers_of_each_publisher() -> None:
    numbers = SourceNumbers()
    rows = [(b"a", 1, 5), (b"b", 1, 9), (b"a", 2, 7), (b"x", 1, None), (b"a", 1, 8), (b"b", 1, 10)]
    assert numbers.gaps(of(rows)) == [Gap(4, b"a", 1, 6, 7)]
    assert numbers.gaps(of([(b"a", 2, 10), (b"b", 1, 11)])) == [Gap(0, b"a", 2, 8, 9)]
    assert numbers.gaps(of([(b"a", 2, None)])) == []


def test_what_was_heard_elsewhere_is_where_gaps_begin() -> None:
    """A publisher that is slow says nothing for long after a recorder began anew."""
    numbers = SourceNumbers()
    numbers.gaps(of([(b"b", 1, 20)]))
    numbers.learn({(b"a", 1): 9, (b"b", 1): 15, (b"c", 1): LAST})
    found = numbers.gaps(of([(b"a", 1, 12), (b"b", 1, 21), (b"c", 1, 0)]))
    assert found == [Gap(0, b"a", 1, 10, 11)]


def test_numbers_go_round() -> None:
    numbers = SourceNumbers()
    (gap,) = numbers.gaps(of([(b"a", 1, LAST - 1), (b"a", 1, 1)]))
    assert (gap.first, gap.last, gap.missing) == (LAST, 0, 2)


def test_what_goes_back_is_no_gap() -> None:
    assert SourceNumbers().gaps(of([(b"a", 1, 9), (b"a", 1, 3)])) == []


def test_any_cut_into_batches_gives_the_same() -> None:
    chance = random.Random(3)
    next_sn: dict[tuple[bytes, int], int] = {}
    rows: list[tuple[bytes, int, int | None]] = []
    expected = []
    for row in range(500):
        source = bytes([chance.randrange(3)]), chance.randrange(3)
        sn = next_sn.get(source, 0)
        step = chance.choice([0, 0, 0, 1, 4])
        if step and source in next_sn:
            expected.append((row, *source, sn, sn + step - 1))
        rows.append((*source, sn + step))
        next_sn[source] = sn + step + 1
    for size in (1, 7, 500):
        numbers = SourceNumbers()
        found = []
        for first in range(0, 500, size):
            gaps = numbers.gaps(of(rows[first : first + size]))
            found += [(first + g.row, *g[1:]) for g in gaps]
        assert found == expected
