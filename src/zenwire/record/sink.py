"""Where a recorder writes: a spool, or anything that takes record batches as a spool does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from zenwire.spool import Counts, Numbers

__all__ = ["Sink"]


class Sink(Protocol):
    """Takes samples, and what is known to be lost. Any thread may call; none of it waits."""

    on_room: Callable[[], None] | None
    """Called, in any thread, when ``queued_bytes`` has become smaller."""

    @property
    def queued_bytes(self) -> int:
        """Bytes that wait to be written."""

    @property
    def queue_limit(self) -> int | None:
        """Bytes at which links are to wait; None for a sink that drops or has no queue."""

    @property
    def next_offset(self) -> int:
        """That the next row gets."""

    @property
    def settled(self) -> int:
        """Up to there everything that is missing between rows was told to be lost."""

    def append(self, samples: pa.RecordBatch, *, numbers: Numbers = "check") -> int | None:
        """Rows of `SAMPLES`."""

    def lose(
        self,
        kind: str,
        reason: str,
        *,
        count: int | None = None,
        source: tuple[bytes, int] | None = None,
        numbers: tuple[int, int] | None = None,
    ) -> None:
        """Something that is known to be lost; of a source perhaps, and from number to number."""

    def learn(self, numbers: Mapping[tuple[bytes, int], int]) -> None:
        """How far sources have come: gaps are looked for from there on."""

    def counts(self) -> Counts:
        """What became of the rows so far."""

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all of it is safe."""
