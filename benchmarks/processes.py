"""What processes take: CPU and memory of one and all that it has started, as Linux tells."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import NamedTuple, Self

__all__ = ["Usage", "Watch", "cpu", "family", "memory"]

_TICK = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    """One look at a process and its descendants."""

    at: float
    programs: dict[str, int]
    """Bytes."""

    @property
    def bytes(self) -> int:
        return sum(self.programs.values())


def family(root: int) -> list[int]:
    """A process and its descendants."""
    parents: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        fields = _fields(status)
        if fields:
            parents.setdefault(int(fields[1]), []).append(int(status.parent.name))
    found = [root]
    for process in found:
        found += parents.get(process, [])
    return found


def _fields(status: Path) -> list[str]:
    """From the state on: names may have blanks and brackets in them."""
    try:
        return status.read_text().rpartition(")")[2].split()
    except OSError:
        return []  # it has ended


def cpu(root: int) -> float:
    """Seconds of CPU so far, of those that run and of those that were waited for."""
    ticks = 0
    for process in family(root):
        fields = _fields(Path(f"/proc/{process}/stat"))
        ticks += sum(map(int, fields[11:15]))
    return ticks / _TICK


def memory(root: int) -> dict[str, int]:
    """Bytes by program, with those that several processes share divided among them.

    They are the processes' own: pages of files that are mapped are left out, since the system takes
    them back whenever somebody else needs them.
    """
    found: dict[str, int] = {}
    for process in family(root):
        name = "the command" if process == root else _program(process)
        found[name] = found.get(name, 0) + _of_one(process)
    return found


def _program(process: int) -> str:
    try:
        name = Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return "others"  # it has ended
    return "Python workers" if name.startswith("python") else name


def _of_one(process: int) -> int:
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    own = ("Pss_Anon:", "Pss_Shmem:")
    return sum(1024 * int(line.split()[1]) for line in text.splitlines() if line.startswith(own))


class Watch:
    """Looks at the memory of a process and its descendants now and then."""

    def __init__(self, root: int, every: float = 0.5) -> None:
        self.seen: list[Usage] = []
        self._root = root
        self._every = every
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    @property
    def peak(self) -> int:
        return max((usage.bytes for usage in self.seen), default=0)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while True:
            self.seen.append(Usage(time.monotonic(), memory(self._root)))
            if self._done.wait(self._every):
                return
