"""What is new in a history, and what nobody has."""

from __future__ import annotations

import pyarrow as pa

from zenwire.record.known import COLUMNS, Known

SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("timestamp", pa.int64()),
        ("timestamp_id", pa.binary()),
        ("source_zid", pa.binary()),
        ("source_eid", pa.int64()),
        ("source_sn", pa.int64()),
    ]
)


def stamped(*rows: tuple[str, int]) -> pa.RecordBatch:
    made = [
        dict(zip(COLUMNS, (key, time, b"\x01", None, None, None), strict=True))
        for key, time in rows
    ]
    return pa.RecordBatch.from_pylist(made, SCHEMA)


def numbered(source: bytes, *numbers: int) -> pa.RecordBatch:
    made = [
        dict(zip(COLUMNS, ("k", None, None, source, 1, number), strict=True)) for number in numbers
    ]
    return pa.RecordBatch.from_pylist(made, SCHEMA)


def times(batch: pa.RecordBatch) -> list[tuple[str, int]]:
    return list(
        zip(batch.column("key").to_pylist(), batch.column("timestamp").to_pylist(), strict=True)
    )


def test_by_time_what_is_not_older_than_before_is_new_once() -> None:
    known = Known()
    known.before(stamped(("a", 10), ("b", 5), ("a", 8)))
    known.since(stamped(("a", 30)))
    history = stamped(("a", 9), ("a", 10), ("a", 20), ("a", 30), ("b", 6), ("c", 1), ("a", 20))
    assert times(known.fresh(history)) == [("a", 20), ("b", 6), ("c", 1)]
    assert times(known.fresh(history)) == []


def test_times_have_no_sign() -> None:
    known = Known()
    known.before(stamped(("a", -5)))
    assert times(known.fresh(stamped(("a", 5), ("a", -4)))) == [("a", -4)]


def test_by_number_only_what_is_missing_is_new() -> None:
    known = Known()
    known.before(numbered(b"\x01", 1, 2, 3))
    known.since(numbered(b"\x01", 8, 9))
    fresh = known.fresh(numbered(b"\x01", 2, 3, 4, 5, 8))
    assert fresh.column("source_sn").to_pylist() == [4, 5]
    (missing,) = known.missing()
    assert missing == ((b"\x01", 1), 6, 7)
    assert missing.samples == 2


def test_numbers_go_round() -> None:
    top = 2**32 - 1
    known = Known()
    known.before(numbered(b"\x01", top - 1))
    known.since(numbered(b"\x01", 1))
    assert [(m.first, m.last, m.samples) for m in known.missing()] == [(top, 0, 2)]


def test_a_source_that_begins_anew_misses_nothing() -> None:
    known = Known()
    known.before(numbered(b"\x01", 100, 101))
    known.since(numbered(b"\x01", 0, 1))
    known.since(numbered(b"\x02", 50))
    assert known.missing() == []


def test_what_was_missing_before_is_not_missing_again() -> None:
    """A history brings older numbers after newer ones."""
    known = Known()
    known.before(numbered(b"\x01", 1, 2, 200, 201))
    known.before(numbered(b"\x01", 60, 61))
    known.since(numbered(b"\x01", 203))
    assert [(m.first, m.last) for m in known.missing()] == [(202, 202)]
