"""What a writer does before it writes: a new spool, or what the last writer left of one."""

from __future__ import annotations

import uuid
from typing import NamedTuple

from zenwire.spool.errors import SpoolDamaged, SpoolError
from zenwire.spool.files import Local, Place
from zenwire.spool.losses import Loss, Losses
from zenwire.spool.manifest import LOGS, Manifest, Segment
from zenwire.spool.reader import MANIFEST, SCHEMAS, load
from zenwire.spool.segment import recover

__all__ = ["Left", "begun", "recovered", "sweep"]


class Left(NamedTuple):
    """What the last writer left of a log: segments, all of them complete by now.

    ``end`` is the offset that the next row gets. From ``settled`` on it had not come to say what
    is missing between the rows; if it closed the spool, that is ``end``.
    """

    segments: list[Segment]
    end: int
    settled: int


def begun(place: Place, name: str | None, now: int) -> Manifest:
    """The manifest that is there, or that of a new spool. Raises SpoolDamaged, OSError."""
    try:
        return load(place)
    except SpoolDamaged:
        raise
    except SpoolError:
        if any(place.names(log) for log in LOGS):
            raise SpoolDamaged(str(place), MANIFEST, "it is not there, but segments are") from None
    name = name or str(place).rstrip("/").rpartition("/")[2] or "spool"
    new = Manifest(name, uuid.uuid4().hex, now, closed=now)
    for log in LOGS:
        new = new.with_log(log, (), 0)
    return new


def recovered(place: Place, manifest: Manifest, log: str, losses: Losses, now: int) -> Left:
    """Completes what is not. What is missing is added to the losses. Raises SpoolDamaged, OSError."""
    segments = list(manifest.logs[log])
    if not segments:
        return Left([], manifest.next[log], manifest.next[log])
    last = segments[-1]
    if last.end is not None:
        end = max(last.end, manifest.next[log])
        return Left(segments, end, end)
    if not isinstance(place, Local):
        raise SpoolDamaged(str(place), MANIFEST, f"a segment of {log} has no end")
    found = recover(place, log, last.first, SCHEMAS[log])
    end = found.segment.end or 0
    if end == found.segment.first:
        segments.pop()
    else:
        segments[-1] = found.segment
    if found.cut:
        reason = f"{found.cut} bytes of {log} were no whole rows when the recorder ended"
        losses.add(Loss("recorder", reason, end, now, size=found.cut))
    if found.lost:
        reason = f"{log} that had been published were not kept by the disk"
        losses.add(Loss("damage", reason, end, now, found.lost))
        # Their offsets are not given a second time.
        end += found.lost
    return Left(segments, end, min(found.published, end))


def sweep(place: Place, manifest: Manifest) -> None:
    """Files that no manifest names: left by a crash between two steps. Raises OSError."""
    for name in LOGS:
        known = {file for s in manifest.logs[name] for file in (s.data, s.index)}
        for file in place.names(name):
            stem, _, kind = file.rpartition(".")
            if file not in known and kind in ("arrow", "index") and stem.isdigit():
                place.delete(f"{name}/{file}")
    for file in place.names(""):
        if file.startswith(f".{MANIFEST}."):
            place.delete(file)
