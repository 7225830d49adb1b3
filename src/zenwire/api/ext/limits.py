"""How much an advanced subscriber keeps, whatever others send it."""

from __future__ import annotations

from typing import Final

__all__ = ["ASKS_MAX", "HELD_BYTES", "HELD_MAX", "QUEUED_MAX", "RETENTION", "SOURCES_MAX"]

HELD_MAX: Final = 8_192
"""Samples of one source that wait for others. Beyond, the oldest holes are given up."""
HELD_BYTES: Final = 64 * 1024 * 1024
"""What all samples that wait may take."""
SOURCES_MAX: Final = 16_384
"""Sources that are known at a time. The one that was silent for longest is forgotten."""
ASKS_MAX: Final = 256
"""Queries under way. More wait for their turn."""
QUEUED_MAX: Final = SOURCES_MAX
"""Queries that wait for their turn. More are not made, and what they were for is not waited for."""
RETENTION: Final = 3_600.0
"""Seconds after which a silent source is forgotten, unless its token is alive."""
