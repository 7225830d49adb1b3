"""Arguments are checked where they are given: in the loop, nobody could tell who gave them."""

from __future__ import annotations

from typing import Any

from zenwire.api.publisher import bytes_of
from zenwire.api.replies import CancellationToken
from zenwire.api.values import (
    CongestionControl,
    Encoding,
    IntoZBytes,
    Locality,
    Priority,
    QueryTarget,
    Reliability,
    ReplyKeyExpr,
    SourceInfo,
    Timestamp,
    TimestampInstrumentation,
)

__all__ = ["check", "encoding_of", "payload_of"]

_KINDS: dict[str, type] = {
    "accept_replies": ReplyKeyExpr,
    "allowed_destination": Locality,
    "allowed_origin": Locality,
    "cancellation_token": CancellationToken,
    "congestion_control": CongestionControl,
    "priority": Priority,
    "reliability": Reliability,
    "source_info": SourceInfo,
    "target": QueryTarget,
    "timestamp": Timestamp,
    "timestamp_instrumentation": TimestampInstrumentation,
}


def check(**values: Any) -> None:
    """Raise TypeError for what is not of the kind that its name has; None is of any."""
    for name, value in values.items():
        if value is not None and not isinstance(value, _KINDS[name]):
            raise TypeError(f"{name} is a {_KINDS[name].__name__}, not {type(value).__name__}")


def payload_of(value: IntoZBytes) -> bytes:
    """The bytes of now: what the program changes later is not sent."""
    if value is None:
        raise TypeError("a payload is bytes or text, not None; b'' is an empty one")
    return bytes_of(value)


def encoding_of(value: Encoding | str | None) -> Encoding | None:
    """The encoding; None stays None, which is another one for each who gets it."""
    if value is None or isinstance(value, (Encoding, str)):
        return None if value is None else Encoding.of(value)
    raise TypeError(f"an encoding is an Encoding or text, not {type(value).__name__}")
