"""What a link has counted: traffic both ways, and everything lost, by cause."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum, unique

__all__ = ["Cause", "Stats"]


@unique
class Cause(Enum):
    """Why a message, or a FRAME or FRAGMENT with what it holds, was dropped."""

    # Received.
    DUPLICATE = "duplicate"
    """A FRAME or FRAGMENT with the sequence number that came last."""
    LATE = "late"
    """One with a sequence number that was passed already."""
    FRAGMENT_GAP = "fragment_gap"
    """A message of which a fragment is missing."""
    FRAGMENT_INTERRUPTED = "fragment_interrupted"
    """A message whose fragments ended early: a FRAME of its lane, or another message, came."""
    FRAGMENT_NO_FIRST = "fragment_no_first"
    """A fragment of a message whose start was not seen."""
    FRAGMENT_GIVEN_UP = "fragment_given_up"
    """A message on which the sender gave up."""
    FRAGMENT_TOO_LARGE = "fragment_too_large"
    """A message above ``max_message_size``."""
    FRAGMENT_EVICTED = "fragment_evicted"
    """An unfinished message that gave way to others: no room in ``max_reassembly``."""
    FRAGMENT_EXPIRED = "fragment_expired"
    """An unfinished message that made no progress for ``reassembly_timeout``."""
    UNKNOWN_SOURCE = "unknown_source"
    """A batch of a multicast node that has not joined, or differs from us."""

    # Sent.
    CONGESTION = "congestion"
    """No room in time."""
    BLOCK_FIRST = "block_first"
    """No room, and another message with BlockFirst waits already."""
    STALLED = "stalled"
    """A message with Drop that was cut, and stood still while others waited."""
    TOO_LARGE = "too_large"
    """A message above ``max_message_size``, or in low latency above the batch size."""
    NOT_OPEN = "not_open"
    """Sent before the link was open, or after."""
    LINK_LOST = "link_lost"
    """Queued when the link ended."""


@dataclass(slots=True)
class Stats:
    """Counters of one link, or of one multicast group. Bytes are those on the link."""

    rx_bytes: int = 0
    rx_batches: int = 0
    rx_frames: int = 0
    rx_fragments: int = 0
    rx_messages: int = 0
    rx_missing: int = 0
    """Sequence numbers that were skipped: FRAMEs and FRAGMENTs lost on the way."""
    rx_ignored: int = 0
    """Batches that were empty, and messages that have no meaning here (INIT, unknown OAM)."""
    tx_bytes: int = 0
    tx_batches: int = 0
    tx_frames: int = 0
    tx_fragments: int = 0
    tx_messages: int = 0
    dropped: Counter[Cause] = field(default_factory=Counter)
