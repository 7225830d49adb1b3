"""Aggregates: key expressions that sessions declare in place of the ones they include."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zenwire.keyexpr import includes

__all__ = ["Aggregates"]


@dataclass(frozen=True, slots=True)
class Aggregates:
    """Key expressions with their namespace, in the order of the configuration.

    The network hears of an aggregate once, however many subscribers or publishers it stands for.
    """

    subscribers: Sequence[str] = ()
    publishers: Sequence[str] = ()

    def of_subscriber(self, key: str) -> str:
        """Return the key expression to declare for a subscriber."""
        return _first(self.subscribers, key)

    def of_publisher(self, key: str) -> str:
        """Return the key expression to ask for on behalf of a publisher."""
        return _first(self.publishers, key)


def _first(aggregates: Sequence[str], key: str) -> str:
    return next((one for one in aggregates if includes(one, key)), key)
