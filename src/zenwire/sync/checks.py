"""Arguments are checked where they are given: in the loop, nobody could tell who gave them."""

from __future__ import annotations

from zenwire.api.checks import check
from zenwire.api.publisher import bytes_of
from zenwire.api.values import Encoding, IntoZBytes

__all__ = ["check", "encoding_of", "payload_of"]


def payload_of(value: IntoZBytes, name: str = "payload") -> bytes:
    """The bytes of now: what the program changes later is not sent. Raises TypeError."""
    return bytes_of(value, name)


def encoding_of(value: Encoding | str | None) -> Encoding | None:
    """The encoding; None stays None, which is another one for each who gets it."""
    return None if value is None else Encoding.of(value)
