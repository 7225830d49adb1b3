"""What a query and the recorder beside it tell each other: an order, and states as lines of JSON."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["FAILED", "FILLED", "PATIENCE", "RECORDING", "Order"]

RECORDING: Final = "recording"
FILLED: Final = "filled"
"""What others had of the time before is in the spool."""
FAILED: Final = "failed"
PATIENCE: Final = 10.0
"""Seconds that the recorder of a query that has ended may take to let go of the spool."""


@dataclass(frozen=True)
class Order:
    """What to record, and where to. ``config`` is a configuration as JSON."""

    spool: str
    name: str | None
    config: str
    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    liveliness: tuple[str, ...] = ()
    history: bool = True
    keep_age: float | None = None
    keep_bytes: int | None = None
    patience: float = PATIENCE
    overflow: Literal["lose", "accept"] = "accept"
    """``accept``: links wait while the disk is too slow; ``lose``: rows are dropped and counted."""

    def line(self) -> bytes:
        return json.dumps(dataclasses.asdict(self)).encode() + b"\n"

    @classmethod
    def of_line(cls, line: bytes) -> Order:
        said = json.loads(line)
        lists = {name: tuple(said[name]) for name in ("include", "exclude", "liveliness")}
        return cls(**(said | lists))
