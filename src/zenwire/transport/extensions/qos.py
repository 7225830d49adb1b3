"""QoS: a lane for each priority. Without it a session has one pair of lanes.

A link that is meant for some priorities, or one reliability, says QoSLink instead.
"""

from __future__ import annotations

from zenwire.transport.extensions.base import Negotiation, Unit

__all__ = ["Qos"]


class Qos(Unit):
    """Both have said it, or it is off."""

    name = "qos"

    def wanted(self, n: Negotiation) -> bool:
        return n.settings.qos and n.link.priorities is None and n.link.only is None
