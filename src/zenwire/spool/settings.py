"""What a writer can be told."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final, Literal

__all__ = ["Retention", "Settings"]

_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Retention:
    """How long rows stay: ``age`` in seconds, ``bytes`` of all segments together; None is forever.

    Segments go as a whole. What a registered reader has not read stays, however old or much it is,
    unless ``unread`` is true; then the losses say what went.
    """

    age: float | None = None
    bytes: int | None = None
    unread: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """How a spool is written.

    ``sync_interval`` (seconds) and ``sync_bytes``: what is received is on disk, and readable, once
    one of them is over. ``segment_bytes`` and ``segment_age`` (seconds): when a new segment begins.
    ``queue_bytes``: what may wait to be written; then ``overflow`` decides: ``lose`` counts and
    drops, ``wait`` blocks the caller, ``accept`` takes rows nevertheless, for a caller that looks at
    ``Writer.queued_bytes`` and pauses its source. ``source_numbers``: look for gaps in them.

    None is what suits the place: 200 ms and 8 MiB for a directory; elsewhere each sync makes a
    whole file, every 10 s or 64 MiB.
    """

    sync_interval: float | None = None
    sync_bytes: int | None = None
    segment_bytes: int = 128 * _MIB
    segment_age: float = 3600.0
    queue_bytes: int = 256 * _MIB
    overflow: Literal["lose", "wait", "accept"] = "lose"
    retention: Retention = Retention()
    source_numbers: bool = True

    def __post_init__(self) -> None:
        for name in ("sync_interval", "sync_bytes", "segment_bytes", "segment_age", "queue_bytes"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} is a number above 0, not {value!r}")
        if self.overflow not in ("lose", "wait", "accept"):
            raise ValueError(f"overflow is lose, wait or accept, not {self.overflow!r}")

    def interval(self, *, local: bool) -> float:
        """Seconds between syncs."""
        return self.sync_interval or (0.2 if local else 10.0)

    def room(self, *, local: bool) -> int:
        """Bytes between syncs."""
        return self.sync_bytes or (8 * _MIB if local else 64 * _MIB)

    def said(self) -> dict[str, object]:
        """For the manifest."""
        return asdict(self)
