"""Whole batches that go out past the queues of a link: where nothing waits, and they are many."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from zenwire.wire.repeat import FrameHeads

__all__ = ["Straight"]


class Straight(NamedTuple):
    """What whoever makes batches of a lane needs to know. Void as soon as anything else is sent."""

    at: int
    """The lane."""
    heads: FrameHeads
    sn: int
    """The number of the first one; those that follow count up within the mask."""
    mask: int
    packing: int
    """Bytes of messages for one batch."""
    prefix: int
    """Bytes for its length, which stands before it."""
