"""What is written and where: both logs, the manifest, and what goes. Used by one thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow.compute as pc

from zenwire.spool.files import Local, Place
from zenwire.spool.lock import Lock
from zenwire.spool.log import Log
from zenwire.spool.losses import Loss, Losses, rows_of
from zenwire.spool.manifest import LOGS, Manifest, Segment
from zenwire.spool.opening import recovered, sweep
from zenwire.spool.reader import MANIFEST, SCHEMAS, Spool
from zenwire.spool.registry import registered
from zenwire.spool.retention import Ages, to_drop
from zenwire.spool.segment import message_of
from zenwire.spool.settings import Settings

__all__ = ["Disk"]

_NANO: Final = 1_000_000_000


class Disk:
    """A spool that is ours to write. What it finds to be lost is added to ``losses``.

    Everything but reading attributes may raise OSError, and can then be done again; and
    SpoolFailed, after which nothing can.
    """

    def __init__(
        self,
        place: Place,
        lock: Lock,
        manifest: Manifest,
        settings: Settings,
        *,
        who: str,
        now: Callable[[], int],
        losses: Losses,
    ) -> None:
        """Takes up what the last writer left. Raises SpoolDamaged, OSError."""
        self.place = place
        self.lock = lock
        self.local = isinstance(place, Local)
        self._retention = settings.retention
        self._now = now
        self._logs: dict[str, Log] = {}
        self._tells_of: dict[int, int] = {}
        left = {name: recovered(place, manifest, name, losses, now()) for name in LOGS}
        self.settled = left["samples"].settled
        """From there on, the last writer may not have said what is missing between its rows."""
        for name, its in left.items():
            self._logs[name] = Log(
                place,
                name,
                SCHEMAS[name],
                its.segments,
                end=its.end,
                save=self._save,
                segment_bytes=settings.segment_bytes,
                segment_age=int(settings.segment_age * _NANO),
            )
        self.samples = self._logs["samples"]
        if manifest.closed is None and manifest.writer:
            reason = f"{manifest.writer} did not close the spool; what it had not synced is gone"
            losses.add(Loss("recorder", reason, self.samples.end, self._last(now()), until=now()))
        self._ages = Ages(self.samples.complete, now(), time.monotonic())
        self._manifest = replace(manifest, writer=who, closed=None, settings=settings.said())
        self._save()
        sweep(place, self._manifest)

    def _last(self, now: int) -> int:
        """When the last row of the samples was received."""
        last = self.samples.complete[-1:]
        return min([now, *(segment.time_max or now for segment in last)])

    @property
    def name(self) -> str:
        return self._manifest.name

    def _save(self) -> None:
        for name, log in self._logs.items():
            self._manifest = self._manifest.with_log(name, log.segments, log.synced)
        self.place.replace(MANIFEST, self._manifest.to_text().encode())

    def pump(self) -> None:
        """Writes what was appended."""
        self.samples.pump(self._now())

    def lose(self, lost: Sequence[Loss]) -> None:
        """Takes rows of losses for the next sync."""
        if lost:
            self._logs["losses"].append(message_of(rows_of(lost)))

    def sync(self) -> list[Loss]:
        """Everything that was appended is kept and readable. Gives what retention took unread."""
        now = self._now()
        self.lock.check()
        # First what is missing, then the rows behind it: who sees those can know.
        self._logs["losses"].sync(now)
        self.samples.sync(now)
        self._logs["losses"].rotate(now)
        # Where files do not grow, each sync has completed one.
        return self.retain() if self.samples.rotate(now) or not self.local else []

    def look(self) -> list[Loss]:
        """Time has passed: a segment may be old though nothing came, and so may be what is in it."""
        self.samples.rotate(self._now())
        return self.retain()

    def retain(self) -> list[Loss]:
        """Removes what is too old or too much; gives what registered readers had not read of it."""
        if self._retention.age is None and self._retention.bytes is None:
            return []
        readers = registered(self.place)
        positions = {r.name: r.position for r in readers if r.log == "samples"}
        lost = {r.name: r.position for r in readers if r.log == "losses" or r.broken}
        return [*self._retain_samples(positions), *self._retain_losses(lost)]

    def _retain_samples(self, positions: Mapping[str, int]) -> list[Loss]:
        count = to_drop(
            self.samples.complete,
            self.samples.bytes,
            retention=self._retention,
            ages=self._ages,
            readers=positions,
            monotonic=time.monotonic(),
        )
        if not count:
            return []
        gone = self.samples.drop(count)
        self._ages.forget(gone)
        first, end = gone[0].first, gone[-1].end or 0
        return [
            Loss(
                "retention",
                f"removed before {name} had read them",
                end,
                self._now(),
                end - max(position, first),
            )
            for name, position in positions.items()
            if position < end
        ]

    def _retain_losses(self, positions: Mapping[str, int]) -> list[Loss]:
        """Those that tell of samples which are gone: they go with them."""
        earliest = self.samples.segments[0].first if self.samples.segments else self.samples.synced
        least = min(positions.values(), default=None)
        log, count = self._logs["losses"], 0
        for segment in log.complete:
            unread = least is not None and (segment.end or 0) > least
            if (unread and not self._retention.unread) or self._about(segment) >= earliest:
                break
            count += 1
        if not count:
            return []
        gone = log.drop(count)
        for segment in gone:
            self._tells_of.pop(segment.first, None)
        end = gone[-1].end or 0
        return [
            Loss(
                "retention",
                f"losses were removed before {name} had read them",
                earliest,
                self._now(),
            )
            for name, position in positions.items()
            if position < end
        ]

    def _about(self, segment: Segment) -> int:
        """The last offset of samples that a segment of losses tells of."""
        known = self._tells_of.get(segment.first)
        if known is None:
            read = Spool(self.place).losses.read(
                segment.first, segment.end or segment.first, lost=lambda _: None
            )
            found = (pc.max(rows.batch.column("offset")).as_py() for rows in read)
            known = self._tells_of[segment.first] = max(found, default=-1)
        return known

    def end(self) -> None:
        """Completes the segments, and says in the manifest that it was closed."""
        now = self._now()
        for log in self._logs.values():
            log.sync(now)
            log.rotate(now, force=True)
        self._manifest = replace(self._manifest, closed=now)
        self._save()

    def close(self) -> None:
        """Without completing anything."""
        for log in self._logs.values():
            log.close()
