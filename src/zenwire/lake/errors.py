"""Exceptions of the lake."""

from __future__ import annotations

from zenwire.errors import ZError

__all__ = ["LakeConflictError", "LakeError"]


class LakeError(ZError):
    """A lake operation failed. ``place`` is the table or file, ``reason`` the cause."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason


class LakeConflictError(LakeError):
    """Another writer committed first. Nothing was committed; read the table again and retry."""
