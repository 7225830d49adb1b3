"""Runs targets in turn, and keeps what came out wrong.

A case is its target, the run's seed and a number: the same three make the same input, however
fast the machine is.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from fuzz.against import MismatchError
from fuzz.mutate import mutate
from fuzz.targets import Target

__all__ = ["Finding", "Report", "Runner", "Stats", "corpus", "rss"]

GROWTH_MAX = 64 << 20
"""Bytes that the process may grow by, once every target has run."""
SLOW = 5.0
"""Seconds that no input of a few kilobytes may take."""
_ROUNDS = 4
_SHRINK_SECONDS = 2.0
_TOLD = 1000


@dataclass(frozen=True)
class Finding:
    """``case`` is its number, or the file of the corpus that it is from."""

    target: str
    case: str
    error: str
    data: bytes
    file: str = ""


@dataclass
class Stats:
    """``refused`` inputs gave the documented error."""

    execs: int = 0
    refused: int = 0
    seconds: float = 0.0
    case: int = 0

    @property
    def per_second(self) -> float:
        return self.execs / self.seconds if self.seconds else 0.0


@dataclass
class Report:
    seed: int
    stats: dict[str, Stats]
    findings: list[Finding] = field(default_factory=list)
    repeated: int = 0
    """More of what is in ``findings``."""
    grown: int = 0
    """Bytes."""


class Runner:
    """``out`` is where findings are written, and what runs just now, should the process die."""

    def __init__(
        self,
        targets: Iterable[Target],
        seed: int,
        out: Path,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.targets = tuple(targets)
        self.seed = seed
        self.out = out
        self.report = Report(seed, {target.name: Stats() for target in self.targets})
        self._progress = progress
        self._known: set[str] = set()
        self._running: mmap.mmap | None = None

    def replay(self, inputs: Iterable[tuple[str, str, bytes]]) -> None:
        """(name, targets or nothing for all, input) of a corpus."""
        for name, wanted, data in inputs:
            for target in self.targets:
                if not wanted or target.name in wanted.split():
                    self._one(target, name, data)

    def run(self, seconds: float) -> Report:
        """Cases from the first on, a share of the time for each target."""
        begin = time.perf_counter()
        baseline = 0
        with self._told():
            for turn in range(_ROUNDS):
                for i, target in enumerate(self.targets):
                    done = turn * len(self.targets) + i + 1
                    share = seconds * done / (_ROUNDS * len(self.targets))
                    self._slice(target, begin + share)
                    self._tell(target)
                baseline = baseline or rss()
        self.report.grown = max(0, rss() - baseline)
        if self.report.grown > GROWTH_MAX:
            grown = f"memory grew by {self.report.grown >> 20} MiB"
            self.report.findings.append(Finding("all", "", grown, b""))
        return self.report

    def one(self, target: Target, case: int) -> bytes:
        """Run a case by its number, and give its input."""
        data = self.input(target, case)
        self._one(target, str(case), data)
        return data

    def input(self, target: Target, case: int) -> bytes:
        return mutate(Random(f"{self.seed}/{target.name}/{case}"), target.seeds())

    def _slice(self, target: Target, until: float) -> None:
        stats = self.report.stats[target.name]
        begin = now = time.perf_counter()
        while now < until or now == begin:
            self._note(target.name, stats.case)
            self._one(target, str(stats.case), self.input(target, stats.case))
            stats.case += 1
            now = time.perf_counter()
        stats.seconds += now - begin

    def _one(self, target: Target, case: str, data: bytes) -> None:
        stats = self.report.stats[target.name]
        stats.execs += 1
        wrong = _run(target, data)
        if wrong is _REFUSED:
            stats.refused += 1
        elif wrong is not None:
            self._found(target, case, wrong, data)

    def _found(self, target: Target, case: str, wrong: _Wrong, data: bytes) -> None:
        kind = f"{target.name}: {wrong.kind}"
        if kind in self._known:
            self.report.repeated += 1
            return
        self._known.add(kind)
        small = _shrunk(target, wrong.kind, data)
        error = (_run(target, small) or wrong).error
        path = self.out / f"{target.name}-{hashlib.sha256(kind.encode()).hexdigest()[:8]}.hex"
        path.parent.mkdir(parents=True, exist_ok=True)
        told = "".join(f"# {line}\n" for line in error.splitlines())
        head = f"# target: {target.name}\n# seed {self.seed}, case {case}\n{told}"
        path.write_text(f"{head}{small.hex()}\n", encoding="utf-8")
        self.report.findings.append(Finding(target.name, case, error, small, str(path)))

    def _tell(self, target: Target) -> None:
        stats = self.report.stats[target.name]
        self._progress(
            f"{target.name}: {stats.execs:,} execs, {stats.per_second:,.0f}/s, "
            f"{len(self.report.findings)} findings"
        )

    # What runs just now: a crash of compiled code leaves no traceback.

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        self.out.mkdir(parents=True, exist_ok=True)
        path = self.out / "running"
        path.write_bytes(bytes(128))
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 128) as self._running:
            yield
        self._running = None
        path.unlink()

    def _note(self, name: str, case: int) -> None:
        if self._running is not None:
            told = f"--target {name} --seed {self.seed} --case {case}".encode()
            self._running[:128] = told.ljust(128)


@dataclass(frozen=True)
class _Wrong:
    """``kind`` makes two findings one."""

    kind: str
    error: str


_REFUSED = _Wrong("", "")


def _run(target: Target, data: bytes) -> _Wrong | None:
    """None if all is well, or _REFUSED if it was refused as it should be."""
    begin = time.perf_counter()
    try:
        target.run(data)
    except target.errors:
        return _REFUSED
    except MismatchError as e:
        return _Wrong(e.what, str(e)[:_TOLD])
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as e:  # noqa: BLE001 # anything at all is a finding
        frames = traceback.extract_tb(e.__traceback__)
        ours = [f for f in frames if "zenwire" in Path(f.filename).parts]
        last = ours[-1] if ours else frames[-1]
        kind = f"{type(e).__name__} at {Path(last.filename).name}:{last.lineno}"
        return _Wrong(kind, f"{kind}: {e}"[:_TOLD])
    if time.perf_counter() - begin > SLOW:
        return _Wrong("slow", f"took more than {SLOW} s")
    return None


def _shrunk(target: Target, kind: str, data: bytes) -> bytes:
    """A shorter input that goes wrong in the same way."""
    until = time.perf_counter() + _SHRINK_SECONDS
    size = len(data) // 2
    while size:
        at = 0
        while at < len(data):
            if time.perf_counter() > until:
                return data
            shorter = data[:at] + data[at + size :]
            found = _run(target, shorter)
            if found is not None and found.kind == kind:
                data = shorter
            else:
                at += size
        size //= 2
    return data


def corpus(folder: Path) -> Iterator[tuple[str, str, bytes]]:
    """(name, targets, input) of each ``*.hex``; a line that starts with # tells about it."""
    for path in sorted(folder.glob("*.hex")):
        wanted, digits = "", ""
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("# target:"):
                wanted = line.removeprefix("# target:")
            elif not line.startswith("#"):
                digits += line
        yield path.name, wanted, bytes.fromhex(digits)


def rss() -> int:
    """Bytes of memory that the process has."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource  # noqa: PLC0415 # only where there is no /proc

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
