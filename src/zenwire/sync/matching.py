"""Matching: whether a publisher or a querier has anybody on the other side."""

from __future__ import annotations

from typing import Any, Generic, overload

from zenwire.api import matching as aio
from zenwire.api.handlers import Called, Channelled, H, IntoHandler, Paired
from zenwire.api.values import MatchingStatus
from zenwire.sync.declared import Entity, Receiving
from zenwire.sync.handler import Handler, Reading

__all__ = ["Matcher", "MatchingListener"]


class Matcher(Entity):
    """A publisher or querier."""

    _inner: aio.Matcher

    @property
    def matching_status(self) -> MatchingStatus:
        """Whether there is anybody now."""
        inner = self._inner
        return self._session.loop.call(lambda: inner.matching_status)

    @overload
    def declare_matching_listener(
        self, handler: Channelled[MatchingStatus] = None
    ) -> MatchingListener[Handler[MatchingStatus]]: ...
    @overload
    def declare_matching_listener(
        self, handler: Paired[MatchingStatus, H]
    ) -> MatchingListener[H]: ...
    @overload
    def declare_matching_listener(
        self, handler: Called[MatchingStatus]
    ) -> MatchingListener[None]: ...
    def declare_matching_listener(
        self, handler: IntoHandler[MatchingStatus] = None
    ) -> MatchingListener[Any]:
        """Be told of changes; and at once, if there is somebody."""
        reading = Reading(handler)
        inner = self._session.loop.run(lambda: self._inner.declare_matching_listener(reading.into))
        return MatchingListener(self._session, inner, reading)


class MatchingListener(Receiving[MatchingStatus], Generic[H]):
    """Gets a status whenever it changes."""

    @property
    def handler(self) -> H:
        """A Handler to read from; of a pair, its second half; None for a callback."""
        handler: H = self._handler
        return handler
