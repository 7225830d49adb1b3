"""What a micro-batch does to the files of a lake, done once, whatever ends it in between.

Files are made beside the tables first. Then what is to be done is written down, with the state
after it, and that is the moment from which it counts: what ends before leaves nothing, what ends
later is completed by whoever comes next. Each thing that is to be done may be done again.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

__all__ = ["Journal", "Plan", "State", "sync"]

Plan = dict[str, Any]
"""Something to be done, as JSON can say it."""

_JOURNAL: Final = "journal.json"
_STATE: Final = "state.json"


@dataclass(frozen=True)
class State:
    """What is in the tables. ``batch`` is the last micro-batch of the query that wrote them."""

    batch: int = -1
    rows: int = 0
    bytes: int = 0
    faults: int = 0
    lost: int = 0
    newest: int = 0
    prefixes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, said: Plan) -> State:
        """Of another version, too: what is not known is left out."""
        known = {f.name for f in fields(cls)}
        return cls(**{name: value for name, value in said.items() if name in known})


class Journal:
    """That of one query, in a directory of its own. ``apply`` does what plans say."""

    def __init__(self, home: Path, apply: Callable[[Plan], None]) -> None:
        self._home = home
        self._apply = apply
        self.staging = home / "staging"
        self._made: Path | None = None

    def state(self) -> State:
        path = self._home / _STATE
        return State.of(json.loads(path.read_text())) if path.exists() else State()

    def begin(self) -> Path:
        """An empty place for files.

        Nobody had it before: tasks of a driver that was killed may go on for a while, and what they
        write must not get among what others write.
        """
        shutil.rmtree(self.staging, ignore_errors=True)
        self._made = self.staging / uuid.uuid4().hex
        self._made.mkdir(parents=True)
        return self._made

    def commit(self, plans: Iterable[Plan], state: State) -> None:
        """It is done when this returns, and if this is ended, by the next ``recover``."""
        assert self._made is not None
        sync(path for path in self._made.rglob("*.parquet"))
        _write(self._home / _JOURNAL, {"plans": [*plans], "state": asdict(state)})
        self.recover()

    def recover(self) -> bool:
        """Complete what was begun; clear away what was not. Whether there was something."""
        path = self._home / _JOURNAL
        there = path.exists()
        if there:
            said = json.loads(path.read_text())
            for plan in said["plans"]:
                self._apply(plan)
            _write(self._home / _STATE, said["state"])
            path.unlink()
        shutil.rmtree(self.staging, ignore_errors=True)
        return there


def _write(path: Path, said: Plan) -> None:
    """All of it or nothing, and on disk."""
    new = path.with_suffix(".new")
    with new.open("w") as file:
        json.dump(said, file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync([path.parent])


def sync(paths: Iterable[Path]) -> None:
    """Files, or directories, are on disk when this returns."""
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
