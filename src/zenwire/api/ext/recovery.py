"""How an advanced subscriber learns of samples that it lost, and gets them after all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

__all__ = ["MissDetectionConfig", "RecoveryConfig"]


def _seconds_of(what: str, period: float | timedelta) -> float:
    """A period, in seconds. Raises ValueError for none."""
    seconds = period.total_seconds() if isinstance(period, timedelta) else float(period)
    if not seconds > 0:
        raise ValueError(f"{what} is a period in seconds, above zero, not {period}")
    return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryConfig:
    """Ask for samples that are missing, as soon as a later one shows it.

    That the last one is missing, no later one shows. Either publishers tell their last number
    (``heartbeat``), or they are asked for later samples now and then (``periodic_queries``, in
    seconds).
    """

    periodic_queries: float | timedelta | None = None
    heartbeat: Literal[True] | None = None

    def __post_init__(self) -> None:
        if (self.periodic_queries is None) == (not self.heartbeat):
            raise ValueError("recovery is by heartbeat=True or by periodic_queries, one of them")
        if self.periodic_queries is not None:
            _seconds_of("periodic_queries", self.periodic_queries)

    @property
    def period(self) -> float | None:
        """Of queries, in seconds."""
        if self.periodic_queries is None:
            return None
        return _seconds_of("periodic_queries", self.periodic_queries)


@dataclass(frozen=True, slots=True, kw_only=True)
class MissDetectionConfig:
    """Number the samples of a publisher, so that subscribers see which they lost.

    ``heartbeat``: tell the last number every so many seconds. ``sporadic_heartbeat``: only if it
    has changed, but then surely.
    """

    heartbeat: float | None = None
    sporadic_heartbeat: float | None = None

    def __post_init__(self) -> None:
        if self.heartbeat is not None and self.sporadic_heartbeat is not None:
            raise ValueError("a heartbeat is sporadic or not: give one of both")
        # Raises, if it is no period.
        _ = self.period

    @property
    def period(self) -> float | None:
        """In seconds; None without a heartbeat."""
        if self.heartbeat is not None:
            return _seconds_of("heartbeat", self.heartbeat)
        if self.sporadic_heartbeat is not None:
            return _seconds_of("sporadic_heartbeat", self.sporadic_heartbeat)
        return None
