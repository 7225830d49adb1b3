"""Queries that are under way: who asked, and along which branches they went.

A face has those it asked in ``asked``, by the ids it knows, and those it was asked in
``branches``, by the ids that it answers with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zenwire.routing.consolidation import Consolidation
    from zenwire.routing.faces import Face
    from zenwire.wire.network import Request

__all__ = ["Branch", "Pending"]


class Pending:
    """A query of a face, until its end. ``deadline`` is when that comes at the latest."""

    __slots__ = (
        "answers",
        "anyke",
        "branches",
        "consolidation",
        "deadline",
        "done",
        "key",
        "message",
        "node_id",
        "origin",
        "request_id",
        "size",
    )

    def __init__(  # noqa: PLR0917 # there is one for each query
        self,
        origin: Face,
        request_id: int,
        key: str,
        message: Request,
        deadline: float,
        anyke: bool,
        size: int = 0,
        node_id: int = 0,
        consolidation: Consolidation | None = None,
    ) -> None:
        self.origin = origin
        self.request_id = request_id
        self.key = key
        self.message = message
        self.deadline = deadline
        self.anyke = anyke
        self.size = size
        self.node_id = node_id
        self.consolidation = consolidation
        """What the replies go through, if a session of this node asked."""
        self.answers = 0
        self.branches: dict[Branch, None] = {}
        """Where it is not done yet, in order."""
        self.done = False


class Branch:
    """A query on its way to one face. For a session, ``open`` are queryables not finished yet."""

    __slots__ = ("face", "id", "open", "pending")

    def __init__(
        self, pending: Pending, face: Face, number: int, queryables: tuple[int, ...] = ()
    ) -> None:
        self.pending = pending
        self.face = face
        self.id = number
        self.open = queryables
        pending.branches[self] = None
        face.branches[number] = self

    def leave(self) -> Pending:
        """It is done. Gives the query that it was of."""
        pending = self.pending
        pending.branches.pop(self, None)
        self.face.branches.pop(self.id, None)
        return pending
