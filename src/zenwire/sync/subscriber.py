"""Subscribers."""

from __future__ import annotations

from typing import Generic

from zenwire.api.handlers import H
from zenwire.api.values import Sample
from zenwire.sync.declared import Entity, Receiving

__all__ = ["Subscriber"]


class Subscriber(Entity, Receiving[Sample], Generic[H]):
    """Gets samples, or with a liveliness subscriber the coming and going of tokens."""

    @property
    def handler(self) -> H:
        """A Handler; of a pair, what it had to read from; for a callback None."""
        handler: H = self._handler
        return handler
