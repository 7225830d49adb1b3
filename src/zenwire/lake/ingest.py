"""Ingest: plan tasks for ranges of spools, and commit their results.

The tables hold the committed offsets, so this object may be thrown away at any moment. The runner of
the tasks (Spark, or a loop in a test) is a parameter.

``samples`` is committed with each micro-batch. ``latest`` and ``key_stats`` follow one micro-batch
behind: the partial results of the one before are merged by tasks of the same job. After a crash
``catch_up`` computes unmerged partial results again from the spools.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from zenwire.lake.commit import Change
from zenwire.lake.compact import chosen
from zenwire.lake.errors import LakeConflictError, LakeError
from zenwire.lake.files import DataFile
from zenwire.lake.lake import Lake
from zenwire.lake.payloads.messages import Definitions
from zenwire.lake.tasks import ALL, DERIVED, Task
from zenwire.lake.write import Range, Written, write_losses
from zenwire.spool import Spool, SpoolError

__all__ = ["Ingest", "Progress", "Run"]

_log = logging.getLogger("zenwire.ingest")

Run = Callable[[Sequence[str]], list[str]]
"""Runs tasks somewhere and gives their results, in any order. Both are JSON texts."""


@dataclass
class Progress:
    """Totals of the commits of this process."""

    rows: int = 0
    faults: int = 0
    losses: int = 0
    lost: int = 0
    newest: int = 0
    """Receive time of the newest committed row, in nanoseconds since 1970."""


@dataclass
class Ingest:
    """One writer of a lake. Not shared by threads. Raises LakeError."""

    lake: Lake
    spools: Mapping[str, Spool]
    """By address."""
    definitions: Definitions
    reader: str | None = None
    """Name under which the spools know this lake. Retention keeps rows until the tables have them."""
    progress: Progress = field(default_factory=Progress)
    ends: dict[str, int] = field(default_factory=dict)
    """By spool id: end of the rows that ``samples`` has."""
    _pending: list[Written] = field(default_factory=list)
    """Committed to ``samples``, not merged into the derived tables."""

    # Before the first micro-batch.

    def catch_up(self, run: Run) -> dict[str, int]:
        """Bring the derived tables up to ``samples``, then say where each spool goes on."""
        self.lake.refresh()
        self._pending = []
        # Both derived tables must have the same rows before they go on together.
        self._catch_up(("latest",), "key_stats", run)
        self._catch_up(DERIVED, "samples", run)
        found = {}
        for spool in self.spools.values():
            end = self.lake["samples"].offset(spool.id)
            found[spool.name] = spool.samples.earliest() if end is None else end
            self.ends[spool.id] = found[spool.name]
        self._acknowledge()
        return found

    def _catch_up(self, tables: Sequence[str], leader: str, run: Run) -> None:
        tasks = []
        for path, spool in self.spools.items():
            end = self.lake[leader].offset(spool.id)
            first = self.lake[tables[-1]].offset(spool.id) or 0
            if end is not None and first < end:
                first = max(first, spool.samples.earliest())
                part = Range(path, spool.name, spool.id, first, end)
                tasks.append(json.dumps({"do": "range", "tables": list(tables), **vars(part)}))
        if tasks:
            _log.info("reading rows again that %s do not have", " and ".join(tables))
            self._pending = [Written.of_json(json.loads(text)) for text in run(tasks)]
            self.flush(run, tables)

    # Micro-batches.

    def task(self) -> Task:
        """Parameters of the tasks of the next job."""
        ends = {spool.id: self.lake["samples"].offset(spool.id) for spool in self.spools.values()}
        floors = {id_: end for id_, end in ends.items() if end is not None}
        return Task(self.lake.address, self.definitions, floors)

    def merges(self, tables: Sequence[str] = DERIVED) -> list[str]:
        """Tasks that merge the partial results of the micro-batch before."""
        if not self._pending:
            return []
        pending = sorted(self._pending, key=lambda one: (one.id, one.first))
        partials = {
            kind: [path for one in pending if (path := getattr(one, kind)) is not None]
            for kind in ("newest", "counts", "segments")
        }
        seen = [file.path for file in self.lake["latest"].files()]
        return [
            json.dumps(
                {
                    "do": "merge",
                    "table": table,
                    "files": [file.to_json() for file in self.lake[table].files()],
                    "partials": partials,
                    "seen_in": seen if table == "key_stats" else [],
                }
            )
            for table in tables
            if partials["newest" if table == "latest" else "counts"]
        ]

    def compactions(self, *, everything: bool = False) -> list[str]:
        """At most one task that compacts files."""
        for table in ("samples", "losses"):
            files = chosen(table, self.lake[table].files(), everything=everything)
            if files:
                given = [file.to_json() for file in files]
                return [json.dumps({"do": "compact", "table": table, "files": given})]
        return []

    def commit(self, results: Iterable[str]) -> None:
        """Commit the results of a job: ``samples`` first, then the merges, then losses."""
        found = [json.loads(text) for text in results]
        merged = {result["table"]: result for result in found if "table" in result}
        written = [Written.of_json(result) for result in found if "id" in result]
        self._commit_samples(written)
        self._commit_merges(merged)
        self._commit_compactions(result for result in found if "compacted" in result)
        self._pending = [one for one in written if one.newest is not None]
        self.commit_losses()
        self._acknowledge()

    def _commit_samples(self, written: Sequence[Written]) -> None:
        table = self.lake["samples"]
        offsets: dict[str, int] = {}
        for one in sorted(written, key=lambda one: (one.id, one.first)):
            end = offsets.get(one.id, table.offset(one.id))
            if end is not None and one.first > end:
                reason = f"offsets {end} to {one.first - 1} of spool {one.id} are missing"
                raise LakeError(f"{self.lake.address}/samples", reason)
            if end is None or one.end > end:
                offsets[one.id] = one.end
        files = [file for one in written for file in one.samples]
        try:
            table.commit(Change(files, offsets=offsets))
        except LakeConflictError as e:
            reason = "another ingest writes rows of the same spool to this lake"
            raise LakeConflictError(e.place, reason) from None
        self.ends |= offsets
        self.progress.newest = max([self.progress.newest, *(one.newest_ns for one in written)])
        self.progress.rows += sum(one.rows for one in written)
        self.progress.faults += sum(one.faults for one in written)

    def _commit_merges(
        self, merged: Mapping[str, dict[str, Any]], tables: Sequence[str] = DERIVED
    ) -> None:
        ends: dict[str, int] = {}
        for one in self._pending:
            ends[one.id] = max(ends.get(one.id, 0), one.end)
        for table in tables:
            # A range whose rows are gone from the spool has no result, but an end.
            result = merged.get(table, {})
            add, remove = (
                [DataFile.of_json(file) for file in result.get(what, ())]
                for what in ("add", "remove")
            )
            self.lake[table].commit(Change(add, remove, ends))
        self._forget_partials()

    def _commit_compactions(self, results: Iterable[dict[str, Any]]) -> None:
        for result in results:
            table = self.lake[result["compacted"]]
            add, remove = (
                [DataFile.of_json(file) for file in result[what]] for what in ("add", "remove")
            )
            try:
                table.commit(Change(add, remove, rearranges=True))
            except LakeConflictError as e:
                # The files that were made stay behind unreferenced; vacuum removes them.
                _log.info("compaction dropped, another writer was first: %s", e)

    def compact(self, run: Run, *, everything: bool = False) -> int:
        """Compact until no partition needs it, in jobs of their own. Return the number of jobs."""
        jobs = 0
        while tasks := self.compactions(everything=everything):
            self._commit_compactions(json.loads(text) for text in run(tasks))
            jobs += 1
        return jobs

    def _forget_partials(self) -> None:
        """Delete merged partial results. Vacuum removes any that stay behind."""
        for one in self._pending:
            for path in (one.newest, one.counts, one.segments):
                if path is not None:
                    with suppress(OSError):
                        self.lake.address.files.delete_file(path)

    def flush(self, run: Run, tables: Sequence[str] = DERIVED) -> None:
        """Merge the pending partial results in a job of their own."""
        tasks = self.merges(tables)
        results = [json.loads(text) for text in run(tasks)] if tasks else []
        self._commit_merges({result["table"]: result for result in results}, tables)
        self._pending = []

    def _acknowledge(self) -> None:
        """Tell the spools which rows every table has: retention may remove them."""
        if self.reader is None:
            return
        for spool in self.spools.values():
            samples = min(self.lake[name].offset(spool.id) or 0 for name in ALL)
            losses = self.lake["losses"].offset(spool.id) or 0
            for name, end, log in (
                (self.reader, samples, "samples"),
                (f"{self.reader}-losses", losses, "losses"),
            ):
                # A spool that cannot be written to has no retention to hold back.
                with suppress(SpoolError, OSError):
                    if spool.register(name, end, log=log) < end:
                        spool.commit(name, end, log=log)

    def commit_losses(self) -> None:
        """Commit the losses that the spools have and the table has not."""
        table = self.lake["losses"]
        files, offsets = [], {}
        for spool in self.spools.values():
            first = table.offset(spool.id) or 0
            if spool.losses.latest() <= first:
                continue
            file, end, lost = write_losses(self.lake.address, spool, first)
            offsets[spool.id] = end
            if file is not None:
                files.append(file)
                self.progress.losses += file.rows
                self.progress.lost += lost
        table.commit(Change(files, offsets=offsets))
