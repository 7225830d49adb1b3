"""LowLatency: bare messages after OPEN, without lanes, batches or fragments.

It excludes QoS: ``Settings`` has one or the other, so a link can never agree on both.
"""

from __future__ import annotations

from zenwire.transport.extensions.base import Unit

__all__ = ["LowLatency"]


class LowLatency(Unit):
    """Both have said it, or it is off."""

    name = "lowlatency"
