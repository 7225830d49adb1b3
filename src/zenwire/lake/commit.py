"""The commit interface: what a table format has to offer, and nothing else.

A commit adds files, removes files and records offsets, all or nothing. The offset of a spool is the
end of the rows that the table has of it, so a repeated or overlapping range is recognised from the
table alone. A commit whose spools or removed files were changed by another writer meanwhile raises
LakeConflictError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from zenwire.lake.files import DataFile
from zenwire.lake.schema import Table

__all__ = ["Change", "CommittedTable"]


@dataclass(frozen=True)
class Change:
    """One commit to one table.

    ``offsets`` maps spool ids to the end of their rows. ``rearranges``: the removed files hold the
    rows of the added ones, so streams that read the table have nothing to do.
    """

    add: Sequence[DataFile] = ()
    remove: Sequence[DataFile] = ()
    offsets: Mapping[str, int] = field(default_factory=dict)
    rearranges: bool = False

    def __bool__(self) -> bool:
        return bool(self.add or self.remove or self.offsets)


class CommittedTable(Protocol):
    """A table of a lake in one format, as of the last ``refresh``."""

    definition: Table

    @property
    def version(self) -> int:
        """Number of the snapshot, which grows by each commit."""

    def refresh(self) -> None:
        """Read the newest snapshot."""

    def files(self) -> list[DataFile]:
        """Files of the snapshot."""

    def offset(self, spool_id: str) -> int | None:
        """End of the committed rows of a spool, or None for a spool without any."""

    def recent(self, keep: timedelta) -> set[str]:
        """Paths of files that the snapshots of the last ``keep`` refer to."""

    def commit(self, change: Change) -> None:
        """Commit to the snapshot, then refresh. Raises LakeConflictError, LakeError."""
