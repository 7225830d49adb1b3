"""What each stream goes through: handshake, batches, loss, recovery, end.

A stream begins with INIT and OPEN, whose InitAck says how the batches after them are wrapped;
one that does not is searched for batches. What becomes no batch is a ``StreamFault``, so that the
bytes of all add up.
"""

from __future__ import annotations

from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from zenwire.capture import kernels as k
from zenwire.capture.recovery import (
    Damage,
    continues,
    find_batch,
    hides_batches,
    length_at,
    prefix_of,
)
from zenwire.capture.runs import Framed, Phase, Run, Saved, StreamFault
from zenwire.errors import DecodeError
from zenwire.wire.batch import walk
from zenwire.wire.define import spec_of
from zenwire.wire.transport import VERSION, InitAck, InitSyn, OpenAck, OpenSyn

__all__ = ["Phases"]

SEARCH_MAX: Final = 256 << 10
"""Bytes without a batch after which a stream counts as not Zenoh."""
WAIT_MAX: Final = 256 << 10
"""Bytes that wait for what the other direction says of how batches are wrapped."""

_INIT: Final = spec_of(InitSyn).id

V = TypeVar("V")

Int64 = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


class Phases:
    """The state of every stream, and the batches and faults of the pieces at hand."""

    def __init__(self) -> None:
        self.faults: list[StreamFault] = []
        self._kept: Int64 = np.zeros((0, k.KEPT_COLUMNS), np.int64)
        self._broken: dict[int, Damage] = {}
        self._modes: dict[int, int] = {}
        self._openers: dict[int, int] = {}
        self._zenoh: set[int] = set()
        self._foreign: dict[int, list[int]] = {}
        self._waiting: dict[int, int] = {}
        self._looking: set[int] = set()
        self._out: Int64 = np.empty((k.BATCH_COLUMNS, 16_384 + 8), np.int64)
        self._x = np.zeros(k.FRAME_STATE + 1, np.int64)
        self._work: Bytes = np.empty(0, np.uint8)
        self._rows: Int64 = np.empty((7, 0), np.int64)
        self._order: Int64 = np.empty(0, np.int64)

    def is_zenoh(self, stream: int) -> bool:
        """Whether a direction of its connection was found to be Zenoh."""
        return stream // 2 in self._zenoh

    def opener(self, connection: int) -> int:
        """The side that sent InitSyn, -1 if that was not seen."""
        return self._openers.get(connection, -1)

    # The pieces at hand.

    def begin(self, work: Bytes, rows: Int64, order: Int64, streams: int) -> None:
        """What the next calls are about."""
        self._work, self._rows, self._order = work, rows, order
        self._grow(streams)

    def _grow(self, streams: int) -> None:
        old = len(self._kept)
        if streams > old:
            more = max(streams, 2 * old) + 64 - old
            self._kept = np.concatenate([self._kept, np.zeros((more, k.KEPT_COLUMNS), np.int64)])
            self._kept[old:, k.K_LANES :] = -1
            self._kept[old:, k.K_MODE] = -1

    def framed(self, work: Bytes) -> Framed:
        """The batches and faults since the last call."""
        found = Framed(work, self._out, int(self._x[k.X_ROWS]), tuple(self.faults))
        self._x[:] = 0
        self.faults.clear()
        return found

    def drop_foreign(self, rows: Int64) -> Int64:
        """Rows without those of streams that are not Zenoh, which are counted."""
        if not self._foreign:
            return rows
        self._grow(int(rows[k.G_STREAM].max()) + 1)
        foreign = self._kept[rows[k.G_STREAM], k.K_PHASE] == Phase.FOREIGN
        if not foreign.any():
            return rows
        for stream, kind, length, time in rows[:, foreign][
            [k.G_STREAM, k.G_KIND, k.G_LENGTH, k.G_TIME]
        ].T.tolist():
            count = self._foreign[stream]
            if kind == k.END:
                self._end_foreign(stream, time)
            else:
                count[kind] += length
        return rows[:, ~foreign]

    def _pass_foreign(self, run: Run) -> None:
        if run.after == k.GAP:
            self._foreign[run.stream][1] += int(self._rows[k.G_LENGTH, self._order[run.stop]])
        elif run.after == k.END:
            self._end_foreign(run.stream, self._time(run))

    def _end_foreign(self, stream: int, time: int) -> None:
        skipped, missing = self._foreign.pop(stream)
        self._kept[stream, k.K_PHASE] = Phase.ENDED
        self.faults.append(StreamFault(stream, "not_zenoh", 0, skipped, missing, time))

    def frame_simple(self, runs: Int64) -> None:
        """All streams at once that have their batches one after another."""
        x = self._x
        x[k.FRAME_STATE] = 0
        while True:
            k.ready(k.frame_runs)(
                self._work, runs, len(runs), self._rows, self._order, self._kept, x, self._out
            )
            if x[k.FRAME_STATE] >= len(runs):
                return
            self._more_room()

    def _more_room(self) -> None:
        self._out = np.concatenate([self._out, np.empty_like(self._out)], axis=1)

    # One stream.

    def frame_stream(self, runs: list[Run]) -> Int64:
        """Any stream. Gives [first piece, stop, start] of what is left of it."""
        stream = runs[0].stream
        self._waiting.pop(stream, None)
        for run in runs:
            while self._step(run):
                pass
            phase = self._kept[stream, k.K_PHASE]
            if phase == Phase.FOREIGN:
                self._pass_foreign(run)
                continue
            if phase == Phase.WAITING and run.end > run.start:
                # The pieces after it wait too.
                self._waiting[stream] = runs[-1].end - run.start
                return np.array([[run.first, self._stop(runs), run.start]], np.int64)
            if run.after == k.GAP:
                self._gap(run)
            elif run.after == k.END:
                self._end(run)
            elif run.end > run.start:
                return np.array([[run.first, run.stop, run.start]], np.int64)
        return np.empty((0, 3), np.int64)

    def _stop(self, runs: list[Run]) -> int:
        last = runs[-1]
        return last.stop + (last.after != k.NOTHING_YET)

    def _step(self, run: Run) -> bool:
        """One thing that can be done now. False if there is nothing, or bytes are wanted."""
        if run.start >= run.end:
            return False
        match int(self._kept[run.stream, k.K_PHASE]):
            case Phase.NEW | Phase.OPENING:
                return self._handshake(run)
            case Phase.WAITING:
                return self._negotiated(run)
            case Phase.FRAMED:
                return self._batches(run)
            case Phase.BROKEN:
                return self._recover(run)
            case Phase.FOREIGN:
                self._foreign[run.stream][0] += run.skip(run.end)
        return False

    def _emit(self, run: Run, end: int, mode: int) -> None:
        """One batch, whatever it looks like."""
        kept = self._kept[run.stream]
        before = kept[k.K_MODE]
        kept[k.K_MODE] = mode
        self._frame(run, end, final=True, force=True)
        kept[k.K_MODE] = before

    def _frame(self, run: Run, end: int, *, final: bool, force: bool = False) -> int:
        x = self._x
        x[k.X_POS], x[k.X_PIECE], x[k.X_FORCE] = run.start, run.first, force
        while True:
            k.ready(k.frame)(
                self._work,
                int(x[k.X_POS]) - run.offset - (int(x[k.X_POS]) - run.start),
                end,
                int(final),
                run.stream,
                self._rows,
                self._order,
                run.stop,
                self._kept[run.stream],
                x,
                self._out,
            )
            if x[k.X_WHY] != k.NO_ROOM:
                break
            self._more_room()
        run.skip(int(x[k.X_POS]))
        run.first = int(x[k.X_PIECE])
        return int(x[k.X_WHY])

    def _time(self, run: Run) -> int:
        """When the byte at hand came or, after the last, the gap or end."""
        rows, order, piece = self._rows, self._order, run.first
        while piece < run.stop:
            row = order[piece]
            if rows[k.G_POS, row] + rows[k.G_LENGTH, row] > run.start:
                break
            piece += 1
        return int(rows[k.G_TIME, order[min(piece, len(order) - 1)]])

    # Handshake.

    def _handshake(self, run: Run) -> bool:
        """INIT or OPEN, in a batch of its own."""
        work, at = self._work, run.start
        kept = self._kept[run.stream]
        new = kept[k.K_PHASE] == Phase.NEW
        if run.end - at < 3:
            return False
        length = length_at(work, at, k.PLAIN)
        end = at + 2 + length
        header = int(work[at + 2])
        if not length or (new and (header & 0x1F != _INIT or run.offset)):
            return self._break(run, "handshake")
        if header & 0x1F == _INIT and run.end - at > 3 and work[at + 3] != VERSION:
            return self._break(run, "handshake")
        if end > run.end:
            return False
        try:
            first = next(walk(work[at + 2 : end].tobytes())).message
        except (DecodeError, StopIteration):
            first = None
        connection, side = divmod(run.stream, 2)
        if isinstance(first, InitSyn | InitAck):
            self._zenoh.add(connection)
            kept[k.K_PHASE] = Phase.OPENING
            self._openers[connection] = side if isinstance(first, InitSyn) else 1 - side
            if isinstance(first, InitAck):
                self._agree(connection, first)
        elif isinstance(first, OpenSyn | OpenAck) and not new:
            kept[k.K_PHASE] = Phase.WAITING
        elif new or first is None:
            return self._break(run, "handshake")
        self._emit(run, end, k.PLAIN)
        return True

    def _agree(self, connection: int, ack: InitAck) -> None:
        # A low-latency session compresses nothing, whatever else was agreed.
        mode = k.LOW_LATENCY if ack.lowlatency else k.COMPRESSED if ack.compression else k.PLAIN
        self._modes[connection] = mode

    def _negotiated(self, run: Run) -> bool:
        mode = self._modes.get(run.stream // 2)
        if mode is None:
            if run.stream in self._looking:
                self._looking.discard(run.stream)
                return self._break(run, "handshake")
            return False
        self._kept[run.stream, k.K_MODE] = mode
        self._kept[run.stream, k.K_PHASE] = Phase.FRAMED
        return True

    def released(self) -> set[int]:
        """Streams that wait for nothing any more."""
        return {stream for stream in self._waiting if stream // 2 in self._modes}

    def overdue(self, held_max: int = WAIT_MAX) -> set[int]:
        """Streams that waited long enough, and are to be searched for batches."""
        late = {stream for stream, held in self._waiting.items() if held > held_max}
        self._looking |= late
        return late

    # Streams that go, and a state that can be left and gone on from.

    def abandoned(self, streams: npt.NDArray[np.bool_]) -> set[int]:
        """Those of them that wait, and are to be searched for batches since nothing will come."""
        late = {stream for stream in self._waiting if streams[stream]}
        self._looking |= late
        return late

    def drop(self, kept: npt.NDArray[np.bool_], numbers: Int64) -> None:
        """Forgets streams but those that are True, which get other numbers."""
        self._grow(len(kept))
        left = self._kept[: len(kept)][kept]
        self._kept = self._kept[:0]
        self._grow(len(left))
        self._kept[: len(left)] = left
        of_stream = {s: int(numbers[s]) for s in np.flatnonzero(kept).tolist()}
        of_connection = {s // 2: n // 2 for s, n in of_stream.items()}
        self._broken = _renamed(self._broken, of_stream)
        self._foreign = _renamed(self._foreign, of_stream)
        self._waiting = _renamed(self._waiting, of_stream)
        self._looking = {of_stream[s] for s in self._looking if s in of_stream}
        self._modes = _renamed(self._modes, of_connection)
        self._openers = _renamed(self._openers, of_connection)
        self._zenoh = {of_connection[c] for c in self._zenoh if c in of_connection}

    def save(self, streams: int) -> Saved:
        self._grow(streams)
        return (
            self._kept[:streams].copy(),
            {stream: damage.save() for stream, damage in self._broken.items()},
            (self._modes, self._openers, self._zenoh),
            (self._foreign, self._waiting, self._looking),
        )

    def load(self, saved: Saved) -> None:
        kept, broken, of_connections, of_streams = saved
        self._grow(len(kept))
        self._kept[: len(kept)] = kept
        self._broken = {stream: Damage(*damage) for stream, damage in broken.items()}
        self._modes, self._openers, self._zenoh = of_connections
        self._foreign, self._waiting, self._looking = of_streams

    # Batches.

    def _batches(self, run: Run) -> bool:
        why = self._frame(run, run.end, final=run.final)
        work, at = self._work, run.start
        mode = int(self._kept[run.stream, k.K_MODE])
        if why == k.WANTS_MORE:
            if run.final and hides_batches(work, at + 1, run.end, mode):
                return self._break(run, "damaged", 1)
            return False
        length = length_at(work, at, mode)
        end = at + prefix_of(mode) + length
        if length <= k.BATCH_MAX:
            if end > run.end:
                sure: bool | None = False if run.final else None
            else:
                sure = continues(work, end, run.end, final=run.final, mode=mode)
            if sure is None:
                return False
            if sure:
                self._frame(run, end, final=True, force=True)
                return True
        elif mode == k.LOW_LATENCY and _is_last_close(work[at : run.end].tobytes()):
            if run.after == k.END:
                self._emit(run, run.end, k.PLAIN)
            return False
        return self._break(run, "damaged", 1)

    # Loss.

    def _break(self, run: Run, why: str, skipped: int = 0) -> bool:
        """From here on there is no telling where a batch begins."""
        kept = self._kept[run.stream]
        kept[k.K_PHASE] = Phase.BROKEN
        kept[k.K_LANES :] = -1
        damage = Damage(why, run.offset, self._time(run))
        damage.skipped = run.skip(run.start + skipped)
        self._broken[run.stream] = damage
        return True

    def _gap(self, run: Run) -> None:
        """Bytes are missing after this run, which is read as far as it goes."""
        row = self._order[run.stop]
        missing = int(self._rows[k.G_LENGTH, row])
        after = int(self._rows[k.G_OFFSET, row]) + missing
        damage = self._broken.get(run.stream)
        if damage is None:
            mode = int(self._kept[run.stream, k.K_MODE])
            framed = self._kept[run.stream, k.K_PHASE] == Phase.FRAMED
            resume = -1
            if framed and run.end - run.start >= prefix_of(mode):
                resume = run.offset + prefix_of(mode) + length_at(self._work, run.start, mode)
            self._break(run, "lost")
            damage = self._broken[run.stream]
            damage.resume = resume
        damage.why = "lost"
        damage.skipped += run.skip(run.end)
        damage.missing += missing
        if damage.resume < after:
            damage.resume = -1

    def _recover(self, run: Run) -> bool:
        damage = self._broken[run.stream]
        kept = self._kept[run.stream]
        mode = int(kept[k.K_MODE])
        if mode < 0:
            mode = self._modes.get(run.stream // 2, -1)
        if damage.resume >= 0:
            at = run.start + damage.resume - run.offset
            if at >= run.end:
                damage.skipped += run.skip(run.end)
                return False
            sure = continues(self._work, at, run.end, final=run.final, mode=mode)
            if sure is None:
                return False
            damage.resume = -1
            if sure:
                damage.skipped += run.skip(at)
                return self._mended(run, mode)
        zenoh = self.is_zenoh(run.stream)
        found = find_batch(
            self._work, run.start, run.end, damage, final=run.final, mode=mode, known=zenoh
        )
        moved = run.skip(found.at)
        damage.skipped += moved
        if found.mode >= 0:
            self._zenoh.add(run.stream // 2)
            return self._mended(run, found.mode)
        if not zenoh and damage.skipped > SEARCH_MAX:
            self._give_up(run)
            return True
        return False

    def _mended(self, run: Run, mode: int) -> bool:
        kept = self._kept[run.stream]
        kept[k.K_MODE] = mode
        kept[k.K_PHASE] = Phase.FRAMED
        self._modes.setdefault(run.stream // 2, mode)
        self._report(run.stream)
        return True

    def _report(self, stream: int) -> None:
        damage = self._broken.pop(stream, None)
        if damage and (damage.skipped or damage.missing):
            self.faults.append(
                StreamFault(
                    stream, damage.why, damage.offset, damage.skipped, damage.missing, damage.time
                )
            )

    def _give_up(self, run: Run) -> None:
        """Not Zenoh: what was skipped so far belongs to something else."""
        damage = self._broken.pop(run.stream, None)
        self._kept[run.stream, k.K_PHASE] = Phase.FOREIGN
        self._foreign[run.stream] = [damage.skipped, damage.missing] if damage else [0, 0]

    def _end(self, run: Run) -> None:
        """The stream is over."""
        stream = run.stream
        if run.end > run.start:
            if stream not in self._broken:
                self._break(run, "truncated")
            self._broken[stream].skipped += run.skip(run.end)
        time = self._time(run)
        if self.is_zenoh(stream):
            self._report(stream)
            self._kept[stream, k.K_PHASE] = Phase.ENDED
        elif stream in self._broken:
            self._give_up(run)
            self._end_foreign(stream, time)
        else:
            self._kept[stream, k.K_PHASE] = Phase.ENDED


def _renamed(old: dict[int, V], names: dict[int, int]) -> dict[int, V]:
    return {names[key]: value for key, value in old.items() if key in names}


def _is_last_close(data: bytes) -> bool:
    """The reference ends a low-latency stream with a CLOSE that has the other prefix."""
    return len(data) == 4 and data[:2] == b"\x02\x00" and data[2] & 0x5F == 0x03
