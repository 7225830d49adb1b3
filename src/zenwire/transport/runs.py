"""Messages that are put together before they go out: a run becomes what one FRAME holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from zenwire.transport.sequence import lane
from zenwire.wire.buffer import Buffer
from zenwire.wire.repeat import FrameHeads

if TYPE_CHECKING:
    from zenwire.transport.outbox import Outbox
    from zenwire.wire.values import Priority

__all__ = ["Lane", "Owner", "Run"]


class Owner(Protocol):
    """Somebody who has counted messages of a run before they are added."""

    def give_back(self, run: Run) -> None:
        """Take back from its ``count`` and ``left`` what was not added. Nothing more is."""


class Run:
    """Messages of one lane, back to back, that fit a batch: what one FRAME holds."""

    __slots__ = ("_room", "by", "count", "ends", "lane", "left", "owner", "parts")

    def __init__(self, lane: Lane, left: int) -> None:
        self.lane = lane
        self.parts: list[Buffer] = [b""]
        """The first one is what stands before them."""
        self.count = 0
        """How many messages they are; whoever adds ``parts`` counts here, and below."""
        self.left = left
        """Bytes that may be added without asking."""
        self.ends = False
        """The batch ends with it."""
        self.owner: Owner | None = None
        """Who adds messages that are counted already. ``settle`` ends that."""
        self.by: Owner | None = None
        """Who has added something last, if it was one of those."""
        self._room = left

    @property
    def size(self) -> int:
        if self.owner is not None:
            self.settle()
        return self._room - self.left

    def resize(self, left: int) -> None:
        """Another room, for one that has nothing in it."""
        self.left = self._room = left

    def settle(self) -> None:
        """Count what was added, and no more."""
        owner, self.owner = self.owner, None
        if owner is not None:
            owner.give_back(self)

    def add(self, data: Buffer, count: int = 1) -> None:
        """So many messages more, whether there is room or not."""
        self.parts.append(data)
        self.left -= len(data)
        self.count += count

    def close(self) -> None:
        """Nothing more is added."""
        self._room -= self.left
        self.left = 0

    def end(self) -> None:
        """The batch ends with what was added last."""
        self.ends = True
        self.close()


class Lane:
    """One lane of an outbox: a priority with a reliability. ``run`` is what may be added to."""

    __slots__ = ("_high", "_size", "at", "heads", "outbox", "priority", "reliable", "run")

    def __init__(self, outbox: Outbox, priority: Priority, reliable: bool) -> None:
        self.outbox = outbox
        self.priority = priority
        self.reliable = reliable
        self.at = lane(priority, reliable)
        self.heads = FrameHeads(priority, reliable)
        self.run = Run(self, 0)
        self._high = -1
        self._size = 0

    def head_size(self, sn: int) -> int:
        """How many bytes stand before the messages of a FRAME; seldom another than before."""
        if sn >> 7 != self._high:
            self._high, self._size = sn >> 7, len(self.heads.head(sn))
        return self._size

    @property
    def batching(self) -> bool:
        """Whether messages share batches; else ``end`` is called after each."""
        return self.outbox.batching

    def begin(self) -> None:
        """Its run goes to the end of its queue, before the first message is added."""
        self.outbox.begin(self)

    def renew(self) -> Run:
        """The run that comes after one that has no room; perhaps it has none either."""
        self.outbox.seal(self.priority)
        return self.run

    def end(self) -> None:
        """The batch ends with the message that was added last."""
        self.run.end()
