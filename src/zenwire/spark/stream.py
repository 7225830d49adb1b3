"""``spark.readStream.format("zenoh.capture")``: a directory that a rotating capture is written to.

Files come in order of their first packet, and the last one grows. They continue one another: a
connection goes on from file to file, so what is known of it goes on from one micro-batch to the
next. It is kept beside the driver; after a restart it is found again by an index pass over the
files that are still there. Options: ``maxBytesPerTrigger``, ``maxPartitionBytes``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from zenwire.capture import Checkpoint, Part, Range, index
from zenwire.capture.rotation import Turn, check, first_time
from zenwire.capture.table import FaultRow, fault_rows
from zenwire.errors import CaptureError
from zenwire.spark.source import Ranges, rows_of

__all__ = ["CaptureStream", "Offset"]

_NOTHING: Final = Turn(-1, "")


class Offset(NamedTuple):
    """How far a stream was read: all before ``turn``, and so much of that file.

    ``first`` is the file that it began with: where that is gone, so is what came of it.
    """

    first: Turn
    turn: Turn
    position: int

    def as_json(self) -> dict[str, Any]:
        """As Spark keeps it: primitive values alone."""
        return {
            "first": self.first.path,
            "firstTime": self.first.time,
            "file": self.turn.path,
            "time": self.turn.time,
            "position": self.position,
        }

    @classmethod
    def of_json(cls, said: dict[str, Any]) -> Offset:
        first = Turn(int(said["firstTime"]), said["first"])
        return cls(first, Turn(int(said["time"]), said["file"]), int(said["position"]))


class CaptureStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver; tasks read the ranges of them."""

    def __init__(self, path: str, trigger_bytes: int, partition_bytes: int) -> None:
        self._path = path
        self._trigger_bytes = trigger_bytes
        self._partition_bytes = partition_bytes
        self._known: dict[Offset, Checkpoint] = {}
        self._target: Offset | None = None

    # What is there.

    def _files(self) -> list[Turn]:
        """The files of the directory that have a packet. Raises CaptureError."""
        try:
            names = [str(p) for p in Path(self._path).iterdir() if p.is_file()]
        except OSError as e:
            raise CaptureError(self._path, e.strerror or str(e)) from None
        found = []
        for name in names:
            if Path(name).name.startswith("."):
                continue
            time = first_time(name)
            if time is not None:
                found.append(Turn(time, name))
        return sorted(found)

    def _available(self, start: Offset, most: int) -> Offset:
        """The farthest offset of at most so many bytes after another one."""
        files = [turn for turn in self._files() if turn >= start.turn]
        first, turn, position = start
        for number, there in enumerate(files):
            begin = position if there == turn else 0
            size = Path(there.path).stat().st_size
            room = size - begin
            if check(there.path):
                # What is compressed has no places in it, and is read once it has a successor.
                if number + 1 == len(files):
                    break
            else:
                room = min(room, most)
            if room or there != turn:
                turn, position = there, begin + room
                first = there if first == _NOTHING else first
            most -= room
            if most <= 0:
                break
        return Offset(first, turn, position)

    # Offsets.

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return Offset(_NOTHING, _NOTHING, 0).as_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxBytes(self._trigger_bytes) if self._trigger_bytes else ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        begin = Offset.of_json(start)
        most = limit.max_bytes if isinstance(limit, ReadMaxBytes) else sys.maxsize
        end = self._available(begin, most)
        if self._target is not None and end[1:] > self._target[1:]:
            end = self._target if self._target[1:] > begin[1:] else begin
        return end.as_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._target = self._available(Offset(_NOTHING, _NOTHING, 0), sys.maxsize)

    # Micro-batches.

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        begin, stop = Offset.of_json(start), Offset.of_json(end)
        if begin[1:] == stop[1:]:
            return []
        files = self._files()
        faults = []
        checkpoint = self._known.get(begin)
        if checkpoint is None and begin.turn != _NOTHING:
            checkpoint, deleted = self._state_at(begin, files)
            faults = [deleted] if deleted else []
        parts = self._parts([turn for turn in files if begin.turn <= turn], stop)
        if checkpoint is None:
            # From here on nothing is known: the file that it was in is gone, or none was read.
            checkpoint = Checkpoint(0, None, b"")
        elif begin.turn in files and check(begin.turn.path):
            parts = parts[1:]
        found = index(Range(self._path, parts, checkpoint, None, ends=False), self._partition_bytes)
        assert found.end is not None
        self._known = {begin: checkpoint, stop: _last_part(found.end, len(parts))}
        planned = [Ranges((some,)) for some in found.ranges]
        if faults:
            rows = fault_rows(
                self._path,
                _no_flow,
                [FaultRow(-1, 0, 0, -1, name, 0, 0, 0, max(begin.turn.time, 0)) for name in faults],
            )
            planned.insert(0, Ranges((), rows))
        return planned

    def _parts(self, files: list[Turn], stop: Offset) -> tuple[Part, ...]:
        """The files up to an offset; the last one as far as that says."""
        parts = [Part(turn.path) for turn in files if turn < stop.turn]
        if stop.turn in files:
            growing = not check(stop.turn.path)
            size = {"size": stop.position, "growing": True} if growing else {}
            parts.append(Part(stop.turn.path, **size))  # type: ignore[arg-type]  # of both
        return tuple(parts)

    def _state_at(self, there: Offset, files: list[Turn]) -> tuple[Checkpoint | None, str | None]:
        """What was known at an offset, as far as the files say; and what they do not say any more."""
        if there.turn not in files:
            return None, "file_deleted"
        parts = self._parts([turn for turn in files if turn <= there.turn], there)
        found = index(Range(self._path, parts, None, None, ends=False), sys.maxsize)
        assert found.end is not None
        lost = None if files[0] == there.first else "file_deleted"
        return _last_part(found.end, len(parts)), lost

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Ranges)
        return rows_of(partition)


def _last_part(checkpoint: Checkpoint, parts: int) -> Checkpoint:
    """The same where the last of those files is the first of the next ones, or was read up."""
    return checkpoint._replace(part=0, place=checkpoint.place if checkpoint.part < parts else None)


def _no_flow(number: int) -> Any:  # these rows have none
    raise LookupError(number)
