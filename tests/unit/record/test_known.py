"""What is new in a history, and what nobody has."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from zenwire.columns.samples import SAMPLES
from zenwire.record.known import COLUMNS, Known, times_of
from zenwire.spool import Settings, Spool, Writer

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


def test_what_was_told_or_came_late_is_not_missing() -> None:
    """Told by a recorder that was killed before it had told all; late, while histories came."""
    known = Known()
    known.before(numbered(b"\x01", 10))
    known.since(numbered(b"\x01", 100, 2**31 - 1))
    known.later(numbered(b"\x01", 15, 2**31 + 9))
    known.told((b"\x01", 1), 20, 80)
    known.told((b"\x01", 1), 5, 11)
    known.told((b"\x01", 1), 101, 2**31 - 3)
    known.told((b"\x02", 1), 12, 14)
    found = [(m.first, m.last) for m in known.missing()]
    assert found == [(12, 14), (16, 19), (81, 99), (2**31 - 2, 2**31 - 2)]
    fresh = known.fresh(numbered(b"\x01", 15, 13, 13, 2**31 + 9))
    assert fresh.column("source_sn").to_pylist() == [13]


def test_what_a_spool_has_around_a_hole(tmp_path: Path) -> None:
    rows = [
        dict.fromkeys(SAMPLES.names)
        | {"key": "k", "kind": 0, "payload": b"", "reliable": True, "time": 1}
        | {"source_zid": b"\x01", "source_eid": 1, "source_sn": n}
        for n in (1, 2, 5, 9, 12)
    ]
    with Writer.open(tmp_path / "s", Settings(source_numbers=False)) as writer:
        writer.append(pa.RecordBatch.from_pylist(rows, SAMPLES))
        writer.lose("source", "x", source=(b"\x01", 1), numbers=(7, 8))
    # In front of the last row whoever writes looks itself.
    spool = Spool.open(tmp_path / "s")
    known = Known.read(spool, 2)
    assert known.furthest() == {(b"\x01", 1): 12}
    known.read_on(spool, 2, 5)
    assert [(m.first, m.last) for m in known.missing()] == [(3, 4), (6, 6), (10, 11)]
    known = Known()
    known.before(numbered(b"\x01", 1, 2))
    known.read_on(spool, 2, 4)
    assert [(m.first, m.last) for m in known.missing()] == [(3, 4), (6, 6)]


def test_the_newest_time_of_a_key_before_the_hole() -> None:
    known = Known()
    for first in range(0, 3000, 1000):
        known.before(stamped(*[(f"k{n % 100}", n + 1) for n in range(first, first + 1000)]))
    history = stamped(*[(f"k{n}", at) for n in range(110) for at in (2900 + n, 3002 + n)])
    fresh = times(known.fresh(history))
    assert fresh == [pair for pair in times(history) if pair[1] > 3000 or int(pair[0][1:]) >= 100]


def test_how_far_sources_have_come() -> None:
    top = 2**32 - 1
    known = Known()
    known.before(numbered(b"\x01", top - 1))
    known.since(numbered(b"\x01", 3, 1))
    known.since(numbered(b"\x02", 50, 40))
    known.fresh(numbered(b"\x03", 7, 8))
    found = {source[0]: number for source, number in known.furthest().items()}
    assert found == {b"\x01": 3, b"\x02": 50, b"\x03": 8}


def test_a_source_that_was_first_heard_after_the_hole() -> None:
    """Its recorder was killed, and so were others, before one could ask for what was missed."""
    known = Known()
    known.since(numbered(b"\x01", 7, 8))
    known.since(numbered(b"\x01", 12, 30))
    # What was published before anybody recorded is no loss.
    known.fresh(numbered(b"\x01", 1, 3, 9))
    assert [(m.first, m.last) for m in known.missing()] == [(10, 11), (13, 29)]


def test_of_what_came_after_the_hole_only_the_times_of_histories_are_kept(tmp_path: Path) -> None:
    def row(key: str, at: int | None) -> dict[str, object]:
        said = {"key": key, "kind": 0, "payload": b"", "reliable": True, "time": 1}
        return dict.fromkeys(SAMPLES.names) | said | {"timestamp": at, "timestamp_id": b"\x01"}

    many = [row("k", None if n % 2 else n) for n in range(10_000)]
    with Writer.open(tmp_path / "s") as writer:
        writer.append(pa.RecordBatch.from_pylist(many, SAMPLES))
    spool = Spool.open(tmp_path / "s")
    history = stamped(("k", 600), ("k", 10_001), ("other", 600))
    known = Known.read(spool, 500, times=times_of([history, numbered(b"\x01", 1)]))
    assert sum(batch.num_rows for batch in known._new) == 1
    assert times(known.fresh(history)) == [("k", 10_001), ("other", 600)]
    # No history, nothing to compare with.
    known = Known.read(spool, 500, times=times_of([numbered(b"\x01", 1)]))
    assert (known._old, known._new) == ([], [])
    assert known.missing() == []
