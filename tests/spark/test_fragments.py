"""Messages in pieces, put together by tasks that see parts of a stream."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from zenwire.spark.tables.fragments import Broken, Reassembly, stitched
from zenwire.spark.tables.input import BATCH, prepared, scans
from zenwire.spark.tables.scan import Selection
from zenwire.spark.tables.tasks import Task
from zenwire.wire import encode
from zenwire.wire.batch import encode_batch
from zenwire.wire.data import Put
from zenwire.wire.network import Push
from zenwire.wire.transport import Fragment, KeepAlive
from zenwire.wire.values import WireExpr

_TYPES = {
    "capture": pa.string(), "flow": pa.int64(), "connection": pa.int32(),
    "direction": pa.string(), "time": pa.int64(), "sequence": pa.int64(), "source": pa.string(),
    "source_port": pa.int32(), "target": pa.string(), "target_port": pa.int32(),
    "bytes": pa.binary(), "scouting": pa.bool_(), "lowlatency": pa.bool_(),
    "compression": pa.bool_(),
}  # fmt: skip
_SCHEMA = pa.schema([pa.field(name, _TYPES[name]) for name in BATCH])
_MODULUS = 2**28


class Piece(NamedTuple):
    """One FRAGMENT in a batch of its own, or a batch with none."""

    sn: int
    reliable: bool = True
    more: bool = True
    first: bool = False
    drop: bool = False
    data: bytes | None = b""


def _batch(number: int, piece: Piece) -> dict[str, Any]:
    message: Any = KeepAlive()
    if piece.data is not None:
        message = Fragment(
            sn=piece.sn,
            reliable=piece.reliable,
            more=piece.more,
            first=piece.first,
            drop=piece.drop,
            payload=piece.data,
        )
    return {
        "capture": "x", "flow": 1, "connection": 0, "direction": "to_acceptor",
        "time": number, "sequence": number, "source": "a", "source_port": 1, "target": "b",
        "target_port": 2, "bytes": encode_batch([message]), "scouting": False,
        "lowlatency": False, "compression": False,
    }  # fmt: skip


def _expected(pieces: list[Piece]) -> tuple[set[int], set[tuple[int, int, bool]]]:
    """Places of the last pieces of messages, and (place, pieces, given up) of what is none."""
    whole, broken = set(), set()
    for reliable in (True, False):
        lane = [(i, p) for i, p in enumerate(pieces) if p.data is not None]
        lane = [(i, p) for i, p in lane if p.reliable is reliable]
        marked = any(p.first for _, p in lane)
        chains: list[list[tuple[int, Piece]]] = []
        for i, p in lane:
            before = chains[-1][-1][1] if chains else None
            goes_on = before and before.more and (before.sn + 1) % _MODULUS == p.sn
            if goes_on and not p.first:
                chains[-1].append((i, p))
            else:
                chains.append([(i, p)])
        for chain in chains:
            drop = any(p.drop for _, p in chain)
            begun = chain[0][1].first or not marked
            if begun and not chain[-1][1].more and not drop:
                whole.add(chain[-1][0])
            else:
                broken.add((chain[-1][0], len(chain), drop))
    return whole, broken


def _run(
    tasks: list[list[list[dict[str, Any]]]], *, in_order: bool
) -> tuple[dict[int, dict[str, Any]], set[tuple[int, int, bool]], int]:
    whole: dict[int, dict[str, Any]] = {}
    runs: list[dict[str, Any]] = []
    for task in tasks:
        reassembly = Reassembly(in_order=in_order)
        judged = []
        for part in task:
            for rows, scan in scans(prepared(pa.RecordBatch.from_pylist(part, _SCHEMA))):
                reassembly.take(rows, scan)
            judged.append(reassembly.judge())
        judged.append(reassembly.judge(end=True))
        for one in judged:
            if one is not None:
                whole |= _by_place(one.whole, whole)
                runs += one.runs.to_pylist()
    # What Spark does in between.
    for reliable in (True, False):
        lane = [run for run in runs if run["reliable"] is reliable]
        marked = any(run["marked"] for run in lane)
        for run in lane:
            run["marked"] = marked
    runs.sort(key=lambda run: (run["reliable"], run["first_place"]))
    count = len(runs)
    broken = set()
    for found in stitched(runs):
        if isinstance(found, Broken):
            broken.add((found.last["sequence"], found.pieces, found.reason.startswith("given up")))
        else:
            whole |= _by_place(found, whole)
    return whole, broken, count


def _by_place(found: pa.RecordBatch, known: dict[int, Any]) -> dict[int, dict[str, Any]]:
    rows = found.to_pylist()
    places = {row["sequence"] for row in rows}
    assert len(places) == len(rows)
    assert not places & set(known)
    return {row["sequence"]: row for row in rows}


def _traffic(chance: random.Random, *, marks: bool, wrap: int) -> Iterator[Piece]:
    """Messages of both lanes in turns, of which some pieces are lost, doubled or given up."""
    numbers = {True: _MODULUS - 5, False: 100}
    open_ = {True: 0, False: 0}
    for _ in range(chance.randint(1, 60)):
        if chance.random() < 0.1:
            yield Piece(0, data=None)
            continue
        reliable = chance.random() < 0.7
        first = open_[reliable] == 0
        if first:
            open_[reliable] = chance.randint(2, 6)
        open_[reliable] -= 1
        piece = Piece(
            numbers[reliable],
            reliable,
            more=open_[reliable] > 0,
            first=first and marks,
            drop=chance.random() < 0.03,
            data=bytes([chance.randrange(256)]) * chance.randint(0, 3),
        )
        step = chance.choices([1, 2, wrap], [30, 1, 1])[0]
        numbers[reliable] = (numbers[reliable] + step) % _MODULUS
        if chance.random() > 0.05:
            yield piece
        if chance.random() < 0.03:
            yield piece


@pytest.mark.parametrize("seed", range(150))
def test_tasks_find_what_one_reader_would(seed: int) -> None:
    chance = random.Random(seed)
    pieces = list(_traffic(chance, marks=seed % 5 > 0, wrap=_MODULUS - chance.randint(1, 9)))
    rows = [_batch(i, piece) for i, piece in enumerate(pieces)]
    cuts = sorted(chance.choices(range(len(rows) + 1), k=chance.randint(0, 6)))
    parts = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    expected = _expected(pieces)
    # Each task has some record batches; then each row, wherever it was moved to.
    in_order = [[part[: len(part) // 2], part[len(part) // 2 :]] for part in parts]
    whole, broken, _ = _run(in_order, in_order=True)
    assert (set(whole), broken) == expected
    moved: list[list[dict[str, Any]]] = [[], []]
    for row in rows:
        moved[chance.randrange(2)].append(row)
    whole, broken, _ = _run([[part] for part in moved], in_order=False)
    assert (set(whole), broken) == expected


def test_what_is_whole_in_a_task_does_not_leave_it() -> None:
    message = encode(Push(key=WireExpr(0, "a/key"), body=Put(payload=b"x" * 1000)))
    parts = [message[i : i + 100] for i in range(0, len(message), 100)]
    pieces = [
        Piece(sn, more=sn < len(parts) - 1, first=sn == 0, data=part)
        for sn, part in enumerate(parts)
    ]
    rows = [_batch(i, piece) for i, piece in enumerate(pieces)]
    for tasks in ([[rows]], [[rows[:3], rows[3:]]], [[rows[:3]], [rows[3:]]]):
        whole, broken, runs = _run(tasks, in_order=True)
        assert list(whole) == [len(parts) - 1]
        assert not broken
        # One that says that a message stood there, or the two halves.
        assert runs == len(tasks)
        row = whole[len(parts) - 1]
        assert (row["bytes"], row["at"], row["sn"]) == (message, 0, len(parts) - 1)


def test_rows_are_made_of_messages_that_were_in_pieces() -> None:
    message = encode(Push(key=WireExpr(0, "a/key"), body=Put(payload=b"x" * 1000)))
    pieces = [Piece(7, first=True, data=message[:400]), Piece(8, more=False, data=message[400:])]
    rows = [_batch(i, piece) for i, piece in enumerate(pieces)]
    task = Task(Selection(("sequence", "key_suffix", "payload", "sn"), network=frozenset({"PUSH"})))
    given = [pa.RecordBatch.from_pylist(rows, _SCHEMA)]
    (found,) = [row for batch in task(given) for row in batch.to_pylist()]
    assert found == {"sequence": 1, "key_suffix": "a/key", "payload": b"x" * 1000, "sn": 8}
    again = Task.from_text(task.to_text())
    assert again == task
    assert [b.to_pylist() for b in again.read(given, in_order=True)] == [[found]]


@pytest.mark.parametrize("text", ["", "{}", '{"edges": true, "rows": {"columns": ["none"]}}'])
def test_what_is_no_task(text: str) -> None:
    with pytest.raises(ValueError, match=r"task|Expecting"):
        Task.from_text(text)
