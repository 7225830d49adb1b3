"""What can be wrong with a spool. Each says where, what, and what to try.

- ``SpoolError``: there is no spool there, or it cannot be used; has path, reason
    - ``SpoolLocked``: somebody else writes it; has owner
    - ``SpoolDamaged``: files that are not what was written; has file
    - ``SpoolFailed``: its writer has stopped, and why
    - ``OffsetGone``: rows that retention has removed; has offset, earliest
"""

from __future__ import annotations

from zenwire.errors import ZError

__all__ = ["OffsetGone", "SpoolDamaged", "SpoolError", "SpoolFailed", "SpoolLocked"]


class SpoolError(ZError):
    """There is no spool there, or it cannot be used."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class SpoolLocked(SpoolError):  # noqa: N818 - the word says what is the matter
    """A spool has one writer, and this one has another. ``owner`` says which."""

    def __init__(self, path: str, owner: str) -> None:
        super().__init__(path, f"is being written by {owner}; a spool has one writer")
        self.owner = owner

    def __reduce__(self) -> tuple[type[SpoolLocked], tuple[str, str]]:
        return type(self), (self.path, self.owner)


class SpoolDamaged(SpoolError):  # noqa: N818 - the word says what is the matter
    """``file`` is not what was written. What is before and after it can be read."""

    def __init__(self, path: str, file: str, reason: str) -> None:
        super().__init__(path, f"{file} is damaged: {reason}")
        self.file = file
        self.what = reason

    def __reduce__(self) -> tuple[type[SpoolDamaged], tuple[str, str, str]]:
        return type(self), (self.path, self.file, self.what)


class SpoolFailed(SpoolError):  # noqa: N818 - the word says what is the matter
    """The writer has stopped; nothing can be appended any more."""


class OffsetGone(SpoolError):  # noqa: N818 - the word says what is the matter
    """Rows that retention has removed were asked for. ``earliest`` is the first that is there."""

    def __init__(self, path: str, offset: int, earliest: int) -> None:
        super().__init__(
            path, f"offset {offset} is gone, the first that is there is {earliest}; start from that"
        )
        self.offset = offset
        self.earliest = earliest

    def __reduce__(self) -> tuple[type[OffsetGone], tuple[str, int, int]]:
        return type(self), (self.path, self.offset, self.earliest)
