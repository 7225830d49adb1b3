"""How far Spark is: a bar on a terminal, a line for each step elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TextIO

if TYPE_CHECKING:
    from types import TracebackType

    from pyspark.sql import SparkSession

__all__ = ["Progress"]

_WIDTH: Final = 24
_EVERY: Final = 0.2


class Progress:
    """Follows the stages that run, and what is written; from a thread of its own."""

    def __init__(
        self, spark: SparkSession, out: Path, size: int, *, stream: TextIO | None = None
    ) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._out = out
        self._size = size
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._step = ""
        self._begin = self._step_begin = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        if self._is_terminal:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._is_terminal:
            self._thread.join()
            self._stream.write("\r\x1b[K")
        elif kind is None:
            self._said()
        self._stream.flush()

    def step(self, name: str) -> None:
        """Another table is being made."""
        if not self._is_terminal:
            self._said()
        self._step, self._step_begin = name, time.monotonic()

    def _said(self) -> None:
        if self._step:
            seconds = time.monotonic() - self._step_begin
            print(f"zenwire tables: {self._step} in {seconds:.1f} s", file=self._stream, flush=True)

    def _run(self) -> None:
        while not self._stop.wait(_EVERY):
            self._stream.write(f"\r{self.line()}\x1b[K")
            self._stream.flush()

    def line(self) -> str:
        """Tasks of the stages that run, and the bytes that they stand for or have written."""
        done, total = self._tasks()
        part = done / total if total else 0.0
        bar = "#" * round(part * _WIDTH)
        told = [f"{self._step or 'starting':<12} [{bar:<{_WIDTH}}] {done}/{total} tasks"]
        if self._step == "batches":
            told.append(f"read {part * self._size / 1e6:,.1f} of {self._size / 1e6:,.1f} MB")
        told.append(f"{self._written() / 1e6:,.1f} MB written")
        told.append(f"{time.monotonic() - self._begin:.0f} s")
        return "  ".join(told)

    def _tasks(self) -> tuple[int, int]:
        done = total = 0
        for stage in self._tracker.getActiveStageIds():
            info = self._tracker.getStageInfo(stage)
            if info is not None:
                done += info.numCompletedTasks
                total += info.numTasks
        return done, total

    def _written(self) -> int:
        size = 0
        for file in (self._out / ".zenwire-staging").rglob("*.parquet"):
            try:
                size += file.stat().st_size
            except OSError:  # moved meanwhile
                continue
        return size
