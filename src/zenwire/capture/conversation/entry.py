"""What goes into a conversation and what comes out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import pyarrow as pa

from zenwire.capture.conversation.kinds import QUIET
from zenwire.capture.conversation.link import End, Link, Loss

__all__ = [
    "NETWORK_COLUMNS",
    "TRANSPORT_COLUMNS",
    "Entry",
    "Scan",
    "Scanned",
    "Tally",
    "Want",
]

NETWORK_COLUMNS: Final = (
    *("batch", "offset", "length", "message", "body"),
    *("key_scope", "key_suffix", "key_mapping", "expr_id"),
    *("source_zid", "source_eid", "source_sn"),
)
TRANSPORT_COLUMNS: Final = (
    *("batch", "offset", "length", "message"),
    *("sn", "reliable", "priority", "more"),
)


class Scanned(NamedTuple):
    """Messages of some batches as columns: ``NETWORK_COLUMNS``, ``TRANSPORT_COLUMNS``, faults.

    ``batch`` is the number of the batch among those that were handed in.
    """

    network: pa.RecordBatch
    transport: pa.RecordBatch
    malformed: pa.RecordBatch


Scan = Callable[[pa.Array, bool], Iterator[Scanned]]
"""Reads batches, which may be of low latency. ``zenwire.columns`` does, and is not seen here."""


@dataclass(frozen=True, slots=True)
class Want:
    """What is told; None is everything but FRAMEs, pieces and KEEP_ALIVEs.

    ``zid`` is the ZenohID of one end, or what it begins with.
    """

    kinds: frozenset[str] | None = None
    key: str | None = None
    zid: str | None = None

    def kind(self, kind: str) -> bool:
        """Whether entries of this kind are told."""
        return kind not in QUIET if self.kinds is None else kind in self.kinds


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that was said, or is missing (``loss``), or does not decode (``fault``).

    ``loss`` is also set in entries of the kind ``not_sent``: numbers of a publisher that were not
    for this link.
    """

    time: int
    """Nanoseconds since 1970."""
    kind: str
    link: Link
    side: int
    sequence: int | None
    offset: int | None
    layer: str
    message: object | None = None
    length: int = 0
    key: str | None = None
    key_fault: str | None = None
    latency: float | None = None
    """Seconds since the request that this answers."""
    loss: Loss | None = None
    fault: str | None = None
    data: bytes = b""
    """What did not decode."""

    @property
    def sender(self) -> End:
        return self.link.ends[self.side]

    @property
    def receiver(self) -> End:
        return self.link.ends[1 - self.side]


@dataclass(slots=True)
class Tally:
    """What there was, whether it was told or not."""

    batches: int = 0
    batch_bytes: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    losses: Counter[str] = field(default_factory=Counter)
    not_sent: int = 0
    """Gaps in the numbers of publishers that are no losses."""
    missing: int = 0
    """Bytes that were not captured."""
    accounts: Counter[str] = field(default_factory=Counter)
    """Bytes of the file that are in no batch, by the reason for it."""
    malformed: int = 0
    first_time: int | None = None
    last_time: int | None = None
