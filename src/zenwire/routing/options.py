"""Routing options of a node, from its configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from zenwire.routing.aggregates import Aggregates
from zenwire.wire.values import WhatAmIMatcher

__all__ = ["RoutingOptions"]

_NO_AGGREGATES: Final = Aggregates()


@dataclass(frozen=True, slots=True)
class RoutingOptions:
    """Options of `Tables`."""

    aggregates: Aggregates = _NO_AGGREGATES
    """Declared in place of what sessions have below them."""
    interest_timeout: float = 10.0
    """Seconds after which a face that did not answer an interest counts as having answered."""
    gossip_target: WhatAmIMatcher = WhatAmIMatcher.ROUTER | WhatAmIMatcher.PEER
    """Kinds of nodes that are told the locators of others."""
    multihop: bool = False
    """Gossip tells of all known nodes, not of direct neighbours alone."""
