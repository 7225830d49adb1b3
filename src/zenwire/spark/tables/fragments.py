"""FRAGMENTs to whole messages.

Pieces of a message have consecutive sequence numbers of one lane, and anything else in that lane
ends them. A task puts together what it sees all pieces of (``Reassembly``). What is left are runs:
pieces that follow one another, of which more may be in other tasks. They are few, and are joined
lane by lane (``stitched``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zenwire.columns import Scan
from zenwire.spark.tables.input import CONTEXT, INPUT, mixed, place_of
from zenwire.spark.tables.scan import Selection
from zenwire.transport.limits import MAX_MESSAGE_SIZE
from zenwire.wire.values import Resolution

__all__ = ["RUNS", "Broken", "Judged", "Reassembly", "stitched"]

_LANE: Final = ("offset", "sn", "reliable", "priority")
_PIECES: Final = Selection(
    (*CONTEXT.names, "side_id", *_LANE, "more", "first", "drop", "payload"),
    transport=frozenset({"FRAGMENT"}),
)
_MODULI: Final = tuple(Resolution.of(bits).sn_modulus for bits in (8, 16, 32, 64))
"""Where sequence numbers begin again; which it is does not matter here."""
_KEPT_MAX: Final = 64 << 20
"""Bytes of unfinished messages that a task keeps; it gives more away as runs."""
_ROWS_BYTES: Final = 4 << 20
"""Of messages in a record batch, about."""

RUNS: Final = pa.schema(
    [
        # Of the last piece.
        *CONTEXT,
        pa.field("side_id", pa.int64()),
        pa.field("offset", pa.int32()),
        pa.field("sn", pa.int64()),
        pa.field("reliable", pa.bool_()),
        pa.field("priority", pa.int32()),
        pa.field("more", pa.bool_()),
        # Of the first piece.
        pa.field("first_place", pa.int64()),
        pa.field("first_sn", pa.int64()),
        pa.field("first", pa.bool_()),
        # Whether the piece before or after may be in another task.
        pa.field("open_left", pa.bool_()),
        pa.field("open_right", pa.bool_()),
        pa.field("drop", pa.bool_()),
        # Whether this task saw a first piece in the lane. An old sender marks none, ever.
        pa.field("marked", pa.bool_()),
        # 0 for a message that is whole, and stands here for what it is: not the one before.
        pa.field("pieces", pa.int64()),
        pa.field("payload", pa.binary()),
    ]
)
"""Pieces that follow one another, and are no whole message."""

Bools = npt.NDArray[np.bool_]
Int64 = npt.NDArray[np.int64]


class Judged(NamedTuple):
    """Messages as ``INPUT``, and ``RUNS``."""

    whole: pa.RecordBatch
    runs: pa.RecordBatch


class Broken(NamedTuple):
    """Pieces that did not become a message, and why."""

    last: dict[str, Any]
    from_sn: int
    pieces: int
    reason: str


class Reassembly:
    """The pieces that one task sees.

    ``in_order`` says that it sees all batches of a stream between the first and the last, as a
    reader gives them. If not, pieces are known to be next to each other only if their batches are.
    """

    def __init__(self, *, in_order: bool) -> None:
        self._in_order = in_order
        self._pieces: list[pa.RecordBatch] = []
        self._new = False

    def take(self, rows: pa.RecordBatch, scan: Scan) -> None:
        """What a scan holds of them."""
        found = list(_PIECES.of(rows, scan))
        self._pieces += found
        self._new |= bool(found)

    def judge(self, *, end: bool = False) -> Judged | None:
        """What has become whole, and what will not become it here. ``end``: nothing comes."""
        if not self._pieces or not (self._new or end):
            return None
        some = _Pieces(_one(self._pieces), in_order=self._in_order)
        self._pieces, self._new = [], False
        keep = some.unfinished()
        if end or not self._in_order or some.size_of(keep) > _KEPT_MAX:
            keep = np.zeros_like(keep)
        elif keep.any():
            self._pieces = [some.table.filter(pa.array(np.repeat(keep, some.lengths)))]
        return Judged(some.whole(), some.runs(keep))


class _Pieces:
    """Pieces in order of lane and place, and the runs that they make."""

    def __init__(self, table: pa.RecordBatch, *, in_order: bool) -> None:
        lane = table.column("side_id").to_numpy()
        for name in ("reliable", "priority"):
            lane = mixed(lane, pc.fill_null(table.column(name).cast(pa.int32()), -1).to_numpy())
        sequence, offset = _numbers(table, "sequence"), _numbers(table, "offset")
        order = np.lexsort((offset, sequence, lane))
        if (order[1:] < order[:-1]).any():
            table = table.take(pa.array(order))
            lane, sequence, offset = lane[order], sequence[order], offset[order]
        self.table = table
        self._place = place_of(sequence, offset)
        sn, more = _numbers(table, "sn"), _flags(table, "more")
        first = _flags(table, "first")
        same = lane[1:] == lane[:-1]
        # Whether the piece before is known to be the one before in its lane.
        next_to = same if in_order else same & (np.diff(sequence) <= 1)
        after = np.concatenate([[False], next_to])
        goes_on = after & ~first
        goes_on[1:] &= _follow(sn[:-1], sn[1:]) & more[:-1]
        starts = np.flatnonzero(~goes_on)
        ends = np.append(starts[1:], len(lane))
        self.lengths = ends - starts
        self._starts, self._last = starts, ends - 1
        self._first = first[starts]
        self._more = more[self._last]
        self._open_left = ~after[starts] & ~self._first
        self._open_right = self._more & ~np.append(after, False)[ends]
        self._alone = ~after[starts]
        self._drop = np.logical_or.reduceat(_flags(table, "drop"), starts)
        lanes = np.flatnonzero(np.concatenate([[True], ~same]))
        marked = np.logical_or.reduceat(first, lanes)
        self._marked = marked[np.searchsorted(lanes, starts, "right") - 1]
        self._is_whole: Bools = self._first & ~self._more & ~self._drop
        payload = table.column("payload")
        offsets = np.frombuffer(payload.buffers()[1], np.int32)[
            payload.offset : payload.offset + len(payload) + 1
        ]
        self._bounds = np.append(offsets[starts], offsets[-1])
        # Pieces that follow one another lie side by side: as one, they are not copied.
        self._bytes = pa.Array.from_buffers(
            pa.binary(), len(starts), [None, pa.py_buffer(self._bounds), payload.buffers()[2]]
        )

    def unfinished(self) -> Bools:
        """Which runs may go on."""
        runs: Bools = self._open_right & ~self._drop
        return runs

    def size_of(self, runs: Bools) -> int:
        return int(np.diff(self._bounds)[runs].sum())

    def whole(self) -> pa.RecordBatch:
        last = self.table.take(pa.array(self._last[self._is_whole]))
        return _as_input(last, self._bytes.filter(pa.array(self._is_whole)))

    def runs(self, keep: Bools) -> pa.RecordBatch:
        # What stands before the first run here is not known: it must not be joined over a message.
        stands = self._is_whole & self._alone
        mask = ~self._is_whole & ~keep | stands
        last = self.table.take(pa.array(self._last[mask]))
        none = pa.array(stands[mask])
        made = {
            "first_place": pa.array(self._place[self._starts[mask]]),
            "first_sn": pa.array(_numbers(self.table, "sn")[self._starts[mask]]),
            "first": pa.array(self._first[mask]),
            "open_left": pa.array(self._open_left[mask]),
            "open_right": pa.array(self._open_right[mask]),
            "drop": pa.array(self._drop[mask]),
            "marked": pa.array(self._marked[mask]),
            "pieces": pc.if_else(none, 0, pa.array(self.lengths[mask])),
            "payload": pc.if_else(none, b"", self._bytes.filter(pa.array(mask))),
        }
        arrays = [made[f.name] if f.name in made else last.column(f.name) for f in RUNS]
        return pa.RecordBatch.from_arrays(arrays, schema=RUNS)


def stitched(runs: Iterable[dict[str, Any]]) -> Iterator[pa.RecordBatch | Broken]:
    """Messages as ``INPUT``, and what does not become one.

    ``runs`` are rows of ``RUNS`` in order of lane and place; ``marked`` is here whether any task
    saw a first piece in the lane.
    """
    whole: list[_Chain] = []
    size = 0
    for chain in _chains(runs):
        reason = chain.lacks
        if reason is not None:
            yield Broken(chain.last, chain.begin["first_sn"], chain.pieces, reason)
            continue
        whole.append(chain)
        size += chain.size
        if size > _ROWS_BYTES:
            yield _made(whole)
            whole, size = [], 0
    if whole:
        yield _made(whole)


class _Chain:
    """Runs that follow one another."""

    def __init__(self, begin: dict[str, Any]) -> None:
        self.begin = begin
        self.pieces = self.size = 0
        self.given_up = False
        self.contents: list[bytes] = []
        self.add(begin)

    def add(self, run: dict[str, Any]) -> None:
        self.last = run
        self.pieces += run["pieces"]
        self.given_up |= run["drop"]
        payload = run.pop("payload")
        self.size += len(payload)
        # Of a message without end the pieces are counted, not kept.
        self.contents.append(payload)
        if self.size > MAX_MESSAGE_SIZE:
            self.contents.clear()

    def takes(self, run: dict[str, Any]) -> bool:
        last = self.last
        same = all(last[name] == run[name] for name in ("side_id", "reliable", "priority"))
        return (
            same
            and last["open_right"]
            and run["open_left"]
            and _is_next(last["sn"], run["first_sn"])
        )

    @property
    def lacks(self) -> str | None:
        """Why it is no message."""
        if self.given_up:
            return "given up by the sender"
        begun = self.begin["first"] or not self.begin["marked"]
        if not begun or self.last["more"]:
            return "pieces are missing"
        if self.size > MAX_MESSAGE_SIZE:
            return "larger than a node takes"
        return None


def _chains(runs: Iterable[dict[str, Any]]) -> Iterator[_Chain]:
    chain: _Chain | None = None
    for run in runs:
        if chain is not None and chain.takes(run):
            chain.add(run)
            continue
        if chain is not None:
            yield chain
        chain = _Chain(run) if run["pieces"] else None
    if chain is not None:
        yield chain


def _made(whole: list[_Chain]) -> pa.RecordBatch:
    last = pa.RecordBatch.from_pylist([chain.last for chain in whole], RUNS)
    contents = [b"".join(chain.contents) for chain in whole]
    return _as_input(last, pa.array(contents, pa.binary()))


def _as_input(last: pa.RecordBatch, contents: pa.Array) -> pa.RecordBatch:
    """Bare messages, as in low latency, at the place of their last piece."""
    n = last.num_rows
    made = {
        "bytes": contents,
        "scouting": pa.repeat(pa.scalar(False), n),
        "lowlatency": pa.repeat(pa.scalar(True), n),
        "compression": pa.repeat(pa.scalar(False), n),
        "at": last.column("offset"),
    }
    arrays = [made[f.name] if f.name in made else last.column(f.name) for f in INPUT]
    return pa.RecordBatch.from_arrays(arrays, schema=INPUT)


def _follow(before: Int64, sn: Int64) -> Bools:
    """Which numbers come after others."""
    after = before + 1
    follow: Bools = (after == sn) | (np.isin(after, _MODULI) & (sn == 0))
    return follow


def _is_next(before: int, sn: int) -> bool:
    return before + 1 == sn or (before + 1 in _MODULI and sn == 0)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.concat_batches(batches)


def _numbers(table: pa.RecordBatch, name: str) -> Int64:
    found: Int64 = table.column(name).to_numpy().astype(np.int64)
    return found


def _flags(table: pa.RecordBatch, name: str) -> Bools:
    flags: Bools = pc.fill_null(table.column(name), fill_value=False).to_numpy(zero_copy_only=False)
    return flags
