"""Batches to network messages: which FRAMEs are new, and what fragments amount to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, get_args

from zenwire.errors import DecodeError
from zenwire.transport.budget import Share
from zenwire.transport.codec import batch_messages, whole_message
from zenwire.transport.events import Received
from zenwire.transport.fragments import Reassembly
from zenwire.transport.framing import Spans
from zenwire.transport.refused import MalformedError
from zenwire.transport.sequence import LANES, Newest, lane
from zenwire.transport.stats import Cause, Stats
from zenwire.wire.batch import BatchMessage
from zenwire.wire.network import NetworkMessage
from zenwire.wire.repeat import TOGETHER_MAX, KnownReader
from zenwire.wire.transport import Close, Fragment, Frame, Join, KeepAlive, TransportOam
from zenwire.wire.values import Priority, Resolution

__all__ = ["BatchReader", "Few", "Inbox", "Lanes", "read_batch"]

T = TypeVar("T")

Few = tuple[list[NetworkMessage], Frame]
"""Messages, and a FRAME that is like theirs: what `Received` has, of what comes again and again."""

LESSON_MAX = 1 + TOGETHER_MAX
"""Messages of a batch that something is learnt of."""


class _Used(dict[int, T]):
    """What lanes have, by their places. Most sessions use few of them: it is made when one does."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[int], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, at: int) -> T:
        made = self[at] = self._make(at)
        return made


class Lanes:
    """What a session has received in each lane; all its links share it."""

    __slots__ = ("before", "counts_on", "ended", "mask", "newest", "qos", "reassembly")

    def __init__(
        self, resolution: Resolution, first_sns: list[int], qos: bool, patch: int, share: Share
    ) -> None:
        self.mask = resolution.sn_modulus - 1
        self.qos = qos
        self.before = [first - 1 & self.mask for first in first_sns]
        """The newest numbers before there are any."""
        self.newest = _Used(lambda at: Newest(resolution, first_sns[at]))
        self.reassembly = _Used(lambda _: Reassembly(share, patch >= 1))
        self.ended = [False] * LANES
        """Where the newest number was that of the last piece of a message."""
        self.counts_on = False

    def release(self, stats: Stats) -> None:
        """Nothing more comes: unfinished messages are given up."""
        for reassembly in self.reassembly.values():
            reassembly.abort(stats, Cause.FRAGMENT_INTERRUPTED)


class Inbox:
    """The lanes as one link sees them, with its counters.

    Raises MalformedError for what ends the link.
    """

    __slots__ = ("known", "lanes", "stats")

    def __init__(self, lanes: Lanes, stats: Stats) -> None:
        self.lanes = lanes
        self.stats = stats
        self.known = KnownReader()

    def frame(self, priority: Priority, reliable: bool, sn: int) -> bool:
        """Whether the messages of a FRAME are new."""
        at = self._lane(priority, reliable, sn)
        self.stats.rx_frames += 1
        if not self._new(at, sn):
            return False
        reassembly = self.lanes.reassembly.get(at)
        if reassembly is not None and reassembly.unfinished:
            reassembly.abort(self.stats, Cause.FRAGMENT_INTERRUPTED)
        return True

    def few(self, data: bytes, batches: Spans) -> Few | None:
        """What batches amount to that say what others before said, but for what varies.

        None, and nothing is done, if one of them does not.
        """
        last = self.known.last
        if last is None:
            return None
        lanes, read, at = self.lanes, self.known.read, last.tag
        reassembly = lanes.reassembly.get(at)
        if lanes.ended[at] or (reassembly is not None and reassembly.unfinished):
            return None
        newest, messages = lanes.newest[at], None
        sn = newest.last
        for start, end in batches:
            sn = sn + 1 & newest.mask
            found = read(data, sn, start, end)
            if found is None:
                return None
            messages = found if messages is None else messages + found
        if messages is None:
            return None
        newest.last = sn
        stats = self.stats
        stats.rx_frames += len(batches)
        stats.rx_messages += len(messages)
        return messages, last.frame

    def learn(self, content: bytes, messages: list[BatchMessage], found: list[Found]) -> None:
        """Of a batch that was read as these messages, and amounts to that."""
        if len(found) != 1 or not isinstance(found[0], Received) or len(messages) > LESSON_MAX:
            return
        at, known, frame = lane(found[0].priority, found[0].reliable), self.known, messages[0]
        again = known.last is not None and known.last.tag == at
        if again and isinstance(frame, Frame) and known.read(content, frame.sn) is not None:
            # It comes here after a gap, and there are not lessons without end.
            return
        known.learn(content, messages, at)

    def fragment(
        self,
        priority: Priority,
        reliable: bool,
        sn: int,
        payload: bytes,
        *,
        more: bool,
        first: bool = False,
        drop: bool = False,
    ) -> bytearray | None:
        """The message that is whole with this FRAGMENT, as bytes, or None."""
        at = self._lane(priority, reliable, sn)
        self.stats.rx_fragments += 1
        if not self._new(at, sn, ends=not more):
            return None
        reassembly = self.lanes.reassembly[at]
        mask = self.lanes.mask
        return reassembly.push(payload, sn, mask, self.stats, more=more, first=first, drop=drop)

    # For whoever reads many FRAMEs at once: see `Bursts`.

    @property
    def mask(self) -> int:
        """The greatest sequence number."""
        return self.lanes.mask

    @property
    def qos(self) -> bool:
        """Whether there are priorities."""
        return self.lanes.qos

    def numbers(self) -> list[int]:
        """The newest number of each lane, -1 where that is not all there is to know."""
        lanes, ended, reassembly = self.lanes, self.lanes.ended, self.lanes.reassembly
        numbers = lanes.before.copy()
        for at, newest in lanes.newest.items():
            pieces = ended[at] or (at in reassembly and reassembly[at].unfinished)
            numbers[at] = -1 if pieces else newest.last
        return numbers

    def took(
        self, newest: dict[int, int], batches: int, frames: int, messages: int, missing: int
    ) -> None:
        """So much was taken, and these are the newest numbers of lanes."""
        for at, last in newest.items():
            self.lanes.newest[at].last = last
        stats = self.stats
        stats.rx_batches += batches
        stats.rx_frames += frames
        stats.rx_messages += messages
        stats.rx_missing += missing

    def _lane(self, priority: Priority, reliable: bool, sn: int) -> int:
        lanes = self.lanes
        if sn > lanes.mask:
            raise MalformedError(f"sequence number {sn} is above {lanes.mask}")
        if priority is not Priority.DATA and not lanes.qos:
            raise MalformedError(f"priority {priority.name} in a session without QoS")
        return lane(priority, reliable)

    def _new(self, at: int, sn: int, *, ends: bool = False) -> bool:
        lanes = self.lanes
        skipped = lanes.newest[at].accept(sn)
        if isinstance(skipped, Cause):
            self.stats.dropped[skipped] += 1
            return False
        if lanes.ended[at]:
            # The reference leaves out one number after the last piece of a message; who went on
            # with the next one once does not.
            if not skipped:
                lanes.counts_on = True
            elif not lanes.counts_on:
                skipped -= 1
        lanes.ended[at] = ends
        self.stats.rx_missing += skipped
        return True


Found = Received | Close | TransportOam | Join
"""What a batch amounts to."""

BatchReader = Callable[[bytes, Inbox], tuple[list[Found], str | None]]
"""Reads a whole batch, asking the inbox about each FRAME and FRAGMENT in it.

Gives what it found, in order and up to the fault, and what the fault was, if there was one.
"""


_NETWORK = frozenset(get_args(NetworkMessage))


def read_batch(content: bytes, inbox: Inbox) -> tuple[list[Found], str | None]:
    """The reader that makes objects of all messages."""
    known = inbox.few(content, ((0, len(content)),))
    if known is not None:
        few, frame = known
        return [Received(few, frame.priority, frame.reliable)], None
    messages, fault = batch_messages(content)
    found: list[Found] = []
    run: list[NetworkMessage] | None = None
    stats = inbox.stats
    try:
        for message in messages:
            if type(message) in _NETWORK:
                if run is not None:
                    run.append(message)  # type: ignore[arg-type] # of the types just looked up
                    stats.rx_messages += 1
            elif isinstance(message, Frame):
                run = None
                if inbox.frame(message.priority, message.reliable, message.sn):
                    run = []
                    found.append(Received(run, message.priority, message.reliable))
            elif isinstance(message, Fragment):
                whole = inbox.fragment(
                    message.priority,
                    message.reliable,
                    message.sn,
                    message.payload,
                    more=message.more,
                    first=message.first,
                    drop=message.drop,
                )
                if whole is not None:
                    one: list[NetworkMessage] = [whole_message(whole)]
                    found.append(Received(one, message.priority, message.reliable))
                    stats.rx_messages += 1
            elif isinstance(message, Close | TransportOam | Join):
                found.append(message)
                # Nobody has defined any, but whoever wants to look gets it.
                stats.rx_ignored += isinstance(message, TransportOam)
            elif not isinstance(message, KeepAlive):
                # INIT and OPEN mean nothing here, and do no harm.
                stats.rx_ignored += 1
    except (DecodeError, MalformedError) as e:
        return found, str(e)
    if fault is not None:
        return found, str(fault)
    inbox.learn(content, messages, found)
    return found, None
