"""Compression: batches after OPEN have a header byte, and may be LZ4 blocks."""

from __future__ import annotations

from zenwire.transport.extensions.base import Unit

__all__ = ["Compression"]


class Compression(Unit):
    """Both have said it, or it is off."""

    name = "compression"
