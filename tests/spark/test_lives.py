"""What ids and requests stand for when directions cross: the functions that tasks run."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from zenwire.spark.tables import keys, paths
from zenwire.spark.tables.scan import Selection
from zenwire.spark.tables.tasks import EDGES, Task
from zenwire.wire.limits import KEY_SUFFIX_MAX

Said = tuple[int, int, str, int, int, str]


def _alias_at(said: list[Said], side: int, id_: int, *, place: int = 0, time: int = -1) -> Any:
    """What an id means to messages of a side: its own by place, the other side's by time."""
    counts = [0, 0]
    rows = []
    for at, who, body, expr_id, scope, suffix in said:
        rows.append(
            {"capture": "x", "flow": 1, "connection": 0, "side": who, "time": at,
             "sequence": counts[who], "offset": 0, "message": "DECLARE", "body": body,
             "expr_id": expr_id, "key_scope": scope, "key_suffix": suffix, "direction": None,
             EDGES: False}
        )  # fmt: skip
        counts[who] += 1
    schema = Task(Selection(keys.ALIAS_COLUMNS), edges=True).schema
    rows.sort(key=lambda row: (row["side"], row["sequence"]))
    # As they come from Spark: in record batches that are cut anywhere.
    batches = [pa.RecordBatch.from_pylist([row], schema) for row in rows]
    at = place << 16 if time < 0 else time
    found = [
        row["alias"]
        for batch in keys._spans(iter(batches))
        for row in batch.to_pylist()
        if (row["side"], row["by_sender"], row["expr_id"]) == (side, time < 0, id_)
        and row["first"] <= at < row["until"]
    ]
    assert len(found) <= 1
    return found[0] if found else None


D, U = "D_KEYEXPR", "U_KEYEXPR"


@pytest.mark.parametrize(
    ("time", "alias"),
    # Before; at that very time; while it is taken back and after; at the time of the second
    # declaration, which may not have arrived; after that.
    [(9, None), (10, "one"), (15, "one"), (20, "one"), (25, "one"), (30, "one"), (31, "two")],
)
def test_an_id_of_the_receiver_means_what_was_declared_last(time: int, alias: str | None) -> None:
    said = [(10, 0, D, 1, 0, "one"), (20, 0, U, 1, 0, ""), (30, 0, D, 1, 0, "two")]
    assert _alias_at(said, 1, 1, time=time) == alias


def test_an_id_of_the_sender_means_what_stands_before_it() -> None:
    said = [(10, 0, D, 1, 0, "one"), (10, 0, U, 1, 0, ""), (10, 0, D, 1, 0, "two")]
    assert [_alias_at(said, 0, 1, place=at) for at in range(3)] == ["one", None, "two"]


@pytest.mark.parametrize("order", [1, -1])
def test_a_declaration_by_an_id_of_the_other_side_at_the_same_time(order: int) -> None:
    said = [(10, 0, D, 1, 0, "a"), (10, 1, D, 2, 1, "/b"), (10, 0, D, 3, 2, "/c")][::order]
    assert _alias_at(said, 0, 3, place=5) == "a/b/c"


def test_a_circle_is_nothing() -> None:
    said = [(10, 0, D, 1, 2, "/a"), (10, 1, D, 2, 1, "/b")]
    assert _alias_at(said, 0, 1, place=5) is None


def test_long_chains_neither_recurse_nor_grow() -> None:
    suffix = "x" * 100
    said = [(i, i % 2, D, i + 1, i, suffix) for i in range(5000)]
    longest = KEY_SUFFIX_MAX // 100
    assert _alias_at(said, (longest - 1) % 2, longest, place=5000) == suffix * longest
    assert _alias_at(said, longest % 2, longest + 1, place=5000) is None


# --- one query over links -----------------------------------------------------------------------


def _follow(*asked: tuple[int, int, int, str, str]) -> list[tuple[int, int] | None]:
    """(time, until, link, asker, asked) of requests for the same; what they are found to be."""
    rows = [
        ("x", 1, time, until, i, link, asker, answers)
        for i, (time, until, link, asker, answers) in enumerate(asked)
    ]
    rows.sort(key=lambda row: row[2])
    columns = [list(column) for column in zip(*rows, strict=True)]
    batch = pa.RecordBatch.from_arrays([pa.array(c) for c in columns], names=paths._INPUT)
    # In two batches: what is known goes on.
    halves = [batch.slice(0, len(rows) // 2), batch.slice(len(rows) // 2)]
    found = pa.Table.from_batches(paths._followed(iter(halves))).to_pylist()
    assert len(found) == len(asked)
    by_row = {row["request"]: row for row in found}
    return [
        None if by_row[i]["query_id"] is None else (by_row[i]["query_id"], by_row[i]["hop"])
        for i in range(len(asked))
    ]


def test_a_query_through_two_routers() -> None:
    asked = [(0, 9, 1, "q", "r"), (1, 8, 2, "r", "s"), (2, 7, 3, "s", "a"), (2, 6, 4, "s", "b")]
    assert _follow(*asked) == [(0, 0), (0, 1), (0, 2), (0, 2)]


def test_equal_times() -> None:
    asked = [(5, 5, 2, "r", "s"), (5, 5, 1, "q", "r"), (5, 5, 3, "s", "a")]
    assert _follow(*asked) == [(1, 1), (1, 0), (1, 2)]


def test_asked_again_after_the_end() -> None:
    asked = [(0, 3, 1, "q", "r"), (1, 2, 2, "r", "s"), (4, 9, 1, "q", "r"), (5, 8, 2, "r", "s")]
    assert _follow(*asked) == [(0, 0), (0, 1), (2, 0), (2, 1)]


def test_two_that_ask_the_same_at_once_cannot_be_told_apart() -> None:
    asked = [(0, 9, 1, "p", "r"), (1, 9, 2, "q", "r"), (2, 9, 3, "r", "s"), (3, 9, 4, "s", "a")]
    assert _follow(*asked) == [(0, 0), (1, 0), None, None]


def test_a_node_that_seems_to_forward_twice() -> None:
    asked = [(0, 9, 1, "q", "r"), (1, 9, 2, "r", "s"), (2, 9, 2, "r", "s")]
    assert _follow(*asked) == [(0, 0), None, None]


def test_a_query_does_not_go_back() -> None:
    asked = [(0, 9, 1, "q", "r"), (1, 9, 2, "r", "q"), (2, 9, 1, "r", "x")]
    assert _follow(*asked) == [(0, 0), (1, 0), (2, 0)]


def test_a_circle_of_equal_times_is_nothing() -> None:
    asked = [(0, 9, 1, "a", "b"), (0, 9, 2, "b", "c"), (0, 9, 3, "c", "a")]
    assert _follow(*asked) == [None, None, None]
