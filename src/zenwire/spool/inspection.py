"""What is in a spool, for people: segments, how far readers are, and whether it is whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from zenwire.spool.errors import SpoolDamaged
from zenwire.spool.files import Place
from zenwire.spool.manifest import LOGS, Manifest, Segment
from zenwire.spool.reader import LogReader, Spool

__all__ = ["Info", "Reading", "Verified", "info", "ls", "verify"]


@dataclass(frozen=True, slots=True)
class Reading:
    """A registered reader: where it is, and how many rows it has not read."""

    name: str
    position: int
    behind: int
    updated: str
    broken: str


@dataclass(frozen=True, slots=True)
class Info:
    """A spool at a glance. ``lost`` are the rows that its losses count, by kind."""

    path: str
    manifest: Manifest
    earliest: int
    latest: int
    bytes: int
    losses: int
    lost: dict[str, int]
    readers: tuple[Reading, ...]

    @property
    def rows(self) -> int:
        return self.latest - self.earliest


@dataclass(frozen=True, slots=True)
class Verified:
    """What was read and is as it was written, and what is not."""

    rows: int
    bytes: int
    faults: tuple[SpoolDamaged, ...]


def ls(where: str | Path | Place, log: str = "samples") -> list[Segment]:
    """The segments, those that grow with what they have now. Raises SpoolError."""
    spool = Spool.open(where)
    reader: LogReader = getattr(spool, log)
    found = list(reader.segments())
    if found and found[-1].end is None:
        last = found[-1]
        entries = [e for _, e in reader.entries(last.first, reader.latest())]
        low = min((e.time_min for e in entries), default=None)
        high = max((e.time_max for e in entries), default=None)
        size = entries[-1].position + entries[-1].length if entries else 0
        end = entries[-1].end if entries else last.first
        found[-1] = Segment(last.first, end, size, low, high, "being written")
    return found


def info(where: str | Path | Place) -> Info:
    """Raises SpoolError."""
    spool = Spool.open(where)
    latest = spool.samples.latest()
    ends = {"samples": latest, "losses": spool.losses.latest()}
    lost: dict[str, int] = {}
    losses = 0
    for rows in spool.losses.read(spool.losses.earliest(), spool.losses.latest()):
        losses += rows.batch.num_rows
        grouped = rows.batch.select(["kind", "count"])
        counts = pc.fill_null(grouped.column("count"), 0).to_pylist()
        for kind, count in zip(grouped.column("kind").to_pylist(), counts, strict=True):
            lost[kind] = lost.get(kind, 0) + count
    return Info(
        str(spool.place),
        spool.manifest(),
        spool.samples.earliest(),
        latest,
        sum(segment.bytes for segment in ls(where)),
        losses,
        lost,
        tuple(
            Reading(r.name, r.position, max(ends[r.log] - r.position, 0), r.updated, r.broken)
            for r in spool.readers()
            if r.log in ends
        ),
    )


def verify(where: str | Path | Place) -> Verified:
    """Reads everything. Raises SpoolError if there is no spool."""
    spool = Spool.open(where)
    rows = size = 0
    faults: list[SpoolDamaged] = []
    for log in LOGS:
        reader: LogReader = getattr(spool, log)
        for segment in reader.segments():
            for found in reader.check(segment):
                if isinstance(found, SpoolDamaged):
                    faults.append(found)
                else:
                    rows += found.batch.num_rows
                    size += found.batch.nbytes
    return Verified(rows, size, tuple(faults))
