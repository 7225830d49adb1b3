"""What the configuration of a node says of its routing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from zenwire.routing.aggregates import Aggregates

__all__ = ["RoutingOptions"]

_NO_AGGREGATES: Final = Aggregates()


@dataclass(frozen=True, slots=True)
class RoutingOptions:
    """Options of `Tables`. ``aggregates`` are declared in place of what sessions have below them."""

    aggregates: Aggregates = _NO_AGGREGATES
