"""Messages that are put together before they go out: a run becomes what one FRAME holds."""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING, Protocol

from zenwire.transport.codec import message_sizes
from zenwire.transport.sequence import lane
from zenwire.wire.buffer import Buffer
from zenwire.wire.repeat import FrameHeads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zenwire.transport.queues import Queues
    from zenwire.wire.values import Priority

__all__ = ["Lane", "Owner", "Queued", "Run"]

Queued = tuple[bytes, bool, bool]
"""A message that is larger than a batch: its bytes, reliable, may be dropped."""


class Owner(Protocol):
    """Somebody who has counted messages of a run before they are added."""

    def give_back(self, run: Run) -> None:
        """Take back from its ``count`` and ``left`` what was not added. Nothing more is."""


class Run:
    """Messages of one lane, back to back, that fit a batch: what one FRAME holds."""

    __slots__ = ("before", "by", "count", "ends", "lane", "left", "owner", "parts", "room")

    def __init__(self, lane: Lane, left: int) -> None:
        self.lane = lane
        self.parts: list[Buffer] = [b""]
        """The first one is what stands before them."""
        self.before = b""
        """What stands before each of the others, if they are the values of one stream."""
        self.count = 0
        """How many messages they are; whoever adds ``parts`` counts here, and below."""
        self.left = left
        """Bytes that may be added without asking."""
        self.ends = False
        """The batch ends with it."""
        self.owner: Owner | None = None
        """Who adds messages that are counted already. ``settle`` ends that."""
        self.by: Owner | None = None
        """Who has added something last, if it was one of those, and it has not gone out."""
        self.room = left
        """What ``left`` was when there was nothing in it."""

    @property
    def size(self) -> int:
        if self.owner is not None:
            self.settle()
        return self.room - self.left

    def resize(self, left: int) -> None:
        """Another room, for one that has nothing in it."""
        self.left = self.room = left

    def settle(self) -> None:
        """Count what was added, and no more."""
        owner, self.owner = self.owner, None
        if owner is not None:
            owner.give_back(self)

    def add_value(self, before: bytes, value: bytes) -> None:
        """One message that begins like others, whether there is room or not."""
        if not self.count:
            self.before = before
        elif self.before is not before:
            self.mix()
        if self.before:
            self.parts.append(value)
        else:
            self.parts += (before, value)
        self.left -= len(before) + len(value)
        self.count += 1

    def add_values(self, before: bytes, values: Sequence[bytes]) -> None:
        """Messages that begin alike, and are as long as the first."""
        first, *others = values
        self.add_value(before, first)
        if self.before:
            self.parts += others
        else:
            self.parts += chain.from_iterable(zip(repeat(before), others))
        self.left -= len(others) * (len(before) + len(first))
        self.count += len(others)

    def mix(self) -> None:
        """Let others add to it: what is there needs nothing before it any more."""
        if self.owner is not None:
            self.settle()
        if self.before:
            self.parts = [b"", self.before.join(self.parts)]
            self.before = b""

    def add(self, data: Buffer, count: int = 1) -> None:
        """So many messages more, whether there is room or not."""
        self.parts.append(data)
        self.left -= len(data)
        self.count += count

    def split(self, room: int) -> list[Queued | Run]:
        """The same in runs of so many bytes at most, and in messages that have more."""
        whole, at = self.before.join(self.parts), 0
        found: list[Queued | Run] = []
        for size in message_sizes(whole):
            message = whole[at : at + size]
            at += size
            last = found[-1] if found else None
            if size > room:
                found.append((message, self.lane.reliable, False))
                continue
            if type(last) is not Run or last.size + size > room:
                last = Run(self.lane, 0)
                found.append(last)
            last.add(message)
        last = found[-1]
        if type(last) is Run:
            last.ends = self.ends
        return found

    def close(self) -> None:
        """Nothing more is added."""
        self.room -= self.left
        self.left = 0

    def end(self) -> None:
        """The batch ends with what was added last."""
        self.ends = True
        self.close()


class Lane:
    """One lane of a link: a priority with a reliability. ``run`` is what may be added to."""

    __slots__ = ("_high", "_size", "at", "heads", "priority", "queues", "reliable", "run")

    def __init__(self, queues: Queues, priority: Priority, reliable: bool) -> None:
        self.queues = queues
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
        return self.queues.batching

    def begin(self) -> None:
        """Its run goes to the end of its queue, before the first message is added."""
        self.queues.begin(self)

    def renew(self) -> Run:
        """The run that comes after one that has no room; perhaps it has none either."""
        self.queues.seal(self.priority)
        return self.run

    def end(self) -> None:
        """The batch ends with the message that was added last."""
        self.run.end()
