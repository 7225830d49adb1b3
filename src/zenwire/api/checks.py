"""Arguments that are not of their kind are refused where they are given."""

from __future__ import annotations

from typing import Any, Final

from zenwire.api.replies import CancellationToken
from zenwire.api.values import (
    CongestionControl,
    Locality,
    Priority,
    QueryTarget,
    Reliability,
    ReplyKeyExpr,
    SourceInfo,
    Timestamp,
    TimestampInstrumentation,
)

__all__ = ["check", "check_kinds"]

_KINDS: Final[dict[str, type]] = {
    "accept_replies": ReplyKeyExpr,
    "allowed_destination": Locality,
    "allowed_origin": Locality,
    "budget": int,
    "cancellation_token": CancellationToken,
    "complete": bool,
    "congestion_control": CongestionControl,
    "express": bool,
    "history": bool,
    "priority": Priority,
    "reliability": Reliability,
    "source_info": SourceInfo,
    "target": QueryTarget,
    "timestamp": Timestamp,
    "timestamp_instrumentation": TimestampInstrumentation,
}


def check(**values: Any) -> None:
    """Raise TypeError for what is not of the kind that its name has; None is of any."""
    check_kinds(_KINDS, values)


def check_kinds(kinds: dict[str, type], values: dict[str, Any]) -> None:
    """The same with kinds of one's own."""
    for name, value in values.items():
        if value is not None and not isinstance(value, kinds[name]):
            article = "an" if kinds[name].__name__[0] in "aeiou" else "a"
            raise TypeError(
                f"{name} is {article} {kinds[name].__name__}, not {type(value).__name__}"
            )
