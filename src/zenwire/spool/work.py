"""What the thread that makes bytes hands to the thread that writes them. No I/O."""

from __future__ import annotations

from typing import NamedTuple

from zenwire.spool.segment import Message

__all__ = ["Work"]


class Work(NamedTuple):
    """Rows, and what is to be done with them.

    ``asked`` is the number of the last ``flush`` that waits, ``due`` that the interval is over,
    ``look`` that retention is to look for what is old.
    """

    messages: list[Message]
    asked: int
    due: bool
    look: bool
    closing: bool

    @property
    def wants_sync(self) -> bool:
        return bool(self.asked or self.due or self.closing)

    @property
    def size(self) -> int:
        return sum(message.data.size for message in self.messages)

    def and_then(self, other: Work) -> Work:
        """Both at once."""
        return Work(
            self.messages + other.messages,
            max(self.asked, other.asked),
            self.due or other.due,
            self.look or other.look,
            self.closing or other.closing,
        )
