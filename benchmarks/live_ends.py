"""The ends of the live benchmark: who sends, who receives, and what has come of it where.

Receivers are commands as users run them, or `benchmarks.live_child`; each is a process of its own,
and tells how many rows are where they are to be.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from benchmarks.bench_session import END, free_port
from zenwire.spool import Spool

__all__ = ["PATIENCE", "Alternative", "Ingested", "Receiver", "Recorded", "Sender"]
__all__ += ["collecting", "ingesting", "recording", "sending"]

PATIENCE = 180.0
"""Seconds for whatever is waited for."""


class Sender:
    """Sends rows when it is told to."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def begin(self, rows: float, rate: float = 0.0) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps([int(rows), rate])}\n")
        self._process.stdin.flush()

    def sent(self) -> int:
        """How many it was in the end."""
        return int(_line(self._process))


class Receiver:
    """What comes, and how much of it is where it is to be."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.port = port

    def rows(self) -> int:
        raise NotImplementedError

    def finish(self) -> None:
        """All have come: what is there is to be complete."""

    def table(self) -> pa.Table:
        """Keys and payloads, in order."""
        raise NotImplementedError

    def lost(self) -> int:
        return 0

    def await_rows(self, wanted: int) -> None:
        """Raises RuntimeError if they do not come."""
        until = time.monotonic() + PATIENCE
        while self.rows() + self.lost() < wanted:
            if self.process.poll() is not None:
                raise RuntimeError(f"a receiver has ended with {self.process.returncode}")
            if time.monotonic() > until:
                raise RuntimeError(f"{self.rows():,} of {wanted:,} rows have come")
            time.sleep(0.01)


class Recorded(Receiver):
    """``zenwire record``, seen by a reader of its spool."""

    def __init__(self, process: subprocess.Popen[str], port: int, spool: Path) -> None:
        super().__init__(process, port)
        self._spool = Spool.open(spool)

    def rows(self) -> int:
        return self._spool.samples.latest()

    def table(self) -> pa.Table:
        found = [r.batch.select(["key", "payload"]) for r in self._spool.samples.read(0, 1 << 62)]
        return pa.Table.from_batches(found)

    def lost(self) -> int:
        counts = [r.batch.column("count") for r in self._spool.losses.read(0, 1 << 62)]
        return sum(n or 0 for column in counts for n in column.to_pylist())


class Ingested(Recorded):
    """``zenwire ingest`` with a recorder in it, seen by what its tables have."""

    def __init__(self, process: subprocess.Popen[str], port: int, spool: Path, lake: Path) -> None:
        super().__init__(process, port, spool)
        self._lake = lake
        self._table: DeltaTable | None = None

    def rows(self) -> int:
        with suppress(DeltaError, OSError):
            if self._table is None:
                self._table = DeltaTable(str(self._lake / "samples"))
            self._table.update_incremental()
            counts = pa.table(self._table.get_add_actions(flatten=True)).column("num_records")
            return int(pc.sum(counts).as_py() or 0)
        return 0

    def table(self) -> pa.Table:
        table = DeltaTable(str(self._lake / "samples"))
        found = table.to_pyarrow_table(columns=["offset", "key", "payload"])
        return found.sort_by("offset").select(["key", "payload"])


class Alternative(Receiver):
    """eclipse-zenoh's subscriber and PyArrow."""

    def __init__(self, process: subprocess.Popen[str], port: int, to: Path) -> None:
        super().__init__(process, port)
        self._to = to

    def _ask(self, what: str) -> int:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return int(_line(self.process))

    def rows(self) -> int:
        return self._ask("count")

    def finish(self) -> None:
        self._ask("flush")

    def table(self) -> pa.Table:
        found = [pq.ParquetFile(path).read() for path in sorted(self._to.glob("*.parquet"))]
        return pa.concat_tables(found).select(["key", "payload"])


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("a process of the benchmark has failed")
    return line


@contextmanager
def _process(*command: str, errors: int | None = None) -> Iterator[subprocess.Popen[str]]:
    """It ends with the block, and so does what it has started."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-m", *command], stdin=pipe, stdout=pipe, stderr=errors, text=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(END)
                except subprocess.TimeoutExpired:
                    process.kill()


@contextmanager
def sending(role: str, port: int, size: int) -> Iterator[Sender]:
    with _process("benchmarks.live_child", role, str(port), "--size", str(size)) as process:
        _line(process)
        yield Sender(process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(END)


@contextmanager
def collecting(folder: Path) -> Iterator[Alternative]:
    port, to = free_port(), folder / "alternative"
    to.mkdir()
    child = ("benchmarks.live_child", "alternative", str(port), "--to", str(to))
    with _process(*child) as process:
        _line(process)
        yield Alternative(process, port, to)


def _session(port: int) -> list[str]:
    """As the other has it: nobody is found but whom it names."""
    return ["-m", "peer", "-l", f"tcp/127.0.0.1:{port}", "--no-multicast-scouting"]


@contextmanager
def recording(folder: Path, *more: str) -> Iterator[Recorded]:
    port, spool = free_port(), folder / "spool"
    command = ["record", *_session(port), "-k", "bench/**", "--to", str(spool), *more]
    with _process("zenwire", *command, errors=subprocess.PIPE) as process:
        _until_said(process, "recording")
        yield Recorded(process, port, spool)


@contextmanager
def ingesting(folder: Path, *more: str) -> Iterator[Ingested]:
    port, spool, lake = free_port(), folder / "ingested", folder / "lake"
    command = ["ingest", *_session(port), "-k", "bench/**", "--spool", str(spool)]
    command += ["--lake", str(lake), *more]
    with _process("zenwire", *command, errors=subprocess.PIPE) as process:
        _until_said(process, " into ")
        yield Ingested(process, port, spool, lake)


def _until_said(process: subprocess.Popen[str], what: str) -> None:
    """Waits for a line on standard error. Few follow, which the pipe holds."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if what in line:
            return
    raise RuntimeError("".join(said))
