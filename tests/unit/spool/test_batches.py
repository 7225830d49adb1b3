"""Batches are put together and cut without changing rows."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from tests.unit.spool.rows import samples
from zenwire.spool.batches import TOGETHER, Sized, pieces, together


def test_small_ones_are_put_together_and_large_ones_cut() -> None:
    chance = random.Random(9)
    given, at = [], 0
    for _ in range(300):
        rows = chance.choice([1, 3, 50, 2000])
        batch = samples(range(at, at + rows), size=chance.choice([8, 100, 3000]))
        given.append(Sized(batch, batch.nbytes))
        at += rows
    large = samples(range(at, at + 8), size=9_000_000)
    given.append(Sized(large, large.nbytes))
    found = list(together(given))
    assert len(found) < len(given)
    assert all(sized.size <= TOGETHER or sized.batch.num_rows in (2000, 8) for sized in found)
    cut = [piece for sized in found for piece in pieces(sized)]
    assert all(piece.nbytes <= 17 * TOGETHER for piece in cut)
    before = pa.Table.from_batches([sized.batch for sized in given]).combine_chunks()
    assert pa.Table.from_batches(cut).combine_chunks().equals(before)


def test_rows_that_are_looked_at_in_other_ways_stay_apart() -> None:
    one = samples([1])
    given = [Sized(one, 10), Sized(one, 10, "skip"), Sized(one, 10, "skip"), Sized(one, 10)]
    assert [(s.batch.num_rows, s.numbers) for s in together(given)] == [
        (1, "check"),
        (2, "skip"),
        (1, "check"),
    ]
