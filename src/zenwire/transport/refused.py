"""Why a link ends from this side. Both are turned into a Closed event; they never leave a machine."""

from __future__ import annotations

from zenwire.errors import ZError
from zenwire.wire.values import CloseReason

__all__ = ["MalformedError", "RefusedError"]


class RefusedError(ZError):
    """The other side is told by a CLOSE with this reason."""

    def __init__(self, reason: CloseReason, text: str) -> None:
        super().__init__(reason, text)
        self.reason = reason
        self.text = text

    def __str__(self) -> str:
        return self.text


class MalformedError(ZError):
    """What came makes no sense in an open session: the link ends without a CLOSE."""
