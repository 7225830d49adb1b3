"""Names of files, and which of them are put together."""

from __future__ import annotations

from zenwire.spark.ingest.names import (
    SMALL,
    appended,
    chosen,
    merged,
    minutes_of,
    range_of,
    stem_of,
)

MINUTE = 60_000_000_000


def test_names_say_the_micro_batches() -> None:
    assert range_of(appended(12, 0)) == (12, 12)
    assert range_of(merged(3, 18, 2)) == (3, 18)
    assert range_of("part-0000.parquet") is None
    assert appended(9, 0) < appended(10, 0)


def test_few_small_files_stay_and_many_do_not() -> None:
    sizes = {appended(i, 0): 1000 for i in range(SMALL)}
    assert chosen(sizes, finished=False) == sorted(sizes)
    del sizes[appended(0, 0)]
    assert chosen(sizes, finished=False) == []
    assert chosen(sizes, finished=True) == sorted(sizes)
    assert chosen({appended(0, 0): 1000}, finished=True) == []


def test_large_files_stay_and_not_all_is_done_at_once() -> None:
    sizes = {appended(i, 0): 60 for i in range(3)} | {appended(3, 0): 40, appended(4, 0): 30}
    assert chosen(sizes, finished=True, target=100) == [appended(3, 0), appended(4, 0)]
    many = {appended(i, 0): 49 for i in range(100)}
    assert chosen(many, finished=True, target=100) == sorted(many)[:8]


def test_what_a_file_replaces() -> None:
    assert stem_of("day=2026-03-01/h13m47.parquet") == "day=2026-03-01/h13m47"
    assert stem_of("bucket-3-b000000000012.parquet") == "bucket-3"


def test_minutes_that_touch_are_one() -> None:
    spans = [(0, 10), (MINUTE, MINUTE + 5), (10 * MINUTE, 11 * MINUTE - 1)]
    assert minutes_of(spans) == [(0, 1), (10, 10)]
