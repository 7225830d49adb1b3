"""The books of a capture: where its bytes went."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Summary"]


@dataclass(slots=True)
class Summary:
    """Counts of bytes, unless they say otherwise. ``balance`` is 0 when all is accounted for."""

    packets: int = 0
    """All records of the file."""
    captured: int = 0
    """Of all packets, with their headers."""
    others: dict[str, tuple[int, int]] = field(default_factory=dict)
    """(packets, bytes) that are no TCP or UDP payload, by the name of their ``PacketFault``."""
    payload: int = 0
    """Of TCP and UDP, as captured."""
    repeated: int = 0
    """Sent again, or overlapping."""
    stray: int = 0
    """Of no place in their connection."""
    overhead: int = 0
    """Of the file itself, of headers and padding."""
    batches: int = 0
    """Their number."""
    batch_bytes: int = 0
    prefix_bytes: int = 0
    """The lengths before batches of streams."""
    skipped: int = 0
    """Of Zenoh flows, but in no batch."""
    missing: int = 0
    """Of Zenoh flows, not captured; not part of ``payload``."""
    foreign: int = 0
    """Of flows that are not Zenoh."""
    foreign_missing: int = 0
    foreign_flows: int = 0
    """Directions of flows that are not Zenoh."""
    damaged_file: int = 0
    """Of the file, in no record or in a fragment that became nothing."""

    @property
    def balance(self) -> int:
        """Payload that is nowhere else in the books."""
        counted = self.batch_bytes + self.prefix_bytes + self.skipped + self.foreign
        return self.payload - counted - self.repeated - self.stray
